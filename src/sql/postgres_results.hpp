// Rows and errors of PostgreSQL results.
#pragma once

#include <libpq-fe.h>

#include <vector>

#include "sql/driver.hpp"
#include "sql/postgres_address.hpp"

namespace fairlead::sql {

// Returns the rows of a result; integers and booleans as integers, everything else as text.
std::vector<Row> result_rows(const PGresult* result);

bool is_error(const PGresult* result) noexcept;
// Returns whether the server closes the connection after this error.
bool ends_session(const PGresult* result) noexcept;
// REQUIRES: is_error(result).
Error result_error(const PGresult* result, const PostgresAddress& address, const DatabaseOptions& options);

}  // namespace fairlead::sql
