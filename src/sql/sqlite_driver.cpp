#include "sql/sqlite_driver.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "sql/sqlite_file.hpp"
#include "sql/sqlite_statements.hpp"

namespace fairlead::sql {

namespace {

using Steady = std::chrono::steady_clock;

struct CloseSqlite {
  void operator()(sqlite3* connection) const noexcept { sqlite3_close_v2(connection); }
};

// Resets a statement when it is no longer executed, so that it keeps no lock and no reference to parameters.
struct ResetStatement {
  void operator()(sqlite3_stmt* statement) const noexcept {
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
  }
};

// Returns whether the last write failed because of a quota or a limit on the size of files. SQLite reports
// SQLITE_FULL only for a full disk.
bool exceeded_limit(sqlite3* connection) {
  for (const int pointer : {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER}) {
    sqlite3_file* file = nullptr;
    sqlite3_file_control(connection, "main", pointer, static_cast<void*>(&file));
    int os_error = 0;
    if (!file || !file->pMethods) continue;
    file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &os_error);
    if (os_error == EDQUOT || os_error == EFBIG) return true;
  }
  return false;
}

class SqliteDriver final : public Driver {
 public:
  SqliteDriver(std::string_view path, const DatabaseOptions& options, const Interrupt& interrupt)
      : path_(path), options_(options), interrupt_(interrupt) {}

  Result<void> connect() override;
  void disconnect() noexcept override;
  bool connected() const noexcept override { return connection_ != nullptr; }
  Result<void> begin() override;
  // Every transaction is the only one that writes.
  Result<void> lock_schema() override { return {}; }
  Result<std::vector<Row>> execute(std::string_view statement, std::span<const Value> parameters) override;
  Result<void> notify() override { return {}; }
  void erase_former_content() override { erases_log_ = true; }
  Result<void> commit() override;
  void roll_back() noexcept override;
  bool is_postgresql() const noexcept override { return false; }

 private:
  Result<void> configure();
  Result<void> use_wal();
  Result<void> execute_plain(std::string_view statement);
  void start_clock() { deadline_ = Steady::now() + options_.statement_timeout; }
  Error error(int code) const;
  Error error_of_code(int code) const;

  static int on_busy(void* self, int attempts);
  static int on_progress(void* self);

