#include "packages/entry_names.hpp"

#include <algorithm>
#include <set>

#include "base/printable.hpp"
#include "packages/zip_archive.hpp"

namespace fairlead::packages {

namespace {

constexpr std::size_t kMaxComponentBytes = 255;  // NAME_MAX
constexpr std::size_t kMaxDirectories = 64;      // that an entry is in

bool has_unusual_character(std::string_view name) {
  while (!name.empty()) {
    const CodePoint c = first_code_point(name);
    if (c.length == 0 || is_unprintable(c.value) || name.front() == '\\') return true;
    name.remove_prefix(c.length);
  }
  return false;
}

bool is_bad_component(std::string_view component) {
  return component.empty() || component == "." || component == ".." || component.size() > kMaxComponentBytes;
}

std::string without_case(std::string_view name) {
  std::string result(name);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c | 32) : c; });
  return result;
}

// Whether a directory that contains `name` is one of `files`.
bool is_below_file(std::string_view name, const std::set<std::string_view>& files) {
  for (std::size_t slash = name.find('/'); slash != std::string_view::npos;
       slash = name.find('/', slash + 1)) {
    if (files.contains(name.substr(0, slash))) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> entry_name_problem(std::string_view name) {
  if (name.empty()) return "has no name";
  if (name.front() == '/' || (name.size() > 1 && name[1] == ':')) return "has an absolute path";
  if (has_unusual_character(name)) return "has a backslash, a control character or invalid UTF-8 in its path";
  if (static_cast<std::size_t>(std::ranges::count(name, '/')) > kMaxDirectories)
    return "is in more than " + std::to_string(kMaxDirectories) + " directories";
  while (true) {
    const std::size_t slash = name.find('/');
    if (is_bad_component(name.substr(0, slash)))
      return "has a path that leaves its directory or is not a normal one";
    if (slash == std::string_view::npos) return std::nullopt;
    name.remove_prefix(slash + 1);
  }
}

std::optional<NameCollision> find_collision(const std::vector<ZipEntry>& entries) {
  std::vector<std::string> names;
  for (const ZipEntry& entry : entries) names.push_back(without_case(entry.name));
  std::set<std::string_view> all;
  std::set<std::string_view> files;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!all.insert(names[i]).second)
      return NameCollision{entries[i].name, "has the path of another entry, at least if case is ignored"};
    if (!entries[i].is_directory) files.insert(names[i]);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (is_below_file(names[i], files))
      return NameCollision{entries[i].name, "is in a directory that is also a file"};
  }
  return std::nullopt;
}

}  // namespace fairlead::packages
