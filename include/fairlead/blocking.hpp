// Blocking API for programs without an event loop. Each object runs an event loop on its own thread.
//
// Example:
//   auto peer = blocking::Peer::connect("stdio:python3 server.py");
//   if (!peer) return report(peer.error());
//   auto sum = peer->call("add", R"({"a":2,"b":3})");
//
// Thread-safe. The functions must not be called on the loop thread, that is, from a handler in `methods`.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/peer/methods.hpp"
#include "fairlead/transport/connect.hpp"

namespace fairlead::blocking {

// A JSON-RPC connection on which both sides can call methods.
class Peer {
 public:
  // Connects to `uri`. `methods` are the methods that the remote peer may call; their handlers run on the
  // loop thread. Fails like transport::connect().
  static Result<Peer> connect(std::string_view uri,
                              transport::ConnectOptions options = transport::ConnectOptions(),
                              std::shared_ptr<const Methods> methods = nullptr);
  Peer(Peer&&) noexcept;
  Peer& operator=(Peer&&) noexcept;
  // Closes the connection and waits until its child process, if any, has ended.
  ~Peer();

  // Sends a call and waits for its response. `params` is JSON text, or empty if the call has no parameters.
  // Fails with `serialize` if `params` is not valid JSON, with `timeout`, and with the errors of
  // Peer::call().
  Result<json::Raw> call(std::string_view method, std::string_view params = {},
                         std::optional<std::chrono::milliseconds> timeout = std::nullopt);
  // Sends a notification. Fails with `serialize` if `params` is not valid JSON.
  Result<void> notify(std::string_view method, std::string_view params = {});
  // Returns the child process that is the remote peer; nullopt if the remote peer is not a child process.
  std::optional<ChildInfo> child() const;
  // Closes the connection. Idempotent. Later calls fail with `closed`.
  void close();
  bool closed() const noexcept;

 private:
  struct Impl;
  explicit Peer(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

// A connection without JSON-RPC: sends and receives any JSON values.
class Connection {
 public:
  static Result<Connection> connect(std::string_view uri,
                                    transport::ConnectOptions options = transport::ConnectOptions());
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  // Sends one JSON value. Returns when the value has been passed to the operating system. Fails with
  // `serialize` if `value` is not valid JSON.
  Result<void> send(std::string_view value);
  // Waits for the next message. Its value() may be any JSON value, not only a JSON-RPC message.
  Result<rpc::Message> receive();
  std::optional<ChildInfo> child() const;
  void close();
  bool closed() const noexcept;

 private:
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::blocking
