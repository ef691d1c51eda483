// AuthMode: whether the gateway requires a token from its clients. Private to the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fairlead::admin {

enum class AuthMode : std::uint8_t {
  none,   // MCP and /health are open; the admin API needs a token
  token,  // everything but the probes needs a token
};
std::string_view to_string(AuthMode mode) noexcept;

// The setting `auth.mode`.
enum class AuthSetting : std::uint8_t { automatic, none, token };
std::string_view to_string(AuthSetting setting) noexcept;
// Parses "auto", "none" or "token".
std::optional<AuthSetting> parse_auth_setting(std::string_view text) noexcept;

// What decides the mode if the setting is `automatic`.
struct AuthCircumstances {
  bool admin_token_is_configured = false;  // FAIRLEAD_ADMIN_TOKEN is set
  bool any_user_exists = false;
  bool reachable_from_other_machines = false;  // a listener is neither a loopback address nor a Unix socket
};

// An explicit setting is the mode. Otherwise tokens are required if any circumstance demands it.
AuthMode effective_auth_mode(AuthSetting setting, const AuthCircumstances& circumstances) noexcept;

}  // namespace fairlead::admin
