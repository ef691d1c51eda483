#include "search/sqlite.hpp"

namespace fairlead::search {

Error sqlite_error(std::string_view operation, sqlite3* database) {
  const char* const reason = database ? sqlite3_errmsg(database) : "out of memory";
  return Error(ErrorKind::io, std::string(operation) + ": " + reason);
}

Result<SqliteDatabase> open_in_memory() {
  sqlite3* opened = nullptr;
  const int status = sqlite3_open_v2(
      ":memory:", &opened,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, nullptr);
  SqliteDatabase database(opened);
  if (status != SQLITE_OK) return sqlite_error("could not open the tool index", database.get());
  return database;
}

Result<void> execute(sqlite3* database, const char* statement) {
  if (sqlite3_exec(database, statement, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return sqlite_error("the tool index failed", database);
}

Result<SqliteStatement> prepare(sqlite3* database, const char* statement) {
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v3(database, statement, -1, SQLITE_PREPARE_PERSISTENT, &prepared, nullptr) == SQLITE_OK)
    return SqliteStatement(prepared);
  return sqlite_error("the tool index failed", database);
}

}  // namespace fairlead::search
