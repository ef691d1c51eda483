// The authenticator of a gateway with a registry: bearer tokens are API tokens of users or the
// administrator's token. It decides from memory. Private to the library.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "admin/auth_mode.hpp"
#include "fairlead/http/authenticator.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

struct AuthOptions {
  AuthOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  // Called for each request without a token, because the mode can change at run time. Unset: `token`.
  std::function<AuthMode()> mode;
  // The token of the administrator who has no row (registry::bootstrap_principal()). Empty: there is none.
  std::string admin_token;
};

// An unknown, expired or revoked token, and a token of a disabled user, are rejected in both modes.
std::shared_ptr<http::Authenticator> registry_authenticator(std::shared_ptr<registry::Registry> registry,
                                                            AuthOptions options);

// The authenticator of a gateway without a registry: every request needs the administrator's token, except
// those that AuthMode::token excepts.
std::shared_ptr<http::Authenticator> admin_token_authenticator(const std::string& admin_token);

}  // namespace fairlead::admin
