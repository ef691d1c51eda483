// UpstreamEvents: handles the notifications, requests and state changes of upstreams. A message of a server
// is forwarded only if it can be related to exactly one client. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/log.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/client_channel.hpp"
#include "gateway/list_fetcher.hpp"
#include "gateway/session_table.hpp"
#include "gateway/subscription_hub.hpp"
#include "gateway/upstream_log_levels.hpp"

namespace fairlead::gateway {

class UpstreamEvents : public std::enable_shared_from_this<UpstreamEvents> {
 public:
  UpstreamEvents(Loop& loop, std::shared_ptr<SessionTable> sessions, Log log)
      : loop_(loop), sessions_(std::move(sessions)), log_(std::move(log)) {}

  // Returns the handlers for the options of the pool. They hold weak references to this object.
  pool::UpstreamHandlers handlers();
  // Sets the objects to which the events are passed. Called once, before the pool has a server.
  void set_components(std::shared_ptr<const ServerTable> servers, std::shared_ptr<ListFetcher> list_fetcher,
                      std::shared_ptr<UpstreamLogLevels> log_levels,
                      std::shared_ptr<SubscriptionHub> subscription_hub);

 private:
  // Returns the client to which a message of `upstream` that names no request is forwarded. If calls are in
  // progress at `upstream`, that is the client that made all of them; otherwise the client whose session
  // `upstream` serves. Returns nullopt if there is no such client, or if calls of several clients are in
  // progress.
  std::optional<mcp::Context> client_for(const pool::Upstream& upstream) const;
  ClientChannel channel_to(const mcp::Context& client) const { return ClientChannel(loop_, client); }
  void notify(const mcp::Context& client, std::string_view method, const json::Raw& params) const;
  // Returns the capabilities that at least one of the clients of `upstream` has declared.
  json::Raw capabilities_for(const pool::Upstream& upstream) const;
  void handle_notification(const std::shared_ptr<pool::Upstream>& upstream, std::string_view method,
                           const json::Raw& params);
  // Logs that a notification is dropped because `member` of its params is not a string, or exceeds `limit`.
  void log_dropped_notification(const pool::Upstream& upstream, std::string_view method,
                                std::string_view member, std::string_view limit) const;
  void handle_list_changed(const std::shared_ptr<pool::Upstream>& upstream);
  void handle_log_message(const pool::Upstream& upstream, const json::Raw& params);
  void handle_elicitation_complete(const pool::Upstream& upstream, const json::Raw& params);
  static Task<Answer> handle_request(std::shared_ptr<UpstreamEvents> self,
                                     std::shared_ptr<pool::Upstream> upstream, Request request);
  // Returns the error response to a request of `server` that cannot be related to one client, and logs it.
  Error no_client_error(const std::string& server, std::string_view method) const;
  void handle_transition(const std::shared_ptr<pool::Upstream>& upstream, const pool::Transition& transition);
  // Updates log levels, lists and subscriptions after a change to or from the state `ready`.
  void apply_transition(const std::shared_ptr<pool::Upstream>& upstream, bool ready, bool restarted);

  Loop& loop_;
  std::shared_ptr<SessionTable> sessions_;
  Log log_;
  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<ListFetcher> list_fetcher_;
  std::shared_ptr<UpstreamLogLevels> log_levels_;
  std::shared_ptr<SubscriptionHub> subscription_hub_;
};

}  // namespace fairlead::gateway
