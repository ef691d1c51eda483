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
    : max_lines_(max_lines), max_line_bytes_(max_line_bytes), on_line_(std::move(on_line)) {}

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
  std::vector<std::string> all(retained_.begin(), retained_.end());
  if (partial_line_.empty()) return all;
  all.emplace_back(trim_incomplete_character(partial_line_));
  if (all.size() > max_lines_) all.erase(all.begin());
  return all;
}

// Skips lines that would be discarded anyway, so that they are not copied when a child writes much.
std::string_view StderrTail::skip_discarded_lines(std::string_view bytes) const {
  if (on_line_) return bytes;
  std::size_t end = bytes.size();
  for (std::size_t lines = 0; lines <= max_lines_; ++lines) {
    const std::size_t newline = bytes.substr(0, end).rfind('\n');
    if (newline == std::string_view::npos) return bytes;
    end = newline;
  }
  return bytes.substr(end);
}

void StderrTail::append(std::string_view piece) {
  partial_line_ += piece.substr(0, max_line_bytes_ - std::min(max_line_bytes_, partial_line_.size()));
}

void StderrTail::end_line() {
  if (partial_line_.ends_with('\r')) partial_line_.pop_back();
  if (partial_line_.size() >= max_line_bytes_)
    partial_line_ = std::string(trim_incomplete_character(partial_line_));
  if (on_line_) on_line_(partial_line_);
  retained_bytes_ += partial_line_.size();
  retained_.push_back(std::exchange(partial_line_, {}));
  while (retained_.size() > max_lines_ || (retained_bytes_ > kMaxRetainedBytes && retained_.size() > 1)) {
    retained_bytes_ -= retained_.front().size();
    retained_.pop_front();
  }
}

}  // namespace fairlead::process
