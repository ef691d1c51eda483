// ByteStream: a connected socket, plain or TLS, that never blocks. Both sides of HTTP read and write through
// it; whoever uses it waits when it says so. Private to the layer.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/uri.hpp"
#include "fairlead/base/principal.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "rpc/write_queue.hpp"

namespace fairlead::http {

// One stream is read at most this often, and for at most about this many bytes, before the other callbacks of
// the loop run. A peer that sends without pause would starve them otherwise.
inline constexpr int kReadsPerTurn = 16;
inline constexpr std::size_t kBytesPerTurn = 256u << 10;

class ByteStream {
 public:
  enum class State : std::uint8_t { ok, again, ended, failed };
  struct Io {
    State state = State::ok;
    std::size_t bytes = 0;       // ok: how many
    std::optional<Error> error;  // failed: why
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
};

// Writes as much of what is queued as the stream takes. `ok`: all of it.
ByteStream::Io write_queued(ByteStream& stream, rpc::ByteQueue& queue);

// "127.0.0.1:4711", "[::1]:4711" or "unix".
std::string name_of_remote(int socket);
// Who is at the other end without authentication: the user of a Unix socket's other end, otherwise anonymous.
PrincipalPtr principal_of_peer(int socket);

// Over a connected socket.
Result<std::unique_ptr<ByteStream>> plain_stream(Loop& loop, UniqueFd socket);

// TLS (OpenSSL). A context is shared by all its streams and may be replaced while they live.
class TlsContext;
Result<std::shared_ptr<TlsContext>> server_tls(const std::string& certificate_file,
                                               const std::string& key_file);
// System authorities, and those of `ca_file` unless empty.
Result<std::shared_ptr<TlsContext>> client_tls(const std::string& ca_file, bool verify);
// The handshake happens under read() and write(), which say `again` until it is done. `host` is the name to
// verify and to announce (client only; empty on the server's side).
Result<std::unique_ptr<ByteStream>> tls_stream(Loop& loop, UniqueFd socket,
                                               std::shared_ptr<TlsContext> context, const std::string& host);

}  // namespace fairlead::http
