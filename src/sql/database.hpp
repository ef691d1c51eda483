// sql::Database: transactions on an SQLite file or a PostgreSQL database. SQL runs on threads of the
// database, never on the loop. Both databases run the same statements; migrations create the schema when a
// database is opened. Private to the library.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fairlead/base/log.hpp"
#include "fairlead/base/result.hpp"
#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/task.hpp"

namespace fairlead::sql {

// A value of a column or a parameter. Text is UTF-8 without NUL. Booleans are stored as 0 and 1, points in
// time as milliseconds since the Unix epoch.
using Value = std::variant<std::monostate, std::int64_t, std::string>;
using Row = std::vector<Value>;

// Return the value of a column; a null is 0 or the empty string.
std::int64_t integer(const Value& value) noexcept;
const std::string& text(const Value& value) noexcept;
std::optional<std::int64_t> optional_integer(const Value& value) noexcept;

// A transaction in progress. Used on the thread that runs the job only.
class Transaction {
 public:
  virtual ~Transaction() = default;
  // Executes one statement with the parameters $1, $2, … and returns its rows. Fails with `io` if the
  // database cannot be reached or has no space (failure codes below), with `validation` and the failure code
  // `unique_violation` if a unique key exists already, and with `timeout` when the statement takes longer
  // than DatabaseOptions::statement_timeout.
  virtual Result<std::vector<Row>> execute(std::string_view statement, std::span<const Value> parameters) = 0;
  Result<std::vector<Row>> execute(std::string_view statement, std::initializer_list<Value> parameters = {}) {
    return execute(statement, std::span(parameters.begin(), parameters.size()));
  }
};

// Codes in ErrorDetail::failure_code of the errors of a database.
inline constexpr std::string_view kDatabaseUnavailable = "database_unavailable";  // cannot be reached
inline constexpr std::string_view kDatabaseFull = "database_full";                // no space on the disk
inline constexpr std::string_view kUniqueViolation = "unique_violation";
inline constexpr std::string_view kSchemaTooNew = "schema_too_new";  // written by a newer version of Fairlead
inline constexpr std::string_view kDatabaseInUse = "database_in_use";  // another gateway uses the SQLite file

// Changes the schema from version `version - 1` to `version`. Migrations are applied in order, each in one
// transaction, under a lock that other gateways wait for.
struct Migration {
  int version = 0;
  std::string_view name;
  std::vector<std::string_view> statements;  // valid on both databases
};

struct DatabaseOptions {
  DatabaseOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Log log;
  std::chrono::milliseconds connect_timeout{5'000};      // of PostgreSQL
  std::chrono::milliseconds statement_timeout{10'000};   // then the connection is closed and made again
  std::chrono::milliseconds lock_timeout{5'000};         // waiting for locks of other processes
  std::chrono::milliseconds first_reconnect_delay{100};  // doubles up to max_reconnect_delay
  std::chrono::milliseconds max_reconnect_delay{5'000};
  std::size_t max_queued_jobs = 10'000;  // further jobs fail with `resource_exhausted`, which names the limit
  // The channel of LISTEN/NOTIFY; see Database::on_notification(). PostgreSQL only.
  std::string channel = "fairlead";
};

class Database : public std::enable_shared_from_this<Database> {
 public:
  // Opens `address`, "sqlite:PATH" or "postgresql://…" ("postgres://…"), and applies the migrations. An
  // SQLite file is created with mode 0600 if it does not exist, and is locked against other gateways. Fails
  // with `validation` for another scheme, and with the failure codes above.
  static Task<Result<std::shared_ptr<Database>>> open(Loop& loop, std::string address,
                                                      std::vector<Migration> migrations,
                                                      DatabaseOptions options = DatabaseOptions());
  virtual ~Database() = default;

  // A job runs on a thread of the database in one transaction, which is committed if it succeeds and rolled
  // back if it fails or throws. Jobs run in the order of submission. While the database cannot be reached,
  // jobs fail at once with kDatabaseUnavailable. A job may be destroyed without being run.
  using Job = std::move_only_function<Result<void>(Transaction&)>;
  virtual Task<Result<void>> run(Job job) = 0;
  // Called on the loop when another process has notified the channel (PostgreSQL), and after each reconnect,
  // because notifications may have been missed. SQLite never calls it.
  virtual void on_notification(std::function<void()> callback) = 0;
  // Called on the loop when the database becomes unreachable (with the reason) or reachable again (nullopt).
  virtual void on_availability(std::function<void(const std::optional<Error>&)> callback) = 0;
  // Returns why the database cannot be reached now; nullopt if it can.
  virtual std::optional<Error> problem() const = 0;
  virtual bool is_postgresql() const noexcept = 0;
  // Runs the queued jobs, then closes the connections. Later jobs fail with `closed`.
  virtual Task<void> close() = 0;
};

}  // namespace fairlead::sql
