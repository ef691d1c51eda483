// Reads files that an operator names: configurations, certificates, secrets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead {

// The most bytes that a file may have, and the name of that limit in errors.
struct FileLimit {
  std::string_view name;
  std::size_t bytes;
};

// The content of a regular file. Never waits for another process: a FIFO, a socket, a device or a directory
// is refused. Kind validation; the message is the reason alone and does not name the file.
Result<std::string> read_regular_file(const std::string& path, FileLimit limit);

}  // namespace fairlead
