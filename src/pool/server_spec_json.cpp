#include "fairlead/pool/server_spec_json.hpp"

#include <array>

#include "base/references.hpp"
#include "fairlead/connection/uri.hpp"
#include "http/url.hpp"
#include "pool/server_spec_reader.hpp"
#include "pool/spec_fields.hpp"

namespace fairlead::pool {

namespace {

using json::ConfigReader;

void read_clocks(ConfigReader& in, Clocks& clocks) {
  FieldReader(in, clocks);
  in.require_nonzero({"spawn", "handshake", "idle", "absolute", "ping"}).finish();
}

void read_restart(ConfigReader& in, RestartPolicy& restart) {
  FieldReader(in, restart);
  in.require_nonzero({"crash_loop_after"}).finish();
  if (restart.factor < 1) in.fail("factor", "is less than 1");
  if (restart.jitter > 1) in.fail("jitter", "is more than 1");
}

void read_containment(ConfigReader& in, Containment& containment) {
  FieldReader(in, containment);
  FieldReader(in, containment.limits);
  FieldReader(in, containment.files);
  in.allow_only_if(containment.cgroup != Requirement::off, {"memory_max", "pids_max", "cgroup_parent"},
                   "needs a `cgroup` that is not off")
      .allow_only_if(containment.landlock != Requirement::off, {"read", "write", "execute", "system_paths"},
                     "needs `landlock` to be best_effort or required")
      .finish();
}

// Checks an address with each reference replaced by a sample value.
void check_address(ConfigReader& in, const std::string& url) {
  const Result<std::string> sample =
      expand_references(url, [](const Reference&) { return Result<std::string>("1"); });
  // A malformed reference is reported when the server is started, like one that cannot be resolved.
  if (!sample) return;
  const Result<Uri> address = Uri::parse(*sample);
  if (!address) return in.fail("url", "cannot be used: " + address.error().message());
  const Result<http::Url> parsed = http::Url::parse(*sample);
  if (address->scheme >= Uri::Scheme::http && !parsed)
    in.fail("url", "cannot be used: " + parsed.error().message());
}

constexpr std::size_t kMaxReferences = 1'000;

std::size_t count_references(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find("${"); at != std::string_view::npos; at = text.find("${", at + 2)) ++count;
  return count;
}

// The keys of all three transports. A valid configuration has the keys of one.
struct TransportFields {
  Program program;
  Address address;
  ConnectorName connector;

  explicit TransportFields(ConfigReader& in) {
    FieldReader(in, program);
    in.table("containment", [this](ConfigReader& table) { read_containment(table, program.containment); });
    FieldReader(in, address);
    in.ignore("type");  // used by desktop clients; implied by `command` or `url`
    FieldReader(in, connector);
  }

  std::size_t transport_count() const {
    return std::size_t{!program.command.empty()} + std::size_t{!address.url.empty()} +
           std::size_t{!connector.name.empty()};
  }

