// Helpers for the tests of the layer sql.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sql/database.hpp"
#include "support/support.hpp"

namespace fairlead::sql::test {

using namespace std::chrono_literals;
using fairlead::test::TempDir;

using DatabasePtr = std::shared_ptr<Database>;
using Rows = std::vector<Row>;

inline std::vector<Migration> item_migrations() {
  return {
      {1, "items", {"CREATE TABLE items (name TEXT PRIMARY KEY, size BIGINT)"}},
      {2,
       "log",
       {"CREATE TABLE log (position BIGINT PRIMARY KEY, item TEXT)", "INSERT INTO log VALUES (0, NULL)"}}};
}

// A statement with its parameters, owned, so that a job can refer to it after the caller has returned.
struct Statement {
  std::string text;
  std::vector<Value> parameters;
};

// Returns a job that executes one statement.
inline std::move_only_function<Result<Rows>(Transaction&)> statement_job(std::string text,
                                                                         std::vector<Value> parameters = {}) {
  return [statement = Statement(std::move(text), std::move(parameters))](Transaction& transaction) {
    return transaction.execute(statement.text, statement.parameters);
  };
}

// Executes one statement in a transaction of its own.
inline Result<Rows> execute(Loop& loop, Database& database, std::string text,
                            std::vector<Value> parameters = {}) {
  return loop.block_on(query<Rows>(database, statement_job(std::move(text), std::move(parameters))));
}

inline std::int64_t count_items(Loop& loop, Database& database) {
  const Result<Rows> rows = execute(loop, database, "SELECT COUNT(*) FROM items");
  return rows ? integer(rows->at(0).at(0)) : -1;
}

inline std::string failure_code(const Error& error) {
  return error.detail().failure_code;
}

// Tasks append their outcomes here, in the order in which they end.
using Outcomes = std::vector<std::pair<int, Result<void>>>;

inline Task<void> record(Task<Result<void>> task, int number, std::shared_ptr<Outcomes> outcomes) {
  Result<void> outcome = co_await task;
  outcomes->emplace_back(number, std::move(outcome));
}

inline Database::Job insert_job(std::string name, std::int64_t size) {
  return [name = std::move(name), size](Transaction& transaction) -> Result<void> {
    const Result<Rows> inserted = transaction.execute("INSERT INTO items VALUES ($1, $2)", {name, size});
    if (!inserted) return inserted.error();
    return {};
  };
}

}  // namespace fairlead::sql::test
