// EndpointScope: which servers an endpoint offers, and under which names: every server, the selection of a
// registry::Endpoint, or one server. ClientScope: the servers that exist for a client at an endpoint. Lists,
// calls, subscriptions and errors are all restricted to these. Private to the layer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/principal.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "gateway/pattern_set.hpp"
#include "gateway/server_entry.hpp"
#include "registry/access.hpp"

namespace fairlead::gateway {

class EndpointScope {
 public:
  // Selects every server, under the names at /mcp.
  EndpointScope();
  EndpointScope(const EndpointScope&) = delete;
  // Selects one server, whose tools and prompts keep their own names.
  static std::shared_ptr<EndpointScope> of_server(std::string server);

  // Selects what the endpoint selects; null: no server.
  void set_endpoint(std::shared_ptr<const registry::Endpoint> endpoint);
  // Returns null if the scope is not that of a registry::Endpoint.
  const registry::Endpoint* endpoint() const noexcept { return endpoint_.get(); }
  // Identifies this scope and its current endpoint.
  std::uint64_t id() const noexcept { return id_; }

  // Returns whether every server is selected, under the names at /mcp.
  bool is_plain() const noexcept { return plain_; }
  // Returns the name of the only server; null if the scope may select several.
  const std::string* single_server() const noexcept { return server_.empty() ? nullptr : &server_; }
  bool selects(const std::string& server, const ServerPolicy& policy) const;

  // Returns whether tools and prompts may have other names here, or may be missing.
  bool changes_names() const noexcept { return changes_names_; }
  // Returns the name of the entry at this endpoint; nullopt if it does not exist here. The public name of
  // `entry` is that at /mcp.
  std::optional<std::string> name_of(ListKind kind, const CatalogueEntry& entry,
                                     const ListRules* rules) const;
  // Returns the public name at /mcp that `name` may stand for at this endpoint.
  std::string name_at_default(std::string_view name) const;
  // The renamed tools, by their public names at /mcp; null if there are none.
  const std::map<std::string, std::string>* renames() const noexcept;
  // The patterns of the tools that are listed; null: all are.
  const std::shared_ptr<const PatternSet>& listed_tools() const noexcept { return listed_tools_; }

 private:
  std::optional<std::string> tool_name(const CatalogueEntry& tool, const ListRules* rules) const;

  std::uint64_t id_;
  bool plain_ = true;
  bool changes_names_ = false;
  std::string server_;
  std::shared_ptr<const registry::Endpoint> endpoint_;
  // The patterns of `endpoint_`.
  PatternSet servers_;
  PatternSet tools_;
  PatternSet deny_;
  std::shared_ptr<const PatternSet> listed_tools_;
};

// REQUIRES: the scope and the client outlive this object.
struct ClientScope {
  const EndpointScope& scope;
  const Principal& client;

  bool offers(const std::string& server, const ServerPolicy& policy) const {
    return scope.selects(server, policy) && registry::sees(client, policy.visibility, policy.owner);
  }
  bool offers(const ServerEntry& entry) const { return offers(entry.name(), *entry.policy); }
};

}  // namespace fairlead::gateway
