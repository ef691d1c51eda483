#include "registry/access.hpp"

#include <algorithm>

#include "base/contains.hpp"

namespace fairlead::registry {

bool is_administrator(const Principal& principal) noexcept {
  return principal.has_role(kAdminRole);
}

bool is_registry_user(const Principal& principal) noexcept {
  return principal.issuer == kRegistryIssuer && principal.subject != kBootstrapSubject &&
         !principal.user.empty();
}

bool sees(const Principal& principal, Visibility visibility, std::string_view owner) noexcept {
  if (is_administrator(principal) || visibility == Visibility::visible) return true;
  return visibility == Visibility::user && is_registry_user(principal) && !owner.empty() &&
         principal.user == owner;
}

bool admits(const Endpoint& endpoint, const Principal& principal) noexcept {
  if (is_administrator(principal) || (endpoint.users.empty() && endpoint.groups.empty())) return true;
  if (!is_registry_user(principal)) return false;
  return contains(endpoint.users, principal.user) ||
         std::ranges::any_of(principal.groups,
                             [&](const std::string& group) { return contains(endpoint.groups, group); });
}

bool may_use(const Principal& principal, const Endpoint& endpoint) {
  return endpoint.enabled && admits(endpoint, principal) &&
         (principal.scopes.empty() || allows_scope(principal, "endpoint:" + endpoint.name));
}

bool may_use_server(const Principal& principal, std::string_view server, Visibility visibility,
                    std::string_view owner) {
  return sees(principal, visibility, owner) && allows_scope(principal, "server:" + std::string(server));
}

}  // namespace fairlead::registry
