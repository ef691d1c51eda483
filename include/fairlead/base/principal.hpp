// Principal: who sends a request, as authentication established it. A plain value without behaviour; a
// request carries it as a PrincipalPtr, so that passing it on copies no strings.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// The role whose holders may read what only operators need: command lines, stderr, upstream addresses.
inline constexpr std::string_view kAdminRole = "admin";
// Issuer of principals that the operating system authenticates: clients on stdio and on Unix sockets.
inline constexpr std::string_view kLocalIssuer = "local";

struct Principal;
using PrincipalPtr = std::shared_ptr<const Principal>;

struct Principal {
  Principal() {}  // NOLINT: not an aggregate, see ConnectOptions

  std::string issuer;               // the authority that authenticated `subject`; empty: not authenticated
  std::string subject;              // the issuer's identifier of the client; empty: anonymous
  std::string user;                 // the account it acts for, unique across issuers; empty: none
  std::vector<std::string> groups;  // of the account
  std::vector<std::string> roles;   // in this program, such as kAdminRole
  std::vector<std::string> scopes;  // of the token
  std::string token_id;             // names the token in logs; never the token itself
  std::string client_address;       // "127.0.0.1:4711", "unix" or "stdio"

  bool operator==(const Principal&) const = default;

  bool is_anonymous() const noexcept { return issuer.empty() && subject.empty() && user.empty(); }
  bool has_role(std::string_view role) const noexcept;

  // A client that is not authenticated.
  static PrincipalPtr anonymous(std::string client_address = std::string());
  // A process of the operating system's user `uid` on this machine.
  static PrincipalPtr local(unsigned uid, std::string client_address);
};

// Whether both are the same client identity: issuer, subject and user. Sessions, tasks and sealed state
// belong to an identity; the token and the address may change between two requests.
bool same_identity(const Principal& a, const Principal& b) noexcept;

// Text that is equal exactly for principals of the same identity; empty for anonymous ones.
std::string identity_key(const Principal& principal);

// Names the client that shares of a limit are counted for: its identity, or, if it is anonymous, its IPv4
// address or the /64 prefix of its IPv6 address.
std::string client_key(const Principal& principal);

}  // namespace fairlead
