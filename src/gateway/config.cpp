// TOML is turned into JSON first, so that both kinds of file are read by the same code.
#include "fairlead/gateway/config.hpp"

#include <toml++/toml.h>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "fairlead/http/connect.hpp"
#include "gateway/config_reader.hpp"
#include "gateway/names.hpp"

namespace fairlead::gateway {

namespace {

Task<ConnectResult> connect_with(Loop& loop, std::string url, http::Headers headers,
                                 fairlead::ConnectOptions options) {
  http::ConnectOptions all;
  static_cast<fairlead::ConnectOptions&>(all) = std::move(options);
  all.headers = std::move(headers);
  Task<ConnectResult> connecting = http::connect(loop, std::move(url), std::move(all));
  ConnectResult connected = co_await connecting;
  co_return connected;
}

// `${NAME}` stands for a variable of the environment.
Result<std::string> expanded(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.compare(at, 2, "${") == 0 ? text.find('}', at) : std::string::npos;
    if (end == std::string::npos) {
      out += text[at++];
      continue;
    }
    const std::string name = text.substr(at + 2, end - at - 2);
    const char* const value = std::getenv(name.c_str());
    if (!value) return Error(ErrorKind::validation, "the environment variable " + name + " is not set");
    out += value;
    at = end + 1;
  }
  return out;
}

void read_limits(ConfigReader& in, pool::PoolLimits& limits) {
  in.number("max_stdio_processes", limits.max_stdio_processes)
      .number("max_start_queue", limits.max_start_queue)
      .number("max_calls", limits.max_calls)
      .number("max_waiting_calls", limits.max_waiting_calls)
      .duration("evict_after", limits.evict_after)
      .finish();
}

void read_clocks(ConfigReader& in, pool::Clocks& clocks) {
  in.duration("spawn", clocks.spawn)
      .duration("handshake", clocks.handshake)
      .duration("queue", clocks.queue)
      .duration("idle", clocks.idle)
      .duration("absolute", clocks.absolute)
      .duration("ping", clocks.ping)
      .duration("health", clocks.health)
      .duration("idle_stop", clocks.idle_stop)
      .duration("drain", clocks.drain)
      .finish();
}

void read_restart(ConfigReader& in, pool::RestartPolicy& restart) {
  in.duration("initial", restart.initial)
      .number("factor", restart.factor)
      .duration("max", restart.max)
      .number("jitter", restart.jitter)
      .duration("forgive_after", restart.forgive_after)
      .number("crash_loop_after", restart.crash_loop_after)
      .duration("crash_loop_pause", restart.crash_loop_pause)
      .finish();
}

void read_containment(ConfigReader& in, Containment& containment) {
  const std::vector<std::pair<std::string_view, Requirement>> words = {
      {"off", Requirement::off},
      {"best_effort", Requirement::best_effort},
      {"required", Requirement::required}};
  ResourceLimits& limits = containment.limits;
  in.choice("cgroup", containment.cgroup, words)
      .string("cgroup_parent", containment.cgroup_parent)
      .bytes("memory_max", containment.memory_max)
      .bytes("pids_max", containment.pids_max)
      .choice("no_new_privs", containment.no_new_privs, words)
      .choice("landlock", containment.landlock, words)
      .strings("read", containment.files.read)
      .strings("write", containment.files.write)
      .strings("execute", containment.files.execute)
      .flag("system_paths", containment.files.system_paths)
      .choice("limits_mode", containment.limits_mode, words)
      .bytes("address_space", limits.address_space)
      .bytes("open_files", limits.open_files)
      .bytes("processes", limits.processes)
      .bytes("cpu_seconds", limits.cpu_seconds)
      .bytes("core_bytes", limits.core_bytes)
      .bytes("file_bytes", limits.file_bytes)
      .finish();
}

// How it is reached: a program or an address.
void read_reach(ConfigReader& in, pool::ServerSpec& spec) {
  ProcessSpec process;
  std::string url;
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> headers;
  in.string("command", process.command)
      .strings("args", process.args)
      .map("env", env)
      .string("cwd", process.cwd)
      .string("url", url)
      .map("headers", headers);
  if (in.has("inherit_env")) in.strings("inherit_env", process.inherit_only.emplace());
  in.table("containment", [&](ConfigReader& table) { read_containment(table, process.containment); });
  if (process.command.empty() == url.empty()) in.fail("", "needs either a command or a url");
  for (auto& [name, value] : env) {
    const bool secret = value.find("${") != std::string::npos || value.starts_with("file:");
    (secret ? process.secret_env : process.env)[name] = std::move(value);
  }
  process.name = spec.name;
  process.stderr_mode = StderrMode::log;
  if (!process.command.empty()) {
    spec.reach = std::move(process);
    return;
  }
  http::Headers sent;
  for (const auto& [name, value] : headers) {
    Result<std::string> real = expanded(value);
    if (!real) return in.fail("headers", "cannot be made: " + real.error().message());
    sent.add(name, std::move(*real));
  }
  spec.reach = Connector([url, sent](Loop& loop, fairlead::ConnectOptions options) {
    return connect_with(loop, url, sent, std::move(options));
  });
}

void read_server(ConfigReader& in, const std::string& name, Config& config) {
  pool::ServerSpec spec;
  spec.name = name;
  bool enabled = true;
  std::string revision;
  read_reach(in, spec);
  in.flag("enabled", enabled)
      .choice("sharing", spec.sharing,
              {{"automatic", pool::Sharing::automatic},
               {"shared", pool::Sharing::shared},
               {"per_session", pool::Sharing::per_session},
               {"per_user", pool::Sharing::per_user}})
      .string("revision", revision)
      .number("max_calls", spec.max_calls)
      .flag("keep_running", spec.keep_running)
      .table("clocks", [&](ConfigReader& table) { read_clocks(table, spec.clocks); })
      .table("restart", [&](ConfigReader& table) { read_restart(table, spec.restart); })
      .finish();
  if (!revision.empty()) {
    spec.pinned = mcp::revision_named(revision);
    if (!spec.pinned) in.fail("revision", "is not a revision of MCP that there is");
  }
  if (const auto problem = server_name_problem(name)) in.fail("", "cannot be used: " + *problem);
  if (enabled) config.servers.push_back(std::move(spec));
}

// Desktop clients let a name be anything.
std::string usable_name(std::string_view name) {
  std::string usable;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    const char next = plain ? c : '-';
    const bool twice = !usable.empty() && next == usable.back() && (next == '_' || next == '-');
    if (!twice) usable += next;
  }
  while (!usable.empty() && (usable.back() == '_' || usable.back() == '-')) usable.pop_back();
  while (!usable.empty() && (usable.front() == '_' || usable.front() == '-')) usable.erase(0, 1);
  return usable.substr(0, kMostServerNameBytes);
}

