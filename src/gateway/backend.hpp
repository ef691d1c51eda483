// GatewayBackend: answers the clients' requests: lists from the catalogue, everything else by forwarding it
// to the server it is for. Private to the layer.
#pragma once

#include <chrono>
#include <memory>

#include "fairlead/mcp/backend.hpp"
#include "gateway/ended_sessions.hpp"
#include "gateway/failure.hpp"
#include "gateway/forwarding.hpp"
#include "gateway/listing.hpp"
#include "gateway/log_levels.hpp"
#include "gateway/missing_lists.hpp"
#include "gateway/router.hpp"
#include "gateway/session_table.hpp"
#include "gateway/watches.hpp"

namespace fairlead::gateway {

class GatewayBackend final : public mcp::Backend, public std::enable_shared_from_this<GatewayBackend> {
 public:
  // The units that the backend works with.
  struct Units {
    std::shared_ptr<pool::Pool> pool;
    std::shared_ptr<ServerTable> servers;
    std::shared_ptr<CatalogueStore> catalogue;
    std::shared_ptr<Listing> listing;
    std::shared_ptr<MissingLists> missing;
    std::shared_ptr<SessionTable> sessions;
    std::shared_ptr<LogLevels> levels;
    std::shared_ptr<Watches> watches;
    FailurePolicy failures;
  };
  GatewayBackend(Loop& loop, mcp::Server front, Units units);

  // How long a list waits for servers that have not listed yet.
  void set_list_wait(std::chrono::milliseconds wait) { list_wait_ = wait; }

  const FailurePolicy& failures() const noexcept { return units_.failures; }

  bool has_capability(std::string_view capability) const override;
  Task<Answer> serve(mcp::BackendRequest request) override;
  mcp::HeaderParams header_params(std::string_view tool, const Principal& principal) const override;
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription subscription) override;
  void session_began(std::string_view session, Reach reach) override;
  void log_level_set(std::string_view session, mcp::LoggingLevel level) override;
  void session_ended(std::string_view session) override;

 private:
  // Errors of servers may show the secrets that they were connected with.
  Error redacted(const Error& error) const;
  Task<Answer> list(Kind kind, mcp::BackendRequest request);
  // Serves a request that has no route yet.
  Task<Answer> serve_when_listed(mcp::BackendRequest request, Requested requested);
  // The tools of the gateway itself, as elements of an array.
  void write_own_tools(json::Writer& out, mcp::Revision revision) const;
  // As Router::route(), after waiting for the lists that the route depends on. `requested` is kept by the
  // caller.
  Task<Result<Route>> wait_for_route(const Requested& requested, std::string session, PrincipalPtr principal,
                                     std::stop_token stop);

  Loop& loop_;
  mcp::Server front_;
  Units units_;
  Router router_;
  std::shared_ptr<Forwarder> forwarder_;
  std::shared_ptr<EndedSessions> ended_sessions_;
  std::chrono::milliseconds list_wait_{10'000};
};

// For mcp::Server::backend(): sessions of the server may outlive the gateway, so this refers to its backend
// weakly, and refuses requests when that is gone.
std::shared_ptr<mcp::Backend> weak_backend(std::weak_ptr<mcp::Backend> backend);

}  // namespace fairlead::gateway
