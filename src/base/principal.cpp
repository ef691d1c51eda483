#include "fairlead/base/principal.hpp"

#include <algorithm>

#include "base/uri.hpp"

namespace fairlead {

bool Principal::has_role(std::string_view role) const noexcept {
  return std::ranges::find(roles, role) != roles.end();
}

PrincipalPtr Principal::anonymous(std::string client_address) {
  auto made = std::make_shared<Principal>();
  made->client_address = std::move(client_address);
  return made;
}

PrincipalPtr Principal::local(unsigned uid, std::string client_address) {
  auto made = std::make_shared<Principal>();
  made->issuer = kLocalIssuer;
  made->subject = "uid:" + std::to_string(uid);
  made->user = made->subject;
  made->client_address = std::move(client_address);
  return made;
}

bool same_identity(const Principal& a, const Principal& b) noexcept {
  return a.issuer == b.issuer && a.subject == b.subject && a.user == b.user;
}

// Each part is preceded by its length, so that no two identities run together to the same text.
std::string identity_key(const Principal& principal) {
  if (principal.is_anonymous()) return {};
  std::string key;
  for (const std::string* part : {&principal.issuer, &principal.subject, &principal.user})
    key += std::to_string(part->size()) + ':' + *part;
  return key;
}

std::string client_key(const Principal& principal) {
  if (!principal.is_anonymous()) return "principal " + identity_key(principal);
  return "address " + network_of_remote(principal.client_address);
}

}  // namespace fairlead
