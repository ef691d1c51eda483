// ServerConnection: a connection from a client to the HTTP server. It reads requests one after the other,
// passes each to the handler of its route as an Exchange, and writes the responses in the order of the
// requests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "connection/stream_pump.hpp"
#include "fairlead/http/authenticator.hpp"
#include "fairlead/http/server.hpp"
#include "fairlead/loop/loop.hpp"
#include "http/byte_stream.hpp"
#include "http/request_reader.hpp"
#include "http/server_core.hpp"
#include "rpc/write_queue.hpp"

namespace fairlead::http {

class ServerExchange;

class ServerConnection final : public std::enable_shared_from_this<ServerConnection>,
                               private StreamPump::Owner {
 public:
  // `peer_principal` is the principal of the client before authentication. `surplus`: the connection exceeds
  // max_connections.
  ServerConnection(std::shared_ptr<ServerCore> core, std::unique_ptr<ByteStream> stream,
                   PrincipalPtr peer_principal, bool surplus);

  // Starts to wait for the first request. A surplus connection sends 503 instead and is closed.
  void start();
  // Closes the connection at once. The exchange in progress, if any, is notified of the disconnect.
  void close();
  // Closes the connection if no request is being read or served and no output is queued.
  void close_if_idle();
  bool is_surplus() const noexcept { return surplus_; }

  Clock::time_point deadline() const noexcept { return deadline_; }
  // Called by the core when deadline() has passed.
  void on_deadline();
  std::size_t index_in_core = 0;  // position in ServerCore::connections_
  // Number of connections of the same network, shared by them.
  std::shared_ptr<std::size_t> network_connection_count;
  const std::string& network() const noexcept { return network_; }
  // Returns whether the connection may be closed to make room for another one: no request is being served,
  // and at most a part of the head of the next one has been read.
  bool may_be_evicted() const noexcept;

  // Functions that the current exchange calls.
  void respond(ServerExchange& exchange, const Response& response);
  // Responds with no header field but Date, Content-Type and Content-Length. Returns false, and sends
  // nothing, if the response needs others (HTTP/1.0, CORS, the connection closes after it), must have no body
  // (HEAD, 204, 304), or exceeds the budget.
  bool respond_plainly(ServerExchange& exchange, int status, std::string_view content_type,
                       const rpc::Rope& body);
  void start_stream(ServerExchange& exchange, const Response& head);
  void write_chunk(const ServerExchange& exchange, const std::vector<Bytes>& parts);
  void finish_stream(ServerExchange& exchange);
  Exchange::Upgraded upgrade(ServerExchange& exchange, const Response& head);
  void on_exchange_dropped(ServerExchange& exchange);
  // Keeps the request of an exchange that is destroyed for the next request.
  void reclaim_request(ServerExchange& exchange) noexcept;
  std::size_t backlog() const noexcept { return queue_.unwritten_bytes(); }
  // Returns the account that requests of `principal` are charged to (server_budget.cpp).
  std::shared_ptr<ByteAccount> account_of(const PrincipalPtr& principal);
  ServerCore& core() noexcept { return *core_; }

 private:
  // What the HostOriginPolicy says about a head.
  struct PolicyVerdict {
    std::uint64_t head_number = 0;            // of the head that it is about
    std::optional<std::string_view> refusal;  // why the host or the Origin is not allowed
    bool origin_allowed = false;              // there is an Origin that needs CORS headers
    bool is_preflight = false;                // a preflight request that the server itself responds to
  };

  // What the connection waits for. Each phase has its own timeout; see timeout_of().
  enum class Phase : std::uint8_t {
    handshake,
    idle,
    head,
    authentication,
    body,
    response,
    write_stall,
    linger
  };

  // Authentication of the request that is being read. Used only if the server has an authenticator.
  struct RequestAuthentication {
    enum class Stage : std::uint8_t { none, waiting, decided };

    Stage stage = Stage::none;
    std::optional<Task<void>> task;           // stage `waiting`
    std::unique_ptr<Authentication> outcome;  // the outcome of the task, until it is applied
    PrincipalPtr principal;                   // stage `decided`; null: rejected
    std::unique_ptr<Response> refusal;        // stage `decided`: the response, if rejected
  };

  // StreamPump::Owner.
  std::shared_ptr<void> lifetime() override { return shared_from_this(); }
  bool read_once() override;
  void on_turn_end() override;
  void on_out_of_memory() override;
  void on_written() override { response_charge_.set(queue_.unwritten_bytes()); }
  void on_output_failed(Error reason) override;
  void on_flushed() override {
    release_spare_memory();
    schedule_next();
  }

  // Reading. The read_… functions, discard_input() and handle_read_result() return whether more input may be
  // available. read_some() reads into the scratch buffer of the loop, read_body() into the buffer of the
  // body, read_ahead() into read_ahead_.
  void reject_incomplete_request(int status, const std::string& why);
  bool read_and_process_input();
  bool read_some();
  bool read_body();
  bool read_ahead();
  bool discard_input();
  bool handle_read_result(const ByteStream::IoResult& io, std::size_t room);
  void on_end_of_input();
  std::size_t feed(std::string_view bytes);
  void process_input(std::string_view bytes);
  void process_read_ahead();
  // Continues with the current request after its state in the reader may have changed.
  void continue_request();
  bool turn_is_over() const noexcept;
  bool may_process_input() const noexcept;
  bool is_idle() const noexcept;
  void process_read_ahead_in_turn();
  // Determines what the connection waits for next, or closes it. Called after every event.
  void schedule_next();

  // Authentication (server_authentication.cpp).
  // Starts the authentication unless it has started. Returns whether it is complete, with either outcome.
  bool try_authenticate();
  void start_authentication();
  static Task<void> authenticate(ServerConnection* self);
  // Logs the exception that the authenticator threw, and returns the outcome for the request: 500.
  Authentication on_authenticator_exception(const std::string& reason) const;
  void finish_authentication();
  void time_out_authentication();
  void apply_authentication(Authentication outcome);
  PrincipalPtr with_connection_address(PrincipalPtr principal);
  void reject_unauthenticated_request();

  // Responding.
  void dispatch();
  // Applies the HostOriginPolicy to the head in the reader, unless it repeats the previous head.
  void apply_policy();
  void call_handler(const Handler& handler, const std::shared_ptr<ServerExchange>& exchange);
  // Both functions queue the last response of the connection, which is closed after it.
  void queue_rejection(int status, std::string_view message);
  void queue_final_response(const Response& response, std::string_view origin = {});
  void queue_head(const Response& response, ResponseFraming framing);
  void queue_response(ServerExchange& exchange, const Response& response);
  void finish_response(ServerExchange& exchange, bool keep_alive);
  bool keeps_alive() const noexcept;

  // Charging (server_budget.cpp).
  void update_incomplete_request_charge();
  void update_read_ahead_charge();
  bool charge_incomplete_request(std::size_t bytes);
  bool charge_read_ahead(std::size_t bytes);
  std::optional<Response> charge_complete_request(ServerExchange& exchange);
  std::optional<Response> charge_response(const Response& response);
  bool charge_chunk(std::size_t bytes);
  ChargeOutcome charge_output(std::size_t bytes);
  void release_spare_memory();

  void linger();
  Phase phase() const noexcept;
  Clock::duration timeout_of(Phase phase) const noexcept;
  void update_deadline();
  void set_deadline();
  void start_rate_window();
  std::string body_timeout_reason() const;
  void time_out(const std::string& why);

  std::shared_ptr<ServerCore> core_;
  std::string remote_;
  std::string network_;  // the network of remote_; see client_network()
  PrincipalPtr peer_principal_;
  PrincipalPtr authenticated_principal_;  // the last principal that the authenticator returned
  PrincipalPtr addressed_principal_;      // its copy with the address of this connection
  std::string allowed_authority_;         // the last host and port that the policy has allowed
  PolicyVerdict policy_verdict_;
  RequestAuthentication authentication_;
  RequestReader reader_;
  rpc::ByteQueue queue_;                        // output that is not written yet
  StreamPump pump_;                             // not open after close() and after upgrade()
  ServerExchange* current_exchange_ = nullptr;  // the exchange whose response is not complete; null: none
  std::string read_ahead_;                      // input that was read after the current request
  std::size_t read_ahead_processed_ = 0;        // bytes at the start of read_ahead_ that are processed
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point phase_start_;            // when the phase started or last made progress
  Clock::time_point rate_window_start_;      // start of the window over which the rate of a body is measured
  std::size_t rate_window_start_bytes_ = 0;  // body bytes that arrived before the window
  Phase last_phase_ = Phase::linger;
  int requests_in_turn_ = 0;              // requests handled in this turn
  ByteCharge incomplete_request_charge_;  // charge for the request that is being read, including its head
  ByteCharge read_ahead_charge_;          // charge for read_ahead_
  ByteCharge response_charge_;            // charge for queue_
  PrincipalPtr charged_principal_;
  std::shared_ptr<ByteAccount> account_;  // the account of charged_principal_
  bool surplus_;                          // the connection exceeds max_connections
  bool has_read_request_ = false;         // at least one complete request has been read
  bool read_ahead_turn_posted_ = false;   // process_read_ahead_in_turn() is in the fair queue
  bool input_ended_ = false;
  bool had_large_body_ = false;  // of the previous request
  bool closing_ = false;         // the connection closes when queue_ is written
  bool lingering_ = false;       // queue_ is written; input is discarded until the client closes
};

// Implementation of Exchange: passes the response of a handler to the connection.
class ServerExchange final : public Exchange, public std::enable_shared_from_this<ServerExchange> {
 public:
  ~ServerExchange() override;

