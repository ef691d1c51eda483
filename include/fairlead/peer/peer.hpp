// Peer: speaks JSON-RPC on a connection, in both directions at once. It makes calls and matches their
// answers, and it serves the methods it is given. It lives on its connection's loop; only close() may be
// called from elsewhere.
//
//   auto peer = Peer::start(connection, methods);
//   Result<json::Raw> sum = co_await peer->call("add", params);
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>

#include "fairlead/base/limits.hpp"
#include "fairlead/base/log.hpp"
#include "fairlead/base/log_rate_limit.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/loop/workers.hpp"
#include "fairlead/peer/connection.hpp"
#include "fairlead/peer/methods.hpp"
#include "fairlead/rpc/in_flight.hpp"
#include "fairlead/rpc/queued_answers.hpp"

namespace fairlead {

// How cancellation and progress are spelled, and what else a protocol has its own way with. The default is
// what language servers use; MCP has its own.
struct Dialect {
  std::string cancel_method = "$/cancelRequest";
  std::string cancel_id_key = "id";
  bool answer_cancelled = true;  // whether a cancelled request still gets an answer
  std::string progress_method = "$/progress";
  std::string progress_token_key = "token";  // the token is the id of the call it belongs to
  std::string progress_value_key = "value";
  std::int64_t busy_code = rpc::kServerBusy;  // for requests at shutdown and over max_requests_in_progress
  std::string never_in_batch;                 // a method that is invalid inside an array; empty: none is
};

// What to do about frames that are no messages.
enum class Noise : std::uint8_t {
  answer,  // as JSON-RPC has it: -32700 or -32600 with a null id
  skip,    // log and count; for streams on which a child may print what it likes
};

struct PeerOptions {
  PeerOptions() {}  // NOLINT: not an aggregate, see ConnectOptions

  Limits limits;
  Log log;
  LogLevel request_log_level = LogLevel::debug;  // one line per request: id, method, outcome, duration
  Dialect dialect;
  Noise noise = Noise::answer;
  bool batches = true;              // off: an array is an invalid request
  std::function<bool()> batch_now;  // where set, asked at each array whether batches are on just now
  // Where set, asked at each request: true leaves it without an answer.
  std::function<bool(const rpc::Message& request)> ignore_request;
  bool lock_step = false;  // one call at a time; an answer with another id fails that call
  std::function<void()>
      on_ending;  // called once, when no further requests will be served: input ended or shutdown began
  std::shared_ptr<Workers> workers;  // for blocking handlers; without it they are refused
};

class CallOptions {
 public:
  CallOptions() {}  // NOLINT: not defaulted, see ConnectOptions
  explicit CallOptions(std::chrono::milliseconds timeout_after) : timeout(timeout_after) {}

  std::optional<std::chrono::milliseconds>
      timeout;  // without an answer or progress; default limits.call_timeout
  std::optional<std::chrono::milliseconds> max_total;  // however much progress there is
  std::stop_token stop;                                // gives the call up
  std::function<void(const json::Raw& value)> on_progress;
  // Where params must name the id of their own call, as a progress token does: makes them when the id is
  // known.
  std::function<json::Raw(std::string_view id)> params_for_id;
  // The same for forward(): the whole request under that id.
  std::function<rpc::Rope(std::string_view id)> request_for_id;
  std::string concerning;  // the request of the other side we ask this for, by its id; see Concerning
};

struct PeerStats {
  std::uint64_t calls = 0;
  std::uint64_t requests = 0;
  std::uint64_t notifications = 0;
  std::uint64_t ignored_requests = 0;    // by PeerOptions::ignore_request
  std::uint64_t late_answers = 0;        // to calls that had timed out or been given up
  std::uint64_t mismatched_answers = 0;  // to calls that never were, or had been answered
  std::uint64_t noise = 0;               // frames that were no messages
};

class Peer : public std::enable_shared_from_this<Peer> {
 public:
  class Pending;
  class Call;
  class Forward;

