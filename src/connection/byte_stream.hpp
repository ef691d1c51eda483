// ByteStream: a non-blocking, bidirectional byte stream: a pair of pipes, a socket, or TLS over a socket.
// Private to the library.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "fairlead/base/error.hpp"
#include "fairlead/loop/descriptor.hpp"

namespace fairlead {

class ByteStream {
 public:
  enum class IoStatus : std::uint8_t {
    ok,
    again,   // the operation would block
    ended,   // the remote peer has closed its end
    failed,  // see IoResult::error
  };
  struct IoResult {
    IoStatus status = IoStatus::ok;
    std::size_t bytes = 0;         // ok: the number of bytes read or written
    const Error* error = nullptr;  // failed: owned by the stream, valid until its next operation
  };

  virtual ~ByteStream() = default;

  // If the operation would block, return `again`; the caller waits with when_readable() or when_writable()
  // and tries again. Callers read until `again`, because a TLS stream may have buffered bytes although its
  // descriptor is not readable.
  virtual IoResult read(std::span<char> into) = 0;
  virtual IoResult write(std::span<const iovec> parts) = 0;
  // Call `ready` once, but not after close() or destruction. A later call replaces an outstanding callback;
  // null removes it.
  virtual void when_readable(Descriptor::ReadyCallback ready) = 0;
  virtual void when_writable(Descriptor::ReadyCallback ready) = 0;
  virtual bool waiting_to_read() const noexcept = 0;
  virtual bool waiting_to_write() const noexcept = 0;
  // Returns true if read() would certainly return `again` now.
  virtual bool input_is_drained() const noexcept { return false; }
  // Returns how many of the bytes written the remote peer has not read. Known only for pipes.
  virtual std::optional<std::size_t> unread_output() const { return std::nullopt; }
  // Ends the output: the remote peer reads end of file. (TLS: sends close_notify.)
  virtual void shutdown_output() = 0;
  virtual void close() = 0;
  // Returns the name of the remote peer for logs and errors.
  virtual std::string remote_name() const = 0;

 protected:
  IoResult failed(Error error) {
    error_ = std::make_unique<const Error>(std::move(error));
    return IoResult{IoStatus::failed, 0, error_.get()};
  }

 private:
  std::unique_ptr<const Error> error_;  // the error of the last failed operation
};

}  // namespace fairlead
