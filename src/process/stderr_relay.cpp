#include "process/stderr_relay.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include "fairlead/base/log.hpp"

namespace fairlead::process {

namespace {

// Returns an epoll descriptor that is readable while stderr is writable, or nullopt if stderr does not
// support epoll (a regular file).
std::optional<Descriptor> stderr_writability(Loop& loop) {
  UniqueFd set(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event writable{};
  writable.events = EPOLLOUT;
  if (!set || ::epoll_ctl(set.get(), EPOLL_CTL_ADD, STDERR_FILENO, &writable) < 0) return std::nullopt;
  Result<Descriptor> adopted = Descriptor::adopt(loop, std::move(set));
  if (!adopted) return std::nullopt;
  return std::move(*adopted);
}

bool stderr_is_broken() {
  pollfd state{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLERR | POLLHUP | POLLNVAL));
}

}  // namespace

void StderrRelay::write(std::string_view bytes) {
  if (!bytes.empty()) line_open_ = !bytes.ends_with('\n');
  if (!blocked()) {
    const std::size_t done = write_without_blocking(STDERR_FILENO, bytes);
    written_bytes_ += done;
    bytes.remove_prefix(done);
  }
  if (bytes.empty()) return;
  pending_ += bytes;
  wait_until_writable();
}

void StderrRelay::end_line() {
  if (line_open_) write("\n");
}

void StderrRelay::flush() {
  const std::size_t done = write_without_blocking(STDERR_FILENO, pending_);
  written_bytes_ += done;
  pending_.erase(0, done);
  if (blocked()) return wait_until_writable();
  if (const auto callback = std::exchange(on_drained_, nullptr)) callback();
}

void StderrRelay::wait_until_writable() {
  if (!writability_) writability_ = stderr_writability(*loop_);
  if (!writability_ || stderr_is_broken()) {
    pending_.clear();
    if (const auto callback = std::exchange(on_drained_, nullptr)) callback();
    return;
  }
  if (!writability_->waiting_to_read()) writability_->when_readable([this] { flush(); });
}

}  // namespace fairlead::process