  static std::shared_ptr<Peer> start(std::shared_ptr<Connection> connection,
                                     std::shared_ptr<const Methods> methods = nullptr,
                                     PeerOptions options = PeerOptions());

  // co_await: Result<json::Raw>, the result; or an Error: remote, timeout, cancelled, closed, process_exited
  // …, with detail().unsent where it is certain that the other side has not seen the call.
  Call call(std::string_view method, json::Raw params = json::Raw(), CallOptions options = CallOptions());
  // co_await: Result<Message>, the answer as it came. Sends a request that came from elsewhere under an id of
  // our own and otherwise untouched.
  Forward forward(rpc::Message request, CallOptions options = CallOptions());
  // The same for a request of this method that options.request_for_id makes.
  Forward forward(std::string_view method, CallOptions options);
  // co_await: Result<void>, when it is with the operating system.
  Connection::Send notify(std::string_view method, const json::Raw& params = json::Raw());
  // The same without waiting; refused over max_backlog_bytes.
  Result<void> post_notification(std::string_view method, const json::Raw& params = json::Raw(),
                                 Concerning concerning = {});

  // Lets requests under way finish, for `grace` at most, refuses new ones, flushes, and closes.
  Task<void> shutdown(std::chrono::milliseconds grace);
  // At once: everything under way fails. From any thread.
  void close() noexcept { connection_->close(); }
  bool closed() const noexcept { return connection_->closed(); }
  // co_await peer->finished().wait(loop, timeout): set when the connection has ended and everything is done.
  Event& finished() noexcept { return finished_; }
  // Why it ended; null while it has not.
  const std::optional<Error>& end_reason() const noexcept { return end_reason_; }

  // The child process at the other end; nullopt where there is none.
  std::optional<ChildInfo> child() const { return connection_->child(); }
  Connection& connection() const noexcept { return *connection_; }
  Loop& loop() const noexcept { return connection_->loop(); }
  const PeerStats& stats() const noexcept { return stats_; }
  std::size_t calls_in_flight() const noexcept { return in_flight_.size(); }
  std::size_t requests_in_progress() const noexcept { return in_progress_.size(); }

 private:
  friend class Request;
  struct Serving;  // a request under way
  struct Batch;    // the answers of a batch, gathered

  Peer(std::shared_ptr<Connection> connection, std::shared_ptr<const Methods> methods, PeerOptions options);

  static Task<void> read_loop(std::shared_ptr<Peer> self);
  static Task<void> wind_down(std::shared_ptr<Peer> self);
  static Task<void> pause_reading(std::shared_ptr<Peer> self);
  static Task<void> resume_when_drained(std::shared_ptr<Peer> self);
  bool must_pause();
  std::size_t queued_answer_bytes();
  void on_message(const rpc::Message& message);
  void on_input_end(const Error& reason);
  void begin_ending();

  // Incoming requests (peer_serving.cpp).
  void on_request(const rpc::Message& message, const std::shared_ptr<Batch>& batch);
  void on_notification(const rpc::Message& message);
  void on_batch(const rpc::Message& message);
  void on_malformed(const rpc::Message& message, const std::shared_ptr<Batch>& batch);
  bool on_cancel(const rpc::Message& message);
  Error busy(std::string why) const { return Error::rpc(options_.dialect.busy_code, std::move(why)); }
  void ignore(const rpc::Message& message, const std::shared_ptr<Batch>& batch);
  void refuse(const rpc::Message& message, const Error& why, const std::shared_ptr<Batch>& batch);
  Answer run_plain(const Methods::Handler& handler, const Request& request) const;
  void turn_away(const rpc::Message& message, const std::string& why, const std::shared_ptr<Batch>& batch);
  void start_serving(const Methods::Handler& handler, const rpc::Message& message,
                     const std::shared_ptr<Batch>& batch);
  static Task<void> serve(std::shared_ptr<Peer> self, std::shared_ptr<Serving> serving,
                          const Methods::Handler& handler);
  void serve_blocking(const Methods::Handler& handler, const std::shared_ptr<Serving>& serving);
  void finish_serving(const std::shared_ptr<Serving>& serving, const Answer& answer);
  void answer(std::string_view id, const Answer& answer, const std::shared_ptr<Batch>& batch);
  void post_answer(const rpc::Rope& answer, Concerning concerning);
  void send_answer(std::string_view id, rpc::Rope rope, const std::shared_ptr<Batch>& batch);
  void leave_out(Batch& batch);
  void log_request(const rpc::Message& message, const Answer& answer, Clock::time_point started) const;

