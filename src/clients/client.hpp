// Client: a program that uses MCP servers and is configured by a file: where its files are, and what they
// look like. Private to the library.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::clients {

enum class FileFormat : std::uint8_t {
  json,
  toml,
  yaml
};  // json: with comments where the client allows them

// How the gateway can be entered into the file.
enum class ConnectBy : std::uint8_t {
  http,     // by its URL; by a command too
  stdio,    // only by a command: the client does not connect to URLs
  nothing,  // the file is only read
};

enum class System : std::uint8_t { linux_system, macos, windows };

// Whose file it is; `managed`: the organisation's.
enum class FileScope : std::uint8_t { user, project, managed };
std::string_view to_string(FileScope scope) noexcept;

// The directories that the paths of files depend on, so that tests need no environment. Paths have `/` on
// every system.
struct Places {
  Places() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  System system = System::linux_system;
  std::string home;
  std::string xdg_config_home;  // $XDG_CONFIG_HOME; empty: ~/.config
  std::string codex_home;       // $CODEX_HOME; empty: ~/.codex
  std::string app_data;         // %APPDATA%; empty: ~/AppData/Roaming
  std::string local_app_data;   // %LOCALAPPDATA%; empty: ~/AppData/Local
  std::string managed;          // /etc, or that of the system; empty: no managed files
  std::string project;          // the directory of the project; empty: no files of projects

  // Reads HOME, XDG_CONFIG_HOME, CODEX_HOME and so on with `variable`, for the system that this is compiled
  // for.
  static Places of_environment(
      const std::function<std::optional<std::string>(const std::string& name)>& variable);
};

// Where a file of a client is. `path` begins with one of
//   {home} {config} {xdg} {app} {local} {codex} {managed} {project}
// and may have one `*` in its last part, for all files that match.
struct FileLocation {
  FileScope scope;
  bool on_linux;
  bool on_macos;
  bool on_windows;
  std::string_view path;
};

struct EntryFormat;  // entry_format.hpp: the keys of an entry

struct Client {
  std::string_view id;     // such as "claude-desktop"
  std::string_view title;  // such as "Claude Desktop"
  FileFormat format;
  ConnectBy connect_by;
  // The keys that lead to the servers, outermost first: {"customizations", "vscode", "mcp", "servers"}.
  std::span<const std::string_view> container;
  bool is_list;  // the servers are an array of tables with a `name`, not a map
  std::span<const FileLocation> files;
  const EntryFormat* entry;
};

std::span<const Client> clients();
// Returns nullptr if there is no client with this id.
const Client* find_client(std::string_view id);
// The ids of all clients, separated by commas, for messages.
std::string client_ids();

struct FoundFile {
  std::string path;
  FileScope scope = FileScope::user;
  bool exists = false;
};

// Returns the paths of all files that the client reads on the system of `places`, in the order in which they
// should be tried for writing. Paths with a `*` are omitted. `exists` tells whether there is a file.
std::vector<FoundFile> possible_files(const Client& client, const Places& places);
// Returns those that exist, and the existing files that match the paths with a `*`: at most 1,000
// (max_found_files).
std::vector<FoundFile> find_files(const Client& client, const Places& places);

// Returns the directory of the project to which the file at an absolute path belongs, if it is at the place
// of a client's project file, such as /p/.vscode/mcp.json; otherwise an empty string.
std::string project_of_file(const std::string& path, const Places& places);

}  // namespace fairlead::clients