  std::string path_;
  const DatabaseOptions& options_;
  const Interrupt& interrupt_;
  SqliteFile file_;
  std::unique_ptr<sqlite3, CloseSqlite> connection_;
  SqliteStatements statements_;  // destroyed before the connection
  Steady::time_point deadline_;  // of the current statement
  bool erases_log_ = false;      // after the current transaction
};

Result<void> SqliteDriver::connect() {
  Result<SqliteFile> file = open_sqlite_file(path_);
  if (!file) return file.error();
  file_ = std::move(*file);
  sqlite3* connection = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int opened = sqlite3_open_v2(file_.path.c_str(), &connection, flags, nullptr);
  connection_.reset(connection);
  if (opened) {
    const Error failure = error(opened);
    disconnect();
    return failure;
  }
  Result<void> configured = configure();
  if (!configured) disconnect();
  return configured;
}

void SqliteDriver::disconnect() noexcept {
  statements_.clear();
  connection_.reset();
  file_.lock.reset();
}

Result<void> SqliteDriver::configure() {
  sqlite3_busy_handler(connection_.get(), &SqliteDriver::on_busy, this);
  constexpr int kInstructionsBetweenChecks = 10'000;
  sqlite3_progress_handler(connection_.get(), kInstructionsBetweenChecks, &SqliteDriver::on_progress, this);
  if (const Result<void> wal = use_wal(); !wal) return wal;
  for (const std::string_view pragma :
       {"PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON", "PRAGMA trusted_schema = OFF",
        "PRAGMA journal_size_limit = 67108864", "PRAGMA secure_delete = ON"}) {
    if (const Result<void> set = execute_plain(pragma); !set) return set;
  }
  return {};
}

Result<void> SqliteDriver::use_wal() {
  const Result<std::vector<Row>> mode = execute("PRAGMA journal_mode = WAL", {});
  if (!mode) return mode.error();
  if (mode->size() == 1 && text(mode->front()[0]) == "wal") return {};
  return Error(ErrorKind::io, "SQLite cannot use a write-ahead log for " + file_.path);
}

// Commits to a file that was deleted or moved would be lost.
Result<void> SqliteDriver::begin() {
  int moved = 0;
  if (sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
    return database_error(ErrorKind::io,
                          "the database " + file_.path + " was deleted or moved: restart the gateway",
                          kDatabaseUnavailable);
  erases_log_ = false;
  return execute_plain("BEGIN IMMEDIATE");
}

// The pages of the file are overwritten because of secure_delete; the log still has the former ones. The
// transaction is committed, so a failure is logged only.
Result<void> SqliteDriver::commit() {
  Result<void> committed = execute_plain("COMMIT");
  if (!committed || !erases_log_) return committed;
  start_clock();
  const int code =
      sqlite3_wal_checkpoint_v2(connection_.get(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  if (code != SQLITE_OK)
    options_.log.warning("the log of the database still has former values",
                         {{"reason", error_of_code(code).message()}});
  return committed;
}

Result<void> SqliteDriver::execute_plain(std::string_view statement) {
  const Result<std::vector<Row>> rows = execute(statement, {});
  if (!rows) return rows.error();
  return {};
}

Result<std::vector<Row>> SqliteDriver::execute(std::string_view statement,
                                               std::span<const Value> parameters) {
  start_clock();
  sqlite3_stmt* const prepared = statements_.prepare(connection_.get(), statement);
  if (!prepared) return error(sqlite3_extended_errcode(connection_.get()));
  const std::unique_ptr<sqlite3_stmt, ResetStatement> executing(prepared);
  const Result<void> bound = bind_parameters(prepared, parameters);
  if (!bound) return bound.error();
  std::vector<Row> rows;
  for (;;) {
    const int code = sqlite3_step(prepared);
    if (code == SQLITE_DONE) return rows;
    if (code != SQLITE_ROW) return error(code);
    rows.push_back(current_row(prepared));
  }
}

void SqliteDriver::roll_back() noexcept {
  // Some failures, such as a full disk, have rolled back already.
  if (!connection_ || sqlite3_get_autocommit(connection_.get())) return;
  sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Error SqliteDriver::error(int code) const {
  if (code == SQLITE_OK) return Error(ErrorKind::validation, "the text is not one SQL statement");
  return error_of_code(code);
}

Error SqliteDriver::error_of_code(int code) const {
  const std::string message = std::string("SQLite: ") + sqlite3_errmsg(connection_.get());
  switch (code & 0xff) {
    case SQLITE_CONSTRAINT: {
      const bool unique = code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY;
      return database_error(ErrorKind::validation, message, unique ? kUniqueViolation : "");
    }
    case SQLITE_TOOBIG: return Error(ErrorKind::validation, message);
    case SQLITE_INTERRUPT: return interrupt_.raised ? closed_error() : statement_timeout_error(options_);
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return interrupt_.raised ? closed_error() : lock_timeout_error(options_);
    case SQLITE_FULL:
      return database_error(ErrorKind::io, "no space for the database " + file_.path, kDatabaseFull);
    case SQLITE_NOMEM: return Error(ErrorKind::resource_exhausted, message);
    case SQLITE_ERROR: return Error(ErrorKind::io, message);
    default: break;
  }
  if (code == SQLITE_IOERR_WRITE && exceeded_limit(connection_.get()))
    return database_error(ErrorKind::io, "no space for the database " + file_.path, kDatabaseFull);
  return database_error(ErrorKind::io, message + " (" + file_.path + ")", kDatabaseUnavailable);
}

// Called when another process, such as the program sqlite3, has locked the file.
int SqliteDriver::on_busy(void* self, int attempts) {
  const auto& driver = *static_cast<const SqliteDriver*>(self);
  constexpr std::chrono::milliseconds kPause{5};
  const std::chrono::milliseconds waited = attempts * kPause;
  if (driver.interrupt_.raised || waited >= driver.options_.lock_timeout) return 0;
  std::this_thread::sleep_for(kPause);
  return 1;
}

int SqliteDriver::on_progress(void* self) {
  const auto& driver = *static_cast<const SqliteDriver*>(self);
  return driver.interrupt_.raised || Steady::now() > driver.deadline_ ? 1 : 0;
}

}  // namespace

std::unique_ptr<Driver> make_sqlite_driver(std::string_view path, const DatabaseOptions& options,
                                           const Interrupt& interrupt) {
  return std::make_unique<SqliteDriver>(path, options, interrupt);
}

}  // namespace fairlead::sql
