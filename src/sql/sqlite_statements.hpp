// Prepared statements of an SQLite connection.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/string_map.hpp"
#include "sql/database.hpp"

namespace fairlead::sql {

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// A cache of prepared statements, by their text.
class SqliteStatements {
 public:
  // When it is full, all statements are discarded.
  static constexpr std::size_t kMaxStatements = 200;

  // Returns the statement, prepared, or null if the text is not one valid statement: sqlite3_errmsg() tells
  // why, unless sqlite3_errcode() is SQLITE_OK.
  sqlite3_stmt* prepare(sqlite3* connection, std::string_view text);
  void clear() noexcept { statements_.clear(); }

 private:
  StringMap<SqliteStatement> statements_;
};

// Sets the parameters $1, $2, … Fails with `validation` if their number is wrong. The text of `values` must
// exist until the statement is reset.
Result<void> bind_parameters(sqlite3_stmt* statement, std::span<const Value> values);
// Returns the columns of the current row.
Row current_row(sqlite3_stmt* statement);

}  // namespace fairlead::sql
