// ProgressLine: one line on the terminal that shows what a command is waiting for: the state, the elapsed
// time, the progress that the server reports, and the last line that the server has written to stderr.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/timer.hpp"

namespace fairlead::cli {

class ProgressLine : public std::enable_shared_from_this<ProgressLine> {
 public:
  // Returns null if stderr is not a terminal that can redraw a line. The line must be destroyed before
  // `loop`.
  static std::shared_ptr<ProgressLine> create(Loop& loop);

  explicit ProgressLine(Loop& loop);
  ~ProgressLine();

  // Shows `state`, such as "calling echo", or replaces the state shown. A wait of less than kShowAfter shows
  // nothing.
  void show(std::string state);
  // Clears the line. Called before a command prints its output.
  void hide();

  void set_progress(double progress, std::optional<double> total, const std::string& message);
  void set_message(std::string_view message);
  // Writes `text`, which ends with a line feed, to stderr. The line continues below it.
  void write_above(std::string_view text);

  // Keeps the line hidden for as long as it exists, while the user is asked a question. `line` may be null.
  class Pause {
   public:
    explicit Pause(std::shared_ptr<ProgressLine> line);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    std::shared_ptr<ProgressLine> line_;
    std::string state_;
  };

 private:
  void tick();
  void draw();
  void clear();
  std::string text(std::size_t columns) const;

  Timer timer_;
  Clock::time_point started_;
  std::string state_;     // empty: hidden
  std::string progress_;  // the bar, or the number
  std::string message_;   // of the server; printable
  std::mutex mutex_;      // protects visible_ and what is written, because any thread may log
  bool visible_ = false;
};

}  // namespace fairlead::cli
