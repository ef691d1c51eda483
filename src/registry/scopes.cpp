// Scopes of tokens.
#include <algorithm>
#include <array>

#include "registry/rules.hpp"

namespace fairlead::registry {

namespace {

constexpr std::string_view kMcp = "mcp";
constexpr std::string_view kAdmin = "admin";
constexpr std::string_view kAdminPrefix = "admin:";
constexpr std::string_view kEndpointPrefix = "endpoint:";
constexpr std::string_view kServerPrefix = "server:";
constexpr std::string_view kReadSuffix = ":read";

constexpr std::array<std::string_view, 11> kAreas = {"servers",  "endpoints", "users",  "groups",
                                                     "tokens",   "config",    "drift",  "processes",
                                                     "sessions", "events",    "secrets"};

bool is_mcp_scope(std::string_view scope) noexcept {
  return scope == kMcp || scope.starts_with(kEndpointPrefix) || scope.starts_with(kServerPrefix);
}

// Whether everything that `scope` allows is also allowed by `wide`.
bool covers(std::string_view wide, std::string_view scope) noexcept {
  if (wide == scope) return true;
  if (wide == kMcp) return is_mcp_scope(scope);
  if (wide == kAdmin) return scope.starts_with(kAdminPrefix);
  return wide.starts_with(kAdminPrefix) && scope.ends_with(kReadSuffix) &&
         wide == scope.substr(0, scope.size() - kReadSuffix.size());
}

bool any_covers(std::span<const std::string> limits, std::string_view scope) noexcept {
  return std::ranges::any_of(limits, [&](const std::string& limit) { return covers(limit, scope); });
}

}  // namespace

std::string_view to_string(Area area) noexcept {
  return kAreas[static_cast<std::size_t>(area)];
}

// The scopes of other issuers, such as OAuth scopes, have meanings of their own.
bool allows_scope(const Principal& principal, std::string_view scope) noexcept {
  if (principal.issuer != kRegistryIssuer || principal.scopes.empty()) return true;
  return any_covers(principal.scopes, scope);
}

std::optional<std::string> scope_problem(std::string_view scope) {
  if (scope == kMcp || scope == kAdmin) return std::nullopt;
  if (scope.starts_with(kEndpointPrefix) && scope.size() > kEndpointPrefix.size()) return std::nullopt;
  if (scope.starts_with(kServerPrefix) && scope.size() > kServerPrefix.size()) return std::nullopt;
  std::string areas;
  for (const std::string_view area : kAreas) {
    const std::string admin = std::string(kAdminPrefix) + std::string(area);
    if (covers(admin, scope)) return std::nullopt;
    areas += (areas.empty() ? "" : ", ") + std::string(area);
  }
  return "is none of mcp, endpoint:NAME, server:NAME, admin, admin:AREA, admin:AREA:read; the areas are " +
         areas;
}

bool scopes_within(std::span<const std::string> scopes, std::span<const std::string> limits) noexcept {
  if (limits.empty()) return true;
  if (scopes.empty()) return false;
  return std::ranges::all_of(scopes, [&](const std::string& scope) { return any_covers(limits, scope); });
}

}  // namespace fairlead::registry
