// ByteStream: a stream of bytes in both directions that never blocks: a pair of pipes, a socket, TLS over a
// socket. Its user waits when it says so. Private to the library.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "fairlead/base/error.hpp"
#include "fairlead/loop/descriptor.hpp"

namespace fairlead {

class ByteStream {
 public:
  enum class State : std::uint8_t { ok, again, ended, failed };
  struct Io {
    State state = State::ok;
    std::size_t bytes = 0;         // ok: how many
    const Error* error = nullptr;  // failed: why; the stream's own, until it is read, written or closed
  };

  virtual ~ByteStream() = default;

  // `again`: nothing can be had now; wait with when_readable() (or when_writable()) and try again. A TLS
  // stream may have bytes in hand that the descriptor no longer shows: read until `again`.
  virtual Io read(std::span<char> into) = 0;
  virtual Io write(std::span<const iovec> parts) = 0;
  // Once each; not called after close() or destruction. A later callback replaces one that waits; null
  // removes it.
  virtual void when_readable(Descriptor::Ready ready) = 0;
  virtual void when_writable(Descriptor::Ready ready) = 0;
  virtual bool waiting_to_read() const noexcept = 0;
  virtual bool waiting_to_write() const noexcept = 0;
  // No more will be written; the other side sees an end. (TLS: close_notify.)
  virtual void shut_output() = 0;
  virtual void close() = 0;
  virtual std::string remote() const = 0;

 protected:
  Io failed(Error why) {
    error_ = std::make_unique<const Error>(std::move(why));
    return Io{State::failed, 0, error_.get()};
  }

 private:
  std::unique_ptr<const Error> error_;  // of the last operation that failed
};

}  // namespace fairlead
