#include "process/stderr_tail.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::process {

namespace {

// `text` without the part of a UTF-8 character that a cut left at its end.
std::string_view whole_characters(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && text.size() - end < 3 && (static_cast<unsigned char>(text[end - 1]) & 0xc0) == 0x80)
    --end;
  if (end == 0) return text;
  const auto lead = static_cast<unsigned char>(text[end - 1]);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return text.size() - (end - 1) < length ? text.substr(0, end - 1) : text;
}

}  // namespace

StderrTail::StderrTail(std::size_t keep_lines, std::size_t line_bytes, Line on_line)
    : keep_lines_(keep_lines), line_bytes_(line_bytes), on_line_(std::move(on_line)) {}

void StderrTail::feed(std::string_view bytes) {
  bytes = skip_what_would_not_be_kept(bytes);
  for (std::size_t newline; (newline = bytes.find('\n')) != std::string_view::npos;) {
    append(bytes.substr(0, newline));
    end_line();
    bytes.remove_prefix(newline + 1);
  }
  append(bytes);
}

void StderrTail::finish() {
  if (!line_.empty()) end_line();
}

std::vector<std::string> StderrTail::lines() const {
  std::vector<std::string> all(kept_.begin(), kept_.end());
  if (line_.empty()) return all;
  all.emplace_back(whole_characters(line_));
  if (all.size() > keep_lines_) all.erase(all.begin());
  return all;
}

// Of a flood only the end matters: the rest is not even copied.
std::string_view StderrTail::skip_what_would_not_be_kept(std::string_view bytes) const {
  if (on_line_) return bytes;
  std::size_t end = bytes.size();
  for (std::size_t lines = 0; lines <= keep_lines_; ++lines) {
    const std::size_t newline = bytes.substr(0, end).rfind('\n');
    if (newline == std::string_view::npos) return bytes;
    end = newline;
  }
  return bytes.substr(end);
}

void StderrTail::append(std::string_view piece) {
  line_ += piece.substr(0, line_bytes_ - std::min(line_bytes_, line_.size()));
}

void StderrTail::end_line() {
  if (line_.ends_with('\r')) line_.pop_back();
  if (line_.size() >= line_bytes_) line_ = std::string(whole_characters(line_));
  if (on_line_) on_line_(line_);
  kept_bytes_ += line_.size();
  kept_.push_back(std::exchange(line_, {}));
  while (kept_.size() > keep_lines_ || (kept_bytes_ > kMaxKeptBytes && kept_.size() > 1)) {
    kept_bytes_ -= kept_.front().size();
    kept_.pop_front();
  }
}

}  // namespace fairlead::process
