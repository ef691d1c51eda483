#include "cli/progress_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/printable.hpp"
#include "fairlead/base/log.hpp"

namespace fairlead::cli {

namespace {

constexpr std::chrono::milliseconds kShowAfter{300};
constexpr std::chrono::milliseconds kRedrawInterval{100};
constexpr std::size_t kBarWidth = 20;
constexpr std::size_t kMaxMessageBytes = 500;

// Returns the number of columns that a character occupies: 0 if it combines with the one before, 2 if it is
// East Asian or an emoji.
std::size_t columns_of(std::uint32_t c) {
  const auto within = [c](std::uint32_t first, std::uint32_t last) { return c >= first && c <= last; };
  if (within(0x300, 0x36f) || within(0x200b, 0x200f) || within(0xfe00, 0xfe0f)) return 0;
  const bool wide = within(0x1100, 0x115f) || within(0x2e80, 0xa4cf) || within(0xac00, 0xd7a3) ||
                    within(0xf900, 0xfaff) || within(0xfe30, 0xfe6f) || within(0xff00, 0xff60) ||
                    within(0x1f300, 0x1faff) || within(0x20000, 0x3fffd);
  return wide ? 2 : 1;
}

// Returns the longest prefix of printable text that fits into `columns`.
std::string_view fitting_prefix(std::string_view text, std::size_t columns) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const CodePoint next = first_code_point(text.substr(bytes));
    const std::size_t width = columns_of(next.value);
    if (width > columns) break;
    columns -= width;
    bytes += std::max<std::size_t>(next.length, 1);
  }
  return text.substr(0, bytes);
}

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string elapsed_text(Clock::duration elapsed) {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  char text[32];
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else {
    const auto whole = static_cast<long long>(seconds);
    std::snprintf(text, sizeof text, "%lld min %lld s", whole / 60, whole % 60);
  }
  return text;
}

std::string bar(double progress, std::optional<double> total) {
  char number[32];
  if (!total || !(*total > 0) || !std::isfinite(*total) || !std::isfinite(progress)) {
    std::snprintf(number, sizeof number, "%g", progress);
    return number;
  }
  const double part = std::clamp(progress / *total, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(part * static_cast<double>(kBarWidth));
  std::snprintf(number, sizeof number, "] %3.0f %%", std::floor(part * 100));
  return "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '-') + number;
}

void write_to_terminal(std::string_view text) {
  static_cast<void>(write_without_blocking(STDERR_FILENO, text));
}

}  // namespace

std::shared_ptr<ProgressLine> ProgressLine::create(Loop& loop) {
  const char* const type = std::getenv("TERM");
  const bool redraws = ::isatty(STDERR_FILENO) && type && *type && std::string_view(type) != "dumb";
  return redraws ? std::make_shared<ProgressLine>(loop) : nullptr;
}

ProgressLine::ProgressLine(Loop& loop) : timer_(loop), started_(Clock::now()) {}

ProgressLine::~ProgressLine() {
  clear();
}

void ProgressLine::show(std::string state) {
  if (!state_.empty()) {
    state_ = std::move(state);
    return;
  }
  state_ = std::move(state);
  progress_.clear();
  timer_.arm_after(kShowAfter, [this] { tick(); });
}

void ProgressLine::hide() {
  state_.clear();
  timer_.cancel();
  clear();
}

void ProgressLine::set_progress(double progress, std::optional<double> total, const std::string& message) {
  progress_ = bar(progress, total);
  set_message(message);
}

void ProgressLine::set_message(std::string_view message) {
  message_ = printable_line(shortened(message, kMaxMessageBytes));
}

void ProgressLine::write_above(std::string_view text) {
  const std::lock_guard lock(mutex_);
  write_to_terminal((visible_ ? "\r\033[K" : "") + std::string(text));
  visible_ = false;
}

void ProgressLine::tick() {
  draw();
  timer_.arm_after(kRedrawInterval, [this] { tick(); });
}

// One write for the whole line, and none that clears it first, so that the line does not flicker.
void ProgressLine::draw() {
  const std::lock_guard lock(mutex_);
  // The last column stays free: some terminals wrap a line when it is used.
  write_to_terminal("\r" + text(terminal_columns() - 1) + "\033[K");
  visible_ = true;
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(visible_, false)) write_to_terminal("\r\033[K");
}

std::string ProgressLine::text(std::size_t columns) const {
  std::string line = printable_line(state_) + "  " + elapsed_text(Clock::now() - started_);
  if (!progress_.empty()) line += "  " + progress_;
  if (!message_.empty()) line += "  " + message_;
  return std::string(fitting_prefix(line, columns));
}

ProgressLine::Pause::Pause(std::shared_ptr<ProgressLine> line) : line_(std::move(line)) {
  if (!line_) return;
  state_ = line_->state_;
  line_->hide();
}

ProgressLine::Pause::~Pause() {
  if (line_ && !state_.empty()) line_->show(std::move(state_));
}

}  // namespace fairlead::cli
