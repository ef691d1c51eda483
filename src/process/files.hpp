// Functions that read and write small files.
#pragma once

#include <string>
#include <string_view>

namespace fairlead::process {

// Returns the content of the file, or an empty text if it cannot be read.
std::string read_whole_file(const std::string& path);
// Writes `text` in one call to an existing file, such as a control file of a cgroup. Does not truncate the
// file. Returns errno, or 0 on success.
int write_existing_file(const std::string& path, std::string_view text);
// Writes all of `text` to an open file. Returns false, with errno set, if that fails.
bool write_all(int fd, std::string_view text);

}  // namespace fairlead::process
