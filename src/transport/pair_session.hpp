// PairSession: a client of 2024-11-05 over HTTP+SSE, as a connection: everything to it goes on the one stream
// it opened, everything from it is posted elsewhere. It lasts as long as the stream. Private to the layer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fairlead/transport/endpoint.hpp"
#include "transport/ticker.hpp"

namespace fairlead::transport {

class PairSession final : public Connection, public Ticked {
 public:
  using Ended = std::function<void(const std::string& id)>;

  PairSession(Loop& loop, std::string id, PrincipalPtr principal, Ended ended)
      : Connection(loop), id_(std::move(id)), principal_(std::move(principal)), ended_(std::move(ended)) {}

  const PrincipalPtr& principal() const noexcept { return principal_; }
  // Answers the GET with the stream and says where to post to.
  void open(std::shared_ptr<http::Exchange> exchange, const std::string& messages_uri);
  void take_post(const std::shared_ptr<http::Exchange>& exchange, const rpc::Message& message);

  void tick(Clock::time_point now) override;
  std::size_t backlog() const noexcept override { return exchange_ ? exchange_->backlog() : 0; }
  std::string description() const override { return "session " + id_.substr(0, 8); }

 private:
  Result<void> enqueue(const rpc::Rope& message, Waiter* waiter, Concerning concerning) override;
  std::uint64_t position_at_backlog(std::size_t) const noexcept override { return 0; }
  void want_input() override {}
  void release() override;

  std::string id_;
  PrincipalPtr principal_;
  Ended ended_;
  std::shared_ptr<http::Exchange> exchange_;
  bool quiet_ = false;
  std::uint64_t sent_ = 0;
};

}  // namespace fairlead::transport
