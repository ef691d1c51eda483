#include "cli/terminal_prompt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fairlead/loop/descriptor.hpp"
#include "fairlead/loop/event.hpp"

namespace fairlead::cli {

namespace {

constexpr std::size_t kMaxTypedBytes = 64u << 10;

void show_on_terminal(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    if (written >= 0 || errno == EINTR) continue;
    pollfd writable{fd, POLLOUT, 0};
    if (errno != EAGAIN || ::poll(&writable, 1, 1000) <= 0) return;
  }
}

}  // namespace

Task<std::optional<std::string>> ask_on_loop(Loop& loop, std::string question, Clock::time_point deadline) {
  UniqueFd fd(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) co_return std::nullopt;
  Result<Descriptor> terminal = Descriptor::adopt(loop, std::move(fd));
  if (!terminal) co_return std::nullopt;
  show_on_terminal(terminal->fd(), question);
  std::string typed;
  while (typed.size() < kMaxTypedBytes) {
    Event readable;
    terminal->when_readable([readable]() mutable { readable.set(); });
    const Clock::duration left = std::max(deadline - Clock::now(), Clock::duration::zero());
    const bool in_time = co_await readable.wait(loop, left);
    if (!in_time) {
      ::tcflush(terminal->fd(), TCIFLUSH);
      show_on_terminal(terminal->fd(), "\nNo answer in time (--timeout).\n");
      co_return std::nullopt;
    }
    char buffer[4096];
    const ssize_t n = ::read(terminal->fd(), buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) co_return std::nullopt;
    typed.append(buffer, static_cast<std::size_t>(n));
    const std::size_t end = typed.find('\n');
    if (end == std::string::npos) continue;
    typed.resize(end);
    co_return typed;
  }
  co_return std::nullopt;
}

}  // namespace fairlead::cli
