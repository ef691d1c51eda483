// The JSON form of endpoints.
#include <algorithm>

#include "registry/json.hpp"
#include "registry/row_reader.hpp"

namespace fairlead::registry {

namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

std::optional<std::string> plain_name_problem(std::string_view name, NamedLimit max_bytes) {
  if (const std::optional<std::string> problem = line_problem(name, max_bytes)) return problem;
  if (!std::ranges::all_of(name, is_name_character))
    return "has characters other than letters, digits, `-` and `_`";
  return std::nullopt;
}

Result<Endpoint> read_endpoint(json::View document) {
  Endpoint row;
  RowReader in(document);
  in.common(row)
      .time("updatedAt", row.updated_at)
      .require("name")
      .text("name", row.name,
            [](std::string_view name) { return plain_name_problem(name, kMaxEndpointNameBytes); })
      .title(row.title)
      .description(row.description)
      .flag("enabled", row.enabled)
      .choice("mode", row.mode, &parse_endpoint_mode, "direct, discover");
  read_patterns(in.in(), "servers", row.servers);
  read_tags(in.in(), "tags", row.tags);
  read_patterns(in.in(), "tools", row.tools);
  read_patterns(in.in(), "deny", row.deny);
  read_renames(in.in(), row.rename,
               [](std::string_view name) { return plain_name_problem(name, kMaxPublicToolNameBytes); });
  read_patterns(in.in(), "pinned", row.pinned);
  read_ids(in.in(), "users", row.users, kMaxAccessEntries);
  read_ids(in.in(), "groups", row.groups, kMaxAccessEntries);
  return in.finish(std::move(row));
}

}  // namespace

json::Raw to_json(const Endpoint& endpoint, Redaction redaction) {
  json::Writer out;
  begin_row(out, endpoint);
  write_text(out, "title", endpoint.title);
  write_text(out, "description", endpoint.description);
  out.key("enabled").boolean(endpoint.enabled);
  out.key("mode").string(to_string(endpoint.mode));
  write_list(out, "servers", endpoint.servers);
  write_list(out, "tags", endpoint.tags);
  write_list(out, "tools", endpoint.tools);
  write_list(out, "deny", endpoint.deny);
  write_map(out, "rename", endpoint.rename);
  write_list(out, "pinned", endpoint.pinned);
  if (redaction == Redaction::none) {
    write_list(out, "users", endpoint.users);
    write_list(out, "groups", endpoint.groups);
  }
  return end_row(out, endpoint);
}

Result<Endpoint> parse_endpoint(json::View document) {
  return read_endpoint(document);
}

Result<Endpoint> new_endpoint(json::View body) {
  if (const Result<void> checked = check_new_body(body); !checked) return checked.error();
  return read_endpoint(body);
}

Result<Endpoint> patched(const Endpoint& row, json::View patch) {
  const json::Raw document = to_json(row);
  const Result<json::Raw> merged = patched_document(json::View(document), patch);
  if (!merged) return merged.error();
  return with_unchanged_members(row, parse_endpoint(json::View(*merged)));
}

}  // namespace fairlead::registry
