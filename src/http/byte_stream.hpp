// The byte streams that both sides of HTTP read and write through: a connected socket, plain or TLS. Private
// to the layer.
#pragma once

#include <memory>
#include <string>

#include "base/uri.hpp"
#include "connection/byte_stream.hpp"
#include "fairlead/base/principal.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"

namespace fairlead::http {

// "127.0.0.1:4711", "[::1]:4711" or "unix".
std::string name_of_remote(int socket);
// Who is at the other end without authentication: the user of a Unix socket's other end, otherwise anonymous.
PrincipalPtr principal_of_peer(int socket);

// Over a connected socket.
Result<std::unique_ptr<ByteStream>> plain_stream(Loop& loop, UniqueFd socket);

// TLS (OpenSSL). A context is shared by all its streams and may be replaced while they live.
class TlsContext;
// Reads and parses both files, which takes about 0.2 ms for each certificate of a chain: to be called on a
// worker thread while a loop runs. Kind validation.
Result<std::shared_ptr<TlsContext>> server_tls(const std::string& certificate_file,
                                               const std::string& key_file);
// System authorities, and those of `ca_file` unless empty.
Result<std::shared_ptr<TlsContext>> client_tls(const std::string& ca_file, bool verify);
// The handshake happens under read() and write(), which say `again` until it is done. `host` is the name to
// verify and to announce (client only; empty on the server's side).
Result<std::unique_ptr<ByteStream>> tls_stream(Loop& loop, UniqueFd socket,
                                               std::shared_ptr<TlsContext> context, const std::string& host);

}  // namespace fairlead::http
