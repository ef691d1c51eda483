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
  // Executes one statement with the parameters $1, $2, … and returns its rows. An SQL expression must
  // determine the type of each parameter: write CAST($1 AS TEXT) IS NULL, not $1 IS NULL. The order of text
  // in ORDER BY depends on the database. Fails with these kinds (and failure codes):
  //   io          the database cannot be reached (kDatabaseUnavailable) or has no space (kDatabaseFull), or
  //               the statement is wrong
  //   validation  a unique key exists already (kUniqueViolation), another constraint is violated, or a
  //               parameter is not UTF-8 without NUL
  //   timeout     the statement takes longer than statement_timeout, or waits for a lock of another process
  //               longer than lock_timeout (kDatabaseBusy)
  // After a failure, further statements fail with the same error, and the transaction is rolled back even if
  // the job succeeds.
  virtual Result<std::vector<Row>> execute(std::string_view statement, std::span<const Value> parameters) = 0;
  Result<std::vector<Row>> execute(std::string_view statement, std::initializer_list<Value> parameters = {}) {
    return execute(statement, std::span(parameters.begin(), parameters.size()));
  }
  // When the transaction is committed, on_notification() of the other processes that use the database is
  // called. Does nothing on SQLite.
  virtual Result<void> notify() = 0;
  // When the transaction is committed, what its rows contained before is removed from the files of SQLite.
  // Does nothing on PostgreSQL.
  virtual void erase_former_content() = 0;
};

// Returns `address` with its passwords replaced by ***, for messages and logs.
std::string redacted_address(std::string_view address);

// Codes in ErrorDetail::failure_code of the errors of a database.
inline constexpr std::string_view kDatabaseUnavailable = "database_unavailable";  // cannot be reached
inline constexpr std::string_view kDatabaseFull = "database_full";                // no space on the disk
// Another process holds a lock for longer than lock_timeout, or a statement exceeds statement_timeout.
inline constexpr std::string_view kDatabaseBusy = "database_busy";
inline constexpr std::string_view kUniqueViolation = "unique_violation";
inline constexpr std::string_view kSchemaTooNew = "schema_too_new";  // written by a newer version of Fairlead
inline constexpr std::string_view kDatabaseInUse = "database_in_use";  // another gateway uses the SQLite file
// The connection was lost while PostgreSQL committed: the transaction may have been committed.
inline constexpr std::string_view kCommitOutcomeUnknown = "commit_outcome_unknown";

// Changes the schema from version `version - 1` to `version`. Migrations are applied in order, each in one
// transaction, under a lock that other gateways wait for. The table `schema_version` records them. The
// versions of a list of migrations are 1, 2, 3, …
struct Migration {
  int version = 0;
  std::string_view name;
  std::vector<std::string_view> statements;  // valid on both databases
};

struct DatabaseOptions {
  DatabaseOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  Log log;
  std::chrono::milliseconds connect_timeout{5'000};  // of PostgreSQL, until the session is set up
  // For one statement. PostgreSQL also ends a session that pauses this long inside a transaction, so that the
  // locks of a process that is suspended do not stop the others.
  std::chrono::milliseconds statement_timeout{10'000};
  std::chrono::milliseconds lock_timeout{5'000};         // waiting for locks of other processes
  std::chrono::milliseconds first_reconnect_delay{100};  // doubles up to max_reconnect_delay
  std::chrono::milliseconds max_reconnect_delay{5'000};
  // An idle connection to PostgreSQL is checked after this time, so that a server that hangs is noticed.
  std::chrono::milliseconds idle_check{5'000};
  std::size_t max_queued_jobs = 10'000;  // further jobs fail with `resource_exhausted`, which names the limit
  // The channel of LISTEN/NOTIFY; see Database::on_notification(). PostgreSQL only.
  std::string channel = "fairlead";
};

// Used on the thread of the loop only; the loop outlives the database. The destructor interrupts the running
// statement, rolls back its transaction, and waits for the thread of the database. Jobs that are queued then
// fail with `closed`. The destructor cannot interrupt the resolution of the name of a PostgreSQL server,
// which the resolver of the system limits (connect_timeout does not): close() the database first, which does
// not block the loop.
class Database : public std::enable_shared_from_this<Database> {
 public:
  // Opens `address`, "sqlite:PATH" or "postgresql://…" ("postgres://…"), and applies the migrations. An
  // SQLite file is created with mode 0600 if it does not exist, its directory with mode 0700, and it is
  // locked against other gateways by the file PATH.lock. Fails with `validation` for another scheme, and with
  // the failure codes above. Passwords in the address do not appear in messages.
  static Task<Result<std::shared_ptr<Database>>> open(Loop& loop, std::string address,
                                                      std::vector<Migration> migrations,
                                                      DatabaseOptions options = DatabaseOptions());
  virtual ~Database() = default;

  // A job runs on a thread of the database in one transaction, which is committed if it succeeds and rolled
  // back if it fails or throws. Jobs run in the order in which run() is awaited. While the database cannot be
  // reached, jobs fail at once with kDatabaseUnavailable. A job may be destroyed without being run; it is
  // destroyed on the thread of the loop. Destroying the task does not stop the job: it must not refer to
  // objects of the coroutine that awaits it (use query() to return data).
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

// Runs `job` like Database::run() and returns its value. The value does not belong to the awaiting coroutine,
// so destroying the task while the job runs is safe.
template <class T>
Task<Result<T>> query(Database& database, std::move_only_function<Result<T>(Transaction&)> job) {
  const auto value = std::make_shared<std::optional<T>>();
  Database::Job storing = [value, job = std::move(job)](Transaction& transaction) mutable -> Result<void> {
    Result<T> result = job(transaction);
    if (!result) return result.error();
    value->emplace(std::move(*result));
    return {};
  };
  const Result<void> outcome = co_await database.run(std::move(storing));
  if (!outcome) co_return outcome.error();
  co_return std::move(**value);
}

}  // namespace fairlead::sql
