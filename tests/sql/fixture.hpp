// DatabaseTest: a test that runs on each kind of database, with a new database.
#pragma once

#include <stdexcept>
#include <string>
#include <thread>

#include "sql/harness.hpp"
#include "support/postgres.hpp"

namespace fairlead::sql::test {

enum class Kind { sqlite, postgresql };

inline std::string kind_name(const testing::TestParamInfo<Kind>& info) {
  return info.param == Kind::sqlite ? "SQLite" : "PostgreSQL";
}

class DatabaseTest : public testing::TestWithParam<Kind> {
 protected:
  Result<DatabasePtr> try_open() {
    return loop.block_on(Database::open(loop, address(), migrations, options));
  }
  DatabasePtr open() {
    Result<DatabasePtr> database = try_open();
    if (!database) throw std::runtime_error(database.error().to_string());
    return *database;
  }
  // Starts a task at once. The fixture owns it.
  void start(Task<void> task) {
    tasks.push_back(std::move(task));
    tasks.back().await_suspend(std::noop_coroutine()).resume();
  }
  const std::string& address() {
    if (address_.empty())
      address_ = GetParam() == Kind::sqlite ? "sqlite:" + directory / "test.db"
                                            : fairlead::test::PostgresServer::shared().create_database();
    return address_;
  }

  Loop loop;
  TempDir directory;
  std::vector<Migration> migrations = item_migrations();
  DatabaseOptions options;
  std::vector<Task<void>> tasks;

 private:
  std::string address_;
};

}  // namespace fairlead::sql::test
