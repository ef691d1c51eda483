#include "fairlead/loop/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>

namespace fairlead {

namespace asio = boost::asio;

void UniqueFd::reset() noexcept {
  // EINTR is ignored on purpose: Linux releases the descriptor regardless of what close() returns.
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

struct Descriptor::Impl {
  // Reading or writing. `registered` is set while an Asio wait is outstanding. A callback that replaces
  // another one reuses that wait: Asio would keep every further wait in a list until the descriptor becomes
  // ready.
  struct Direction {
    asio::posix::descriptor_base::wait_type type;
    ReadyCallback callback;
    bool registered = false;
  };

  explicit Impl(Loop& loop) : stream(loop.asio_context()) {}

  asio::posix::stream_descriptor stream;
  UniqueFd file;  // instead of `stream`, for descriptors that epoll does not support
  Direction input{asio::posix::descriptor_base::wait_read, nullptr};
  Direction output{asio::posix::descriptor_base::wait_write, nullptr};

  bool is_open() const noexcept { return stream.is_open() || file; }

  static void wait(const std::shared_ptr<Impl>& self, Direction Impl::*which, ReadyCallback ready) {
    Direction& direction = (*self).*which;
    direction.callback = std::move(ready);
    if (std::exchange(direction.registered, true)) return;
    auto fire = [self, which](const boost::system::error_code& ec) {
      Direction& due = (*self).*which;
      due.registered = false;
      // Any other error is reported by the read or write that follows.
      if (ec == asio::error::operation_aborted || !due.callback) return;
      ReadyCallback callback = std::exchange(due.callback, nullptr);
      callback();
    };
    if (self->file) {
      asio::post(self->stream.get_executor(), [fire] { fire({}); });
    } else {
      self->stream.async_wait(direction.type, std::move(fire));
    }
  }
};

Descriptor::Descriptor(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Descriptor::Descriptor(Descriptor&&) noexcept = default;
Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}
Descriptor::~Descriptor() {
  if (impl_) close();
}

Result<Descriptor> Descriptor::adopt(Loop& loop, UniqueFd fd) {
  auto impl = std::make_shared<Impl>(loop);
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    return Error::from_errno(ErrorKind::io, "cannot make the descriptor non-blocking", errno);
  }
  boost::system::error_code ec;
  impl->stream.assign(fd.get(), ec);
  if (!ec) {
    static_cast<void>(fd.release());
  } else if (ec.value() == EPERM) {
    impl->file = std::move(fd);
  } else {
    return Error::from_errno(ErrorKind::io, "cannot wait for the descriptor", ec.value());
  }
  return Descriptor(std::move(impl));
}

int Descriptor::fd() const noexcept {
  return impl_->file ? impl_->file.get() : impl_->stream.native_handle();
}

bool Descriptor::is_open() const noexcept {
  return impl_ && impl_->is_open();
}

void Descriptor::when_readable(ReadyCallback ready) {
  Impl::wait(impl_, &Impl::input, std::move(ready));
}

void Descriptor::when_writable(ReadyCallback ready) {
  Impl::wait(impl_, &Impl::output, std::move(ready));
}

bool Descriptor::waiting_to_read() const noexcept {
  return static_cast<bool>(impl_->input.callback);
}

bool Descriptor::waiting_to_write() const noexcept {
  return static_cast<bool>(impl_->output.callback);
}

void Descriptor::close() {
  impl_->input.callback = nullptr;
  impl_->output.callback = nullptr;
  impl_->file.reset();
  boost::system::error_code ignored;
  impl_->stream.close(ignored);
}

}  // namespace fairlead
