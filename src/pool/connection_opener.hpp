// ConnectionOpener: opens the connection for one start of an upstream: resolves references, starts the
// program or connects to the address, and performs the handshake. Private to the layer.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "fairlead/loop/timer.hpp"
#include "fairlead/pool/upstream_connection.hpp"
#include "pool/pool_core.hpp"

namespace fairlead::pool {

class ConnectionOpener {
 public:
  // `upstream` owns the opener.
  explicit ConnectionOpener(ManagedUpstream& upstream);

  // Opens the connection of `generation` and reports the outcome to the lifecycle and the starter.
  static Task<void> open(std::shared_ptr<ManagedUpstream> self, ConnectionReservation reservation,
                         std::uint64_t generation);
  // Aborts the connection that is being opened. open() reports Event::closed when the connection is closed.
  void abort();
  // The client capabilities that were declared to the server in the last handshake.
  const json::Raw& declared_capabilities() const noexcept { return declared_capabilities_; }

 private:
  // Opens the connection, including the handshake, with named_opener() or with an mcp::Client.
  Task<UpstreamOpenResult> connect(std::uint64_t generation);
  // Returns the entry of PoolOptions::openers for this server. Null if there is none: then the pool makes an
  // mcp::Client itself.
  const UpstreamOpener* named_opener() const;
  // The Connector of the mcp::Client: resolves the references, then starts the program or connects to the
  // address.
  static Task<ConnectResult> open_connection(std::weak_ptr<ManagedUpstream> weak, std::uint64_t generation,
                                             StreamConnectOptions options);
  mcp::ClientOptions client_options(std::uint64_t generation);
  bool is_opening(std::uint64_t generation) const noexcept;
  void arm_spawn_timer(std::chrono::milliseconds timeout, std::uint64_t generation);
  Error spawn_timeout_error(std::chrono::milliseconds timeout) const;
  // Registers these secrets for redaction, in addition to those of the previous connection.
  void redact_secrets(std::vector<std::string> secrets);
  void on_connected(std::uint64_t generation, const std::shared_ptr<Connection>& connection);
  void on_start_failed(const Error& reason);
  void on_ready(std::shared_ptr<UpstreamConnection> connection, ConnectionReservation reservation);

  ManagedUpstream& upstream_;
  Timer spawn_timer_;
  std::weak_ptr<Connection> opening_;  // the connection whose handshake is in progress
  std::stop_source stop_;              // aborts the opener that named_opener() returned
  // Registration of the current connection's secrets; they are redacted while it exists.
  std::shared_ptr<void> secrets_;
  // The same for the previous connection, which may still be closing.
  std::shared_ptr<void> previous_secrets_;
  json::Raw declared_capabilities_;
};

}  // namespace fairlead::pool