  const Request& request() const noexcept override { return *request_; }
  Loop& loop() const noexcept override { return connection_->core().loop; }
  void respond(Response response) override;
  void respond_with(int status, std::string_view content_type, const rpc::Rope& body) override;
  void start(Response head) override;
  void write(std::vector<Bytes> parts) override;
  void finish() override;
  void abort() override;
  std::size_t backlog() const noexcept override;
  Upgraded upgrade(Response head) override;
  void when_disconnected(std::move_only_function<void()> callback) override;
  bool disconnected() const noexcept override { return disconnected_; }
  std::shared_ptr<ByteAccount> account() const override;
  void release_body_charge() override { charge_.set(charged_head_bytes_); }

 private:
  friend class ServerConnection;
  enum class State : std::uint8_t { pending, streaming, done };
  void on_connection_lost();

  std::shared_ptr<ServerConnection> connection_;
  std::unique_ptr<Request> request_;
  std::uint64_t head_number_ = 0;       // of RequestReader
  ByteCharge charge_;                   // charge for the request, until the response
  std::size_t charged_head_bytes_ = 0;  // the part of charge_ for the head
  State state_ = State::done;
  ResponseFraming::Body body_framing_ = ResponseFraming::Body::sized;  // how a streamed response is delimited
  bool keep_alive_ = true;  // the connection stays open after a streamed response
  bool head_only_ = false;  // the method is HEAD, so the response has no body
  bool disconnected_ = false;
  bool origin_allowed_ = false;  // the request has an Origin header, whose value is allowed
  std::move_only_function<void()> on_disconnect_;
};

}  // namespace fairlead::http
