// The file of an SQLite database: created for its owner only, and locked against other gateways.
#pragma once

#include <string>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"

namespace fairlead::sql {

struct SqliteFile {
  std::string path;  // canonical
  UniqueFd lock;     // of PATH.lock; holds the lock until it is closed, also by the end of the process
};

// Creates the file with mode 0600 and its directories with mode 0700 if they do not exist, and locks
// PATH.lock. Fails with kDatabaseInUse if another process holds the lock; the message names the process.
Result<SqliteFile> open_sqlite_file(const std::string& path);

}  // namespace fairlead::sql
