#include "admin/auth_mode.hpp"

namespace fairlead::admin {

std::string_view to_string(AuthMode mode) noexcept {
  return mode == AuthMode::none ? "none" : "token";
}

std::string_view to_string(AuthSetting setting) noexcept {
  switch (setting) {
    case AuthSetting::automatic: return "auto";
    case AuthSetting::none: return "none";
    case AuthSetting::token: break;
  }
  return "token";
}

std::optional<AuthSetting> parse_auth_setting(std::string_view text) noexcept {
  for (const AuthSetting setting : {AuthSetting::automatic, AuthSetting::none, AuthSetting::token}) {
    if (to_string(setting) == text) return setting;
  }
  return std::nullopt;
}

AuthMode effective_auth_mode(AuthSetting setting, const AuthCircumstances& circumstances) noexcept {
  if (setting != AuthSetting::automatic)
    return setting == AuthSetting::none ? AuthMode::none : AuthMode::token;
  const bool required = circumstances.admin_token_is_configured || circumstances.any_user_exists ||
                        circumstances.reachable_from_other_machines;
  return required ? AuthMode::token : AuthMode::none;
}

}  // namespace fairlead::admin
