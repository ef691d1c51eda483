// Where the files of the clients are.
#include <algorithm>
#include <filesystem>

#include "clients/client.hpp"

namespace fairlead::clients {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFoundFiles = 1'000;  // max_found_files

constexpr System this_system() {
#if defined(_WIN32)
  return System::windows;
#elif defined(__APPLE__)
  return System::macos;
#else
  return System::linux_system;
#endif
}

// Returns `chosen`, or `below` in `home` if it is empty; empty if there is no home directory either.
std::string chosen_or(const std::string& chosen, const std::string& home, std::string_view below) {
  if (!chosen.empty()) return chosen;
  return home.empty() ? std::string() : home + std::string(below);
}

std::string app_directory(const Places& places) {
  switch (places.system) {
    case System::windows: return chosen_or(places.app_data, places.home, "/AppData/Roaming");
    case System::macos: return chosen_or("", places.home, "/Library/Application Support");
    default: return chosen_or(places.xdg_config_home, places.home, "/.config");
  }
}

// Returns the directory that stands for a name in braces; empty if it is not known.
std::string directory_of(std::string_view name, const Places& places) {
  if (name == "home") return places.home;
  if (name == "project") return places.project;
  if (name == "app") return app_directory(places);
  if (name == "xdg") return places.xdg_config_home;
  if (name == "config") return chosen_or(places.xdg_config_home, places.home, "/.config");
  if (name == "codex") return chosen_or(places.codex_home, places.home, "/.codex");
  if (name == "local") return chosen_or(places.local_app_data, places.home, "/AppData/Local");
  return {};
}

bool is_for(const FileLocation& location, System system) {
  switch (system) {
    case System::windows: return location.on_windows;
    case System::macos: return location.on_macos;
    default: return location.on_linux;
  }
}

// Returns the path of a location; empty if there is none on this system.
std::string path_of(const FileLocation& location, const Places& places) {
  if (!is_for(location, places.system)) return {};
  const std::size_t end = location.path.find('}');
  const std::string directory = directory_of(location.path.substr(1, end - 1), places);
  return directory.empty() ? std::string() : directory + std::string(location.path.substr(end + 1));
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Adds the files that match a path with a `*` in its last part.
void add_matches(const std::string& path, FileScope scope, std::vector<FoundFile>& found) {
  const std::size_t slash = path.rfind('/');
  const std::string suffix = path.substr(path.find('*') + 1);
  std::vector<std::string> names;
  std::error_code problem;
  fs::directory_iterator file(path.substr(0, slash), problem);
  for (; !problem && file != fs::directory_iterator(); file.increment(problem)) {
    const std::string name = file->path().filename().string();
    if (names.size() < kMaxFoundFiles && name.ends_with(suffix)) names.push_back(name);
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const std::string whole = path.substr(0, slash + 1) + name;
    if (found.size() < kMaxFoundFiles && is_file(whole)) found.push_back({whole, scope, true});
  }
}

}  // namespace

std::string_view to_string(FileScope scope) noexcept {
  return scope == FileScope::user ? "user" : "project";
}

Places Places::of_environment(
    const std::function<std::optional<std::string>(const std::string& name)>& variable) {
  Places places;
  places.system = this_system();
  places.home = variable("HOME").value_or("");
  if (places.home.empty()) places.home = variable("USERPROFILE").value_or("");
  places.xdg_config_home = variable("XDG_CONFIG_HOME").value_or("");
  places.codex_home = variable("CODEX_HOME").value_or("");
  places.app_data = variable("APPDATA").value_or("");
  places.local_app_data = variable("LOCALAPPDATA").value_or("");
  return places;
}

std::vector<FoundFile> possible_files(const Client& client, const Places& places) {
  std::vector<FoundFile> files;
  for (const FileLocation& location : client.files) {
    const std::string path = path_of(location, places);
    if (!path.empty() && !path.contains('*')) files.push_back({path, location.scope, is_file(path)});
  }
  return files;
}

std::vector<FoundFile> find_files(const Client& client, const Places& places) {
  std::vector<FoundFile> found;
  for (const FileLocation& location : client.files) {
    const std::string path = path_of(location, places);
    if (path.contains('*')) {
      add_matches(path, location.scope, found);
    } else if (!path.empty() && is_file(path)) {
      found.push_back({path, location.scope, true});
    }
  }
  return found;
}

}  // namespace fairlead::clients
