// The rules that every request of MCP passes: who sees a server, who may use an endpoint, and what the scopes
// of a token allow. rules.hpp has the rules of the admin API, which include these. Pure functions. Private to
// the library.
#pragma once

#include <string_view>

#include "fairlead/base/principal.hpp"
#include "fairlead/registry/model.hpp"

namespace fairlead::registry {

// The issuer of principals whose accounts are users of the registry. Principal::user is then User::id.
inline constexpr std::string_view kRegistryIssuer = "fairlead";
// Principal::subject and Principal::user of the administrator who has no row: the client that has the token
// of FAIRLEAD_ADMIN_TOKEN or of the file admin.token.
inline constexpr std::string_view kBootstrapSubject = "admin-token";
inline constexpr std::string_view kBootstrapUser = "admin";

bool is_administrator(const Principal& principal) noexcept;
bool is_registry_user(const Principal& principal) noexcept;  // also an administrator with a row

// Whether a client sees a server of this visibility and owner.
bool sees(const Principal& principal, Visibility visibility, std::string_view owner) noexcept;
// Whether the access lists of an endpoint admit a client. Lists whose users and groups no longer exist are
// not empty: they admit administrators only.
bool admits(const Endpoint& endpoint, const Principal& principal) noexcept;

// Returns whether the principal's token has the scope: "mcp", "endpoint:NAME", "server:NAME", "admin:AREA" or
// "admin:AREA:read". A token without scopes has all.
bool allows_scope(const Principal& principal, std::string_view scope) noexcept;
// Whether a client may connect to an endpoint.
bool may_use(const Principal& principal, const Endpoint& endpoint);
// Whether a client may connect to /mcp/{server}.
bool may_use_server(const Principal& principal, std::string_view server, Visibility visibility,
                    std::string_view owner);

}  // namespace fairlead::registry
