// The JSON form of servers.
#include <algorithm>
#include <array>

#include "base/contains.hpp"
#include "base/lower_case.hpp"
#include "fairlead/pool/server_spec_json.hpp"
#include "http/url.hpp"
#include "pool/server_name.hpp"
#include "pool/server_spec_reader.hpp"
#include "registry/json.hpp"
#include "registry/published.hpp"
#include "registry/row_reader.hpp"

namespace fairlead::registry {

namespace {

constexpr std::string_view kRedacted = "***";
// Paths below /mcp that are not servers.
constexpr std::array<std::string_view, 2> kReservedNames = {"servers", "e"};

std::optional<std::string> name_problem(std::string_view name) {
  if (contains(kReservedNames, name)) return "is a reserved name";
  if (const std::optional<std::string> problem = pool::server_name_problem(name))
    return "cannot be used: " + *problem;
  return std::nullopt;
}

bool is_header_name(std::string_view name) {
  constexpr std::string_view kSymbols = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kSymbols.contains(c);
  });
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

void check_program(json::ConfigReader& in, const pool::Program& program) {
  for (const auto& [name, value] : program.env) {
    if (name.empty() || name.contains('=')) in.fail_entry("env", name, "is not the name of a variable");
  }
}

void check_address(json::ConfigReader& in, const pool::Address& address) {
  constexpr std::array<std::string_view, 4> kSchemes = {"http://", "https://", "ws://", "wss://"};
  const std::string scheme =
      lower_case(address.url.substr(0, std::min(address.url.find("://"), address.url.size())));
  if (!contains(kSchemes, scheme + "://")) in.fail("url", "has a scheme other than http, https, ws and wss");
  for (const auto& [name, value] : address.headers) {
    if (!is_header_name(name)) in.fail_entry("headers", name, "is not the name of a header");
    if (has_control_character(value)) in.fail_entry("headers", name, "has control characters");
  }
}

// Reads `config`. The keys are those of a server in a file, except those that are members of the row.
void read_config(json::ConfigReader& in, std::string& transport, pool::ServerSpec& spec) {
  in.string("transport", transport);
  if (in.has("enabled")) in.fail("enabled", "is a member of the server, not of its `config`");
  if (in.has("connector")) in.fail("connector", "is available only to programs that embed the gateway");
  require_texts(in, "env");
  require_texts(in, "headers");
  pool::read_server_spec(in, spec);
  if (const auto* program = std::get_if<pool::Program>(&spec.transport)) check_program(in, *program);
  if (const auto* address = std::get_if<pool::Address>(&spec.transport)) check_address(in, *address);
}

bool is_transport(std::string_view text) {
  return text == "stdio" || text == "http";
}

void check_transport(RowReader& row, const Server& server, const std::string& in_config) {
  std::string transport;
  json::ConfigReader& in = row.in();
  in.string("transport", transport);
  const bool is_program = std::holds_alternative<pool::Program>(server.spec.transport);
  const std::string expected = is_program ? "stdio" : "http";
  const std::string mismatch = "does not fit: `config` has a " +
                               std::string(is_program ? "`command`" : "`url`") + ", which is " + expected;
  if (!transport.empty() && !is_transport(transport)) return in.fail("transport", "is none of stdio, http");
  if (!transport.empty() && transport != expected) return in.fail("transport", mismatch);
  if (!in_config.empty() && in_config != expected) in.fail_entry("config", "transport", mismatch);
}

void read_tool_rules(json::ConfigReader& in, ToolRules& rules) {
  read_patterns(in, "allow", rules.allow);
  read_patterns(in, "deny", rules.deny);
  read_patterns(in, "hide", rules.hide);
  read_renames(in, rules.rename, [](std::string_view name) { return line_problem(name, kMaxToolNameBytes); });
  in.finish();
}

Result<Server> read_server(json::View document, const ServerDefaults& defaults) {
  Server row;
  row.visibility = defaults.visibility;
  row.owner = defaults.owner;
  row.drift = defaults.drift;
  RowReader in(document);
  std::string transport;
  in.common(row)
      .time("updatedAt", row.updated_at)
      .require("name")
      .text("name", row.name, name_problem)
      .title(row.title)
      .description(row.description)
      .text("domain", row.domain,
            [](std::string_view domain) { return characters_problem(domain, kMaxDomainCharacters); })
      .choice("visibility", row.visibility, &parse_visibility, "hidden, visible, user")
      .choice("drift", row.drift, &parse_drift_policy, "accept, flag, quarantine")
      .id("owner", row.owner)
      .flag("enabled", row.enabled)
      .object("metadata", row.metadata)
      .object("published", row.published);
  if (!row.published.absent()) check_published(in.in(), json::View(row.published));
  read_tags(in.in(), "tags", row.tags);
  in.in().table("tools", [&](json::ConfigReader& table) { read_tool_rules(table, row.tools); });
  in.require("config").in().table(
      "config", [&](json::ConfigReader& table) { read_config(table, transport, row.spec); });
  check_transport(in, row, transport);
  row.spec.name = row.name;
  row.spec.enabled = row.enabled;
  return in.finish(std::move(row));
}

void redact_values(std::map<std::string, std::string>& values) {
  for (auto& [name, value] : values) value = kRedacted;
}

void redact(pool::Program& program) {
  std::ranges::fill(program.args, std::string(kRedacted));
  redact_values(program.env);
  program.cwd.clear();
  program.containment = Containment();
}

void redact(pool::Address& address) {
  // The path of a hosted server often has the only secret of its address.
  const Result<http::Url> url = http::Url::parse(address.url);
  address.url = url ? url->origin() + "/" + std::string(kRedacted) : std::string(kRedacted);
  redact_values(address.headers);
}

void redact(pool::ConnectorName&) {}

enum class ConfigTransport : bool { omitted, written };

void write_config(json::Writer& out, const Server& server, Redaction redaction, ConfigTransport transport) {
  pool::ServerSpec spec = server.spec;
  spec.enabled = true;  // a member of the row
  if (redaction == Redaction::secrets)
    std::visit([](auto& transport_of_spec) { redact(transport_of_spec); }, spec.transport);
  out.key("config").begin_object();
  if (transport == ConfigTransport::written) out.key("transport").string(server.transport());
  const json::Raw config = pool::to_json(spec);
  json::View(config).each_member([&](std::string_view key, bool, json::View value) {
    out.key(key).raw(value.text());
    return true;
  });
  out.end_object();
}

void write_tool_rules(json::Writer& out, const ToolRules& rules) {
  if (rules.empty()) return;
  out.key("tools").begin_object();
  write_list(out, "allow", rules.allow);
  write_list(out, "deny", rules.deny);
  write_list(out, "hide", rules.hide);
  write_map(out, "rename", rules.rename);
  out.end_object();
}

json::Raw write_server(const Server& server, Redaction redaction, ConfigTransport transport) {
  json::Writer out;
  begin_row(out, server);
  write_text(out, "title", server.title);
  write_text(out, "description", server.description);
  write_text(out, "domain", server.domain);
  write_list(out, "tags", server.tags);
  out.key("transport").string(server.transport());
  write_config(out, server, redaction, transport);
  out.key("visibility").string(to_string(server.visibility));
  write_text(out, "owner", server.owner);
  out.key("enabled").boolean(server.enabled);
  write_tool_rules(out, server.tools);
  out.key("drift").string(to_string(server.drift));
  if (!server.metadata.absent() && redaction == Redaction::none) out.key("metadata").raw(server.metadata);
  if (!server.published.absent()) out.key("published").raw(server.published);
  return end_row(out, server);
}

}  // namespace

json::Raw to_json(const Server& server, Redaction redaction) {
  return write_server(server, redaction, ConfigTransport::written);
}

Result<Server> parse_server(json::View document) {
  return read_server(document, ServerDefaults());
}

Result<Server> new_server(json::View body, const ServerDefaults& defaults) {
  if (const Result<void> checked = check_new_body(body); !checked) return checked.error();
  return read_server(body, defaults);
}

// The document has no `config.transport`, so that a patch of `transport` need not repeat it there.
Result<Server> patched(const Server& row, json::View patch) {
  const json::Raw document = write_server(row, Redaction::none, ConfigTransport::omitted);
  const Result<json::Raw> merged = patched_document(json::View(document), patch);
  if (!merged) return merged.error();
  return with_unchanged_members(row, parse_server(json::View(*merged)));
}

}  // namespace fairlead::registry
