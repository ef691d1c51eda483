// TOML is turned into JSON first, so that both kinds of file are read by the same code.
#include "fairlead/gateway/config.hpp"

#include <algorithm>
#include <charconv>

#include "fairlead/connection/uri.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/transport/connect.hpp"
#include "gateway/config_reader.hpp"
#include "gateway/config_text.hpp"
#include "gateway/names.hpp"
#include "http/url.hpp"
#include "process/secrets.hpp"

namespace fairlead::gateway {

namespace {

// `text` with each `${NAME}` and `${file:/path}` replaced by `value_of(reference)`.
Result<std::string> with_references(
    const std::string& text, const std::function<Result<std::string>(const std::string& name)>& value_of) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.compare(at, 2, "${") == 0 ? text.find('}', at) : std::string::npos;
    if (end == std::string::npos) {
      out += text[at++];
      continue;
    }
    const Result<std::string> value = value_of(text.substr(at + 2, end - at - 2));
    if (!value) return value;
    out += *value;
    at = end + 1;
  }
  return out;
}

Error unresolved(const std::string& key, const std::string& why) {
  return with_failure_code(Error(ErrorKind::connection_failed, "`" + key + "` cannot be resolved: " + why),
                           failure::secret_unavailable);
}

// Resolved when the server is connected to, so that only this server fails if a reference cannot be.
Result<std::string> expanded(const std::string& key, const std::string& text) {
  return with_references(text, [&](const std::string& name) -> Result<std::string> {
    process::Redactor unused;
    Result<std::string> value = process::resolve_secret(name, "${" + name + "}", unused);
    if (value) return value;
    return unresolved(key, name.starts_with("file:") ? "the file " + name.substr(5) + " cannot be read"
                                                     : "the environment variable " + name + " is not set");
  });
}

// What a server that is an address is connected to with; values may have references in them.
struct Address {
  std::string url;
  std::map<std::string, std::string> headers;
};

Task<ConnectResult> connect_with(Loop& loop, std::shared_ptr<const Address> address,
                                 fairlead::ConnectOptions options) {
  transport::ConnectOptions all;
  static_cast<fairlead::ConnectOptions&>(all) = std::move(options);
  all.max_response_bytes =
      all.limits.max_frame_bytes;  // a larger one would hold the loop while it is scanned
  Result<std::string> url = expanded("url", address->url);
  if (!url) co_return url.error();
  // The error of the URL's parser would show the query.
  if (*url != address->url && !http::Url::parse(*url))
    co_return unresolved("url", "with the values of its references it is not a URL");
  for (const auto& [name, value] : address->headers) {
    Result<std::string> filled = expanded("headers." + name, value);
    if (!filled) co_return filled.error();
    all.headers.add(name, std::move(*filled));
  }
  Task<ConnectResult> connecting = transport::connect(loop, std::move(*url), std::move(all));
  ConnectResult connected = co_await connecting;
  co_return connected;
}

void read_limits(ConfigReader& in, Config& config) {
  pool::PoolLimits& limits = config.limits;
  std::optional<std::uint64_t> frame;
  std::optional<std::uint64_t> body;
  in.number("max_stdio_processes", limits.max_stdio_processes)
      .number("max_start_queue", limits.max_start_queue)
      .number("max_concurrent_starts", limits.max_concurrent_starts)
      .number("max_calls", limits.max_calls)
      .number("max_waiting_calls", limits.max_waiting_calls)
      .duration("evict_after", limits.evict_after)
      .bytes("max_frame_bytes", frame)
      .bytes("max_body_bytes", body)
      .number("max_noise_frames", config.max_noise_frames)
      .not_zero(
          {"max_stdio_processes", "max_concurrent_starts", "max_calls", "max_frame_bytes", "max_body_bytes"})
      .finish();
  config.max_frame_bytes = frame.value_or(config.max_frame_bytes);
  config.max_body_bytes = body.value_or(config.max_body_bytes);
  for (const auto& [key, bytes] : {std::pair("max_frame_bytes", config.max_frame_bytes),
                                   std::pair("max_body_bytes", config.max_body_bytes)}) {
    if (bytes > Limits::kMaxFrameCeiling) in.fail(key, "is more than 2G");
  }
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
      .not_zero({"spawn", "handshake", "idle", "absolute", "ping"})
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
      .number("tool_crash_after", restart.tool_crash_after)
      .duration("tool_crash_pause", restart.tool_crash_pause)
      .not_zero({"crash_loop_after"})
      .finish();
  if (restart.factor < 1) in.fail("factor", "is less than 1");
  if (restart.jitter > 1) in.fail("jitter", "is more than 1");
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
      .only_if(containment.cgroup != Requirement::off, {"memory_max", "pids_max", "cgroup_parent"},
               "needs a `cgroup` that is not off")
      .only_if(containment.landlock != Requirement::off, {"read", "write", "execute", "system_paths"},
               "needs `landlock` to be best_effort or required")
      .finish();
}

