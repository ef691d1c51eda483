// RAII for the SQLite C API. Private to the library.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead::search {

struct CloseDatabase {
  void operator()(sqlite3* database) const noexcept { sqlite3_close_v2(database); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using SqliteDatabase = std::unique_ptr<sqlite3, CloseDatabase>;
using SqliteStatement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// Returns the last error of `database`.
Error sqlite_error(std::string_view operation, sqlite3* database);
// Opens a private database in memory. It is used by one thread at a time.
Result<SqliteDatabase> open_in_memory();
Result<void> execute(sqlite3* database, const char* statement);
Result<SqliteStatement> prepare(sqlite3* database, const char* statement);

}  // namespace fairlead::search