// What other programs keep in there beside is not our business.
void read_desktop(ConfigReader& in, Config& config) {
  std::set<std::string> taken;
  in.view().each_member([&](std::string_view key, bool escaped, json::View) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    in.table(name, [&](ConfigReader& server) {
      bool disabled = false;
      server.flag("disabled", disabled);
      pool::ServerSpec spec;
      spec.name = usable_name(name);
      read_reach(server, spec);
      if (const auto problem = server_name_problem(spec.name)) server.fail("", "cannot be used: " + *problem);
      if (!taken.insert(spec.name).second)
        server.fail("", "would be called `" + spec.name + "`, which another one is");
      if (!disabled) config.servers.push_back(std::move(spec));
    });
    return true;
  });
}

void read_own(ConfigReader& in, Config& config) {
  in.string("listen", config.listen)
      .strings("allowed_hosts", config.allowed_hosts)
      .strings("allowed_origins", config.allowed_origins)
      .string("tls_certificate", config.tls_certificate)
      .string("tls_key", config.tls_key)
      .string("terminator_manifest", config.terminator_manifest)
      .duration("list_wait", config.list_wait)
      .duration("drain_grace", config.drain_grace)
      .table("limits", [&](ConfigReader& table) { read_limits(table, config.limits); })
      .table("servers",
             [&](ConfigReader& servers) {
               servers.view().each_member([&](std::string_view key, bool escaped, json::View) {
                 const std::string name = escaped ? json::unescape(key) : std::string(key);
                 servers.table(name, [&](ConfigReader& server) { read_server(server, name, config); });
                 return true;
               });
             })
      .finish();
}

Result<std::string> json_of_toml(std::string_view text, const std::string& name) {
  try {
    const toml::table table = toml::parse(text, name);
    std::ostringstream json;
    json << toml::json_formatter{table};
    return json.str();
  } catch (const toml::parse_error& problem) {
    return Error(ErrorKind::validation, name + ":" + std::to_string(problem.source().begin.line) + ": " +
                                            std::string(problem.description()));
  }
}

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double scale = unit == "ms"                  ? 1
                       : unit.empty() || unit == "s" ? 1000
                       : unit == "m"                 ? 60'000
                       : unit == "h"                 ? 3'600'000
                                                     : 0;
  if (problem != std::errc() || !(number >= 0) || scale == 0 || number * scale > 1e12)
    return Error(ErrorKind::validation, "`" + std::string(text) + "` is not a duration");
  return std::chrono::milliseconds(static_cast<std::int64_t>(number * scale));
}

Result<Config> parse_config(std::string_view text, const std::string& name) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  Result<std::string> json = is_json ? Result<std::string>(std::string(text)) : json_of_toml(text, name);
  if (!json) return json.error();
  const Result<json::Raw> parsed = json::Raw::parse(*json);
  if (!parsed) return Error(ErrorKind::validation, name + ": " + parsed.error().message());
  Config config;
  std::optional<Error> problem;
  ConfigReader reader{json::View(*parsed), "", problem};
  if (reader.has("mcpServers")) {
    reader.table("mcpServers", [&](ConfigReader& servers) { read_desktop(servers, config); });
  } else {
    read_own(reader, config);
  }
  if (problem) return Error(ErrorKind::validation, name + ": " + problem->message());
  return config;
}

Result<Config> load_config(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error(ErrorKind::validation, "cannot read `" + path + "`");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return parse_config(text, path);
}

}  // namespace fairlead::gateway
