// StderrTail: splits the stderr of a child into lines and retains the first and the last ones: the first
// often name the cause of a failure, before a long stack trace. Performs no I/O.
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
  using LineCallback = std::function<void(std::string_view)>;

  // Retains `max_lines` lines, a quarter of them the first ones, at most 16 KiB in total. A line longer than
  // `max_line_bytes` is truncated at a character boundary. `on_line`, if set, is called with each line.
  StderrTail(std::size_t max_lines, std::size_t max_line_bytes, LineCallback on_line = {});

  // Sets the callback for the lines that follow.
  void set_on_line(LineCallback on_line) { on_line_ = std::move(on_line); }

  // Appends bytes of the stream, which may end anywhere in a line.
  void feed(std::string_view bytes);
  // Marks the end of the stream: an unterminated last line becomes a line.
  void finish();

  // Returns whether `line`, as passed to `on_line`, may have been truncated.
  bool may_be_truncated(std::string_view line) const noexcept { return line.size() + 4 > max_line_bytes_; }
  // Returns the retained lines, oldest first, including an unterminated last line. If lines are missing after
  // the first ones, there is a line "… 12 lines omitted …" in their place.
  std::vector<std::string> lines() const;

 private:
  std::string_view skip_discarded_lines(std::string_view bytes);
  bool retain_as_first(std::string& line);
  void append(std::string_view piece);
  void end_line();

  // Limit on the total size of the last lines. They are part of every error about the child.
  static constexpr std::size_t kMaxRetainedBytes = 12u << 10;
  // The same for the first lines.
  static constexpr std::size_t kMaxFirstBytes = 4u << 10;

  std::size_t max_first_lines_;
  std::size_t max_lines_;  // at the end
  std::size_t max_line_bytes_;
  LineCallback on_line_;
  std::vector<std::string> first_;
  std::size_t first_bytes_ = 0;
  bool first_complete_ = false;  // no further line is added to first_
  std::size_t omitted_lines_ = 0;
  std::deque<std::string> retained_;
  std::size_t retained_bytes_ = 0;
  std::string partial_line_;  // the beginning of the line that is not complete yet
};

}  // namespace fairlead::process
