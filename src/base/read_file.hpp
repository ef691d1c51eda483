// Reads files named by the operator: configurations, certificates, secrets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead {

// The maximum size of a file, and the name of that limit in error messages.
struct FileLimit {
  std::string_view name;
  std::size_t bytes;
};

// Returns the content of a regular file. Never blocks on another process: a FIFO, a socket, a device or a
// directory is rejected. Fails with `validation`; the message is the reason only and does not name the file.
Result<std::string> read_regular_file(const std::string& path, FileLimit limit);

}  // namespace fairlead
