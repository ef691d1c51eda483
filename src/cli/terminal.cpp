#include "cli/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fairlead/loop/descriptor.hpp"

namespace fairlead::cli {

namespace {

constexpr std::size_t kMaxAnswerBytes = 64u << 10;

UniqueFd open_terminal() {
  return UniqueFd(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
}

void write_to_terminal(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Switches off that the terminal shows what is typed, until it is destroyed.
class HiddenInput {
 public:
  explicit HiddenInput(int fd) : fd_(fd), changed_(::tcgetattr(fd, &before_) == 0) {
    if (!changed_) return;
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    hidden.c_lflag |= ECHONL;  // the cursor still moves to the next line
    ::tcsetattr(fd, TCSAFLUSH, &hidden);
  }
  ~HiddenInput() {
    if (changed_) ::tcsetattr(fd_, TCSAFLUSH, &before_);
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;

 private:
  int fd_;
  termios before_{};
  bool changed_;
};

using SteadyClock = std::chrono::steady_clock;

// Returns the milliseconds until `deadline` for poll().
int remaining_milliseconds(std::optional<SteadyClock::time_point> deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - SteadyClock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

// Reads up to the end of a line. A signal ends the wait, because poll() is never restarted.
std::optional<std::string> read_answer(int fd, std::chrono::milliseconds timeout) {
  std::optional<SteadyClock::time_point> deadline;
  if (timeout.count() > 0) deadline = SteadyClock::now() + timeout;
  std::string line;
  while (line.size() < kMaxAnswerBytes) {
    pollfd input{fd, POLLIN, 0};
    if (::poll(&input, 1, remaining_milliseconds(deadline)) <= 0) return std::nullopt;
    char byte = 0;
    if (::read(fd, &byte, 1) != 1) return std::nullopt;
    if (byte == '\n') return line;
    if (byte != '\r') line += byte;
  }
  return std::nullopt;
}

std::optional<std::string> ask_on(const UniqueFd& terminal, std::string_view question,
                                  std::chrono::milliseconds timeout) {
  write_to_terminal(terminal.get(), std::string(question) + " ");
  std::optional<std::string> answer = read_answer(terminal.get(), timeout);
  if (!answer) write_to_terminal(terminal.get(), "\n");
  return answer;
}

}  // namespace

bool stdin_is_terminal() {
  return ::isatty(STDIN_FILENO) != 0;
}

bool stdout_is_terminal() {
  return ::isatty(STDOUT_FILENO) != 0;
}

bool has_terminal() {
  return static_cast<bool>(open_terminal());
}

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::optional<std::string> ask(std::string_view question, std::chrono::milliseconds timeout) {
  const UniqueFd terminal = open_terminal();
  if (!terminal) return std::nullopt;
  return ask_on(terminal, question, timeout);
}

std::optional<std::string> ask_secret(std::string_view question, std::chrono::milliseconds timeout) {
  const UniqueFd terminal = open_terminal();
  if (!terminal) return std::nullopt;
  const HiddenInput hidden(terminal.get());
  return ask_on(terminal, question, timeout);
}

bool confirm(std::string_view question, std::chrono::milliseconds timeout) {
  const std::optional<std::string> answer = ask(std::string(question) + " [y/N]", timeout);
  return answer && (*answer == "y" || *answer == "Y" || *answer == "yes" || *answer == "Yes");
}

Result<bool> confirm_destructive(std::string_view question, bool yes) {
  if (yes) return true;
  if (has_terminal()) return confirm(question);
  return Error(ErrorKind::validation,
               std::string(question) + " There is no terminal to ask on; confirm with --yes");
}

}  // namespace fairlead::cli
