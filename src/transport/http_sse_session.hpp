// HttpSseSession: a session over HTTP+SSE, the transport of revision 2024-11-05. The client opens one event
// stream, on which all messages to the client are sent, and POSTs its messages to another path. The session
// ends with the stream. For Streamable HTTP see legacy_session.hpp. Private to src/transport.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fairlead/transport/endpoint.hpp"
#include "transport/session_binding.hpp"
#include "transport/ticker.hpp"

namespace fairlead::transport {

class HttpSseSession final : public Connection, public TickListener {
 public:
  // Called once, when the session ends. The endpoint removes the session from its table.
  using EndedCallback = std::function<void(const std::string& id)>;

  HttpSseSession(Loop& loop, std::string id, PrincipalPtr principal, EndedCallback on_ended)
      : Connection(loop),
        id_(std::move(id)),
        principal_(std::move(principal)),
        on_ended_(std::move(on_ended)) {}

  // Sets the application that serves the session, which is kept alive until the session has ended.
  void bind_to(SessionBinding binding) { binding_ = std::move(binding); }
  const SessionBinding& binding() const noexcept { return binding_; }

  const PrincipalPtr& principal() const noexcept { return principal_; }
  // Responds to the GET of the client with the event stream. Its first event names `messages_uri`, to which
  // the client POSTs its messages.
  void open(std::shared_ptr<http::Exchange> exchange, const std::string& messages_uri);
  // Responds to a POST with 202 and delivers its message to the receiver of this connection.
  void handle_post(const std::shared_ptr<http::Exchange>& exchange, const rpc::Message& message);

  void on_tick(Clock::time_point now) override;
  std::size_t backlog() const noexcept override { return exchange_ ? exchange_->backlog() : 0; }
  std::string description() const override { return "session " + id_.substr(0, 8); }

 private:
  Result<void> enqueue(const rpc::Rope& message, WriteWaiter* waiter,
                       RelatedRequest related_request) override;
  std::uint64_t position_at_backlog(std::size_t) const noexcept override { return 0; }
  void request_input() override {}
  void release() override;

  std::string id_;
  PrincipalPtr principal_;
  SessionBinding binding_;
  EndedCallback on_ended_;
  std::shared_ptr<http::Exchange> exchange_;  // the exchange of the GET; null after the session has ended
  bool idle_since_tick_ = false;              // nothing was sent since the last tick
  std::uint64_t sent_count_ = 0;  // messages that enqueue() was called with; a position for WriteWaiter
};

}  // namespace fairlead::transport
