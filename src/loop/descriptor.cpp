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
  explicit Impl(Loop& loop) : stream(loop.context()) {}

  asio::posix::stream_descriptor stream;
  UniqueFd file;  // instead of `stream`, for what epoll does not take
  Ready on_readable;
  Ready on_writable;

  bool open() const noexcept { return stream.is_open() || file; }

  static void wait(const std::shared_ptr<Impl>& self, Ready Impl::*slot,
                   asio::posix::descriptor_base::wait_type type) {
    auto fire = [self, slot](const boost::system::error_code& ec) {
      // Any error but "cancelled" is left for the read or write that follows to find.
      if (ec == asio::error::operation_aborted || !((*self).*slot)) return;
      Ready ready = std::move((*self).*slot);
      (*self).*slot = nullptr;
      ready();
    };
    if (self->file) {
      asio::post(self->stream.get_executor(), [fire] { fire({}); });
    } else {
      self->stream.async_wait(type, std::move(fire));
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
  impl_->on_readable = std::move(ready);
  Impl::wait(impl_, &Impl::on_readable, asio::posix::descriptor_base::wait_read);
}

void Descriptor::when_writable(Ready ready) {
  impl_->on_writable = std::move(ready);
  Impl::wait(impl_, &Impl::on_writable, asio::posix::descriptor_base::wait_write);
}

bool Descriptor::waiting_to_read() const noexcept {
  return static_cast<bool>(impl_->on_readable);
}

bool Descriptor::waiting_to_write() const noexcept {
  return static_cast<bool>(impl_->on_writable);
}

void Descriptor::close() {
  impl_->on_readable = nullptr;
  impl_->on_writable = nullptr;
  impl_->file.reset();
  boost::system::error_code ignored;
  impl_->stream.close(ignored);
}

}  // namespace fairlead
