#include "fairlead/base/principal.hpp"

#include <algorithm>

#include "base/uri.hpp"

namespace fairlead {

bool Principal::has_role(std::string_view role) const noexcept {
  return std::ranges::find(roles, role) != roles.end();
}

PrincipalPtr Principal::anonymous(std::string client_address) {
  auto principal = std::make_shared<Principal>();
  principal->client_address = std::move(client_address);
  return principal;
}

PrincipalPtr Principal::local(unsigned uid, std::string client_address) {
  auto principal = std::make_shared<Principal>();
  principal->issuer = kLocalIssuer;
  principal->subject = "uid:" + std::to_string(uid);
  principal->user = principal->subject;
  principal->client_address = std::move(client_address);
  return principal;
}

bool same_identity(const Principal& a, const Principal& b) noexcept {
  return a.issuer == b.issuer && a.subject == b.subject && a.user == b.user;
}

// Each part is preceded by its length, so that different identities never yield the same text.
std::string identity_key(const Principal& principal) {
  if (principal.is_anonymous()) return {};
  std::string key;
  for (const std::string* part : {&principal.issuer, &principal.subject, &principal.user})
    key += std::to_string(part->size()) + ':' + *part;
  return key;
}

std::string client_key(const Principal& principal) {
  if (!principal.is_anonymous()) return "principal " + identity_key(principal);
  return "address " + client_network(principal.client_address);
}

}  // namespace fairlead
