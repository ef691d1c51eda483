// GatewayImpl: the Gateway there is. Private to the layer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/gateway/gateway.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/mcp/backend.hpp"
#include "gateway/catalogue.hpp"
#include "gateway/passing.hpp"

namespace fairlead::gateway {

std::string_view list_method(Kind kind) noexcept;

// A client's request on its way through; what a server says meanwhile may be meant for it.
struct Passage {
  explicit Passage(mcp::Context asking) : context(std::move(asking)) {}
  mcp::Context context;
};

class GatewayImpl final : public Gateway,
                          public mcp::Backend,
                          public std::enable_shared_from_this<GatewayImpl> {
 public:
  GatewayImpl(Loop& loop, Config config, Log log);
  Result<void> start();

  // Gateway
  const mcp::Server& front() const noexcept override { return front_; }
  pool::Pool& pool() const noexcept override { return *pool_; }
  json::Raw health() const override;
  Task<void> shutdown(std::chrono::milliseconds grace) override;

  // mcp::Backend
  bool has_capability(std::string_view capability) const override;
  Task<Answer> serve(mcp::BackendRequest request) override;
  json::Raw input_schema(std::string_view tool) const override;
  void subscribed(const std::string& uri, bool on) override;
  void session_ended(std::string_view session) override;

 private:
  // What is known of one server, whether it runs or not.
  struct Known {
    mcp::Revision revision = mcp::kNewestLegacy;
    std::shared_ptr<const Listed> listed = std::make_shared<const Listed>();
    bool asked = false;    // its lists have been asked for once, with whatever outcome
    bool listing = false;  // they are being asked for now
    bool again = false;    // and have changed meanwhile
    std::string problem;   // why there are none
  };
  // Where a request goes.
  struct Route {
    std::string server;
    std::optional<Rename> rename;
    json::View entry;  // the tool, where it is one
  };

  // Lists (gateway_lists.cpp).
  void refresh(const std::string& server);
  static Task<void> list_server(std::shared_ptr<GatewayImpl> self, std::string server);
  static Task<Result<std::shared_ptr<const Listed>>> ask_lists(mcp::Client& client);
  void take_lists(const std::string& server, std::shared_ptr<const Listed> listed);
  Task<Answer> list(Kind kind, mcp::Revision revision);
  void tell_changes(const Catalogue& before);

  // Calls (gateway.cpp).
  Result<Route> route(const rpc::Message& message) const;
  Task<Answer> pass(mcp::BackendRequest request, Route route);
  Task<Result<json::Raw>> answers_of(mcp::Context context, json::Raw questions);

  // What servers say (gateway_upstream.cpp).
  pool::UpstreamHandlers handlers();
  void on_notification(const pool::Upstream& upstream, std::string_view method, const json::Raw& params);
  static Task<Answer> on_request(std::shared_ptr<GatewayImpl> self, std::shared_ptr<pool::Upstream> upstream,
                                 Request request);
  void on_change(const pool::Upstream& upstream, const pool::Transition& transition);
  void on_log(const pool::Upstream& upstream, const json::Raw& params);
  struct Watched {
    std::optional<pool::Lease> lease;  // keeps the server running for as long as somebody listens
    std::optional<std::uint64_t> subscription;
    bool wanted = true;
  };
  static Task<void> subscribe(std::shared_ptr<GatewayImpl> self, std::string uri);
  static Task<void> unsubscribe(std::shared_ptr<Watched> watched);

  Loop& loop_;
  Config config_;
  Log log_;
  mcp::Server front_;
  std::shared_ptr<pool::Pool> pool_;
  std::map<std::string, Known> known_;
  std::shared_ptr<const Catalogue> catalogue_ = std::make_shared<const Catalogue>();
  Event listed_;                                             // every server has been asked once
  std::map<std::string, std::shared_ptr<Watched>> watched_;  // by URI
  bool stopping_ = false;
};

}  // namespace fairlead::gateway
