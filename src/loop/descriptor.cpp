#include "fairlead/loop/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>

namespace fairlead {

namespace asio = boost::asio;

void UniqueFd::reset() noexcept {
  // EINTR is ignored on purpose: on Linux the descriptor is gone whatever close() returns.
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

struct Descriptor::Impl {
  // One direction. `registered` stays set until Asio has called back for the wait, so that a callback that
  // replaces another one uses the wait that is outstanding: Asio would keep each further wait until the
  // descriptor becomes ready.
  struct Direction {
    asio::posix::descriptor_base::wait_type type;
    Ready callback;
    bool registered = false;
  };

  explicit Impl(Loop& loop) : stream(loop.context()) {}

  asio::posix::stream_descriptor stream;
  UniqueFd file;  // instead of `stream`, for what epoll does not take
  Direction input{asio::posix::descriptor_base::wait_read, nullptr};
  Direction output{asio::posix::descriptor_base::wait_write, nullptr};

  bool open() const noexcept { return stream.is_open() || file; }

  static void wait(const std::shared_ptr<Impl>& self, Direction Impl::*which, Ready ready) {
    Direction& direction = (*self).*which;
    direction.callback = std::move(ready);
    if (std::exchange(direction.registered, true)) return;
    auto fire = [self, which](const boost::system::error_code& ec) {
      Direction& due = (*self).*which;
      due.registered = false;
      // Any error but "cancelled" is left for the read or write that follows to find.
      if (ec == asio::error::operation_aborted || !due.callback) return;
      Ready callback = std::exchange(due.callback, nullptr);
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
    return Error::from_errno(ErrorKind::io, "cannot use the descriptor", errno);
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

bool Descriptor::open() const noexcept {
  return impl_ && impl_->open();
}

void Descriptor::when_readable(Ready ready) {
  Impl::wait(impl_, &Impl::input, std::move(ready));
}

void Descriptor::when_writable(Ready ready) {
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
