// ManagedUpstream: the Upstream there is. It joins a supervisor, which decides, with the connections it
// decides about. Private to the layer.
#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>
#include <optional>
#include <string>

#include "fairlead/pool/pool.hpp"
#include "pool/core.hpp"

namespace fairlead::pool {

class ManagedUpstream final : public Upstream, public std::enable_shared_from_this<ManagedUpstream> {
 public:
  // A call under way, from before it is sent until it has ended. Lives with whoever makes it.
  class Running
      : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>> {
   public:
    // `target`, `method` and `request` live as long as this. `request` is null for a lease.
    Running(std::shared_ptr<ManagedUpstream> at, const Target& target, std::string_view method,
            std::shared_ptr<void> caller, const mcp::OutgoingRequest* request = nullptr);
    ~Running();
    Running(const Running&) = delete;

    ManagedUpstream& upstream() const noexcept { return *upstream_; }
    // Progress has come, or the server has asked something meanwhile: it has begun, for all to see.
    bool part_seen() const noexcept { return progressed || upstream_->asked_ != asked_before_; }
    bool progressed = false;

   private:
    friend class ManagedUpstream;
    std::shared_ptr<ManagedUpstream> upstream_;
    std::uint64_t number_;
    std::uint64_t asked_before_;
    const Target& target_;
    std::string_view method_;
    std::shared_ptr<void> caller_;
    const mcp::OutgoingRequest* request_;
  };

  static std::shared_ptr<ManagedUpstream> make(std::shared_ptr<Core> core,
                                               std::shared_ptr<ServerState> server, std::string key);
  ~ManagedUpstream() override;

  const ServerSpec& spec() const noexcept override { return server_->spec; }
  const std::string& key() const noexcept override { return key_; }
  State state() const noexcept override { return supervisor_.state(); }
  std::uint64_t generation() const noexcept override { return supervisor_.generation(); }
  std::shared_ptr<UpstreamConnection> connection() const noexcept override { return connection_; }
  std::vector<RunningCall> calls() const override;
  UpstreamStatus status() const;

  // ---- starting (upstream_starting.cpp) ----
  bool ready() const noexcept { return state() == State::ready; }
  // Single flight: starts it unless that is under way, and waits for how it goes. REQUIRES: !ready(). When it
  // returns well it was ready a moment ago.
  Task<Result<void>> become_ready(std::stop_token stop, StartPriority priority);
  // The same without waiting.
  void begin_attempt();

  // A server learns what its clients can be asked for only when it is started. If one that no client has used
  // yet lacks something that its clients have by now, it is stopped, to be started anew. REQUIRES: ready().
  void stop_if_uninformed();

  // ---- ending (upstream.cpp) ----
  void rest(std::string_view why);
  void retire(std::string_view why, std::chrono::milliseconds grace);
  void restore();
  bool evictable() const noexcept;
  bool gives_place() const noexcept { return leaving_process_; }
  void begin_hold() { ++holds_; }
  void end_hold();
  bool at_rest() const noexcept;  // nothing runs, nothing is under way
  Clock::time_point idle_since() const noexcept { return idle_since_; }

  // ---- watching (upstream_watching.cpp) ----
  // `tool` is the one that was called; empty if none was.
  void call_answered(std::string_view tool);
  // The error of a tool that has ended the process too often; nullopt if it may be called.
  std::optional<Error> tool_refusal(std::string_view tool) const;
  void sign_of_life();
  // A call sent on `connection` has failed. Returns the reason as it is best told.
  Error call_failed(const std::shared_ptr<UpstreamConnection>& connection, Error error);

  // ---- sharing ----
  // Whose calls it has had: those of one session, or nullopt when there were several. Empty: nobody's yet.
  const std::optional<std::string>& only_session() const noexcept { return only_session_; }
  // It cannot be kept for that one any more.
  void session_ended(std::string_view session) {
    if (only_session_ == session) only_session_.reset();
  }
  void belong_to(std::string key) { key_ = std::move(key); }

 private:
  using Event = Supervisor::Event;
  using Action = Supervisor::Action;
  using Calls = boost::intrusive::list<Running>;

  // A start and those who wait for it.
  struct Attempt {
    std::list<std::shared_ptr<Waiter>> waiting;
    std::optional<Error> error;
    StartPriority priority = StartPriority::background;
    bool queued = false;       // for max_concurrent_starts
    std::stop_source requeue;  // wakes it there: its priority has changed, or nobody waits for it any more
  };

  ManagedUpstream(std::shared_ptr<Core> core, std::shared_ptr<ServerState> server, std::string key);

