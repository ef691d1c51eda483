// Peer: one side of a JSON-RPC connection. It makes calls and matches responses with them, and at the same
// time serves the requests of the remote peer. Used on the loop thread of the connection only, except close()
// and closed(), which are thread-safe.
//
// Example:
//   auto peer = Peer::start(connection);
//   Result<json::Raw> sum = co_await peer->call("add", *json::Raw::parse("[2,3]"));
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "fairlead/base/id_map.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/base/log_rate_limit.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/loop/workers.hpp"
#include "fairlead/peer/connection.hpp"
#include "fairlead/peer/methods.hpp"
#include "fairlead/rpc/call_table.hpp"
#include "fairlead/rpc/queued_responses.hpp"

namespace fairlead {

// The parts of JSON-RPC that protocols define differently, such as cancellation and progress. The default is
// the Language Server Protocol; MCP has a dialect of its own.
struct Dialect {
  std::string cancel_method = "$/cancelRequest";
  std::string cancel_id_key = "id";
  bool respond_to_cancelled = true;  // whether a cancelled request still gets a response
  std::string progress_method = "$/progress";
  std::string progress_token_key = "token";  // the token is the id of the call
  std::string progress_value_key = "value";
  std::int64_t busy_code = rpc::kServerBusy;  // for requests at shutdown and over max_requests_in_progress
  std::string never_in_batch;                 // a method that must not be called in a batch; empty: none
};

// How a peer handles malformed frames.
enum class MalformedFramePolicy : std::uint8_t {
  respond,  // responds with -32700 or -32600 and a null id, as JSON-RPC requires
  skip,     // logs and counts them; for a child process that may print other output to the stream
};

// The options that many peers can share.
struct PeerSettings {
  PeerSettings() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Limits limits;
  Log log;
  LogLevel request_log_level = LogLevel::debug;  // one line per request: id, method, outcome, duration
  Dialect dialect;
  MalformedFramePolicy malformed_frames = MalformedFramePolicy::respond;
  bool accept_batches = true;  // false: a batch is an invalid request
  // Allows only one call at a time; a response with another id fails that call.
  bool lock_step = false;
  std::shared_ptr<Workers> workers;  // runs blocking handlers; if null, their requests fail
};

// The functions that one peer calls.
struct PeerCallbacks {
  PeerCallbacks() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  // If set, called for each batch. If it returns false, the batch is an invalid request.
  std::function<bool()> batches_allowed;
  // If set, called for each request. If it returns true, the request is not served and gets no response.
  std::function<bool(const rpc::Message& request)> ignore_request;
  // Called once, when the input has ended or shutdown() begins. No further requests are served after that.
  std::function<void()> on_draining;
};

struct PeerOptions : PeerSettings, PeerCallbacks {
  PeerOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions
};

class CallOptions {
 public:
  CallOptions() {}  // NOLINT: not defaulted, see StreamConnectOptions
  explicit CallOptions(std::chrono::milliseconds timeout_after) : timeout(timeout_after) {}

  // The time without a response or progress after which the call times out. Default: limits.call_timeout.
  std::optional<std::chrono::milliseconds> timeout;
  // The time after which the call times out regardless of progress.
  std::optional<std::chrono::milliseconds> max_total_time;
  std::stop_token stop;  // cancels the call
  std::function<void(const json::Raw& value)> on_progress;
  // If set, returns the params for the call with this id. For params that contain the id of the call itself,
  // such as a progress token.
  std::function<json::Raw(std::string_view id)> params_for_id;
  // If set, returns the whole request with this id, for forward().
  std::function<rpc::Rope(std::string_view id)> request_for_id;
  // If the call is made while a request of the remote peer is served: the id of that request (see
  // RelatedRequest).
  std::string related_request_id;
};

struct PeerStats {
  std::uint64_t calls = 0;
  std::uint64_t requests = 0;
  std::uint64_t notifications = 0;
  std::uint64_t ignored_requests = 0;      // ignored by PeerOptions::ignore_request
  std::uint64_t late_responses = 0;        // to calls that had timed out or been cancelled
  std::uint64_t mismatched_responses = 0;  // to calls that were never made or already had a response
  std::uint64_t malformed_frames = 0;
};

class Peer : public std::enable_shared_from_this<Peer> {
 public:
  class OutgoingCall;
  class CallBase;
  class Call;
  class Forward;

