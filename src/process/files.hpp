// Small files read and written whole.
#pragma once

#include <string>
#include <string_view>

namespace fairlead::process {

// Empty when it cannot be read.
std::string read_whole(const std::string& path);
// Returns errno, or 0.
int write_whole(const std::string& path, std::string_view text);
// To a file that is open; false with errno when not all of it could be.
bool write_all(int fd, std::string_view text);

}  // namespace fairlead::process
