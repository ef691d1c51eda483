#include "process/stderr_tail.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::process {

namespace {

// Returns `text` without an incomplete UTF-8 character at its end.
std::string_view trim_incomplete_character(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && text.size() - end < 3 && (static_cast<unsigned char>(text[end - 1]) & 0xc0) == 0x80)
    --end;
  if (end == 0) return text;
  const auto lead = static_cast<unsigned char>(text[end - 1]);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return text.size() - (end - 1) < length ? text.substr(0, end - 1) : text;
}

}  // namespace

StderrTail::StderrTail(std::size_t max_lines, std::size_t max_line_bytes, LineCallback on_line)
    : max_first_lines_(max_lines / 4),
      max_lines_(max_lines - max_first_lines_),
      max_line_bytes_(max_line_bytes),
      on_line_(std::move(on_line)),
      first_complete_(max_first_lines_ == 0) {}

void StderrTail::feed(std::string_view bytes) {
  bytes = skip_discarded_lines(bytes);
  for (std::size_t newline; (newline = bytes.find('\n')) != std::string_view::npos;) {
    append(bytes.substr(0, newline));
    end_line();
    bytes.remove_prefix(newline + 1);
  }
  append(bytes);
}

void StderrTail::finish() {
  if (!partial_line_.empty()) end_line();
}

std::vector<std::string> StderrTail::lines() const {
  std::deque<std::string> last = retained_;
  std::size_t omitted = omitted_lines_;
  if (!partial_line_.empty()) last.emplace_back(trim_incomplete_character(partial_line_));
  if (last.size() > max_lines_) {
    last.pop_front();
    ++omitted;
  }
  std::vector<std::string> all = first_;
  if (omitted > 0 && !first_.empty())
    all.push_back("… " + std::to_string(omitted) + (omitted == 1 ? " line" : " lines") + " omitted …");
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

// Skips lines that would be discarded anyway, so that they are not copied when a child writes much.
std::string_view StderrTail::skip_discarded_lines(std::string_view bytes) {
  if (on_line_ || !first_complete_) return bytes;
  std::size_t end = bytes.size();
  for (std::size_t lines = 0; lines <= max_lines_; ++lines) {
    const std::size_t newline = bytes.substr(0, end).rfind('\n');
    if (newline == std::string_view::npos) return bytes;
    end = newline;
  }
  omitted_lines_ += static_cast<std::size_t>(std::ranges::count(bytes.substr(0, end), '\n'));
  return bytes.substr(end);
}

// Moves `line` to the first lines, unless they are complete.
bool StderrTail::retain_as_first(std::string& line) {
  first_complete_ =
      first_complete_ || first_.size() >= max_first_lines_ || first_bytes_ + line.size() > kMaxFirstBytes;
  if (first_complete_) return false;
  first_bytes_ += line.size();
  first_.push_back(std::exchange(line, {}));
  return true;
}

void StderrTail::append(std::string_view piece) {
  partial_line_ += piece.substr(0, max_line_bytes_ - std::min(max_line_bytes_, partial_line_.size()));
}

void StderrTail::end_line() {
  if (partial_line_.ends_with('\r')) partial_line_.pop_back();
  if (partial_line_.size() >= max_line_bytes_)
    partial_line_ = std::string(trim_incomplete_character(partial_line_));
  if (on_line_) on_line_(partial_line_);
  if (retain_as_first(partial_line_)) return;
  retained_bytes_ += partial_line_.size();
  retained_.push_back(std::exchange(partial_line_, {}));
  while (retained_.size() > max_lines_ || (retained_bytes_ > kMaxRetainedBytes && retained_.size() > 1)) {
    retained_bytes_ -= retained_.front().size();
    retained_.pop_front();
    ++omitted_lines_;
  }
}

}  // namespace fairlead::process
