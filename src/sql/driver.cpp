#include "sql/driver.hpp"

#include "fairlead/base/duration.hpp"
#include "sql/postgres_driver.hpp"
#include "sql/sqlite_driver.hpp"

namespace fairlead::sql {

Result<std::unique_ptr<Driver>> make_driver(std::string_view address, const DatabaseOptions& options,
                                            const Interrupt& interrupt) {
  if (address.starts_with("sqlite:")) return make_sqlite_driver(address.substr(7), options, interrupt);
  if (address.starts_with("postgresql://") || address.starts_with("postgres://"))
    return make_postgres_driver(address, options, interrupt);
  // The address is not quoted, because it may contain a password.
  return Error(ErrorKind::validation,
               "the address of the database must begin with \"sqlite:\" or \"postgresql://\"");
}

Error database_error(ErrorKind kind, std::string message, std::string_view failure_code) {
  return Error(kind, std::move(message)).with([&](ErrorDetail& detail) {
    detail.failure_code = failure_code;
  });
}

Error statement_timeout_error(const DatabaseOptions& options) {
  return database_error(
      ErrorKind::timeout,
      "the statement took longer than statement_timeout (" + format_duration(options.statement_timeout) + ")",
      kDatabaseBusy);
}

Error lock_timeout_error(const DatabaseOptions& options) {
  return database_error(ErrorKind::timeout,
                        "another process has locked the database for longer than lock_timeout (" +
                            format_duration(options.lock_timeout) + ")",
                        kDatabaseBusy);
}

Error closed_error() {
  return Error(ErrorKind::closed, "the database is closed");
}

}  // namespace fairlead::sql
