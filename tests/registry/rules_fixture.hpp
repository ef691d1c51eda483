// The clients and rows of the tests of rules.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "registry/rules.hpp"

namespace fairlead::registry {

using Scopes = std::vector<std::string>;

inline PrincipalPtr registry_user(const std::string& id, Role role, Scopes scopes,
                                  std::vector<std::string> groups = {}) {
  User user;
  user.id = id;
  user.role = role;
  Token token;
  token.id = "t";
  token.scopes = std::move(scopes);
  return principal_of(user, &token, std::move(groups));
}

// The clients of all tests. Ann is the user of whom rows are `own`.
inline std::map<std::string, PrincipalPtr> clients() {
  return {{"anonymous", Principal::anonymous("127.0.0.1:1")},
          {"local", Principal::local(1000, "unix")},
          {"ann", registry_user("ann", Role::user, {})},
          {"ann reading", registry_user("ann", Role::user, {"admin:servers:read"})},
          {"ann calling", registry_user("ann", Role::user, {"mcp"})},
          {"ann calling files", registry_user("ann", Role::user, {"server:files"})},
          {"ann calling others", registry_user("ann", Role::user, {"server:file", "endpoint:team"})},
          {"admin", registry_user("root", Role::admin, {})},
          {"admin reading", registry_user("root", Role::admin, {"admin:servers:read"})},
          {"admin of servers", registry_user("root", Role::admin, {"admin:servers"})},
          {"admin of users", registry_user("root", Role::admin, {"admin:users"})},
          {"admin calling", registry_user("root", Role::admin, {"mcp"})},
          {"bootstrap", bootstrap_principal()}};
}

// `+`: allowed, `-`: forbidden, `0`: as if the row did not exist.
inline char outcome(const Decision& decision) {
  EXPECT_TRUE(decision.visible || !decision.allowed);
  EXPECT_EQ(decision.reason.empty(), decision.allowed);
  return decision.allowed ? '+' : decision.visible ? '-' : '0';
}

// Returns the outcomes of all operations in the order of kOperations, by `decide_on`.
inline std::string outcomes(const auto& decide_on) {
  std::string all;
  for (const Operation operation : kOperations) all += outcome(decide_on(operation));
  return all;
}

inline Server server_with(Visibility visibility, const std::string& owner, bool is_http) {
  Server row;
  row.name = row.spec.name = "files";
  row.visibility = visibility;
  row.owner = owner;
  pool::Address address;
  address.url = "https://e.example";
  pool::Program program;
  program.command = "c";
  if (is_http) row.spec.transport = address;
  if (!is_http) row.spec.transport = program;
  return row;
}

}  // namespace fairlead::registry
