#include "clients/edit.hpp"

#include "clients/edit_text.hpp"
#include "clients/read.hpp"
#include "fairlead/json/writer.hpp"
#include "json/jsonc.hpp"
#include "json/toml.hpp"
#include "json/yaml.hpp"

namespace fairlead::clients {

namespace {

using edit::Path;

constexpr std::size_t kMaxAliasBytes = 1u << 20;  // max_alias_bytes
// What Continue needs at the beginning of its file.
constexpr std::string_view kContinueHead = "name: Local Assistant\nversion: 1.0.0\nschema: v1\n";

bool is_comment_line(std::string_view line) {
  const std::size_t at = line.find_first_not_of(" \t\r");
  return at == std::string_view::npos || line[at] == '#' || line.substr(at).starts_with("---");
}

bool is_empty_yaml(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = edit::next_line(text, 0);
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (!is_comment_line(line)) return false;
    text.remove_prefix(end);
  }
  return true;
}

json::Raw empty_object() {
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

Result<json::Raw> read_json_document(std::string_view text) {
  const std::string blank = json::blank_comments(text);
  if (blank.find_first_not_of(" \t\r\n") == std::string::npos) return empty_object();
  const Result<std::string> strict = json::strict_json(text, kMaxClientFileDepth);
  if (!strict) return strict.error();
  return json::Raw::parse(*strict, kMaxClientFileDepth);
}

Result<json::Raw> read_document(const Client& client, std::string_view text) {
  if (text.size() > kMaxClientFileBytes)
    return Error(ErrorKind::validation, "the file is larger than max_client_file_bytes (" +
                                            std::to_string(kMaxClientFileBytes) + ")");
  switch (client.format) {
    case FileFormat::json: return read_json_document(text);
    case FileFormat::toml: {
      std::expected<json::Raw, json::TomlProblem> document = json::toml_to_json(text, json::TomlLimits());
      if (document) return *document;
      return Error(ErrorKind::validation,
                   "line " + std::to_string(document.error().line) + ": " + document.error().message);
    }
    case FileFormat::yaml: break;
  }
  if (is_empty_yaml(text)) return empty_object();
  json::YamlOptions options;
  options.max_alias_bytes = kMaxAliasBytes;
  return json::yaml_to_json(text, options);
}

// opencode had the servers directly below `mcp` in its first version; such a file keeps that form.
Path container_of(const Client& client, json::View document) {
  Path path(client.container.begin(), client.container.end());
  if (client.id != "opencode") return path;
  const json::View mcp = document["mcp"];
  if (mcp.is(json::Type::object) && mcp.size() > 0 && !mcp["servers"].is(json::Type::object)) path.pop_back();
  return path;
}

json::Raw without_name(json::View entry) {
  json::Writer out;
  out.begin_object();
  entry.each_member([&](std::string_view key, bool escaped, json::View value) {
    if (!json::key_equals(key, escaped, "name"))
      out.key(escaped ? json::unescape(key) : std::string(key))
          .raw(json::Raw::trusted(Bytes::copy_of(value.text())));
    return true;
  });
  out.end_object();
  return std::move(out).finish();
}

json::Raw with_name(std::string_view name, json::View entry) {
  json::Writer out;
  out.begin_object().key("name").string(name);
  entry.each_member([&](std::string_view key, bool escaped, json::View value) {
    out.key(escaped ? json::unescape(key) : std::string(key))
        .raw(json::Raw::trusted(Bytes::copy_of(value.text())));
    return true;
  });
  out.end_object();
  return std::move(out).finish();
}

Result<std::string> put_text(const Client& client, std::string_view text, const Path& container,
                             std::string_view name, json::View value) {
  switch (client.format) {
    case FileFormat::json: return edit::put_json(text, container, name, value);
    case FileFormat::toml: return edit::put_toml(text, container, client.is_list, name, value);
    case FileFormat::yaml: break;
  }
  return edit::put_yaml(text, container, client.is_list, name, value);
}

Result<std::string> remove_text(const Client& client, std::string_view text, const Path& container,
                                std::string_view name) {
  switch (client.format) {
    case FileFormat::json: return edit::remove_json(text, container, name);
    case FileFormat::toml: return edit::remove_toml(text, container, client.is_list, name);
    case FileFormat::yaml: break;
  }
  return edit::remove_yaml(text, container, client.is_list, name);
}

Error by_hand(const Error& cause, const std::string& what) {
  return Error(ErrorKind::validation, cause.message()).with([&](ErrorDetail& detail) {
    detail.remedy = what;
  });
}

Error unsafe_error() {
  return Error(ErrorKind::validation, "the file cannot be changed without changing other parts of it");
}

// Checks that `result` differs from `before` in nothing but the entry, which must be `expected`, or absent.
Result<void> check_result(const Client& client, json::View before, std::string_view result,
                          const Path& container, std::string_view name, json::View expected) {
  const Result<json::Raw> parsed = read_document(client, result);
  if (!parsed) return unsafe_error();
  const json::View after(*parsed);
  const json::View entry = edit::entry_at(after, container, client.is_list, name);
  if (edit::same_value(entry, expected) &&
      edit::same_except_entry(before, after, container, client.is_list, name))
    return {};
  return unsafe_error();
}

}  // namespace

Result<json::Raw> find_entry(const Client& client, std::string_view text, std::string_view name) {
  const Result<json::Raw> document = read_document(client, text);
  if (!document) return document.error();
  const json::View root(*document);
  const json::View entry = edit::entry_at(root, container_of(client, root), client.is_list, name);
  if (entry.absent()) return json::Raw();
  if (client.is_list) return without_name(entry);
  return json::Raw::parse(entry.text(), kMaxClientFileDepth);
}

Result<std::string> put_entry(const Client& client, std::string_view text, const Entry& entry) {
  const Result<json::Raw> document = read_document(client, text);
  if (!document) return document.error();
  const json::View root(*document);
  const Path container = container_of(client, root);
  const json::View old_entry = edit::entry_at(root, container, client.is_list, entry.name);
  json::Raw value = entry.value;
  if (old_entry.is(json::Type::object)) value = edit::merged_entry(client, old_entry, json::View(value));
  if (client.is_list) value = with_name(entry.name, json::View(value));
  if (edit::same_value(old_entry, json::View(value))) return std::string(text);
  const std::string remedy = "Add this to the file by hand:\n" + entry_text(client, entry);
  const Result<std::string> result = put_text(client, text, container, entry.name, json::View(value));
  if (!result) return by_hand(result.error(), remedy);
  const Result<void> checked = check_result(client, root, *result, container, entry.name, json::View(value));
  if (!checked) return by_hand(checked.error(), remedy);
  return result;
}

Result<std::string> remove_entry(const Client& client, std::string_view text, std::string_view name) {
  const Result<json::Raw> document = read_document(client, text);
  if (!document) return document.error();
  const json::View root(*document);
  const Path container = container_of(client, root);
  if (edit::entry_at(root, container, client.is_list, name).absent()) return std::string(text);
  const std::string remedy = "Remove the entry `" + std::string(name) + "` from the file by hand.";
  const Result<std::string> result = remove_text(client, text, container, name);
  if (!result) return by_hand(result.error(), remedy);
  const Result<void> checked = check_result(client, root, *result, container, name, json::View());
  if (!checked) return by_hand(checked.error(), remedy);
  return result;
}

std::string new_file_text(const Client& client) {
  return client.id == "continue" ? std::string(kContinueHead) : std::string();
}

std::string entry_text(const Client& client, const Entry& entry) {
  const Path container(client.container.begin(), client.container.end());
  const json::Raw value = client.is_list ? with_name(entry.name, json::View(entry.value)) : entry.value;
  const Result<std::string> text = put_text(client, "", container, entry.name, json::View(value));
  return text ? *text : std::string();
}

}  // namespace fairlead::clients
