// The tables of the registry, as migrations. Private to the library.
#pragma once

#include <vector>

#include "sql/database.hpp"

namespace fairlead::registry {

// Every statement is valid on SQLite 3.40 and PostgreSQL 15. A migration that was released is never changed.
std::vector<sql::Migration> migrations();

}  // namespace fairlead::registry
