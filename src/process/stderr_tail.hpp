// StderrTail: cuts what a child writes to stderr into lines and keeps the last few. No I/O.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::process {

class StderrTail {
 public:
  using Line = std::function<void(std::string_view)>;

  // Keeps the last `keep_lines` lines, and of these no more than 16 KiB. A line over `line_bytes` is cut, at
  // a character's boundary. `on_line`, when given, sees each line.
  StderrTail(std::size_t keep_lines, std::size_t line_bytes, Line on_line = {});

  // From here on.
  void on_line(Line on_line) { on_line_ = std::move(on_line); }

  void feed(std::string_view bytes);
  // The stream is over: what had no newline is a line too.
  void finish();

  // Whether `line`, as `on_line` sees it, may be the beginning of a longer one.
  bool may_be_cut(std::string_view line) const noexcept { return line.size() + 4 > line_bytes_; }
  // Oldest first; an unfinished line is the last.
  std::vector<std::string> lines() const;

 private:
  std::string_view skip_what_would_not_be_kept(std::string_view bytes) const;
  void append(std::string_view piece);
  void end_line();

  // Of the kept lines together: every error about the child carries them.
  static constexpr std::size_t kMaxKeptBytes = 16u << 10;

  std::size_t keep_lines_;
  std::size_t line_bytes_;
  Line on_line_;
  std::deque<std::string> kept_;
  std::size_t kept_bytes_ = 0;
  std::string line_;
};

}  // namespace fairlead::process
