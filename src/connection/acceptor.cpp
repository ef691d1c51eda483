#include "connection/acceptor.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace fairlead {

namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr std::chrono::milliseconds kOutOfDescriptorsPause{100};

bool out_of_resources(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

}  // namespace

Acceptor::Acceptor(Loop& loop, Descriptor socket, std::string address, Log log, OnAccept accept)
    : socket_(std::move(socket)),
      pause_(loop),
      address_(std::move(address)),
      log_(std::move(log)),
      accept_(std::move(accept)) {}

Result<std::shared_ptr<Acceptor>> Acceptor::start(Loop& loop, UniqueFd listening, std::string address,
                                                  Log log, OnAccept accept) {
  Result<Descriptor> socket = Descriptor::adopt(loop, std::move(listening));
  if (!socket) return socket.error();
  std::shared_ptr<Acceptor> made(
      new Acceptor(loop, std::move(*socket), std::move(address), std::move(log), std::move(accept)));
  made->wait();
  return made;
}

void Acceptor::close() {
  pause_.cancel();
  if (socket_.open()) socket_.close();
}

void Acceptor::wait() {
  socket_.when_readable([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->accept_some();
  });
}

void Acceptor::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn && socket_.open(); ++i) {
    UniqueFd fd(::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      accept_(std::move(fd));
    } else if (out_of_resources(errno)) {
      // The connection stays in the queue, so waiting for readability would spin.
      fault_log_.write(log_, LogLevel::error, "cannot accept: out of descriptors or memory",
                       {{"listener", address_}});
      return pause_.arm_after(kOutOfDescriptorsPause, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->accept_some();
      });
    } else if (errno != EINTR && errno != ECONNABORTED) {
      break;
    }
  }
  if (socket_.open()) wait();
}

}  // namespace fairlead
