#include "clients/recognise.hpp"

#include <algorithm>
#include <array>

#include "base/contains.hpp"
#include "clients/read.hpp"

namespace fairlead::clients {

namespace {

constexpr std::size_t kMaxProjects = 10'000;  // whose servers are read

// Names of files that only one client has, so that a copy elsewhere is recognised too.
constexpr std::array<std::string_view, 7> kDistinctNames = {
    "claude_desktop_config.json", ".claude.json",  "cline_mcp_settings.json", "mcp-config.json",
    "devcontainer.json",          "opencode.json", "opencode.jsonc"};

std::string name_of(std::string_view key, bool escaped) {
  return escaped ? json::unescape(key) : std::string(key);
}

json::View at_path(json::View root, std::span<const std::string_view> path) {
  for (const std::string_view key : path) root = root[key];
  return root;
}

bool is_table(json::View value) {
  return value.is(json::Type::object) || value.is(json::Type::array);
}

// Returns whether a value looks like one server.
bool is_entry(json::View value) {
  if (!value.is(json::Type::object)) return false;
  for (const std::string_view key : {"command", "url", "serverUrl", "httpUrl", "cmd", "uri"})
    if (const json::View member = value[key]; member.is(json::Type::string) || member.is(json::Type::array))
      return true;
  return false;
}

// Returns whether all members look like servers: a map without its container.
bool is_bare_map(json::View value) {
  bool all = value.is(json::Type::object) && value.size() != 0;
  value.each_member([&](std::string_view, bool, json::View member) { return all = all && is_entry(member); });
  return all;
}

// Returns whether an entry of the table has one of these keys.
bool some_entry_has(json::View table, std::span<const std::string_view> keys) {
  bool found = false;
  const auto look = [&](json::View entry) {
    found = entry.is(json::Type::object) &&
            std::ranges::any_of(keys, [&](std::string_view key) { return !entry[key].absent(); });
    return !found;
  };
  if (table.is(json::Type::array)) table.each_element(look);
  if (table.is(json::Type::object))
    table.each_member([&](std::string_view, bool, json::View e) { return look(e); });
  return found;
}

bool some_entry_has(json::View table, std::initializer_list<std::string_view> keys) {
  return some_entry_has(table, std::span(keys.begin(), keys.size()));
}

// Returns the length of the part of a location that `path` ends with; 0 if the path is not there.
std::size_t matched_bytes(const FileLocation& location, std::string_view path) {
  const std::string_view tail = location.path.substr(location.path.find('}') + 1);
  const std::size_t star = tail.find('*');
  if (star == std::string_view::npos) {
    if (path.ends_with(tail)) return tail.size();
    const std::string_view name = tail.substr(tail.rfind('/'));
    return contains(kDistinctNames, name.substr(1)) && path.ends_with(name) ? 1 : 0;
  }
  const std::string_view directory = tail.substr(0, star);
  const bool matches = path.ends_with(tail.substr(star + 1)) && path.contains(directory);
  return matches ? tail.size() : 0;
}

const Client* client_of_path(std::string_view path) {
  std::string whole(path);
  std::ranges::replace(whole, '\\', '/');
  if (!whole.starts_with('/')) whole.insert(0, "/");
  const Client* best = nullptr;
  std::size_t most = 0;
  for (const Client& client : clients())
    for (const FileLocation& location : client.files)
      if (const std::size_t bytes = matched_bytes(location, whole); bytes > most) {
        most = bytes;
        best = &client;
      }
  return best;
}

// Tells clients with the key `mcpServers` apart, where their entries differ.
const Client* client_of_entries(json::View root, json::View table) {
  if (table.is(json::Type::array)) return find_client("continue");
  if (root["projects"].is(json::Type::object)) return find_client("claude-code");
  if (some_entry_has(table, {"httpUrl", "includeTools", "excludeTools", "trust"}))
    return find_client("gemini");
  if (some_entry_has(table, {"serverUrl"})) return find_client("windsurf");
  bool is_cline = false;
  table.each_member([&](std::string_view, bool, json::View entry) {
    const std::string type = entry["type"].as_string().value_or("");
    is_cline = type == "streamableHttp" || !entry["transportType"].absent();
    return !is_cline;
  });
  return is_cline ? find_client("cline") : nullptr;
}

Owner owner_of_servers(json::View root, FileFormat format) {
  const json::View servers = root["servers"];
  const bool is_native = format == FileFormat::toml || !root["limits"].absent() || !root["listen"].absent() ||
                         some_entry_has(servers, {"clocks", "restart", "containment", "sharing", "max_calls",
                                                  "keep_running", "inherit_env", "revision"});
  return is_native ? Owner{nullptr, true} : Owner{find_client("vscode"), false};
}

Owner owner_of_content(json::View root, FileFormat format) {
  if (const json::View table = root["mcpServers"]; is_table(table))
    return {client_of_entries(root, table), false};
  if (is_table(root["context_servers"])) return {find_client("zed"), false};
  if (is_table(root["amp.mcpServers"])) return {find_client("amp"), false};
  if (const json::View table = root["mcp_servers"]; is_table(table))
    return {find_client(table.is(json::Type::array) ? "vibe" : "codex"), false};
  if (root["servers"].is(json::Type::object)) return owner_of_servers(root, format);
  if (is_table(root["extensions"]) && format == FileFormat::yaml) return {find_client("goose"), false};
  if (is_table(root["mcp"])) return {find_client("opencode"), false};
  if (is_table(root["customizations"])) return {find_client("devcontainer"), false};
  return {};
}

// The servers of opencode are directly below `mcp` in its first version.
json::View opencode_table(json::View root) {
  const json::View inner = root["mcp"]["servers"];
  return inner.is(json::Type::object) && !is_entry(inner) ? inner : root["mcp"];
}

void add_projects(json::View projects, std::vector<ServerTable>& tables) {
  projects.each_member([&](std::string_view key, bool escaped, json::View project) {
    const json::View servers = project["mcpServers"];
    if (is_table(servers) && servers.size() != 0) tables.push_back({name_of(key, escaped), servers});
    return tables.size() < kMaxProjects;
  });
}

// The tables at the places of all clients, for a file whose client is not known.
json::View any_table(json::View root) {
  for (const Client& client : clients())
    if (const json::View table = at_path(root, client.container); is_table(table)) return table;
  return is_bare_map(root) ? root : json::View();
}

}  // namespace

Owner recognise(json::View root, FileFormat format, std::string_view path) {
  const Client* client = path.empty() ? nullptr : client_of_path(path);
  if (client != nullptr && is_table(at_path(root, client->container))) return {client, false};
  if (client != nullptr && client->id == "opencode" && is_table(root["mcp"])) return {client, false};
  if (client != nullptr && client->id == "claude-code" && is_table(root["projects"])) return {client, false};
  return owner_of_content(root, format);
}

std::vector<ServerTable> server_tables(json::View root, const Client* client) {
  std::vector<ServerTable> tables;
  json::View table = client == nullptr ? json::View() : at_path(root, client->container);
  if (client != nullptr && client->id == "opencode") table = opencode_table(root);
  if (!is_table(table)) table = any_table(root);
  const json::View projects = root["projects"];
  const bool has_projects =
      projects.is(json::Type::object) && (client == nullptr || client->id == "claude-code");
  if (is_table(table)) tables.push_back({has_projects ? "user" : "", table});
  if (has_projects) add_projects(projects, tables);
  return tables;
}

}  // namespace fairlead::clients
