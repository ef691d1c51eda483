#include "clients/write.hpp"

#include <set>

#include "clients/entry_format.hpp"
#include "clients/entry_writer.hpp"
#include "clients/literal_secrets.hpp"
#include "clients/row_strings.hpp"
#include "clients/text_layout.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "registry/json.hpp"

namespace fairlead::clients {

namespace {

// Returns the row with references in place of literal secrets.
json::Raw without_secrets(const json::Raw& row, std::string_view name, SecretNames& names,
                          std::vector<Remark>& remarks) {
  std::map<std::string, std::string> replacements;
  for (const LiteralSecret& secret : find_literal_secrets(row, name, names)) {
    replacements[secret.pointer] = secret.replacement;
    remarks.push_back(
        {secret.pointer, "a literal secret is not written; it is referred to as `" + secret.name + "`"});
  }
  if (replacements.empty()) return row;
  return change_strings(json::View(row),
                        [&](const std::string& pointer, const std::string&) -> std::optional<std::string> {
                          const auto found = replacements.find(pointer);
                          return found == replacements.end() ? std::nullopt : std::optional(found->second);
                        });
}

Result<ExportedEntry> written_entry(const Client& client, const json::Raw& row, SecretNames& names,
                                    std::set<std::string>& secrets) {
  const std::string name = json::View(row)["name"].as_string().value_or("");
  std::vector<Remark> remarks;
  const json::Raw safe = without_secrets(row, name, names, remarks);
  const Result<registry::Server> server = registry::parse_server(json::View(safe));
  if (!server) return server.error();
  ExportedEntry entry = entry_of(client, *server, secrets);
  entry.remarks.insert(entry.remarks.begin(), remarks.begin(), remarks.end());
  return entry;
}

// The secrets as VS Code asks for them.
void write_inputs(json::Writer& out, const std::set<std::string>& secrets) {
  out.key("inputs").begin_array();
  for (const std::string& name : secrets) {
    out.begin_object().key("id").string(name).key("type").string("promptString");
    out.key("description").string(name).key("password").boolean(true).end_object();
  }
  out.end_array();
}

void write_servers(json::Writer& out, const Client& client, const std::vector<ExportedEntry>& entries) {
  if (client.is_list) {
    out.begin_array();
    for (const ExportedEntry& entry : entries) out.raw(entry.value);
    out.end_array();
  } else {
    out.begin_object();
    for (const ExportedEntry& entry : entries) out.key(entry.name).raw(entry.value);
    out.end_object();
  }
}

// Gemini's list of servers that are not used.
void write_excluded(json::Writer& out, const std::vector<std::string>& names) {
  out.key("mcp").begin_object().key("excluded").begin_array();
  for (const std::string& name : names) out.string(name);
  out.end_array().end_object();
}

json::Raw document_of(const Client& client, const std::vector<ExportedEntry>& entries,
                      const std::set<std::string>& secrets, const std::vector<std::string>& excluded) {
  json::Writer out;
  out.begin_object();
  if (client.format == FileFormat::yaml && client.is_list)
    out.key("name").string("fairlead").key("version").string("0.0.1").key("schema").string("v1");
  if (!excluded.empty()) write_excluded(out, excluded);
  for (std::size_t i = 0; i + 1 < client.container.size(); ++i) out.key(client.container[i]).begin_object();
  if (client.entry->variables.inputs && !secrets.empty()) write_inputs(out, secrets);
  write_servers(out.key(client.container.back()), client, entries);
  for (std::size_t i = 0; i < client.container.size(); ++i) out.end_object();
  return std::move(out).finish();
}

std::string text_of_document(const Client& client, const json::Raw& document) {
  const json::View root(document);
  switch (client.format) {
    case FileFormat::toml: return toml_text(client.container.back(), root[client.container.back()]);
    case FileFormat::yaml: return yaml_text(root);
    default: return indented_json(root);
  }
}

}  // namespace

Result<ExportedEntry> write_entry(const Client& client, const json::Raw& row) {
  SecretNames names;
  std::set<std::string> secrets;
  return written_entry(client, row, names, secrets);
}

Result<ExportedFile> write_client_file(const Client& client, const std::vector<json::Raw>& rows) {
  SecretNames names;
  std::set<std::string> secrets;
  std::vector<ExportedEntry> entries;
  std::vector<std::string> excluded;
  ExportedFile file;
  for (const json::Raw& row : rows) {
    Result<ExportedEntry> entry = written_entry(client, row, names, secrets);
    if (!entry) return entry.error();
    const bool is_excluded = client.id == "gemini" && json::View(row)["enabled"].as_bool() == false;
    if (is_excluded) excluded.push_back(entry->name);
    if (is_excluded)
      std::erase_if(entry->remarks, [](const Remark& remark) { return remark.pointer == "/enabled"; });
    for (const Remark& remark : entry->remarks)
      file.remarks.push_back({remark.pointer, "`" + entry->name + "`: " + remark.message});
    if (!entry->value.absent()) entries.push_back(std::move(*entry));
  }
  file.text = text_of_document(client, document_of(client, entries, secrets, excluded));
  return file;
}

}  // namespace fairlead::clients
