// Where the files of the clients are.
#include <algorithm>
#include <filesystem>
#include <optional>

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
  if (name == "managed") return places.managed;
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

// Returns what stands before `tail`, which may have a `*`, in `path`; nullopt if the path does not end with
// it.
std::optional<std::string> directory_before(std::string_view path, std::string_view tail) {
  const std::size_t star = tail.find('*');
  if (star != std::string_view::npos) {
    if (!path.ends_with(tail.substr(star + 1)) || !path.contains('/')) return std::nullopt;
    return directory_before(path.substr(0, path.rfind('/') + 1), tail.substr(0, star));
  }
  if (!path.ends_with(tail)) return std::nullopt;
  return std::string(path.substr(0, path.size() - tail.size()));
}

bool is_file_of_user(const std::string& path, const Places& places) {
  for (const Client& client : clients()) {
    for (const FileLocation& location : client.files) {
      const std::string place = path_of(location, places);
      if (location.scope != FileScope::project && !place.empty() && directory_before(path, place) == "")
        return true;
    }
  }
  return false;
}

}  // namespace

std::string_view to_string(FileScope scope) noexcept {
  switch (scope) {
    case FileScope::user: return "user";
    case FileScope::project: return "project";
    case FileScope::managed: break;
  }
  return "managed";
}

Places Places::of_environment(
    const std::function<std::optional<std::string>(const std::string& name)>& variable) {
  Places places;
  places.system = this_system();
  if (places.system == System::linux_system) places.managed = "/etc";
  if (places.system == System::macos) places.managed = "/Library/Application Support";
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

std::string project_of_file(const std::string& path, const Places& places) {
  if (is_file_of_user(path, places)) return {};
  std::string project;
  for (const Client& client : clients()) {
    for (const FileLocation& location : client.files) {
      if (location.scope != FileScope::project) continue;
      const std::string found =
          directory_before(path, location.path.substr(location.path.find('}') + 1)).value_or("");
      // Of several places the longest counts.
      if (!found.empty() && (project.empty() || found.size() < project.size())) project = found;
    }
  }
  return project;
}

}  // namespace fairlead::clients