  static std::shared_ptr<Peer> start(std::shared_ptr<Connection> connection,
                                     std::shared_ptr<const Methods> methods = nullptr,
                                     PeerOptions options = PeerOptions());
  // The same with settings that other peers share. REQUIRES: `settings` is not null.
  static std::shared_ptr<Peer> start(std::shared_ptr<Connection> connection,
                                     std::shared_ptr<const Methods> methods,
                                     std::shared_ptr<const PeerSettings> settings, PeerCallbacks callbacks);
  ~Peer();

  // co_await: Result<json::Raw>, the result of the call. Fails with remote, timeout, cancelled, closed,
  // process_exited and others. detail().unsent of the error is true if no byte of the call has been sent.
  Call call(std::string_view method, json::Raw params = json::Raw(), CallOptions options = CallOptions());
  // Forwards a request that was received on another connection. It is sent with an id of this peer and
  // otherwise unchanged. co_await: Result<Message>, the response as it was received.
  Forward forward(rpc::Message request, CallOptions options = CallOptions());
  // The same, but sends the request that options.request_for_id returns. REQUIRES: options.request_for_id is
  // set.
  Forward forward(std::string_view method, CallOptions options);
  // co_await: Result<void>. Completes when the notification has been written to the operating system.
  Connection::Send notify(std::string_view method, const json::Raw& params = json::Raw());
  // Queues a notification without waiting. Fails with `resource_exhausted` if more than max_backlog_bytes are
  // queued.
  Result<void> post_notification(std::string_view method, const json::Raw& params = json::Raw(),
                                 RelatedRequest related_request = {});

  // Drains the peer: rejects new requests, waits up to `grace` for the requests in progress, flushes, and
  // closes the connection.
  Task<void> shutdown(std::chrono::milliseconds grace);
  // Closes the connection at once: all calls and requests in progress fail. Thread-safe.
  void close() noexcept { connection_->close(); }
  bool closed() const noexcept { return connection_->closed(); }
  // Returns an event that is set when the connection has ended and all calls in progress have failed. Wait
  // for it with `co_await peer->finished().wait(loop, timeout)`.
  Event& finished() noexcept { return finished_; }
  // Returns why the input ended; nullopt before that.
  const std::optional<Error>& end_reason() const noexcept { return end_reason_; }

  // Returns the child process at the remote end; nullopt if it is not a child process.
  std::optional<ChildInfo> child() const { return connection_->child(); }
  Connection& connection() const noexcept { return *connection_; }
  Loop& loop() const noexcept { return connection_->loop(); }
  const PeerStats& stats() const noexcept { return stats_; }
  std::size_t calls_in_flight() const noexcept { return in_flight_.size(); }
  std::size_t requests_in_progress() const noexcept { return in_progress_.size(); }

 private:
  friend class Request;
  struct ActiveRequest;  // a request in progress
  struct Batch;          // the collected responses of a batch

  Peer(std::shared_ptr<Connection> connection, std::shared_ptr<const Methods> methods,
       std::shared_ptr<const PeerSettings> settings, PeerCallbacks callbacks);

  static Task<void> read_loop(std::shared_ptr<Peer> self);
  static Task<void> drain_and_finish(std::shared_ptr<Peer> self);
  static Task<void> pause_reading(std::shared_ptr<Peer> self);
  static Task<void> resume_when_drained(std::shared_ptr<Peer> self);
  bool must_pause_reading();
  std::size_t queued_response_bytes();
  bool handle_received();
  // Handles a message within the call that delivers it. Returns false, and leaves the message unchanged, if
  // it has to be received: if reading is paused, the turn is over, or handling the message could end the
  // input.
  bool receive_now(rpc::Message&& message);
  void handle_message(rpc::Message&& message);
  void handle_message(const rpc::Message& message) { handle_message(rpc::Message(message)); }
  void handle_input_end(const Error& reason);
  void begin_drain();