  Action tell(Event event, std::string_view reason = {});
  void on_transition(const Transition& transition);
  // Tells the pool, after what runs now, if there is nothing left to wait for: it may forget this one.
  void settle_soon();
  void close_connection();
  static Task<void> close_down(std::shared_ptr<ManagedUpstream> self,
                               std::shared_ptr<UpstreamConnection> connection, Place place,
                               std::uint64_t generation);
  void end_running(Running& call);
  // Logs, once for a server, that it is per_session and a client has no session.
  void warn_of_missing_session(const Target& target);
  bool unused() const noexcept { return calls_.empty() && holds_ == 0; }
  void became_idle();

  bool between_calls() const noexcept;
  Error refusal() const;
  Error spawn_timeout(std::chrono::milliseconds patience) const;
  Error still_waiting() const;
  void finish_attempt(std::optional<Error> error);
  static Task<void> run_attempt(std::shared_ptr<ManagedUpstream> self);
  bool wanted(const Attempt& attempt) const noexcept;
  static Task<Result<Gate::Pass>> wait_for_start_slot(std::shared_ptr<ManagedUpstream> self,
                                                      std::shared_ptr<Attempt> attempt,
                                                      Clock::time_point latest);
  static Task<void> bring_up(std::shared_ptr<ManagedUpstream> self, Place place, std::uint64_t generation);
  static Task<OpenedUpstream> connect(std::shared_ptr<ManagedUpstream> self, std::uint64_t generation);
  // That of PoolOptions::openers for this server; null: the pool makes the client itself.
  const UpstreamOpener* opener() const;
  void arm_spawn_timer(std::chrono::milliseconds patience, std::uint64_t generation);
  static Task<ConnectResult> open(std::weak_ptr<ManagedUpstream> weak, std::uint64_t generation,
                                  ConnectOptions options);
  mcp::ClientOptions client_options(std::uint64_t generation);
  bool opening(std::uint64_t generation) const noexcept;
  void on_connected(std::uint64_t generation, const std::shared_ptr<Connection>& connection);
  void on_start_failed(const Error& reason);
  void on_no_place(const Error& error);
  // Redacts them from now on, and those of the connection before this one.
  void use_secrets(std::vector<std::string> secrets);
  Error redacted(Error error) const;
  void on_ready(std::shared_ptr<UpstreamConnection> connection, Place place);

  void on_lost(std::uint64_t generation, const Error& lost);
  void count_crashes(const Error& reason);
  Task<Answer> on_request(Request request);
  static Task<Answer> refuse_request(Request request);
  void on_notification(std::string_view method, const json::Raw& params);
  void watch();
  void look_after();
  void ping();
  static Task<void> await_ping(std::weak_ptr<ManagedUpstream> weak,
                               std::shared_ptr<UpstreamConnection> connection, std::uint64_t generation);
  void ping_answered(const Result<void>& answer);
  void on_silence();
  void replace_if_dead();

  std::shared_ptr<Core> core_;
  std::shared_ptr<ServerState> server_;
  std::string key_;
  Supervisor supervisor_;
  fairlead::Event changed_;  // its state, once

  // The connection there is.
  std::shared_ptr<UpstreamConnection> connection_;
  std::optional<Place> place_;
  std::weak_ptr<Connection> opening_;     // while it is starting
  std::stop_source opening_stop_;         // the same, for an opener
  std::shared_ptr<void> secrets_;         // of the connection there is: redacted while they are held
  std::shared_ptr<void> former_secrets_;  // and of the one before, which may still be ending
  std::optional<Error> last_error_;
  std::optional<Error> close_reason_;  // why we closed it with calls under way
  bool leaving_process_ = false;       // being closed, and will give its place to another
  Calls calls_;
  std::size_t holds_ = 0;  // it is wanted, though not called
  std::uint64_t last_number_ = 0;
  std::uint64_t asked_ = 0;     // by the server, ever
  std::uint64_t answered_ = 0;  // calls, by this connection
  json::Raw declared_;          // the capabilities of clients that it was told of
  std::optional<std::string> only_session_ = "";
  bool used_ = false;

  std::shared_ptr<Attempt> attempt_;
  Gate::Pass start_slot_;  // while it is being started

  Timer spawn_timer_;
  Timer due_timer_;
  Timer drain_timer_;
  Timer watch_timer_;
  Timer ping_timer_;
  Clock::time_point idle_since_{};
  Clock::time_point last_sign_{};
  bool pinging_ = false;
  std::uint64_t pinged_after_ = 0;  // the last call before the ping
  bool suspect_ = false;            // it has not answered its ping
};

}  // namespace fairlead::pool
