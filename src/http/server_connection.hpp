// ServerConnection: one client's connection. It reads requests, one after the other, hands each to its
// handler as an Exchange, and writes the answers in the order of the requests.
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
  // `peer` is what is known of the client without authentication.
  ServerConnection(std::shared_ptr<ServerCore> core, std::unique_ptr<ByteStream> stream, PrincipalPtr peer,
                   bool surplus);

  // Waits for the first request; or, one too many, says so and hangs up.
  void start();
  void close();
  void close_if_idle();
  bool surplus() const noexcept { return surplus_; }

  Clock::time_point deadline() const noexcept { return deadline_; }
  void expire();
  std::size_t place = 0;                       // in the core's list
  std::shared_ptr<std::size_t> network_count;  // the core's: connections of the same network
  const std::string& network() const noexcept { return network_; }
  // No request is under way, and none has been read.
  bool may_be_evicted() const noexcept;

  // For the exchange under way.
  void respond(ServerExchange& exchange, const Response& response);
  void start_stream(ServerExchange& exchange, const Response& head);
  void write_chunk(const ServerExchange& exchange, const std::vector<Bytes>& parts);
  void finish_stream(ServerExchange& exchange);
  Exchange::Upgraded upgrade(ServerExchange& exchange, const Response& head);
  void abandoned(ServerExchange& exchange);
  std::size_t backlog() const noexcept { return queue_.bytes(); }
  // The account that requests of this principal are charged to (server_budget.cpp).
  std::shared_ptr<ByteAccount> account_of(const PrincipalPtr& principal);
  ServerCore& core() noexcept { return *core_; }

 private:
  // What a connection waits for; each has a limit of its own.
  enum class Phase : std::uint8_t { hello, idle, head, authentication, body, answer, stall, linger };

  // Whether the request that is being read is let in. With an authenticator only.
  struct Admission {
    enum class Stage : std::uint8_t { none, waiting, decided };

    Stage stage = Stage::none;
    std::optional<Task<void>> task;         // waiting
    std::optional<Authentication> outcome;  // of the task, not taken up yet
    PrincipalPtr principal;                 // decided; null: refused
    std::optional<Response> refusal;
  };

  // StreamPump::Owner.
  std::shared_ptr<void> lifetime() override { return shared_from_this(); }
  bool read_once() override;
  void on_turn_end() override;
  void on_out_of_memory() override;
  void on_written() override { answer_charge_.set(queue_.bytes()); }
  void on_output_failed(Error reason) override;
  void on_flushed() override { settle(); }

  // Reading. The reads say whether there may be more.
  void give_up_request(int status, const std::string& why);
  bool read_next();
  bool read_some();
  bool read_body();
  bool read_ahead();
  bool discard();
  bool after_read(const ByteStream::Io& io, std::size_t room);
  void end_of_input();
  std::size_t feed(std::string_view bytes);
  void take(std::string_view bytes);
  void take_pending();
  void after_feed();
  bool turn_is_over() const noexcept;
  bool may_take_next() const noexcept;
  bool is_idle() const noexcept;
  void resume();
  void settle();

  // Authentication (server_authentication.cpp).
  bool is_decided();
  void begin_authentication();
  static Task<void> authenticate(ServerConnection* self);
  Authentication failed_authentication(const std::string& what) const;
  void finish_authentication();
  void time_out_authentication();
  void decide(Authentication outcome);
  PrincipalPtr with_address(PrincipalPtr given);
  void refuse_unread();

  // Answering.
  void dispatch();
  void call_handler(const Handler& handler, std::shared_ptr<ServerExchange> exchange);
  void refuse(int status, std::string_view message);
  void put_last(const Response& response, std::string_view origin = {});
  void put_head(const Response& response, HeadFraming framing);
  void put_answer(ServerExchange& exchange, const Response& response);
  void finish_answer(ServerExchange& exchange, bool keep_alive);
  bool keeps_alive() const noexcept;

  // Charging (server_budget.cpp).
  void count_request();
  void count_read_ahead();
  bool charge_body(std::size_t bytes);
  bool charge_read_ahead(std::size_t bytes);
  std::optional<Response> charge_request(ServerExchange& exchange);
  std::optional<Response> charge_answer(const Response& response);
  bool charge_chunk(std::size_t bytes);
  ChargeOutcome charge_output(std::size_t bytes);

  void linger();
  Phase phase() const noexcept;
  Clock::duration limit_of(Phase phase) const noexcept;
  void update_deadline();
  void set_deadline();
  void begin_rate_window();
  std::string body_problem() const;
  void time_out(const std::string& why);

  std::shared_ptr<ServerCore> core_;
  std::string remote_;
  std::string network_;  // of it, see network_of_remote()
  PrincipalPtr peer_;
  PrincipalPtr given_;      // by the authenticator, last
  PrincipalPtr addressed_;  // the same with this connection's address
  Admission admission_;
  RequestReader reader_;
  rpc::ByteQueue queue_;
  StreamPump pump_;                    // not open: closed, or handed over
  ServerExchange* current_ = nullptr;  // the request that is not answered yet
  std::string pending_;                // read while that was so: the requests behind it
  std::size_t pending_done_ = 0;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point since_;         // when what the deadline is for began
  Clock::time_point window_began_;  // the rate of a body is measured over windows
  std::size_t window_bytes_ = 0;    // of the body, before this one
  Phase last_phase_ = Phase::linger;
  int turn_requests_ = 0;         // served since the loop last had its turn
  ByteCharge body_charge_;        // for the request that is being read, with its head
  ByteCharge read_ahead_charge_;  // for pending_
  ByteCharge answer_charge_;      // for what is queued
  PrincipalPtr charged_principal_;
  std::shared_ptr<ByteAccount> account_;  // of that principal
  bool surplus_;
  bool served_ = false;  // at least one request
  bool resume_posted_ = false;
  bool input_ended_ = false;
  bool closing_ = false;    // when all is written
  bool lingering_ = false;  // all is written; what still comes in is thrown away
};

class ServerExchange final : public Exchange, public std::enable_shared_from_this<ServerExchange> {
 public:
  ~ServerExchange() override;
  void reset() noexcept;

  const Request& request() const noexcept override { return request_; }
  Loop& loop() const noexcept override { return connection_->core().loop; }
  void respond(Response response) override;
  void start(Response head) override;
  void write(std::vector<Bytes> parts) override;
  void finish() override;
  void abort() override;
  std::size_t backlog() const noexcept override;
  Upgraded upgrade(Response head) override;
  void when_gone(std::function<void()> told) override;
  bool gone() const noexcept override { return gone_; }
  std::shared_ptr<ByteAccount> account() const override;
  void release_charge() override { charge_.set(head_bytes_); }

 private:
  friend class ServerConnection;
  enum class State : std::uint8_t { pending, streaming, done };
  void lost();

  std::shared_ptr<ServerConnection> connection_;
  Request request_;
  ByteCharge charge_;           // until it is answered
  std::size_t head_bytes_ = 0;  // of it: for the head
  State state_ = State::done;
  HeadFraming::Body body_ = HeadFraming::Body::sized;  // of a stream
  bool keep_alive_ = true;                             // after it
  bool head_only_ = false;                             // HEAD
  bool gone_ = false;
  bool origin_allowed_ = false;
  std::function<void()> told_;
};

}  // namespace fairlead::http
