// RegistryTest: a test that runs on each kind of database, with a new database.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "registry/configuration.hpp"
#include "registry/registry.hpp"
#include "registry/rules.hpp"
#include "support/postgres.hpp"
#include "support/support.hpp"

namespace fairlead::registry::test {

using namespace std::chrono_literals;
using fairlead::test::raw;
using fairlead::test::TempDir;

enum class Kind { sqlite, postgresql };
inline std::string kind_name(const testing::TestParamInfo<Kind>& info) {
  return info.param == Kind::sqlite ? "SQLite" : "PostgreSQL";
}

using RegistryHandle = std::shared_ptr<Registry>;

inline std::string code_of(const Error& error) {
  return error.detail().failure_code;
}
template <class T>
std::string code_of(const Result<T>& result) {
  return result ? "success" : code_of(result.error());
}

inline json::Raw server_body(std::string_view name) {
  return raw(R"({"name":")" + std::string(name) +
             R"(","transport":"stdio","config":{"command":"/bin/cat","args":["-u"]}})");
}
inline json::Raw user_body(std::string_view name, std::string_view role = "user") {
  return raw(R"({"name":")" + std::string(name) + R"(","role":")" + std::string(role) + R"("})");
}
inline json::Raw tool(std::string_view name, std::string_view description) {
  return raw(R"({"name":")" + std::string(name) + R"(","description":")" + std::string(description) +
             R"(","inputSchema":{"type":"object"}})");
}
inline FetchedEntries tools(std::vector<json::Raw> entries) {
  FetchedEntries fetched;
  fetched.tools = std::move(entries);
  return fetched;
}

class RegistryTest : public testing::TestWithParam<Kind> {
 protected:
  Result<RegistryHandle> try_open() { return loop.block_on(Registry::open(loop, address(), options)); }
  RegistryHandle open() {
    Result<RegistryHandle> registry = try_open();
    if (!registry) throw std::runtime_error(registry.error().to_string());
    return *registry;
  }
  RegistryHandle reopen(RegistryHandle registry) {
    close(std::move(registry));
    return open();
  }
  void close(RegistryHandle registry) { loop.block_on(registry->close()); }
  template <class T>
  T wait(Task<T> task) {
    return loop.block_on(std::move(task));
  }
  template <class Condition>
  bool eventually(Condition condition) {
    return loop.block_on(fairlead::test::eventually(loop, std::move(condition)));
  }
  void use_new_database() { address_.clear(); }
  const std::string& address() {
    if (address_.empty())
      address_ = GetParam() == Kind::sqlite
                     ? "sqlite:" + directory / ("test" + std::to_string(++databases_) + ".db")
                     : new_schema();
    return address_;
  }

  ServerPtr add_server(Registry& registry, std::string_view name) {
    Result<ServerPtr> server = wait(registry.create_server(admin, server_body(name)));
    if (!server) throw std::runtime_error(server.error().to_string());
    return *server;
  }
  Result<ServerPtr> patch_server(Registry& registry, const ServerPtr& server, std::string_view patch,
                                 Registry::Version version = std::nullopt) {
    return wait(registry.patch_server(admin, server->id, raw(patch), version));
  }
  UserPtr add_user(Registry& registry, std::string_view name, std::string_view role = "user") {
    Result<UserPtr> user = wait(registry.create_user(admin, user_body(name, role)));
    if (!user) throw std::runtime_error(user.error().to_string());
    return *user;
  }
  NewToken add_token(Registry& registry, const UserPtr& user) {
    Result<NewToken> token = wait(registry.create_token(admin, raw(R"({"user":")" + user->id + R"("})")));
    if (!token) throw std::runtime_error(token.error().to_string());
    return *token;
  }

  Loop loop;
  TempDir directory;
  RegistryOptions options;
  PrincipalPtr admin = bootstrap_principal();

 private:
  // A schema is made much faster than a database.
  std::string new_schema() {
    static const std::string database = fairlead::test::PostgresServer::shared().create_database();
    static int schemas = 0;
    const std::string name = "test" + std::to_string(++schemas);
    const auto opened = wait(sql::Database::open(loop, database, {}, options.database));
    if (!opened) throw std::runtime_error(opened.error().to_string());
    const Result<void> created = wait((*opened)->run([name](sql::Transaction& transaction) -> Result<void> {
      const auto done = transaction.execute("create schema " + name);
      return done ? Result<void>() : done.error();
    }));
    if (!created) throw std::runtime_error(created.error().to_string());
    return database + "&options=-csearch_path%3D" + name;
  }

  std::string address_;
  int databases_ = 0;
};

}  // namespace fairlead::registry::test
