// ModernRequest: one request of the modern era and the answer to it: JSON, or events as soon as something is
// said ahead of the answer. It leaves nothing behind. Private to the layer.
#pragma once

#include <memory>
#include <stop_token>

#include "fairlead/transport/endpoint.hpp"
#include "transport/request_rules.hpp"
#include "transport/ticker.hpp"

namespace fairlead::transport {

class ModernRequest final : public Standalone,
                            public Ticked,
                            public std::enable_shared_from_this<ModernRequest> {
 public:
  ModernRequest(std::shared_ptr<http::Exchange> exchange, rpc::Message message,
                const EndpointOptions& options);

  // Starts it. What is not answered on the spot is looked after by `ticker`.
  static void serve(const std::shared_ptr<ModernRequest>& request,
                    const std::shared_ptr<Application>& application, Ticker& ticker);

  const rpc::Message& message() const noexcept override { return message_; }
  const PrincipalPtr& principal() const noexcept override { return principal_; }
  std::stop_token stop() const noexcept override { return stop_.get_token(); }
  Loop& loop() const noexcept override { return loop_; }
  void notify(rpc::Rope notification) override;

  void tick(Clock::time_point now) override;
  // Nobody waits for the answer any more, or nobody shall.
  void give_up();

 private:
  static Task<void> run(std::shared_ptr<ModernRequest> self, std::shared_ptr<Application> application);
  void finish(const Answer& answer);
  void write_event(std::vector<Bytes> event);
  void send_last(int status, const rpc::Rope& answer);

  Loop& loop_;
  std::shared_ptr<http::Exchange> exchange_;  // until it is answered
  rpc::Message message_;
  PrincipalPtr principal_;
  Log log_;
  std::stop_source stop_;
  std::chrono::milliseconds timeout_;
  std::chrono::milliseconds keep_alive_;
  Clock::time_point since_;
  Accepts accepts_;
  bool started_ = false;  // as a stream of events
  bool quiet_ = false;    // nothing was sent since the last tick
};

}  // namespace fairlead::transport
