#include "clients/placeholder_paths.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "clients/references_in.hpp"

namespace fairlead::clients {

void replace_places(std::string& path, const PathPlaces& places) {
  if (!places.home.empty() && (path == "~" || path.starts_with("~/"))) path.replace(0, 1, places.home);
  if (!places.editor) return;
  using Place = std::pair<std::string_view, std::string_view>;
  const std::array<Place, 5> values = {
      Place{"${userHome}", places.home}, Place{"${workspaceFolder}", places.project},
      Place{"${workspaceFolderBasename}", places.project.substr(places.project.rfind('/') + 1)},
      Place{"${pathSeparator}", "/"}, Place{"${/}", "/"}};
  for (const auto& [name, value] : values) {
    if (value.empty()) continue;
    for (std::size_t at = path.find(name); at != std::string::npos; at = path.find(name, at + value.size()))
      path.replace(at, name.size(), value);
  }
}

bool has_reference(std::string_view path) {
  if (path.contains("${") || path.contains("{env:")) return true;
  for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    const std::size_t end = path.find('%', at + 1);
    if (end != std::string_view::npos && is_variable_name(path.substr(at + 1, end - at - 1))) return true;
  }
  return false;
}

}  // namespace fairlead::clients
