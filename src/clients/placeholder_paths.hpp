// Replaces the variables of editors that stand for directories. Private to the layer.
#pragma once

#include <string>
#include <string_view>

namespace fairlead::clients {

struct PathPlaces {
  std::string_view home;     // empty: not known
  std::string_view project;  // empty: not known
  bool editor = false;       // the client replaces ${workspaceFolder} and so on
};

// Replaces `~` at the beginning of `path`, and the variables of an editor whose directories are known.
void replace_places(std::string& path, const PathPlaces& places);

// Returns whether a path contains a reference of any client: ${…}, {env:…} or %NAME%.
bool has_reference(std::string_view path);

}  // namespace fairlead::clients
