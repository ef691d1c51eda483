#include "gateway/endpoint_scope.hpp"

#include <algorithm>
#include <atomic>

#include "gateway/names.hpp"

namespace fairlead::gateway {

namespace {

std::uint64_t next_scope_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

EndpointScope::EndpointScope() : id_(next_scope_id()) {}

std::shared_ptr<EndpointScope> EndpointScope::of_server(std::string server) {
  auto scope = std::make_shared<EndpointScope>();
  scope->server_ = std::move(server);
  scope->plain_ = false;
  scope->changes_names_ = true;
  return scope;
}

void EndpointScope::set_endpoint(std::shared_ptr<const registry::Endpoint> endpoint) {
  id_ = next_scope_id();
  endpoint_ = std::move(endpoint);
  servers_ = endpoint_ ? PatternSet(endpoint_->servers) : PatternSet();
  tools_ = endpoint_ ? PatternSet(endpoint_->tools) : PatternSet();
  deny_ = endpoint_ ? PatternSet(endpoint_->deny) : PatternSet();
  const bool discover = endpoint_ && endpoint_->mode == registry::EndpointMode::discover;
  listed_tools_ = discover ? std::make_shared<const PatternSet>(endpoint_->pinned) : nullptr;
  changes_names_ = endpoint_ && (!endpoint_->tools.empty() || !endpoint_->deny.empty() || renames());
  plain_ =
      endpoint_ && !changes_names_ && !listed_tools_ && endpoint_->servers.empty() && endpoint_->tags.empty();
}

bool EndpointScope::selects(const std::string& server, const ServerPolicy& policy) const {
  if (plain_) return true;
  if (!server_.empty()) return server == server_;
  if (!endpoint_) return false;
  if (endpoint_->servers.empty() && endpoint_->tags.empty()) return true;
  return servers_.matches(server) || std::ranges::any_of(policy.tags, [&](const std::string& tag) {
           return std::ranges::find(endpoint_->tags, tag) != endpoint_->tags.end();
         });
}

// ---- names -----------------------------------------------------------------------------------------------

std::optional<std::string> EndpointScope::name_of(ListKind kind, const CatalogueEntry& entry,
                                                  const ListRules* rules) const {
  if (!server_.empty()) return rules ? rules->offered_name(kind, entry.name) : entry.name;
  return kind == ListKind::tools && endpoint_ ? tool_name(entry, rules) : entry.public_name;
}

// A denied tool stays denied if its server renames it.
std::optional<std::string> EndpointScope::tool_name(const CatalogueEntry& tool,
                                                    const ListRules* rules) const {
  const std::string& name = tool.public_name;
  if (!tools_.empty() && !tools_.matches(name)) return std::nullopt;
  if (deny_.matches(name)) return std::nullopt;
  const bool renamed_by_server = rules && rules->tools.rename.contains(tool.name);
  if (renamed_by_server && deny_.matches(public_name(tool.server, tool.name))) return std::nullopt;
  const auto* const names = renames();
  const auto renamed = names ? names->find(name) : std::map<std::string, std::string>::const_iterator();
  return names && renamed != names->end() ? renamed->second : name;
}

std::string EndpointScope::name_at_default(std::string_view name) const {
  if (!server_.empty()) return public_name(server_, name);
  if (const auto* const names = renames()) {
    const auto renamed = std::ranges::find(*names, name, [](const auto& entry) { return entry.second; });
    if (renamed != names->end()) return renamed->first;
  }
  return std::string(name);
}

// In the mode `discover` tools are called by their public names at /mcp.
const std::map<std::string, std::string>* EndpointScope::renames() const noexcept {
  const bool renames =
      endpoint_ && endpoint_->mode == registry::EndpointMode::direct && !endpoint_->rename.empty();
  return renames ? &endpoint_->rename : nullptr;
}

}  // namespace fairlead::gateway
