#pragma once

#include <memory>
#include <string_view>

#include "sql/driver.hpp"

namespace fairlead::sql {

// Returns the driver for a PostgreSQL database. See make_driver().
Result<std::unique_ptr<Driver>> make_postgres_driver(std::string_view address, const DatabaseOptions& options,
                                                     const Interrupt& interrupt);

}  // namespace fairlead::sql
