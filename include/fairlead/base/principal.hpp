// Principal: the authenticated sender of a request. A plain value; requests carry it as a PrincipalPtr, so
// that passing it on copies no strings.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// The role that may read operator data: command lines, stderr, upstream addresses.
inline constexpr std::string_view kAdminRole = "admin";
// The issuer of principals authenticated by the operating system: clients on stdio and Unix sockets.
inline constexpr std::string_view kLocalIssuer = "local";

struct Principal;
using PrincipalPtr = std::shared_ptr<const Principal>;

struct Principal {
  Principal() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::string issuer;   // the authority that authenticated `subject`; empty: not authenticated
  std::string subject;  // the issuer's identifier of the client; empty: anonymous
  std::string user;     // the account on whose behalf the client acts, unique across issuers; empty: none
  std::vector<std::string> groups;  // groups of the account `user`
  std::vector<std::string> roles;   // roles in this program, such as kAdminRole
  std::vector<std::string> scopes;  // scopes of the token
  std::string token_id;             // identifies the token in logs; never the token itself
  std::string client_address;       // "127.0.0.1:4711", "unix" or "stdio"

  bool operator==(const Principal&) const = default;

  bool is_anonymous() const noexcept { return issuer.empty() && subject.empty() && user.empty(); }
  bool has_role(std::string_view role) const noexcept;

  // Returns the principal of a client that is not authenticated.
  static PrincipalPtr anonymous(std::string client_address = std::string());
  // Returns the principal of a process that runs as the local user `uid`.
  static PrincipalPtr local(unsigned uid, std::string client_address);
};

// Returns true if issuer, subject and user are equal. These three are the identity to which sessions, tasks
// and sealed state belong; the token and the address of a client may change between two requests.
bool same_identity(const Principal& a, const Principal& b) noexcept;

// Returns the identity as one string: equal for two principals if and only if same_identity() is true. Empty
// for anonymous principals.
std::string identity_key(const Principal& principal);

// Returns the key under which per-client limits count this client: its identity or, if it is anonymous, its
// IPv4 address or the /64 prefix of its IPv6 address.
std::string client_key(const Principal& principal);

}  // namespace fairlead
