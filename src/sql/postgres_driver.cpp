#include "sql/postgres_driver.hpp"

#include <string>

#include "sql/postgres_connection.hpp"
#include "sql/postgres_results.hpp"

namespace fairlead::sql {

namespace {

// The server itself ends statements at statement_timeout. One that has not responded this much later hangs.
constexpr std::chrono::milliseconds kServerGrace{500};
// The advisory lock of the schema: "fairlead" in ASCII.
constexpr std::int64_t kSchemaLock = 0x666169726c656164;

// One connection serves transactions and notifications: between two transactions the thread of the database
// waits for its socket.
class PostgresDriver final : public Driver {
 public:
  PostgresDriver(PostgresAddress address, const DatabaseOptions& options, const Interrupt& interrupt)
      : address_(std::move(address)), options_(options), connection_(address_, options, interrupt) {}

  Result<void> connect() override;
  void disconnect() noexcept override { connection_.disconnect(); }
  bool connected() const noexcept override { return connection_.connected(); }
  bool timed_out() const noexcept override { return connection_.timed_out(); }
  Result<void> begin() override { return execute_plain("BEGIN"); }
  Result<void> lock_schema() override;
  Result<std::vector<Row>> execute(std::string_view statement, std::span<const Value> parameters) override;
  Result<void> notify() override;
  Result<void> commit() override;
  void roll_back() noexcept override;
  int fd() const noexcept override { return connection_.fd(); }
  Result<bool> read_notifications() override { return connection_.read_notifications(); }
  Result<void> check() override { return execute_plain("SELECT 1"); }
  bool is_postgresql() const noexcept override { return true; }

 private:
  using Deadline = PostgresConnection::Deadline;

  Result<void> set_up_session(Deadline deadline);
  Result<void> set_timeouts(Deadline deadline);
  Result<PostgresResult> execute_until(const std::string& statement, std::span<const Value> parameters,
                                       Deadline deadline);
  Result<void> execute_plain(std::string_view statement);
  Deadline statement_deadline() const {
    return std::chrono::steady_clock::now() + options_.statement_timeout + kServerGrace;
  }

  const PostgresAddress address_;
  const DatabaseOptions& options_;
  PostgresConnection connection_;
};

Error commit_outcome_unknown(const Error& reason) {
  return database_error(
      ErrorKind::io,
      "the connection was lost while the transaction was committed; it may have been committed or not: " +
          reason.message(),
      kCommitOutcomeUnknown);
}

Result<void> PostgresDriver::connect() {
  const Deadline deadline = std::chrono::steady_clock::now() + options_.connect_timeout;
  Result<void> outcome = connection_.connect(deadline);
  if (outcome) outcome = set_up_session(deadline);
  if (!outcome) disconnect();
  return outcome;
}

Result<void> PostgresDriver::set_up_session(Deadline deadline) {
  const std::string_view encoding = connection_.parameter("server_encoding");
  if (encoding != "UTF8")
    return Error(ErrorKind::validation,
                 "the PostgreSQL database has the encoding " + std::string(encoding) + "; UTF8 is required");
  if (const Result<void> set = set_timeouts(deadline); !set) return set;
  const Result<std::string> channel = connection_.quoted_identifier(options_.channel);
  if (!channel) return channel.error();
  const Result<PostgresResult> listening = execute_until("LISTEN " + *channel, {}, deadline);
  if (!listening) return listening.error();
  return {};
}

// A process that is suspended, or whose machine is lost, inside a transaction would hold its locks until the
// server notices: the server ends its session instead.
Result<void> PostgresDriver::set_timeouts(Deadline deadline) {
  const Value values[] = {std::to_string(options_.statement_timeout.count()),
                          std::to_string(options_.lock_timeout.count())};
  const Result<PostgresResult> set = execute_until(
      "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false), "
      "set_config('idle_in_transaction_session_timeout', $1, false)",
      values, deadline);
  if (!set) return set.error();
  return {};
}

Result<PostgresResult> PostgresDriver::execute_until(const std::string& statement,
                                                     std::span<const Value> parameters, Deadline deadline) {
  Result<PostgresResult> result = connection_.execute(statement.c_str(), parameters, deadline);
  if (!result || !is_error(result->get())) return result;
  const Error error = result_error(result->get(), address_, options_);
  if (ends_session(result->get())) disconnect();
  return error;
}

Result<std::vector<Row>> PostgresDriver::execute(std::string_view statement,
                                                 std::span<const Value> parameters) {
  const Result<PostgresResult> result =
      execute_until(std::string(statement), parameters, statement_deadline());
  if (!result) return result.error();
  return result_rows(result->get());
}

Result<void> PostgresDriver::execute_plain(std::string_view statement) {
  const Result<std::vector<Row>> rows = execute(statement, {});
  if (!rows) return rows.error();
  return {};
}

Result<void> PostgresDriver::lock_schema() {
  const Value key[] = {kSchemaLock};
  const Result<std::vector<Row>> locked = execute("SELECT pg_advisory_xact_lock($1)", key);
  if (!locked) return locked.error();
  return {};
}

Result<void> PostgresDriver::notify() {
  const Value channel[] = {options_.channel};
  const Result<std::vector<Row>> sent = execute("SELECT pg_notify($1, '')", channel);
  if (!sent) return sent.error();
  return {};
}

Result<void> PostgresDriver::commit() {
  const Result<PostgresResult> result = execute_until("COMMIT", {}, statement_deadline());
  if (!result && !connected()) return commit_outcome_unknown(result.error());
  if (!result) return result.error();
  if (std::string_view(PQcmdStatus(result->get())) == "COMMIT") return {};
  return Error(ErrorKind::io, "PostgreSQL has rolled back the transaction");
}

void PostgresDriver::roll_back() noexcept {
  if (!connected()) return;
  if (const Result<void> rolled_back = execute_plain("ROLLBACK"); !rolled_back) disconnect();
}

}  // namespace

Result<std::unique_ptr<Driver>> make_postgres_driver(std::string_view address, const DatabaseOptions& options,
                                                     const Interrupt& interrupt) {
  Result<PostgresAddress> parsed = parse_postgres_address(address);
  if (!parsed) return parsed.error();
  return std::unique_ptr<Driver>(std::make_unique<PostgresDriver>(std::move(*parsed), options, interrupt));
}

}  // namespace fairlead::sql