  // Our calls (peer_calling.cpp).
  std::optional<Error> begin(Pending& call);
  void give_up(Pending& call, const char* why);
  void cancel_call(std::uint64_t id);
  void on_answer(const rpc::Message& message, const std::shared_ptr<Batch>& batch);
  bool finish_call(const rpc::Message& message);
  bool on_progress(const rpc::Message& message);
  void report_mismatch(const rpc::Message& message);
  void fail_calls(const Error& reason);
  void on_call_failed(std::string_view id, Error reason);
  void watch_deadlines();
  void expire_calls();
  void send_cancel(std::uint64_t id, const char* why);

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<const Methods> methods_;
  PeerOptions options_;
  PeerStats stats_;
  rpc::InFlight in_flight_;
  Timer deadline_timer_;
  Clock::time_point watched_deadline_ = Clock::time_point::max();
  std::unordered_map<std::string, std::shared_ptr<Serving>> in_progress_;  // by Serving::key
  std::uint64_t notification_keys_ = 0;
  std::size_t noise_in_a_row_ = 0;
  std::size_t handled_in_turn_ = 0;  // messages since the loop had its turn
  LogRateLimit fault_log_;           // lines about what the other side does wrong
  LogRateLimit error_log_;           // lines about handlers that failed
  rpc::QueuedAnswers queued_answers_;
  bool awaiting_drain_ = false;
  Event may_read_;                // reading is paused until it is set
  std::optional<Error> hang_up_;  // why we listen no further
  bool shutting_down_ = false;
  std::optional<Error> end_reason_;
  Event idle_;  // no request under way
  Event finished_;
};

// A call that waits for its answer: awaited once, where it was made.
class Peer::Pending : private rpc::PendingCall {
 public:
  Pending(const Pending&) = delete;

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> handle);

 protected:
  ~Pending();
  Pending(std::shared_ptr<Peer> peer, CallOptions options)
      : options_(std::move(options)), peer_(std::move(peer)) {}
  virtual rpc::Rope encode(std::string_view own_id) const = 0;
  virtual std::string_view method() const noexcept = 0;

  CallOptions options_;
  std::optional<Result<rpc::Message>> outcome_;

 private:
  friend class Peer;
  struct Stop {
    std::shared_ptr<Peer> peer;
    std::uint64_t id;
    void operator()() const;
  };

  void finish(Result<rpc::Message> outcome) final;
  void progress(const rpc::Message& notification) final;

  std::shared_ptr<Peer> peer_;
  Clock::time_point latest_ = Clock::time_point::max();  // no progress moves the deadline beyond this
  std::uint64_t begins_at_ = 0;  // its first byte's position in what the connection sends
  std::optional<std::stop_callback<Stop>> stop_;
  std::coroutine_handle<> handle_;
};

class Peer::Call final : public Pending {
 public:
  Call(std::shared_ptr<Peer> peer, std::string_view method, json::Raw params, CallOptions options)
      : Pending(std::move(peer), std::move(options)), method_(method), params_(std::move(params)) {}
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

class Peer::Forward final : public Pending {
 public:
  // REQUIRES: options.request_for_id.
  Forward(std::shared_ptr<Peer> peer, std::string_view method, CallOptions options)
      : Pending(std::move(peer), std::move(options)), method_(method) {}
  Result<rpc::Message> await_resume() { return std::move(*outcome_); }

 private:
  rpc::Rope encode(std::string_view own_id) const override { return options_.request_for_id(own_id); }
  std::string_view method() const noexcept override { return method_; }

  std::string method_;
};

}  // namespace fairlead
