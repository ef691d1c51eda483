#pragma once

#include <memory>
#include <string_view>

#include "sql/driver.hpp"

namespace fairlead::sql {

// Returns the driver for the SQLite file `path`. See make_driver().
std::unique_ptr<Driver> make_sqlite_driver(std::string_view path, const DatabaseOptions& options,
                                           const Interrupt& interrupt);

}  // namespace fairlead::sql