// How it is reached: a program or an address.
struct Reach {
  ProcessSpec process;
  std::string url;
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> headers;
};

Reach read_reach(ConfigReader& in) {
  Reach reach;
  in.string("command", reach.process.command)
      .strings("args", reach.process.args)
      .map("env", reach.env)
      .string("cwd", reach.process.cwd)
      .string("url", reach.url)
      .map("headers", reach.headers)
      .ignore("type");  // what clients call it; command or url say it too
  if (in.has("inherit_env")) in.strings("inherit_env", reach.process.inherit_only.emplace());
  in.table("containment", [&](ConfigReader& table) { read_containment(table, reach.process.containment); });
  return reach;
}

void reach_program(Reach reach, pool::ServerSpec& spec) {
  ProcessSpec& process = reach.process;
  for (auto& [name, value] : reach.env) {
    const bool secret = value.find("${") != std::string::npos || value.starts_with("file:");
    (secret ? process.secret_env : process.env)[name] = std::move(value);
  }
  process.name = spec.name;
  process.stderr_mode = StderrMode::log;
  spec.reach = std::move(process);
}

void reach_address(ConfigReader& in, const Reach& reach, pool::ServerSpec& spec) {
  // A query is never shown; the rest is, in errors and in the log.
  if (reach.url.find("${") < reach.url.find('?'))
    return in.fail("url", "can have ${NAME} in its query only, where it is never shown");
  const Result<std::string> sample =
      with_references(reach.url, [](const std::string&) { return std::string("x"); });
  const Result<Uri> address = Uri::parse(*sample);
  const Result<http::Url> url = http::Url::parse(*sample);
  if (!address) return in.fail("url", "cannot be used: " + address.error().message());
  if (address->scheme >= Uri::Scheme::http && !url)
    return in.fail("url", "cannot be used: " + url.error().message());
  const auto given = std::make_shared<const Address>(Address{reach.url, reach.headers});
  spec.reach = Connector([given](Loop& loop, fairlead::ConnectOptions options) {
    return connect_with(loop, given, std::move(options));
  });
}

void settle(ConfigReader& in, Reach reach, pool::ServerSpec spec, Config& config) {
  if (const auto problem = server_name_problem(spec.name)) in.fail("", "cannot be used: " + *problem);
  if (reach.process.command.empty() == reach.url.empty())
    return in.fail("", "needs either a command or a url");
  if (reach.url.empty()) {
    reach_program(std::move(reach), spec);
  } else {
    reach_address(in, reach, spec);
  }
  config.definitions[spec.name] = in.view().text();
  config.servers.push_back(std::move(spec));
}

void read_server(ConfigReader& in, const std::string& name, Config& config) {
  pool::ServerSpec spec;
  spec.name = name;
  bool enabled = true;
  std::string revision;
  Reach reach = read_reach(in);
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
      .not_zero({"max_calls"})
      .only_if(reach.url.empty(), {"args", "env", "inherit_env", "cwd", "containment"},
               "is for a server that is a `command`")
      .only_if(reach.process.command.empty(), {"headers"}, "is for a server that has a `url`")
      .finish();
  if (!revision.empty()) {
    spec.pinned = mcp::revision_named(revision);
    if (!spec.pinned) in.fail("revision", "is not a revision of MCP that there is");
  }
  if (enabled) settle(in, std::move(reach), std::move(spec), config);
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
  while (!usable.empty() && (usable.front() == '_' || usable.front() == '-')) usable.erase(0, 1);
  usable.resize(std::min(usable.size(), kMostServerNameBytes));
  while (!usable.empty() && (usable.back() == '_' || usable.back() == '-')) usable.pop_back();
  return usable.empty() ? "server" : usable;
}

