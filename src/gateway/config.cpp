// Reads Config from JSON. TOML is converted to JSON first (config_text.hpp), so that the same code reads both
// formats.
#include "fairlead/gateway/config.hpp"

#include <algorithm>
#include <charconv>

#include "base/suggestion.hpp"
#include "gateway/client_env_file.hpp"
#include "gateway/config_check.hpp"
#include "gateway/config_text.hpp"
#include "gateway/names.hpp"
#include "json/config_reader.hpp"
#include "pool/server_spec_reader.hpp"
#include "registry/json.hpp"

namespace fairlead::gateway {

namespace {

using json::ConfigReader;

constexpr std::size_t kMaxWarnings = 100;  // each is located by reading the file again

void read_limits(ConfigReader& in, Config& config) {
  pool::PoolLimits& limits = config.limits;
  std::optional<std::uint64_t> frame;
  std::optional<std::uint64_t> body;
  std::optional<std::uint64_t> client_buffer;
  std::optional<std::uint64_t> buffer;
  in.number("max_stdio_processes", limits.max_stdio_processes)
      .number("max_start_queue", limits.max_start_queue)
      .number("max_concurrent_starts", limits.max_concurrent_starts)
      .number("max_calls", limits.max_calls)
      .number("max_waiting_calls", limits.max_waiting_calls)
      .number("max_client_waiting_calls", limits.max_client_waiting_calls)
      .duration("evict_after", limits.evict_after)
      .bytes("max_frame_bytes", frame)
      .bytes("max_body_bytes", body)
      .bytes("max_client_buffer_bytes", client_buffer)
      .bytes("max_buffer_bytes", buffer)
      .number("max_noise_frames", config.max_noise_frames)
      .require_nonzero({"max_stdio_processes", "max_concurrent_starts", "max_calls", "max_frame_bytes",
                        "max_body_bytes", "max_client_buffer_bytes", "max_buffer_bytes"})
      .finish();
  config.max_frame_bytes = frame.value_or(config.max_frame_bytes);
  config.max_body_bytes = body.value_or(config.max_body_bytes);
  config.buffers.max_client_buffer_bytes = client_buffer.value_or(config.buffers.max_client_buffer_bytes);
  config.buffers.max_buffer_bytes = buffer.value_or(config.buffers.max_buffer_bytes);
  for (const auto& [key, bytes] : {std::pair("max_frame_bytes", config.max_frame_bytes),
                                   std::pair("max_body_bytes", config.max_body_bytes)}) {
    if (bytes > Limits::kMaxFrameCeiling) in.fail(key, "is more than 2G");
  }
}

void add_server(ConfigReader& in, pool::ServerSpec spec, Config& config) {
  if (!spec.enabled) return;
  if (const auto problem = server_name_problem(spec.name)) in.fail("", "cannot be used: " + *problem);
  if (const auto problem = sharing_problem(spec, config.authenticated)) in.fail("sharing", *problem);
  if (config.servers.size() >= kMaxServers)
    in.fail("", "exceeds the limit max_servers (" + std::to_string(kMaxServers) + ")");
  config.servers.push_back(std::move(spec));
}

// Reads the variables of `envFile`, a key of the files of editors.
std::map<std::string, std::string> read_env_file_key(ConfigReader& in, const std::string& config_path) {
  std::string file;
  in.string("envFile", file);
  if (file.empty()) return {};
  Result<std::map<std::string, std::string>> variables = read_client_env_file(file, config_path);
  if (variables) return std::move(*variables);
  in.fail("envFile", variables.error().message());
  return {};
}

void set_file_variables(pool::ServerSpec& spec, std::map<std::string, std::string> variables) {
  if (auto* const program = std::get_if<pool::Program>(&spec.transport))
    program->file_env = std::move(variables);
}

// `editor_file` is the path of the file if an editor wrote it, otherwise empty.
void read_server(ConfigReader& in, const std::string& name, const std::string& editor_file, Config& config) {
  pool::ServerSpec spec;
  spec.name = name;
  std::map<std::string, std::string> variables;
  if (!editor_file.empty()) {
    variables = read_env_file_key(in, editor_file);
    for (const std::string_view key : {"dev", "gallery", "sandboxEnabled", "version"}) in.ignore(key);
  }
  pool::read_server_spec(in, spec);
  set_file_variables(spec, std::move(variables));
  add_server(in, std::move(spec), config);
}

// Returns a valid server name similar to `name`. Desktop clients allow any name; the characters that the
// gateway does not allow are replaced by `-`.
std::string sanitized_name(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    const char next = plain ? c : '-';
    const bool repeated = !result.empty() && next == result.back() && (next == '_' || next == '-');
    if (!repeated) result += next;
  }
  while (!result.empty() && (result.front() == '_' || result.front() == '-')) result.erase(0, 1);
  result.resize(std::min(result.size(), kMaxServerNameBytes));
  while (!result.empty() && (result.back() == '_' || result.back() == '-')) result.pop_back();
  return result.empty() ? "server" : result;
}

struct ConfigWarning {
  std::string message;
  std::string pointer;  // of the key in the file
};

// Reads the servers in `mcpServers`. Other keys of the file belong to other programs and are ignored.
void read_desktop_servers(ConfigReader& in, const std::string& path, Config& config,
                          std::vector<ConfigWarning>& warnings) {
  std::set<std::string> names;
  in.each_table([&](const std::string& name, ConfigReader& server) {
    bool disabled = false;
    bool enabled = true;
    server.flag("disabled", disabled).flag("enabled", enabled);
    if (disabled || !enabled) return;
    pool::ServerSpec spec;
    spec.name = sanitized_name(name);
    std::map<std::string, std::string> variables = read_env_file_key(server, path);
    pool::read_desktop_server(server, spec);
    set_file_variables(spec, std::move(variables));
    server.each_unknown([&](std::string message, std::string pointer) {
      if (warnings.size() < kMaxWarnings) warnings.push_back({std::move(message), std::move(pointer)});
    });
    if (!names.insert(spec.name).second)
      server.fail("", "is renamed to `" + spec.name + "`, which is the name of another server");
    add_server(server, std::move(spec), config);
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

void read_native_config(ConfigReader& in, const std::string& editor_file, Config& config) {
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
      .choice("failure_details", config.failure_details,
              {{"auto", FailureDetails::automatic},
               {"everyone", FailureDetails::everyone},
               {"administrators", FailureDetails::administrators}})
      .table("limits", [&](ConfigReader& table) { read_limits(table, config); })
      .table("servers",
             [&](ConfigReader& servers) {
               servers.each_table([&](const std::string& name, ConfigReader& server) {
                 read_server(server, name, editor_file, config);
               });
             })
      .finish();
  if (config.tls_certificate.empty() != config.tls_key.empty())
    in.fail(config.tls_key.empty() ? "tls_certificate" : "tls_key",
            config.tls_key.empty() ? "needs a `tls_key`" : "needs a `tls_certificate`");
}

// Returns " (`KEY` is not `EXPECTED`)" if a key of the file is similar to the expected one.
std::string misspelt_key(json::View file, const std::string& expected) {
  std::string found;
  const std::vector<std::string> known = {expected};
  file.each_member([&](std::string_view key, bool, json::View) {
    if (!closest_word(key, known).empty()) found = key;
    return found.empty();
  });
  return found.empty() ? found : " (`" + found + "` is misspelt)";
}

Error located_error(const ConfigText& text, const std::string& name, const Error& problem) {
  const std::string& pointer = problem.detail().pointer;
  return Error(ErrorKind::validation, text.location(name, pointer) + problem.message());
}

// Decodes ~0 and ~1 of a JSON pointer.
std::string unescaped_reference(std::string_view token) {
  std::string key;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '~' && i + 1 < token.size();
    key += !escape ? token[i] : token[++i] == '1' ? '/' : '~';
  }
  return key;
}

// Reads the file from its JSON. Returns the first problem.
std::optional<Error> read_config_json(const ConfigText& text, const json::Raw& json, const std::string& name,
                                      Config& config, std::vector<ConfigWarning>& warnings) {
  std::optional<Error> problem;
  ConfigReader reader{json::View(json), "", problem};
  if (reader.has("mcpServers")) {
    reader.table("mcpServers",
                 [&](ConfigReader& servers) { read_desktop_servers(servers, name, config, warnings); });
  } else if (text.is_client_json && !reader.has("servers")) {
    reader.fail("", "has no `mcpServers`" + misspelt_key(json::View(json), "mcpServers"));
  } else {
    // `inputs` are values that an editor requests from its user.
    if (text.is_client_json) reader.ignore("inputs").ignore("sandbox");
    read_native_config(reader, text.is_client_json ? name : std::string(), config);
  }
  return problem;
}

// Returns a merge patch that removes the member that `pointer` names, or the list with the entry that it
// names; nullopt if there is none.
std::optional<json::Raw> removal_of(json::View document, std::string_view pointer) {
  std::string open;
  std::string close;
  while (document.is(json::Type::object) && pointer.starts_with('/')) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string key = unescaped_reference(pointer.substr(1, end - 1));
    document = document[key];
    open += "{" + std::string(json::string(key).text()) + ":";
    close += "}";
    pointer.remove_prefix(end);
  }
  if (open.empty() || document.absent()) return std::nullopt;
  const Result<json::Raw> patch = json::Raw::parse(open + "null" + close);
  if (!patch) return std::nullopt;
  return *patch;
}

}  // namespace

Result<unsigned> parse_file_mode(std::string_view text) {
  unsigned mode = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (problem != std::errc() || end != text.data() + text.size() || mode > 0777)
    return Error(ErrorKind::validation, "`" + std::string(text) + "` is not a file mode such as 0660");
  return mode;
}

std::optional<std::string> sharing_problem(const pool::ServerSpec& spec, bool authenticated) {
  if (spec.sharing != pool::Sharing::per_user || authenticated) return std::nullopt;
  return "is per_user, but clients are not authenticated, so all of them would be one user; use per_session "
         "or shared";
}

Result<Config> parse_config(std::string_view text, const std::string& name, bool authenticated) {
  const Result<ConfigText> parsed = parse_config_text(text, name);
  if (!parsed) return parsed.error();
  Config config;
  config.authenticated = authenticated;
  std::vector<ConfigWarning> warnings;
  const std::optional<Error> problem = read_config_json(*parsed, parsed->json, name, config, warnings);
  if (problem) return located_error(*parsed, name, *problem);
  for (const ConfigWarning& warning : warnings)
    config.warnings.push_back(parsed->location(name, warning.pointer) + warning.message);
  return config;
}

// The reader stops at the first problem. So its member is removed, and the rest is read again. That an object
// lacks a member that was removed is no other problem.
std::vector<Error> config_problems(std::string_view text, const std::string& name) {
  const Result<ConfigText> parsed = parse_config_text(text, name);
  if (!parsed) return {parsed.error()};
  std::vector<Error> problems;
  std::vector<std::string> pointers;
  json::Raw json = parsed->json;
  while (problems.size() < kMaxConfigProblems) {
    Config config;
    std::vector<ConfigWarning> warnings;
    const std::optional<Error> problem = read_config_json(*parsed, json, name, config, warnings);
    if (!problem) break;
    const std::string pointer = problem->detail().pointer;
    const bool follows = std::ranges::any_of(
        pointers, [&](const std::string& earlier) { return earlier.starts_with(pointer + "/"); });
    if (!follows) problems.push_back(located_error(*parsed, name, *problem));
    pointers.push_back(pointer);
    const std::optional<json::Raw> patch = removal_of(json::View(json), pointer);
    if (!patch) break;
    const Result<json::Raw> rest = registry::merge_patch(json::View(json), json::View(*patch));
    if (!rest) break;
    json = *rest;
  }
  return problems;
}

Result<std::vector<Error>> config_file_problems(const std::string& path) {
  const Result<std::string> text = read_config_file(path);
  if (!text) return text.error();
  return config_problems(*text, path);
}

Result<Config> load_config(const std::string& path, bool authenticated) {
  const Result<std::string> text = read_config_file(path);
  if (!text) return text.error();
  return parse_config(*text, path, authenticated);
}

}  // namespace fairlead::gateway
