// For programs without an event loop: plain calls that wait. A thread of its own runs the loop behind them.
//
//   auto peer = fairlead::blocking::Peer::connect("stdio:python3 server.py");
//   if (!peer) return report(peer.error());
//   auto sum = peer->call("add", R"({"a":2,"b":3})");
//
// Every function may be called from any thread except the loop's own (that is, not from inside a handler).
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

class Peer {
 public:
  // Errors as transport::connect() has them. `methods` are what the other side may call on us, on the loop's
  // thread.
  static Result<Peer> connect(std::string_view uri,
                              transport::ConnectOptions options = transport::ConnectOptions(),
                              std::shared_ptr<const Methods> methods = nullptr);
  Peer(Peer&&) noexcept;
  Peer& operator=(Peer&&) noexcept;
  // Closes, and waits until a child process is gone.
  ~Peer();

  // `params` is JSON text, or empty for none. Kind serialize when it is not valid JSON.
  Result<json::Raw> call(std::string_view method, std::string_view params = {},
                         std::optional<std::chrono::milliseconds> timeout = std::nullopt);
  Result<void> notify(std::string_view method, std::string_view params = {});
  // The child process at the other end; nullopt where there is none.
  std::optional<ChildInfo> child() const;
  // Idempotent. Later calls fail with kind closed.
  void close();
  bool closed() const noexcept;

 private:
  struct Impl;
  explicit Peer(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

// The same for a bare connection: any JSON values, without calls.
class Connection {
 public:
  static Result<Connection> connect(std::string_view uri,
                                    transport::ConnectOptions options = transport::ConnectOptions());
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  // `value` is one JSON value. Returns when it is with the operating system. Kind serialize when it is not
  // valid JSON.
  Result<void> send(std::string_view value);
  // What arrived; value() of it is any JSON value.
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
