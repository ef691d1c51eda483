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
  in.not_zero({"spawn", "handshake", "idle", "absolute", "ping"}).finish();
}

void read_restart(ConfigReader& in, RestartPolicy& restart) {
  FieldReader(in, restart);
  in.not_zero({"crash_loop_after"}).finish();
  if (restart.factor < 1) in.fail("factor", "is less than 1");
  if (restart.jitter > 1) in.fail("jitter", "is more than 1");
}

void read_containment(ConfigReader& in, Containment& containment) {
  FieldReader(in, containment);
  FieldReader(in, containment.limits);
  FieldReader(in, containment.files);
  in.only_if(containment.cgroup != Requirement::off, {"memory_max", "pids_max", "cgroup_parent"},
             "needs a `cgroup` that is not off")
      .only_if(containment.landlock != Requirement::off, {"read", "write", "execute", "system_paths"},
               "needs `landlock` to be best_effort or required")
      .finish();
}

// An address is checked with a value in place of each reference.
void check_address(ConfigReader& in, const std::string& url) {
  const Result<std::string> sample =
      expand_references(url, [](const Reference&) { return Result<std::string>("1"); });
  if (!sample) return;  // an error of this server when it is started, as one that cannot be resolved is
  const Result<Uri> address = Uri::parse(*sample);
  if (!address) return in.fail("url", "cannot be used: " + address.error().message());
  const Result<http::Url> parsed = http::Url::parse(*sample);
  if (address->scheme >= Uri::Scheme::http && !parsed)
    in.fail("url", "cannot be used: " + parsed.error().message());
}

constexpr std::size_t kMaxReferences = 1'000;

std::size_t references_in(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = text.find("${"); at != std::string_view::npos; at = text.find("${", at + 2)) ++count;
  return count;
}

// The three ways to reach a server, of which a configuration has one.
struct AnyReach {
  Program program;
  Address address;
  NamedConnector connector;

  explicit AnyReach(ConfigReader& in) {
    FieldReader(in, program);
    in.table("containment", [this](ConfigReader& table) { read_containment(table, program.containment); });
    FieldReader(in, address);
    in.ignore("type");  // of desktop clients: `command` or `url` say the same
    FieldReader(in, connector);
  }

  std::size_t given() const {
    return std::size_t{!program.command.empty()} + std::size_t{!address.url.empty()} +
           std::size_t{!connector.name.empty()};
  }

  std::size_t references() const {
    std::size_t count = references_in(address.url);
    for (const std::string& argument : program.args) count += references_in(argument);
    for (const auto& [name, value] : program.env) count += references_in(value);
    for (const auto& [name, value] : address.headers) count += references_in(value);
    return count;
  }
};

void choose_reach(ConfigReader& in, AnyReach any, ServerSpec& spec) {
  if (any.references() > kMaxReferences)
    return in.fail("", "has more than max_references (" + std::to_string(kMaxReferences) + ") references");
  if (any.given() == 0 && spec.enabled) return in.fail("", "needs a `command` or a `url`");
  if (any.given() > 1 && spec.enabled)
    return in.fail("", "has more than one of `command`, `url` and `connector`");
  if (!any.address.url.empty()) {
    if (spec.enabled) check_address(in, any.address.url);
    spec.reach = std::move(any.address);
  } else if (!any.connector.name.empty()) {
    spec.reach = std::move(any.connector);
  } else {
    spec.reach = std::move(any.program);
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
  spec.pinned = mcp::revision_named(revision);
  if (!spec.pinned) in.fail("revision", "is none of " + known_revisions());
}

void write_table(json::Writer& out, std::string_view key, const auto& value) {
  if (value == std::remove_cvref_t<decltype(value)>()) return;
  out.key(key).begin_object();
  FieldWriter(out, value);
  out.end_object();
}

void write_reach(json::Writer& out, const Program& program) {
  FieldWriter(out, program);
  const Containment& containment = program.containment;
  if (containment == Containment()) return;
  out.key("containment").begin_object();
  FieldWriter(out, containment);
  FieldWriter(out, containment.limits);
  FieldWriter(out, containment.files);
  out.end_object();
}

void write_reach(json::Writer& out, const auto& reach) {
  FieldWriter(out, reach);
}

}  // namespace

void read_server_spec(ConfigReader& in, ServerSpec& spec) {
  AnyReach any(in);
  FieldReader(in, spec);
  read_revision(in, spec);
  in.table("clocks", [&](ConfigReader& table) { read_clocks(table, spec.clocks); })
      .table("restart", [&](ConfigReader& table) { read_restart(table, spec.restart); })
      .not_zero({"max_calls"})
      .only_if(any.address.url.empty(), {"args", "env", "inherit_env", "cwd", "stderr", "containment"},
               "is for a server that is a `command`")
      .only_if(any.program.command.empty(), {"headers"}, "is for a server that has a `url`")
      .finish();
  choose_reach(in, std::move(any), spec);
}

void read_desktop_server(ConfigReader& in, ServerSpec& spec) {
  AnyReach any(in);
  in.string("serverUrl", any.address.url).string("httpUrl", any.address.url);
  choose_reach(in, std::move(any), spec);
}

json::Raw to_json(const ServerSpec& spec) {
  json::Writer out;
  out.begin_object();
  std::visit([&](const auto& reach) { write_reach(out, reach); }, spec.reach);
  FieldWriter(out, spec);
  if (spec.pinned) out.key("revision").string(to_string(*spec.pinned));
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