  // Incoming requests (peer_serving.cpp).
  void handle_request(rpc::Message&& message, const std::shared_ptr<Batch>& batch);
  void handle_notification(const rpc::Message& message);
  void handle_batch(const rpc::Message& message);
  void handle_malformed(const rpc::Message& message, const std::shared_ptr<Batch>& batch);
  // Returns false if the notification is not a cancellation; handle_progress() works in the same way.
  bool handle_cancel(const rpc::Message& message);
  Error busy_error(std::string message) const {
    return Error::rpc(options_.dialect.busy_code, std::move(message));
  }
  void ignore(const rpc::Message& message, const std::shared_ptr<Batch>& batch);
  void reject(const rpc::Message& message, const Error& error, const std::shared_ptr<Batch>& batch);
  // Runs the handler and converts an exception to an error.
  Answer run_plain(const Methods::Handler& handler, const Request& request) const;
  void reject_over_limit(const rpc::Message& message, const std::string& reason,
                         const std::shared_ptr<Batch>& batch);
  void start_serving(const Methods::Handler& handler, rpc::Message&& message,
                     const std::shared_ptr<Batch>& batch);
  static Task<void> serve(std::shared_ptr<Peer> self, std::shared_ptr<ActiveRequest> request,
                          const Methods::Handler& handler);
  bool serve_directly(const Methods::Handler& handler, const std::shared_ptr<ActiveRequest>& request);
  void serve_blocking(const Methods::Handler& handler, const std::shared_ptr<ActiveRequest>& request);
  void finish_serving(ActiveRequest& request, const Answer& answer);
  void respond(std::string_view id, const Answer& answer, const std::shared_ptr<Batch>& batch);
  void post_response(const rpc::Rope& response, RelatedRequest related_request);
  void send_response(std::string_view id, rpc::Rope response, const std::shared_ptr<Batch>& batch);
  void finish_without_response(Batch& batch);
  void log_request(const rpc::Message& message, const Answer& answer, Clock::time_point started) const;

  // Calls (peer_calling.cpp).
  std::optional<Error> start_call(OutgoingCall& call);
  void abandon_call(OutgoingCall& call, const char* reason);
  void cancel_call(std::uint64_t id);
  void handle_response(rpc::Message&& message, const std::shared_ptr<Batch>& batch);
  void handle_response(const rpc::Message& message, const std::shared_ptr<Batch>& batch) {
    handle_response(rpc::Message(message), batch);
  }
  bool finish_call(rpc::Message&& message);
  bool handle_progress(const rpc::Message& message);
  void report_mismatch(const rpc::Message& message);
  void fail_calls(const Error& reason);
  void handle_call_failure(std::string_view id, Error reason);
  void arm_deadline_timer();
  void expire_calls();
  void send_cancel(std::uint64_t id, const char* reason);

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<const Methods> methods_;
  std::shared_ptr<const PeerSettings> settings_;
  const PeerSettings& options_;  // *settings_
  PeerCallbacks callbacks_;
  PeerStats stats_;
  rpc::CallTable in_flight_;
  Timer deadline_timer_;
  Clock::time_point armed_deadline_ = Clock::time_point::max();
  IdMap<std::shared_ptr<ActiveRequest>> in_progress_;  // by ActiveRequest::key
  std::uint64_t last_notification_key_ = 0;  // number in the key of the last notification in in_progress_
  std::size_t consecutive_malformed_frames_ = 0;
  // Messages handled since the read loop last yielded to the event loop. receive_now() counts, too, so one of
  // many messages goes through the read loop.
  std::size_t handled_in_turn_ = 0;
  LogRateLimit fault_log_;  // lines about protocol violations of the remote peer
  LogRateLimit error_log_;  // lines about handlers that failed
  rpc::QueuedResponses queued_responses_;
  bool awaiting_drain_ = false;        // resume_when_drained() runs
  Event reading_allowed_;              // while reading is paused: set when it may continue
  std::optional<Error> close_reason_;  // set when this peer has decided to close the connection
  bool shutting_down_ = false;
  std::optional<Error> end_reason_;
  Event idle_;  // set while no request is in progress
  Event finished_;
};

// A call without a coroutine: start() sends it, and on_response() or on_failure() gets its outcome.
// Destroying the call while it is in flight cancels it.
class Peer::OutgoingCall : private rpc::PendingCall {
 public:
  OutgoingCall(const OutgoingCall&) = delete;

