#include <gtest/gtest.h>

#include "registry/codes.hpp"
#include "registry/rules.hpp"

namespace fairlead::registry {
namespace {

const User& ann() {
  static const User row = [] {
    User user;
    user.id = "ann";
    user.name = "Ann";
    return user;
  }();
  return row;
}

Server server_from(const std::string& members) {
  ServerDefaults defaults;
  defaults.visibility = Visibility::user;
  defaults.owner = "ann";
  const std::string body = R"({"name":"a",)" + members + "}";
  return new_server(json::View(body), defaults).value();
}

Server http_server(const std::string& config_members) {
  return server_from(R"("config":{)" + config_members + "}");
}

// Returns "CODE POINTER" of the error of a server that Ann creates.
std::string refusal_of(const Server& server, ConfigurationPtr configuration = Configuration::defaults()) {
  const PrincipalPtr principal = principal_of(ann(), nullptr, {});
  const Result<void> checked = check_change(*principal, nullptr, server, *configuration);
  return checked ? "none" : checked.error().detail().failure_code + " " + checked.error().detail().pointer;
}

std::string refusal_of_url(const std::string& url) {
  return refusal_of(http_server(R"("url":")" + url + "\""));
}

TEST(UserServersTest, UserMayRegisterAPublicAddress) {
  for (const char* url : {"https://mcp.example.org/mcp", "http://8.8.8.8/mcp", "wss://mcp.example.org",
                          "https://[2606:4700::1111]:8443/x", "https://mcp.example.org/?key=literal"})
    EXPECT_EQ(refusal_of_url(url), "none") << url;
  EXPECT_EQ(refusal_of(http_server(R"("url":"https://e.example","headers":{"Authorization":"Bearer literal"},
                                   "max_calls":10,"clocks":{"idle":"30s"})")),
            "none");
}

TEST(UserServersTest, UserMayNotRegisterAPrivateAddress) {
  for (const char* url : {"http://127.0.0.1/",
                          "http://127.1/",
                          "http://2130706433/",
                          "http://0x7f000001/",
                          "http://0177.0.0.1/",
                          "http://localhost:80/",
                          "http://a.localhost/",
                          "http://localhost./",
                          "http://[::1]/",
                          "http://10.0.0.1/",
                          "http://172.16.0.1/",
                          "http://192.168.1.1/",
                          "http://169.254.169.254/latest",
                          "http://100.64.0.1/",
                          "http://0.0.0.0/",
                          "http://224.0.0.1/",
                          "http://[fe80::1]/",
                          "http://[fd00::1]/",
                          "http://[::ffff:127.0.0.1]/",
                          "http://[64:ff9b::7f00:1]/",
                          "http://[2002:7f00:1::]/"})
    EXPECT_EQ(refusal_of_url(url), "forbidden /config/url") << url;
}

TEST(UserServersTest, PrivateAddressIsAllowedIfTheConfigurationSaysSo) {
  const ConfigurationPtr configuration =
      Configuration::defaults()
          ->with("registry.allow_private_addresses", json::View(std::string_view("true")))
          .value();
  EXPECT_EQ(refusal_of(http_server(R"("url":"http://127.0.0.1/")"), configuration), "none");
}

TEST(UserServersTest, UserMayNotReferToTheEnvironmentOrFiles) {
  for (const char* url : {"https://e.example/${env:HOME}", "https://e.example/${HOME}",
                          "https://e.example/${HOME:-x}", "https://e.example/${file:/etc/passwd}"})
    EXPECT_EQ(refusal_of_url(url), "forbidden /config/url") << url;
  for (const char* value : {"${env:A}", "${A}", "x ${file:/etc/passwd}", "${A:-b}"})
    EXPECT_EQ(refusal_of(http_server(R"("url":"https://e.example","headers":{"X-y":"ok","Xy":")" +
                                     std::string(value) + "\"}"))
                  .substr(0, 9),
              "forbidden")
        << value;
  EXPECT_EQ(refusal_of(http_server(R"("url":"https://e.example","headers":{"X":"${bad"})")),
            "invalid_row /config/headers/X");
  EXPECT_EQ(refusal_of(http_server(R"("url":"https://e.example","headers":{"X":"$${env:A}"})")), "none");
  EXPECT_EQ(refusal_of(http_server(R"("url":"https://e.example","headers":{"X":"Bearer ${secret:A}"})")),
            "none");
}

TEST(UserServersTest, UserMaySetOnlyHarmlessKeys) {
  const auto with = [](const std::string& member) {
    return refusal_of(http_server(R"("url":"https://e.example",)" + member));
  };
  EXPECT_EQ(with(R"("keep_running":true)"), "forbidden /config/keep_running");
  EXPECT_EQ(with(R"("sharing":"per_session")"), "forbidden /config/sharing");
  EXPECT_EQ(with(R"("restart":{"max":"1s"})"), "forbidden /config/restart");
  EXPECT_EQ(with(R"("max_calls":1000000)"), "forbidden /config/max_calls");
  EXPECT_EQ(with(R"("clocks":{"idle_stop":0})"), "forbidden /config/clocks/idle_stop");
  EXPECT_EQ(with(R"("clocks":{"absolute":"9h"})"), "forbidden /config/clocks/absolute");
  EXPECT_EQ(with(R"("headers":{"Host":"x"})"), "forbidden /config/headers/Host");
}

TEST(UserServersTest, UserOwnsTheServerAndNobodyElseSeesIt) {
  const std::string config = R"("config":{"url":"https://e.example"},)";
  EXPECT_EQ(refusal_of(server_from(config + R"("visibility":"visible")")), "forbidden /visibility");
  EXPECT_EQ(refusal_of(server_from(config + R"("visibility":"hidden")")), "forbidden /visibility");
  EXPECT_EQ(refusal_of(server_from(config + R"("owner":"bob")")), "forbidden /owner");
  EXPECT_EQ(refusal_of(server_from(R"("config":{"command":"sh"})")), "forbidden /transport");
}

TEST(UserServersTest, OwnerMayNotTurnTheServerIntoWhatTheyMayNotCreate) {
  const PrincipalPtr principal = principal_of(ann(), nullptr, {});
  const Server before = http_server(R"("url":"https://e.example")");
  const auto pointer_of = [&](std::string_view patch) {
    const Server after = patched(before, json::View(patch)).value();
    const Result<void> checked = check_change(*principal, &before, after, *Configuration::defaults());
    return checked ? "none" : checked.error().detail().pointer;
  };
  EXPECT_EQ(pointer_of(R"({"title":"x"})"), "none");
  EXPECT_EQ(pointer_of(R"({"visibility":"visible"})"), "/visibility");
  EXPECT_EQ(pointer_of(R"({"owner":"bob"})"), "/owner");
  EXPECT_EQ(pointer_of(R"({"config":{"url":"http://10.0.0.1"}})"), "/config/url");
  EXPECT_EQ(pointer_of(R"({"transport":"stdio","config":{"url":null,"command":"sh"}})"), "/transport");
}

TEST(UserServersTest, AdministratorsServersAreNotRestricted) {
  const PrincipalPtr admin = bootstrap_principal();
  const ConfigurationPtr configuration = Configuration::defaults();
  EXPECT_TRUE(check_change(*admin, nullptr, http_server(R"("url":"http://127.0.0.1","headers":{"X":"${A}"})"),
                           *configuration));
  const Result<void> unowned = check_change(
      *admin, nullptr, server_from(R"("config":{"command":"c"},"owner":null,"visibility":"user")"),
      *configuration);
  EXPECT_TRUE(unowned);  // the default owner of this test
  Server nobodys = http_server(R"("url":"https://e.example")");
  nobodys.owner.clear();
  EXPECT_EQ(check_change(*admin, nullptr, nobodys, *configuration).error().detail().pointer, "/owner");
}

}  // namespace
}  // namespace fairlead::registry
