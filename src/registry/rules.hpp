// The rules of the registry: who may do what. All entry paths decide here: the admin API, MCP, and changes of
// the registry. Pure functions of the principal and the row. docs/registry.md ("Who may do what") has the
// rules as a table. Private to the library.
//
//   anonymous      not authenticated, or authenticated by the operating system only: calls visible servers
//   user           issuer kRegistryIssuer: calls visible servers and their own; manages their own
//   administrator  has the role kAdminRole: everything
//
// The scopes of a token restrict its user, also an administrator.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/principal.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/registry/model.hpp"
#include "registry/access.hpp"
#include "registry/configuration.hpp"
#include "registry/json.hpp"

namespace fairlead::registry {

enum class Operation : std::uint8_t {
  list,        // to see the row in a list of the admin API
  read,        // to read the row in the admin API
  create,      // with the new row
  update,      // with the row before the change
  remove,      // also: revoke a token
  call,        // to see and call the tools of a server by MCP; to connect to an endpoint
  operate,     // test, refresh, restart, stop, read logs; resolve drift
  administer,  // everything else that changes what others see
};
inline constexpr Operation kOperations[] = {Operation::list,    Operation::read,      Operation::create,
                                            Operation::update,  Operation::remove,    Operation::call,
                                            Operation::operate, Operation::administer};
std::string_view to_string(Operation operation) noexcept;

// Areas of the admin API, as in the scopes admin:AREA and admin:AREA:read.
enum class Area : std::uint8_t {
  servers,  // with tools, logs and tests
  endpoints,
  users,
  groups,
  tokens,
  config,
  drift,
  processes,
  sessions,
  events,
  secrets,
};
std::string_view to_string(Area area) noexcept;

struct Decision {
  bool allowed = false;
  // If false, the answer must be exactly that for a row that does not exist.
  bool visible = false;
  std::string reason;  // why not allowed, for the client

  explicit operator bool() const noexcept { return allowed; }
  // Returns the error of a decision that is not `allowed`: kForbidden, or kNotFound if the row is not
  // visible. `what` describes the row: "server `files`".
  Error error(std::string_view what) const;
};

// Returns the principal of a user's token. `token` may be null: all scopes.
PrincipalPtr principal_of(const User& user, const Token* token, std::vector<std::string> group_ids,
                          std::string client_address = {});
PrincipalPtr bootstrap_principal(std::string client_address = {});

// Whether requests of this principal are served at all. `user` is the row with the id Principal::user, null
// if there is none. Refuses principals of users that were removed or disabled, or that are no longer
// administrators. Every change of the registry checks it, because sessions outlive changes of users.
Decision decide_account(const Principal& principal, const User* user);
// Whether changes may be made with the token of a principal. Refuses tokens that were removed (null) or
// revoked, or that have expired.
Decision decide_token(const Token* token, Time now);

Decision decide(const Principal& principal, Operation operation, const Server& server);
Decision decide(const Principal& principal, Operation operation, const Endpoint& endpoint);
Decision decide(const Principal& principal, Operation operation, const User& user);
Decision decide(const Principal& principal, Operation operation, const Group& group);
Decision decide(const Principal& principal, Operation operation, const Token& token);
Decision decide(const Principal& principal, Operation operation, const Drift& drift, const Server& server);
// Nobody reads the value. Whether a user may set a value for a server is also a matter of the server: see
// check_new_secret().
Decision decide(const Principal& principal, Operation operation, const Secret& secret);
// A session or process of `owner` (a client of MCP): its own client and administrators.
Decision decide_session(const Principal& principal, Operation operation, const Principal& owner);
// Whether the principal may use an area at all, before a row is known: `list` and `read` for its lists,
// `create`. A user may list servers, and sees only rows that decide() allows.
Decision decide(const Principal& principal, Operation operation, Area area);

// A call of a server's tools through an endpoint, or directly at /mcp/{server} if `endpoint` is null. The
// endpoint itself must have been decided on. An endpoint never allows what the rules of the server do not.
Decision decide_call(const Principal& principal, const Server& server, const Endpoint* endpoint);

// Returns why a scope of a token is invalid; nullopt if it is valid.
std::optional<std::string> scope_problem(std::string_view scope);
// Whether every request that `scopes` allow is also allowed by `limits`. Empty: everything.
bool scopes_within(std::span<const std::string> scopes, std::span<const std::string> limits) noexcept;

// What the client may read of a server, and of an endpoint, that it sees.
Redaction redaction_for(const Principal& principal, const Server& server);
Redaction redaction_for(const Principal& principal);

// Values for a new server that its body lacks: users create servers of visibility `user` that they own.
ServerDefaults defaults_for(const Principal& principal, const Configuration& configuration);

// Checks a new row (`before` null) or a changed one: decide(), and for a client that is not an administrator
// what the row may contain: an http or ws address that is public, without references to the environment and
// files, and no keys that cost the gateway more than an ordinary connection. Errors have the code kForbidden
// (kNotFound if the row is not visible) and the pointer of the member.
Result<void> check_change(const Principal& principal, const Server* before, const Server& after,
                          const Configuration& configuration);
// Fails unless the principal may create the secret. `server` is the row of Secret::server, null if the value
// is for all servers or if there is no such row. Users set values for themselves, at servers that they see.
Result<void> check_new_secret(const Principal& principal, const Secret& secret, const Server* server);
// Fails unless the principal may create the token: for itself or as an administrator, and with no more scopes
// than its own token has.
Result<void> check_new_token(const Principal& principal, const Token& token);

}  // namespace fairlead::registry
