#include "fairlead/loop/descriptor.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "loop/reactor.hpp"

namespace fairlead {

namespace {

constexpr std::uint32_t kInputEvents = EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
constexpr std::uint32_t kOutputEvents = EPOLLOUT | EPOLLHUP | EPOLLERR;
constexpr std::uint32_t kEndEvents = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
// Output is registered only while something waits for it: a Unix socket reports that it is writable each time
// its peer reads.
constexpr std::uint32_t kWatchInput = EPOLLIN | EPOLLRDHUP | EPOLLET;
constexpr std::uint32_t kWatchBoth = kWatchInput | EPOLLOUT;

}  // namespace

void UniqueFd::reset() noexcept {
  // EINTR is ignored on purpose: Linux releases the descriptor regardless of what close() returns.
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

struct Descriptor::Impl final : detail::Reactor::Watched {
  // Reading or writing.
  struct Direction final : detail::Reactor::Ready {
    ReadyCallback callback;

    // The callback may destroy the descriptor.
    void run() override {
      ReadyCallback due = std::exchange(callback, nullptr);
      if (due) due();
    }
  };

  Impl(Loop& loop, UniqueFd file) : reactor(loop.reactor()), fd(std::move(file)) {}
  ~Impl() override { stop_watching(); }

  void on_events(std::uint32_t events) override {
    if (events & kInputEvents) {
      drained = false;
      ended = ended || (events & kEndEvents);
      if (input.callback) reactor.enqueue(input);
    }
    if ((events & kOutputEvents) && output.callback) return reactor.enqueue(output);
    if (events & EPOLLOUT) watch(kWatchInput);
  }

  void wait(Direction& direction, ReadyCallback ready) {
    // The callback that is replaced is destroyed last, because it may own this descriptor.
    const ReadyCallback replaced = std::exchange(direction.callback, std::move(ready));
    if (!direction.callback || !fd) return;
    if (!watched) return reactor.enqueue(direction);
    if (&direction == &input && drained) return;
    if (!watch(output.callback ? kWatchBoth : kWatchInput)) reactor.enqueue(direction);
  }

  // Registers `events`. Those that are pending are reported again.
  bool watch(std::uint32_t events) noexcept { return reactor.rearm(fd.get(), events, *this) == 0; }

  void stop_watching() noexcept {
    if (std::exchange(watched, false)) reactor.remove(fd.get());
  }

  detail::Reactor& reactor;
  UniqueFd fd;
  bool watched = false;  // false for descriptors that epoll does not support, which are always ready
  bool drained = false;  // no input has arrived since input_drained()
  bool ended = false;    // the end of the input, or an error, was reported
  Direction input;
  Direction output;
};

Descriptor::Descriptor(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Descriptor::Descriptor(Descriptor&&) noexcept = default;
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}
Descriptor::~Descriptor() {
  if (impl_) close();
}

Result<Descriptor> Descriptor::adopt(Loop& loop, UniqueFd fd) {
  auto impl = std::make_unique<Impl>(loop, std::move(fd));
  const int number = impl->fd.get();
  const int flags = ::fcntl(number, F_GETFL);
  if (flags < 0 || ::fcntl(number, F_SETFL, flags | O_NONBLOCK) < 0) {
    return Error::from_errno(ErrorKind::io, "cannot make the descriptor non-blocking", errno);
  }
  const int problem = impl->reactor.add(number, kWatchInput, *impl);
  if (problem != 0 && problem != EPERM)
    return Error::from_errno(ErrorKind::io, "cannot wait for the descriptor", problem);
  impl->watched = problem == 0;
  return Descriptor(std::move(impl));
}

int Descriptor::fd() const noexcept {
  return impl_->fd.get();
}

bool Descriptor::is_open() const noexcept {
  return impl_ && impl_->fd;
}

void Descriptor::when_readable(ReadyCallback ready) {
  impl_->wait(impl_->input, std::move(ready));
}

void Descriptor::when_writable(ReadyCallback ready) {
  impl_->wait(impl_->output, std::move(ready));
}

// After the end of the input was reported, epoll reports nothing more by itself.
void Descriptor::input_drained() noexcept {
  impl_->drained = impl_->watched && !impl_->ended;
}

bool Descriptor::input_is_drained() const noexcept {
  return impl_->drained;
}

bool Descriptor::waiting_to_read() const noexcept {
  return static_cast<bool>(impl_->input.callback);
}

bool Descriptor::waiting_to_write() const noexcept {
  return static_cast<bool>(impl_->output.callback);
}

void Descriptor::close() {
  // The callbacks are destroyed last, because they may own this descriptor.
  const ReadyCallback input = std::exchange(impl_->input.callback, nullptr);
  const ReadyCallback output = std::exchange(impl_->output.callback, nullptr);
  impl_->stop_watching();
  impl_->fd.reset();
}

}  // namespace fairlead