// What other programs keep in there beside is not our business.
void read_desktop(ConfigReader& in, Config& config) {
  std::set<std::string> taken;
  in.view().each_member([&](std::string_view key, bool escaped, json::View) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    in.table(name, [&](ConfigReader& server) {
      bool disabled = false;
      server.flag("disabled", disabled);
      if (disabled) return;
      pool::ServerSpec spec;
      spec.name = usable_name(name);
      Reach reach = read_reach(server);
      server.string("serverUrl", reach.url).string("httpUrl", reach.url);  // the same by other names
      if (!taken.insert(spec.name).second)
        server.fail("", "would be called `" + spec.name + "`, which another one is");
      settle(server, std::move(reach), std::move(spec), config);
    });
    return true;
  });
}

void read_socket_mode(ConfigReader& in, Config& config) {
  std::string text;
  in.string("socket_mode", text);
  if (text.empty()) return;
  const Result<unsigned> mode = parse_file_mode(text);
  if (mode) {
    config.socket_mode = *mode;
  } else {
    in.fail("socket_mode", "is not a file mode such as \"0660\"");
  }
}

void read_own(ConfigReader& in, Config& config) {
  read_socket_mode(in, config);
  in.string("listen", config.listen)
      .strings("allowed_hosts", config.allowed_hosts)
      .strings("allowed_origins", config.allowed_origins)
      .string("tls_certificate", config.tls_certificate)
      .string("tls_key", config.tls_key)
      .string("terminator_manifest", config.terminator_manifest)
      .duration("list_wait", config.list_wait)
      .duration("list_retry", config.list_retry)
      .duration("drain_grace", config.drain_grace)
      .table("limits", [&](ConfigReader& table) { read_limits(table, config); })
      .table("servers",
             [&](ConfigReader& servers) {
               servers.view().each_member([&](std::string_view key, bool escaped, json::View) {
                 const std::string name = escaped ? json::unescape(key) : std::string(key);
                 servers.table(name, [&](ConfigReader& server) { read_server(server, name, config); });
                 return true;
               });
             })
      .finish();
  if (config.tls_certificate.empty() != config.tls_key.empty())
    in.fail(config.tls_key.empty() ? "tls_certificate" : "tls_key",
            config.tls_key.empty() ? "needs a `tls_key`" : "needs a `tls_certificate`");
}

}  // namespace

Result<unsigned> parse_file_mode(std::string_view text) {
  unsigned mode = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (problem != std::errc() || end != text.data() + text.size() || mode > 0777)
    return Error(ErrorKind::validation, "`" + std::string(text) + "` is not a file mode such as 0660");
  return mode;
}

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
  const Result<ConfigText> read = config_text(text, name);
  if (!read) return read.error();
  Config config;
  std::optional<Error> problem;
  ConfigReader reader{json::View(read->json), "", problem};
  if (reader.has("mcpServers")) {
    reader.table("mcpServers", [&](ConfigReader& servers) { read_desktop(servers, config); });
  } else if (read->of_a_client && !reader.has("servers")) {
    reader.fail("", "has no `mcpServers`");
  } else {
    if (read->of_a_client) reader.ignore("inputs");  // what an editor asks its user for
    read_own(reader, config);
  }
  if (problem) return Error(ErrorKind::validation, name + ": " + problem->message());
  return config;
}

Result<Config> load_config(const std::string& path) {
  const Result<std::string> text = read_config_file(path);
  if (!text) return text.error();
  return parse_config(*text, path);
}

}  // namespace fairlead::gateway
