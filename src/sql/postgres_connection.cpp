#include "sql/postgres_connection.hpp"

#include <poll.h>

#include <array>
#include <string>
#include <vector>

#include "fairlead/base/duration.hpp"

namespace fairlead::sql {

namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Oid kInt8 = 20;
constexpr Oid kText = 25;

// Parameters of a statement in the form that libpq requires.
struct WireParameters {
  explicit WireParameters(std::span<const Value> values) {
    numbers.reserve(values.size());
    for (const Value& value : values) add(value);
  }
  void add(const Value& value) {
    if (const auto* const number = std::get_if<std::int64_t>(&value)) {
      numbers.push_back(std::to_string(*number));
      types.push_back(kInt8);
      texts.push_back(numbers.back().c_str());
    } else {
      const auto* const text = std::get_if<std::string>(&value);
      types.push_back(text ? kText : Oid{0});
      texts.push_back(text ? text->c_str() : nullptr);
    }
  }

  std::vector<Oid> types;
  std::vector<const char*> texts;
  std::vector<std::string> numbers;
};

void ignore_notice(void*, const PGresult*) {}

}  // namespace

Result<void> PostgresConnection::connect(Deadline deadline) {
  timed_out_ = false;
  // The parameters of the address override those before it.
  const std::array<const char*, 6> keywords{"fallback_application_name", "target_session_attrs",
                                            "keepalives_idle",           "dbname",
                                            "client_encoding",           nullptr};
  const std::array<const char*, 6> values{"fairlead",           "read-write", "30",
                                          address_.uri.c_str(), "UTF8",       nullptr};
  constexpr int kExpandDbname = 1;
  connection_.reset(PQconnectStartParams(keywords.data(), values.data(), kExpandDbname));
  if (!connection_) return Error(ErrorKind::resource_exhausted, "out of memory for a connection");
  PQsetNoticeReceiver(connection_.get(), &ignore_notice, nullptr);
  const Result<void> connected = poll_until_connected(deadline);
  if (!connected) return connected;
  if (PQsetnonblocking(connection_.get(), 1) != 0) return lost();
  return {};
}

Result<void> PostgresConnection::poll_until_connected(Deadline deadline) {
  short events = POLLOUT;
  for (;;) {
    if (PQstatus(connection_.get()) == CONNECTION_BAD) return lost();
    const Result<void> ready = wait(events, deadline);
    if (!ready) return ready;
    switch (PQconnectPoll(connection_.get())) {
      case PGRES_POLLING_OK: return {};
      case PGRES_POLLING_READING: events = POLLIN; break;
      case PGRES_POLLING_WRITING: events = POLLOUT; break;
      default: return lost();
    }
  }
}

// Returns when the socket is ready for one of `events`.
Result<void> PostgresConnection::wait(short events, Deadline deadline) {
  std::array<pollfd, 2> descriptors{{{fd(), events, 0}, {interrupt_.event.fd(), POLLIN, 0}}};
  for (;;) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left <= Milliseconds::zero()) return drop_at_deadline();
    const int ready = ::poll(descriptors.data(), descriptors.size(), static_cast<int>(left.count()));
    if (interrupt_.raised) {
      disconnect();
      return closed_error();
    }
    if (ready > 0) return {};
  }
}

Result<PostgresResult> PostgresConnection::execute(const char* statement, std::span<const Value> parameters,
                                                   Deadline deadline) {
  if (!connection_) return database_error(ErrorKind::io, "not connected to PostgreSQL", kDatabaseUnavailable);
  const WireParameters wire(parameters);
  const int sent = PQsendQueryParams(connection_.get(), statement, static_cast<int>(wire.texts.size()),
                                     wire.types.data(), wire.texts.data(), nullptr, nullptr, 0);
  if (!sent) return lost();
  if (const Result<void> flushed = send_all(deadline); !flushed) return flushed.error();
  return receive(deadline);
}

// Reads while it writes, so that a server that writes does not wait for a client that does not read.
Result<void> PostgresConnection::send_all(Deadline deadline) {
  for (;;) {
    const int unsent = PQflush(connection_.get());
    if (unsent < 0) return lost();
    if (unsent == 0) return {};
    const Result<void> ready = wait(POLLIN | POLLOUT, deadline);
    if (!ready) return ready;
    if (!PQconsumeInput(connection_.get())) return lost();
  }
}

// Returns the first result. A statement has one, and a connection that fails may add another.
Result<PostgresResult> PostgresConnection::receive(Deadline deadline) {
  PostgresResult first;
  for (;;) {
    if (const Result<void> complete = read_until_complete(deadline); !complete) return complete.error();
    PostgresResult result(PQgetResult(connection_.get()));
    if (!result) break;
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
      disconnect();
      return Error(ErrorKind::validation, "COPY is not possible here");
    }
    if (!first) first = std::move(result);
  }
  if (!first) return lost();
  return first;
}

Result<void> PostgresConnection::read_until_complete(Deadline deadline) {
  while (PQisBusy(connection_.get())) {
    const Result<void> ready = wait(POLLIN, deadline);
    if (!ready) return ready;
    if (!PQconsumeInput(connection_.get())) return lost();
  }
  return {};
}

Result<bool> PostgresConnection::read_notifications() {
  if (!PQconsumeInput(connection_.get())) return lost();
  bool notified = false;
  for (;;) {
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> next(PQnotifies(connection_.get()), &PQfreemem);
    if (!next) return notified;
    notified = notified || next->be_pid != PQbackendPID(connection_.get());
  }
}

std::string_view PostgresConnection::parameter(const char* name) const {
  const char* const value = PQparameterStatus(connection_.get(), name);
  return value ? value : "";
}

Result<std::string> PostgresConnection::quoted_identifier(std::string_view name) const {
  const std::unique_ptr<char, decltype(&PQfreemem)> quoted(
      PQescapeIdentifier(connection_.get(), name.data(), name.size()), &PQfreemem);
  if (!quoted) return Error(ErrorKind::validation, "the name of the channel is not UTF-8");
  return std::string(quoted.get());
}

Error PostgresConnection::lost() {
  const std::string reason = without_secrets(PQerrorMessage(connection_.get()), address_.secrets);
  disconnect();
  return database_error(ErrorKind::io, "PostgreSQL: " + (reason.empty() ? "the connection was lost" : reason),
                        kDatabaseUnavailable);
}

Error PostgresConnection::drop_at_deadline() {
  timed_out_ = true;
  const bool connecting = PQstatus(connection_.get()) != CONNECTION_OK;
  disconnect();
  const std::string limit = connecting
                                ? "connect_timeout (" + format_duration(options_.connect_timeout) + ")"
                                : "statement_timeout (" + format_duration(options_.statement_timeout) + ")";
  return database_error(ErrorKind::timeout, "PostgreSQL has not responded within " + limit,
                        kDatabaseUnavailable);
}

}  // namespace fairlead::sql
