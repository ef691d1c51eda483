// ConnectionOpener: opens the connection of one start of an upstream: resolves references, starts the program
// or connects to the address, and lets the handshake be done. Private to the layer.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "fairlead/loop/timer.hpp"
#include "fairlead/pool/upstream_connection.hpp"
#include "pool/core.hpp"

namespace fairlead::pool {

class ConnectionOpener {
 public:
  // `upstream` owns it.
  explicit ConnectionOpener(ManagedUpstream& upstream);

  // Opens the connection of start `generation`, and tells the supervisor and the starter the outcome.
  static Task<void> bring_up(std::shared_ptr<ManagedUpstream> self, Place place, std::uint64_t generation);
  // Gives up what is being opened; bring_up() tells when it is gone.
  void abort();
  // The capabilities of clients that the server was told of.
  const json::Raw& declared() const noexcept { return declared_; }

 private:
  Task<OpenedUpstream> connect(std::uint64_t generation);
  // That of PoolOptions::openers for this server; null: the pool makes the client itself.
  const UpstreamOpener* named_opener() const;
  static Task<ConnectResult> open(std::weak_ptr<ManagedUpstream> weak, std::uint64_t generation,
                                  ConnectOptions options);
  mcp::ClientOptions client_options(std::uint64_t generation);
  bool opening(std::uint64_t generation) const noexcept;
  void arm_spawn_timer(std::chrono::milliseconds patience, std::uint64_t generation);
  Error spawn_timeout(std::chrono::milliseconds patience) const;
  // Redacts them from now on, and those of the connection before this one.
  void use_secrets(std::vector<std::string> secrets);
  void on_connected(std::uint64_t generation, const std::shared_ptr<Connection>& connection);
  void on_start_failed(const Error& reason);
  void on_ready(std::shared_ptr<UpstreamConnection> connection, Place place);

  ManagedUpstream& upstream_;
  Timer spawn_timer_;
  std::weak_ptr<Connection> opening_;     // while it is starting
  std::stop_source stop_;                 // the same, for a named opener
  std::shared_ptr<void> secrets_;         // of the connection there is: redacted while they are held
  std::shared_ptr<void> former_secrets_;  // and of the one before, which may still be ending
  json::Raw declared_;
};

}  // namespace fairlead::pool
