// The names of the entries of an archive, which become paths below a directory. Private to the layer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::packages {

struct ZipEntry;

// Returns why a name cannot be a path below a directory, on Linux or another system; nullopt if it can.
std::optional<std::string> entry_name_problem(std::string_view name);

struct NameCollision {
  std::string_view name;
  std::string_view problem;
};
// Finds an entry that would be the same file as another one, also on a file system that ignores case, or a
// file where another entry needs a directory.
std::optional<NameCollision> find_collision(const std::vector<ZipEntry>& entries);

}  // namespace fairlead::packages
