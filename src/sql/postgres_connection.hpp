// PostgresConnection: a connection to PostgreSQL that never waits longer than a deadline, also if the server
// hangs. Used on one thread at a time.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <span>
#include <string_view>

#include "sql/driver.hpp"
#include "sql/postgres_address.hpp"

namespace fairlead::sql {

struct CloseConnection {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
struct ClearResult {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using PostgresResult = std::unique_ptr<PGresult, ClearResult>;

class PostgresConnection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // REQUIRES: the arguments outlive the connection.
  PostgresConnection(const PostgresAddress& address, const DatabaseOptions& options,
                     const Interrupt& interrupt)
      : address_(address), options_(options), interrupt_(interrupt) {}

  // Fails with kDatabaseUnavailable.
  Result<void> connect(Deadline deadline);
  bool connected() const noexcept { return connection_ != nullptr; }
  // Returns whether the last connection was dropped because the server had not responded by a deadline.
  bool timed_out() const noexcept { return timed_out_; }
  void disconnect() noexcept { connection_.reset(); }

  // Returns the result of one statement. Drops the connection when the deadline passes or the connection is
  // lost: the outcome of the statement is then unknown.
  Result<PostgresResult> execute(const char* statement, std::span<const Value> parameters, Deadline deadline);
  // Reads what the server has sent. Returns whether another session has notified a channel.
  Result<bool> read_notifications();

  int fd() const noexcept { return connection_ ? PQsocket(connection_.get()) : -1; }
  // REQUIRES: connected().
  std::string_view parameter(const char* name) const;
  Result<std::string> quoted_identifier(std::string_view name) const;

 private:
  Result<void> wait(short events, Deadline deadline);
  Result<void> poll_until_connected(Deadline deadline);
  Result<void> send_all(Deadline deadline);
  Result<PostgresResult> receive(Deadline deadline);
  Result<void> read_until_complete(Deadline deadline);
  Error lost();
  Error drop_at_deadline();

  const PostgresAddress& address_;
  const DatabaseOptions& options_;
  const Interrupt& interrupt_;
  std::unique_ptr<PGconn, CloseConnection> connection_;
  bool timed_out_ = false;
};

}  // namespace fairlead::sql
