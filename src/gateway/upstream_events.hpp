// UpstreamEvents: what servers say without being asked, and to whom it goes: to the one client it can be
// meant for, or to nobody. Private to the layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/log.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/client_link.hpp"
#include "gateway/listing.hpp"
#include "gateway/log_levels.hpp"
#include "gateway/session_table.hpp"
#include "gateway/watches.hpp"

namespace fairlead::gateway {

class UpstreamEvents : public std::enable_shared_from_this<UpstreamEvents> {
 public:
  UpstreamEvents(Loop& loop, std::shared_ptr<SessionTable> sessions, Log log)
      : loop_(loop), sessions_(std::move(sessions)), log_(std::move(log)) {}

  // For the options of the pool. They refer to this object weakly.
  pool::UpstreamHandlers handlers();
  // Called once, before the pool has a server: what follows from the pool's events.
  void attach(std::shared_ptr<const ServerTable> servers, std::shared_ptr<Listing> listing,
              std::shared_ptr<LogLevels> levels, std::shared_ptr<Watches> watches);

 private:
  // The client that a server means when it says something of its own: the one whose requests it is busy with,
  // if they are one client's only, or else the one it runs for. With several there is no telling.
  std::optional<mcp::Context> client_for(const pool::Upstream& upstream) const;
  ClientLink link_to(const mcp::Context& client) const { return ClientLink(loop_, client); }
  void tell(const mcp::Context& client, std::string_view method, const json::Raw& params) const;
  // What the clients that `upstream` is for can be asked for.
  json::Raw capabilities_for(const pool::Upstream& upstream) const;
  void on_notification(const std::shared_ptr<pool::Upstream>& upstream, std::string_view method,
                       const json::Raw& params);
  // Logs that a notification is dropped because `member` is missing or exceeds `limit`.
  void drop(const pool::Upstream& upstream, std::string_view method, std::string_view member,
            std::string_view limit) const;
  void on_list_changed(const std::shared_ptr<pool::Upstream>& upstream);
  void on_log(const pool::Upstream& upstream, const json::Raw& params);
  void on_url_completed(const pool::Upstream& upstream, const json::Raw& params);
  static Task<Answer> on_request(std::shared_ptr<UpstreamEvents> self,
                                 std::shared_ptr<pool::Upstream> upstream, Request request);
  Error no_client(const std::string& server, std::string_view method) const;
  void on_change(const std::shared_ptr<pool::Upstream>& upstream, const pool::Transition& transition);
  void follow_change(const std::shared_ptr<pool::Upstream>& upstream, bool began, bool anew);

  Loop& loop_;
  std::shared_ptr<SessionTable> sessions_;
  Log log_;
  std::shared_ptr<const ServerTable> servers_;
  std::shared_ptr<Listing> listing_;
  std::shared_ptr<LogLevels> levels_;
  std::shared_ptr<Watches> watches_;
};

}  // namespace fairlead::gateway
