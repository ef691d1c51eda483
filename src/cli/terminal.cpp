#include "cli/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "fairlead/base/duration.hpp"
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

// Holds back signals that end or stop the process, until it is destroyed. fd() is readable when one arrives.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) sigaddset(&held, signal);
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
    fd_ = UniqueFd(::signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  int fd() const noexcept { return fd_.get(); }

 private:
  sigset_t before_{};
  UniqueFd fd_;
};

using SteadyClock = std::chrono::steady_clock;

// Returns the milliseconds until `deadline` for poll().
int remaining_milliseconds(std::optional<SteadyClock::time_point> deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - SteadyClock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

// Reads up to the end of a line. A signal ends the wait, because poll() is never restarted. So does a signal
// that is held back: `signals` is the descriptor of HeldSignals, or -1.
std::optional<std::string> read_answer(int fd, std::chrono::milliseconds timeout, int signals) {
  std::optional<SteadyClock::time_point> deadline;
  if (timeout.count() > 0) deadline = SteadyClock::now() + timeout;
  std::string line;
  while (line.size() < kMaxAnswerBytes) {
    std::array<pollfd, 2> input{pollfd{fd, POLLIN, 0}, pollfd{signals, POLLIN, 0}};
    const int ready = ::poll(input.data(), input.size(), remaining_milliseconds(deadline));
    if (ready == 0 && deadline && SteadyClock::now() < *deadline)
      continue;  // remaining_milliseconds() is limited
    if (ready <= 0) return std::nullopt;
    if (input[1].revents != 0) return std::nullopt;
    char byte = 0;
    if (::read(fd, &byte, 1) != 1) return std::nullopt;
    if (byte == '\n') return line;
    if (byte != '\r') line += byte;
  }
  return std::nullopt;
}

std::optional<std::string> ask_on(const UniqueFd& terminal, std::string_view question,
                                  std::chrono::milliseconds timeout, int signals) {
  write_to_terminal(terminal.get(), std::string(question) + " ");
  std::optional<std::string> answer = read_answer(terminal.get(), timeout, signals);
  if (!answer) write_to_terminal(terminal.get(), "\n");
  return answer;
}

bool is_consent(const std::string& answer) {
  return answer == "y" || answer == "Y" || answer == "yes" || answer == "Yes";
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
  // Signals may be blocked, and then do not end the wait by themselves.
  const HeldSignals signals;
  return ask_on(terminal, question, timeout, signals.fd());
}

std::optional<std::string> ask_secret(std::string_view question, std::chrono::milliseconds timeout) {
  const UniqueFd terminal = open_terminal();
  if (!terminal) return std::nullopt;
  // A signal must not end the process while the terminal shows nothing: it is delivered afterwards.
  const HeldSignals signals;
  const HiddenInput hidden(terminal.get());
  return ask_on(terminal, question, timeout, signals.fd());
}

std::optional<bool> confirm(std::string_view question, std::chrono::milliseconds timeout) {
  const std::optional<std::string> answer = ask(std::string(question) + " [y/N]", timeout);
  if (!answer) return std::nullopt;
  return is_consent(*answer);
}

Result<bool> confirm_destructive(std::string_view question, bool yes, std::chrono::milliseconds timeout) {
  if (yes) return true;
  if (!has_terminal())
    return Error(ErrorKind::validation,
                 std::string(question) + " There is no terminal to ask on; confirm with --yes");
  const SteadyClock::time_point deadline = SteadyClock::now() + timeout;
  const std::optional<std::string> answer = ask(std::string(question) + " [y/N]", timeout);
  if (!answer && timeout.count() > 0 && SteadyClock::now() >= deadline)
    return Error(ErrorKind::timeout, "no answer within " + format_duration(timeout) + " (--timeout)");
  return answer && is_consent(*answer);
}

}  // namespace fairlead::cli
