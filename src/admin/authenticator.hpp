// The authenticator of a gateway with a registry: bearer tokens are API tokens of users or the
// administrator's token. It decides from memory. Private to the library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fairlead/http/authenticator.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

enum class AuthMode : std::uint8_t {
  none,   // requests without a token are served; the admin API requires a token
  token,  // requests without a token are rejected, except /healthz, /readyz, /.well-known/* and OPTIONS
};

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

}  // namespace fairlead::admin
