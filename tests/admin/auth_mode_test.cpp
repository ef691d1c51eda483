#include "admin/auth_mode.hpp"

#include <gtest/gtest.h>

namespace fairlead::admin {
namespace {

TEST(AuthModeTest, ExplicitSettingIsTheMode) {
  AuthCircumstances all;
  all.admin_token_is_configured = all.any_user_exists = all.reachable_from_other_machines = true;
  EXPECT_EQ(effective_auth_mode(AuthSetting::none, all), AuthMode::none);
  EXPECT_EQ(effective_auth_mode(AuthSetting::token, AuthCircumstances()), AuthMode::token);
}

TEST(AuthModeTest, EachCircumstanceRequiresTokens) {
  EXPECT_EQ(effective_auth_mode(AuthSetting::automatic, AuthCircumstances()), AuthMode::none);
  for (bool AuthCircumstances::*const member :
       {&AuthCircumstances::admin_token_is_configured, &AuthCircumstances::any_user_exists,
        &AuthCircumstances::reachable_from_other_machines}) {
    AuthCircumstances circumstances;
    circumstances.*member = true;
    EXPECT_EQ(effective_auth_mode(AuthSetting::automatic, circumstances), AuthMode::token);
  }
}

TEST(AuthModeTest, SettingsAreParsedAndPrinted) {
  for (const AuthSetting setting : {AuthSetting::automatic, AuthSetting::none, AuthSetting::token})
    EXPECT_EQ(parse_auth_setting(to_string(setting)), setting);
  EXPECT_EQ(to_string(AuthSetting::automatic), "auto");
  EXPECT_FALSE(parse_auth_setting("None"));
  EXPECT_FALSE(parse_auth_setting(""));
}

}  // namespace
}  // namespace fairlead::admin
