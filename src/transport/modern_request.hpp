// ModernRequest: one request of the modern era (revision 2026-07-28 and later) and its response. The response
// is JSON; it is an event stream if a notification is sent before the result or if the request takes long.
// Nothing is stored after the response. Private to src/transport.
#pragma once

#include <memory>
#include <stop_token>

#include "fairlead/transport/endpoint.hpp"
#include "transport/request_rules.hpp"
#include "transport/ticker.hpp"

namespace fairlead::transport {

class ModernRequest final : public StatelessRequest,
                            public Responder,
                            public TickListener,
                            public std::enable_shared_from_this<ModernRequest> {
 public:
  ModernRequest(std::shared_ptr<http::Exchange> exchange, rpc::Message message,
                const EndpointOptions& options);

  // Passes the request to the application. If the application does not respond at once, adds the request to
  // `ticker`, which triggers keep-alive comments and the timeout.
  static void start(const std::shared_ptr<ModernRequest>& request,
                    const std::shared_ptr<Application>& application, Ticker& ticker);

  const rpc::Message& message() const noexcept override { return message_; }
  const PrincipalPtr& principal() const noexcept override { return principal_; }
  std::stop_token stop() const noexcept override { return stop_.get_token(); }
  Loop& loop() const noexcept override { return loop_; }
  void notify(rpc::Rope notification) override;
  void respond(const Answer& answer) override { finish(answer); }

  void on_tick(Clock::time_point now) override;
  // Called when the client has disconnected. The token of stop() is set, and no response will be sent.
  void cancel();

 private:
  // Returns false if the application leaves the request to its coroutine.
  bool serve_directly(const std::shared_ptr<Application>& application);
  static Task<void> run(std::shared_ptr<ModernRequest> self, std::shared_ptr<Application> application);
  void finish(const Answer& answer);
  // Writes an event; makes the response an event stream if it is not one yet.
  void write_event(std::vector<Bytes> event);
  void send_response(int status, const rpc::Rope& response);

  Loop& loop_;
  std::shared_ptr<http::Exchange> exchange_;  // null after the response and after cancel()
  rpc::Message message_;
  PrincipalPtr principal_;
  Log log_;
  std::stop_source stop_;
  std::chrono::milliseconds timeout_;
  std::chrono::milliseconds keep_alive_;
  Clock::time_point started_at_;
  AcceptedTypes accepted_types_;
  bool streaming_ = false;        // the head of an event stream has been sent
  bool idle_since_tick_ = false;  // nothing was sent since the last tick
};

}  // namespace fairlead::transport
