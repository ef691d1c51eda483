#include "fairlead/loop/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "fairlead/loop/descriptor.hpp"

namespace fairlead {

struct Signals::Impl : std::enable_shared_from_this<Signals::Impl> {
  std::function<void(int)> callback;
  sigset_t watched{};
  sigset_t before{};
  std::optional<Descriptor> descriptor;

  void wait() {
    descriptor->when_readable([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->read_signals();
    });
  }

  void read_signals() {
    signalfd_siginfo info{};
    while (::read(descriptor->fd(), &info, sizeof info) == sizeof info)
      callback(static_cast<int>(info.ssi_signo));
    wait();
  }

  // Consumes pending signals before unblocking them, because their default action would terminate the
  // process.
  ~Impl() {
    const timespec no_wait{};
    while (::sigtimedwait(&watched, nullptr, &no_wait) > 0) continue;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
};

Signals::Signals(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Signals::Signals(Signals&&) noexcept = default;
Signals& Signals::operator=(Signals&&) noexcept = default;
Signals::~Signals() = default;

Result<Signals> Signals::watch(Loop& loop, std::initializer_list<int> signals,
                               std::function<void(int signal)> callback) {
  auto impl = std::make_shared<Impl>();
  impl->callback = std::move(callback);
  sigemptyset(&impl->watched);
  for (const int signal : signals) sigaddset(&impl->watched, signal);
  ::pthread_sigmask(SIG_BLOCK, &impl->watched, &impl->before);
  UniqueFd fd(::signalfd(-1, &impl->watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return Error::from_errno(ErrorKind::io, "cannot watch for signals", errno);
  Result<Descriptor> descriptor = Descriptor::adopt(loop, std::move(fd));
  if (!descriptor) return descriptor.error();
  impl->descriptor = std::move(*descriptor);
  impl->wait();
  return Signals(std::move(impl));
}

}  // namespace fairlead
