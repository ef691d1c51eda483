#include "clients/document.hpp"

#include <optional>

#include "clients/read.hpp"
#include "fairlead/json/view.hpp"
#include "json/jsonc.hpp"
#include "json/toml.hpp"
#include "json/yaml.hpp"

namespace fairlead::clients {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kMaxOtherFileBytes = 4u << 20;  // max_client_config_bytes
constexpr std::size_t kMaxFileAliasBytes = 4u << 20;  // max_alias_bytes

Error too_large(std::string_view limit, std::size_t bytes) {
  return Error(ErrorKind::validation,
               "the file has more than " + std::string(limit) + " (" + std::to_string(bytes) + ")");
}

Result<std::string> toml_as_json(std::string_view text) {
  const auto json =
      json::toml_to_json(text, json::TomlLimits{kMaxClientFileDepth / 2, "max_client_file_depth"});
  if (json) return std::string(json->text());
  const std::size_t line = json.error().line;
  return Error(ErrorKind::validation,
               (line == 0 ? std::string() : "line " + std::to_string(line) + ": ") + json.error().message);
}

Result<std::string> yaml_as_json(std::string_view text) {
  json::YamlOptions options;
  options.max_alias_bytes = kMaxFileAliasBytes;
  const Result<json::Raw> json = json::yaml_to_json(text, options);
  if (!json) return json.error();
  return std::string(json->text());
}

std::optional<FileFormat> format_of(std::string_view text, std::string_view path) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::nullopt;
  if (text[first] == '{' || text[first] == '/') return FileFormat::json;
  if (path.ends_with(".toml")) return FileFormat::toml;
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return FileFormat::yaml;
  if (path.ends_with(".json") || path.ends_with(".jsonc")) return FileFormat::json;
  return std::nullopt;
}

Result<Document> document_in(FileFormat format, std::string_view text) {
  if (format != FileFormat::json && text.size() > kMaxOtherFileBytes)
    return too_large("max_client_config_bytes", kMaxOtherFileBytes);
  Result<std::string> json = format == FileFormat::json   ? json::strict_json(text, kMaxClientFileDepth)
                             : format == FileFormat::toml ? toml_as_json(text)
                                                          : yaml_as_json(text);
  if (!json) return Error(ErrorKind::validation, json.error().message());
  if (!json::View(*json).is(json::Type::object))
    return Error(ErrorKind::validation, "the file is not an object with servers");
  return Document{format, std::move(*json)};
}

}  // namespace

Result<Document> read_document(std::string_view text, std::string_view path) {
  if (text.size() > kMaxClientFileBytes) return too_large("max_client_file_bytes", kMaxClientFileBytes);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Error(ErrorKind::validation, "the file is empty");
  if (const std::optional<FileFormat> format = format_of(text, path)) return document_in(*format, text);
  Result<Document> toml = document_in(FileFormat::toml, text);
  if (toml) return toml;
  Result<Document> yaml = document_in(FileFormat::yaml, text);
  const bool looks_like_toml = text.starts_with('[') || text.contains("\n[") || text.contains(" = ");
  return yaml || !looks_like_toml ? yaml : toml;
}

}  // namespace fairlead::clients