  // Sends the call. Returns an error, and does not call on_failure(), if it cannot be sent. Called once.
  std::optional<Error> start() {
    std::optional<Error> refused = peer_->start_call(*this);
    in_flight_ = !refused;
    return refused;
  }

 protected:
  // For the last three arguments see CallOptions.
  OutgoingCall(std::shared_ptr<Peer> peer, std::optional<std::chrono::milliseconds> timeout,
               std::optional<std::chrono::milliseconds> max_total_time, std::stop_token stop)
      : peer_(std::move(peer)), timeout_(timeout), max_total_time_(max_total_time), stop_(std::move(stop)) {}
  ~OutgoingCall();

  // One of these is called, once, if start() has succeeded. May destroy this object.
  virtual void on_response(rpc::Message&& response) = 0;
  virtual void on_failure(Error reason) = 0;
  // Called for each progress notification, with its value.
  virtual void on_progress(const json::Raw& value) = 0;
  virtual bool wants_progress() const noexcept = 0;
  virtual rpc::Rope encode(std::string_view own_id) const = 0;
  virtual std::string_view method() const noexcept = 0;
  // Returns CallOptions::related_request_id.
  virtual std::string_view related_request() const noexcept { return {}; }

 private:
  friend class Peer;
  struct CancelOnStop {
    std::shared_ptr<Peer> peer;
    std::uint64_t id;
    void operator()() const;
  };

  void finish(rpc::Message&& response) final;
  void fail(Error reason) final;
  void handle_progress(const rpc::Message& notification) final;

  std::shared_ptr<Peer> peer_;
  std::optional<std::chrono::milliseconds> timeout_;
  std::optional<std::chrono::milliseconds> max_total_time_;
  std::stop_token stop_;
  // Progress does not extend the deadline beyond this.
  Clock::time_point max_deadline_ = Clock::time_point::max();
  std::uint64_t start_position_ = 0;  // Connection::queued_position() before the call was queued
  std::optional<std::stop_callback<CancelOnStop>> stop_callback_;
  bool in_flight_ = false;
};

// Base class of the awaitables Call and Forward. An awaitable is awaited once, in the expression that creates
// it.
class Peer::CallBase : public OutgoingCall {
 public:
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> handle);

 protected:
  ~CallBase() = default;
  CallBase(std::shared_ptr<Peer> peer, CallOptions options)
      : OutgoingCall(std::move(peer), options.timeout, options.max_total_time, std::move(options.stop)),
        options_(std::move(options)) {}

  CallOptions options_;
  std::optional<Result<rpc::Message>> outcome_;

 private:
  void on_response(rpc::Message&& response) final;
  void on_failure(Error reason) final;
  void on_progress(const json::Raw& value) final { options_.on_progress(value); }
  bool wants_progress() const noexcept final { return static_cast<bool>(options_.on_progress); }
  std::string_view related_request() const noexcept final { return options_.related_request_id; }

  std::coroutine_handle<> handle_;
};

class Peer::Call final : public CallBase {
 public:
  Call(std::shared_ptr<Peer> peer, std::string_view method, json::Raw params, CallOptions options)
      : CallBase(std::move(peer), std::move(options)), method_(method), params_(std::move(params)) {}
  Result<json::Raw> await_resume();

 private:
  rpc::Rope encode(std::string_view own_id) const override {
    return rpc::make_request(own_id, method_,
                             options_.params_for_id ? options_.params_for_id(own_id) : params_);
  }
  std::string_view method() const noexcept override { return method_; }

  std::string method_;
  json::Raw params_;
};

class Peer::Forward final : public CallBase {
 public:
  // REQUIRES: options.request_for_id is set.
  Forward(std::shared_ptr<Peer> peer, std::string_view method, CallOptions options)
      : CallBase(std::move(peer), std::move(options)), method_(method) {}
  Result<rpc::Message> await_resume() { return std::move(*outcome_); }

 private:
  rpc::Rope encode(std::string_view own_id) const override { return options_.request_for_id(own_id); }
  std::string_view method() const noexcept override { return method_; }

  std::string method_;
};

}  // namespace fairlead
