// Byte streams of the HTTP client and server: a connected socket, plain or TLS. Private to src/http and
// src/transport.
#pragma once

#include <memory>
#include <string>

#include "base/uri.hpp"
#include "connection/byte_stream.hpp"
#include "fairlead/base/principal.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"

namespace fairlead::http {

// Returns the address of the remote peer: "127.0.0.1:4711", "[::1]:4711" or "unix".
std::string remote_address_of(int socket);
// Returns the principal of a client that is not authenticated: on a Unix socket the user that runs the
// client's process, otherwise anonymous.
PrincipalPtr principal_of_remote(int socket);

// Creates a stream without TLS over a connected socket.
Result<std::unique_ptr<ByteStream>> make_plain_stream(Loop& loop, UniqueFd socket);

// The TLS configuration of a server or a client (OpenSSL's SSL_CTX). Streams share ownership of their
// context, so that they continue to work after the server has replaced it by a new one.
class TlsContext;
// Creates the context of a server. Reads and parses both files, which takes about 0.2 ms per certificate of
// the chain; while the loop is running, call it on a worker thread. Fails with `validation` if a file is
// unusable.
Result<std::shared_ptr<TlsContext>> make_server_tls_context(const std::string& certificate_file,
                                                            const std::string& key_file);
// Creates the context of a client. It trusts the certificate authorities of the system, and those in
// `ca_file` unless that is empty. Fails with `validation` if `ca_file` is unusable.
Result<std::shared_ptr<TlsContext>> make_client_tls_context(const std::string& ca_file, bool verify);
// Creates a TLS stream over a connected socket. read() and write() of the stream perform the handshake, and
// return `again` until it is complete. A client verifies that the certificate is valid for `host`, and sends
// `host` as SNI; a server passes an empty `host`.
Result<std::unique_ptr<ByteStream>> make_tls_stream(Loop& loop, UniqueFd socket,
                                                    std::shared_ptr<TlsContext> context,
                                                    const std::string& host);

}  // namespace fairlead::http
