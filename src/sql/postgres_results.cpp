#include "sql/postgres_results.hpp"

#include <array>
#include <charconv>
#include <string_view>

namespace fairlead::sql {

namespace {

constexpr Oid kBoolType = 16;
constexpr Oid kInt8Type = 20;
constexpr Oid kInt2Type = 21;
constexpr Oid kInt4Type = 23;
constexpr Oid kNumericType = 1700;  // such as a sum of integers

Value parsed_value(Oid type, std::string_view text) {
  if (type == kBoolType) return Value(std::int64_t{text == "t"});
  const bool is_number = type == kInt8Type || type == kInt2Type || type == kInt4Type || type == kNumericType;
  std::int64_t number = 0;
  if (is_number) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed == std::errc() && end == text.data() + text.size()) return Value(number);
  }
  return Value(std::string(text));
}

Value result_value(const PGresult* result, int row, int column) {
  if (PQgetisnull(result, row, column)) return Value();
  const auto size = static_cast<std::size_t>(PQgetlength(result, row, column));
  return parsed_value(PQftype(result, column), std::string_view(PQgetvalue(result, row, column), size));
}

// SQLSTATE codes, or prefixes of them, and what they mean. The first match counts.
struct StateMeaning {
  std::string_view prefix;
  ErrorKind kind;
  std::string_view failure_code;
};
constexpr std::array kStateMeanings{
    StateMeaning{"23505", ErrorKind::validation, kUniqueViolation},
    StateMeaning{"22", ErrorKind::validation, ""},  // a value that the type of the column does not allow
    StateMeaning{"23", ErrorKind::validation, ""},  // another constraint
    StateMeaning{"40", ErrorKind::timeout, kDatabaseBusy},  // a deadlock
    StateMeaning{"53100", ErrorKind::io, kDatabaseFull},
    StateMeaning{"53300", ErrorKind::io, kDatabaseUnavailable},  // too many connections
    StateMeaning{"53", ErrorKind::resource_exhausted, ""},       // memory, or another resource
    StateMeaning{"08", ErrorKind::io, kDatabaseUnavailable},     // connection
    StateMeaning{"25006", ErrorKind::io, kDatabaseUnavailable},  // the server is a standby
    StateMeaning{"25P03", ErrorKind::io, kDatabaseUnavailable},  // the transaction paused for too long
    StateMeaning{"57P", ErrorKind::io, kDatabaseUnavailable},    // the server shuts down
    StateMeaning{"58", ErrorKind::io, kDatabaseUnavailable},     // the operating system of the server
    StateMeaning{"XX", ErrorKind::io, kDatabaseUnavailable},     // corruption
    StateMeaning{"", ErrorKind::io, ""},
};

std::string_view field(const PGresult* result, int code) {
  const char* const text = PQresultErrorField(result, code);
  return text ? text : "";
}

}  // namespace

std::vector<Row> result_rows(const PGresult* result) {
  const int row_count = PQntuples(result);
  const int column_count = PQnfields(result);
  std::vector<Row> rows(static_cast<std::size_t>(row_count));
  for (int row = 0; row < row_count; ++row) {
    Row& values = rows[static_cast<std::size_t>(row)];
    values.reserve(static_cast<std::size_t>(column_count));
    for (int column = 0; column < column_count; ++column) values.push_back(result_value(result, row, column));
  }
  return rows;
}

bool is_error(const PGresult* result) noexcept {
  const ExecStatusType status = PQresultStatus(result);
  return status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK;
}

bool ends_session(const PGresult* result) noexcept {
  const std::string_view severity = field(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  return severity == "FATAL" || severity == "PANIC";
}

Error result_error(const PGresult* result, const PostgresAddress& address, const DatabaseOptions& options) {
  const std::string_view state = field(result, PG_DIAG_SQLSTATE);
  if (state == "57014") return statement_timeout_error(options);
  if (state == "55P03") return lock_timeout_error(options);
  std::string_view message = field(result, PG_DIAG_MESSAGE_PRIMARY);
  if (message.empty()) message = PQresultErrorMessage(result);
  if (message.empty()) message = "the statement is empty";
  for (const StateMeaning& meaning : kStateMeanings) {
    if (!state.starts_with(meaning.prefix)) continue;
    return database_error(meaning.kind, "PostgreSQL: " + without_secrets(message, address.secrets),
                          meaning.failure_code);
  }
  return Error(ErrorKind::io, "PostgreSQL reported an error");
}

}  // namespace fairlead::sql
