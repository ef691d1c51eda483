#include "connection/acceptor.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace fairlead {

namespace {

constexpr int kMaxAcceptsPerTurn = 64;
constexpr std::chrono::milliseconds kRetryDelay{100};

bool is_out_of_resources(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace

Acceptor::Acceptor(Loop& loop, Descriptor socket, std::string address, Log log, OnAccept on_accept)
    : socket_(std::move(socket)),
      retry_timer_(loop),
      address_(std::move(address)),
      log_(std::move(log)),
      on_accept_(std::move(on_accept)) {}

Result<std::shared_ptr<Acceptor>> Acceptor::start(Loop& loop, UniqueFd listening, std::string address,
                                                  Log log, OnAccept on_accept) {
  Result<Descriptor> socket = Descriptor::adopt(loop, std::move(listening));
  if (!socket) return socket.error();
  std::shared_ptr<Acceptor> acceptor(
      new Acceptor(loop, std::move(*socket), std::move(address), std::move(log), std::move(on_accept)));
  acceptor->wait_for_connections();
  return acceptor;
}

void Acceptor::close() {
  retry_timer_.cancel();
  if (socket_.is_open()) socket_.close();
}

void Acceptor::wait_for_connections() {
  socket_.when_readable([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->accept_some();
  });
}

void Acceptor::accept_some() {
  for (int i = 0; i < kMaxAcceptsPerTurn && socket_.is_open(); ++i) {
    UniqueFd fd(::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      on_accept_(std::move(fd));
    } else if (is_out_of_resources(errno)) {
      // The connection stays in the backlog, so the socket stays readable. Waiting until it is readable would
      // be a busy loop.
      accept_error_log_.write(log_, LogLevel::error, "cannot accept: out of descriptors or memory",
                              {{"listener", address_}});
      return retry_timer_.arm_after(kRetryDelay, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->accept_some();
      });
    } else if (errno != EINTR && errno != ECONNABORTED) {
      break;
    }
  }
  if (socket_.is_open()) wait_for_connections();
}

}  // namespace fairlead