  std::size_t reference_count() const {
    std::size_t count = count_references(address.url);
    for (const std::string& argument : program.args) count += count_references(argument);
    for (const auto& [name, value] : program.env) count += count_references(value);
    for (const auto& [name, value] : address.headers) count += count_references(value);
    return count;
  }
};

// Keys of the files of clients that concern the client only, or that Fairlead does not support.
constexpr std::string_view kClientKeys[] = {"alwaysAllow",
                                            "alwaysLoad",
                                            "auth",
                                            "authProviderType",
                                            "autoApprove",
                                            "auto_approve",
                                            "available_tools",
                                            "bearer_token_env_var",
                                            "bundled",
                                            "connectTimeout",
                                            "connect_timeout",
                                            "connectionTimeout",
                                            "default_tools_approval_mode",
                                            "description",
                                            "dev",
                                            "disabled",
                                            "disabledTools",
                                            "disabled_tools",
                                            "display_name",
                                            "enabled",
                                            "enabledTools",
                                            "enabled_tools",
                                            "envFile",
                                            "env_http_headers",
                                            "env_keys",
                                            "env_vars",
                                            "environment_id",
                                            "excludeTools",
                                            "gallery",
                                            "headersHelper",
                                            "http_headers",
                                            "http_headers_helper",
                                            "icon",
                                            "id",
                                            "includeTools",
                                            "initTimeout",
                                            "name",
                                            "oauth",
                                            "oauthScopes",
                                            "oauth_resource",
                                            "omit_tools_from",
                                            "registryBaseUrl",
                                            "requestOptions",
                                            "required",
                                            "sandbox",
                                            "sandboxEnabled",
                                            "scopes",
                                            "startup_timeout_ms",
                                            "startup_timeout_sec",
                                            "supports_parallel_tool_calls",
                                            "tags",
                                            "timeout",
                                            "title",
                                            "tool_timeout_sec",
                                            "tools",
                                            "transport",
                                            "transportType",
                                            "trust",
                                            "trusted",
                                            "version",
                                            "watch"};

void set_transport(ConfigReader& in, TransportFields fields, ServerSpec& spec) {
  if (fields.reference_count() > kMaxReferences)
    return in.fail("", "has more than max_references (" + std::to_string(kMaxReferences) + ") references");
  if (fields.transport_count() == 0 && spec.enabled) return in.fail("", "needs a `command` or a `url`");
  if (fields.transport_count() > 1 && spec.enabled)
    return in.fail("", "has more than one of `command`, `url` and `connector`");
  if (!fields.address.url.empty()) {
    if (spec.enabled) check_address(in, fields.address.url);
    spec.transport = std::move(fields.address);
  } else if (!fields.connector.name.empty()) {
    spec.transport = std::move(fields.connector);
  } else {
    spec.transport = std::move(fields.program);
  }
}

std::string known_revisions() {
  std::string names;
  for (const mcp::Revision revision : mcp::kRevisions)
    names += (names.empty() ? "" : ", ") + std::string(to_string(revision));
  return names;
}

void read_revision(ConfigReader& in, ServerSpec& spec) {
  std::string revision;
  in.string("revision", revision);
  if (revision.empty()) return;
  spec.pinned_revision = mcp::revision_named(revision);
  if (!spec.pinned_revision) in.fail("revision", "is none of " + known_revisions());
}

void write_table(json::Writer& out, std::string_view key, const auto& value) {
  if (value == std::remove_cvref_t<decltype(value)>()) return;
  out.key(key).begin_object();
  FieldWriter(out, value);
  out.end_object();
}

void write_transport(json::Writer& out, const Program& program) {
  FieldWriter(out, program);
  const Containment& containment = program.containment;
  if (containment == Containment()) return;
  out.key("containment").begin_object();
  FieldWriter(out, containment);
  FieldWriter(out, containment.limits);
  FieldWriter(out, containment.files);
  out.end_object();
}

void write_transport(json::Writer& out, const auto& transport) {
  FieldWriter(out, transport);
}

}  // namespace

void read_server_spec(ConfigReader& in, ServerSpec& spec) {
  TransportFields fields(in);
  FieldReader(in, spec);
  read_revision(in, spec);
  in.table("clocks", [&](ConfigReader& table) { read_clocks(table, spec.clocks); })
      .table("restart", [&](ConfigReader& table) { read_restart(table, spec.restart); })
      .require_nonzero({"max_calls"})
      .allow_only_if(fields.address.url.empty(),
                     {"args", "env", "inherit_env", "cwd", "stderr", "containment"},
                     "is allowed only for a server with a `command`")
      .allow_only_if(fields.program.command.empty(), {"headers"}, "is allowed only for a server with a `url`")
      .finish();
  set_transport(in, std::move(fields), spec);
}

void read_desktop_server(ConfigReader& in, ServerSpec& spec) {
  TransportFields fields(in);
  in.string("serverUrl", fields.address.url).string("httpUrl", fields.address.url);
  for (const std::string_view key : kClientKeys) in.ignore(key);
  if (fields.transport_count() == 0) {
    std::string misspelt;
    in.each_unknown([&](const std::string& message, const std::string&) {
      if (misspelt.empty()) misspelt = message;
    });
    if (!misspelt.empty()) return in.fail("", "needs a `command` or a `url`: " + misspelt);
  }
  set_transport(in, std::move(fields), spec);
}

json::Raw to_json(const ServerSpec& spec) {
  json::Writer out;
  out.begin_object();
  std::visit([&](const auto& transport) { write_transport(out, transport); }, spec.transport);
  FieldWriter(out, spec);
  if (spec.pinned_revision) out.key("revision").string(to_string(*spec.pinned_revision));
  write_table(out, "clocks", spec.clocks);
  write_table(out, "restart", spec.restart);
  out.end_object();
  return std::move(out).finish();
}

Result<ServerSpec> server_spec_from_json(std::string name, json::View object) {
  ServerSpec spec;
  spec.name = std::move(name);
  std::optional<Error> problem;
  ConfigReader in(object, "", problem);
  read_server_spec(in, spec);
  if (problem) return *problem;
  return spec;
}

}  // namespace fairlead::pool
