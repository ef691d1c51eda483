// Bridge: forwards the messages of a client on one connection, such as stdin and stdout, to an MCP server on
// another, such as a gateway over HTTP, and those of the server to the client. Messages are forwarded as they
// are, so the bridge serves every revision. Loop thread only. Private to the library.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/peer/connection.hpp"

namespace fairlead::transport {

struct BridgeOptions {
  BridgeOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  // Uses backlog_pause_bytes, drain_grace, max_noise_frames and max_requests_in_progress.
  Limits limits;
  Log log;
  // Returns what the user can do about an error of the connection to the server; an empty text selects the
  // remedy of the error's code.
  std::function<std::string(const Error&)> remedy;
};

class Bridge : public std::enable_shared_from_this<Bridge> {
 public:
  // Starts to forward. Sets the callback of `server` for failed calls. A request that cannot be forwarded, or
  // whose response is lost, gets an error response with a code and a remedy; the bridge goes on.
  static std::shared_ptr<Bridge> start(std::shared_ptr<Connection> client, std::shared_ptr<Connection> server,
                                       BridgeOptions options);

  // Called when `server` has begun a new session because the old one was lost: announces to the client that
  // the lists may have changed, and repeats its subscriptions and its log level.
  void on_session_renewed();
  // Ends the bridge as the end of the client's input does.
  void stop() { client_->close(); }
  // Set when the client has sent its last message, the requests in progress have ended or drain_grace has
  // expired, and both connections are closed.
  Event& finished() noexcept { return finished_; }

 private:
  // The responses to the requests of a batch, which are sent together.
  struct Batch {
    std::vector<rpc::Rope> responses;
    std::size_t pending = 0;
  };
  using BatchPtr = std::shared_ptr<Batch>;
  struct InFlight {
    std::string method;
    BatchPtr batch;  // null: the request is not in a batch
  };

  Bridge(std::shared_ptr<Connection> client, std::shared_ptr<Connection> server, BridgeOptions options)
      : client_(std::move(client)), server_(std::move(server)), options_(std::move(options)) {}

  // ---- messages of the client ----
  static Task<void> read_client(std::shared_ptr<Bridge> self);
  Task<void> forward_to_server(rpc::Message message, BatchPtr batch);
  Task<void> forward_batch(rpc::Message message);
  void forward_request(const rpc::Message& message, const BatchPtr& batch);
  // Remembers what must be repeated in a new session.
  void note_session_state(const rpc::Message& request);
  // Returns whether the client may continue after this frame, which is not a message.
  bool reject_malformed(const rpc::Message& message);

  // ---- messages of the server ----
  static Task<void> read_server(std::shared_ptr<Bridge> self);
  void forward_to_client(const rpc::Message& message);
  void forward_response(const rpc::Message& message);
  void fail_request(std::string_view id, const Error& reason);
  void respond(const BatchPtr& batch, rpc::Rope response);
  void send_to_client(const rpc::Rope& message);
  rpc::Rope error_response(std::string_view id, const Error& reason) const;

  static Task<void> finish(std::shared_ptr<Bridge> self);

  std::shared_ptr<Connection> client_;
  std::shared_ptr<Connection> server_;
  BridgeOptions options_;
  std::map<std::string, InFlight, std::less<>> in_flight_;  // requests of the client, by id
  Event idle_;                                              // set while in_flight_ is empty, see finish()
  std::size_t consecutive_malformed_ = 0;
  std::vector<std::string> list_changes_;  // the notifications of changed lists that the server announced
  std::map<std::string, rpc::Message, std::less<>> subscriptions_;  // subscribe requests, by URI
  std::optional<rpc::Message> log_level_;                           // the last logging/setLevel
  std::uint64_t last_repeated_id_ = 0;
  Event finished_;
};

}  // namespace fairlead::transport
