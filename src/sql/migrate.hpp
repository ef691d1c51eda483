#pragma once

#include <vector>

#include "sql/driver.hpp"

namespace fairlead::sql {

// Brings the schema to the version of the last migration. Several processes may do this at the same time.
// Fails with kSchemaTooNew if the schema has a later version. REQUIRES: `driver` is connected.
Result<void> migrate(Driver& driver, const std::vector<Migration>& migrations);

}  // namespace fairlead::sql
