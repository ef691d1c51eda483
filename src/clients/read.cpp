#include "clients/read.hpp"

#include <algorithm>
#include <set>
#include <span>

#include "clients/document.hpp"
#include "clients/entry_reader.hpp"
#include "clients/literal_secrets.hpp"
#include "clients/recognise.hpp"
#include "clients/references_in.hpp"
#include "clients/row_builder.hpp"
#include "clients/row_names.hpp"
#include "clients/row_strings.hpp"
#include "registry/row_limits.hpp"

namespace fairlead::clients {

namespace {

// One server of a file, before it is read.
struct Found {
  std::string name;
  std::string scope;
  json::View entry;
};

Error too_many_servers() {
  return Error(ErrorKind::validation, "the file has more than max_imported_servers (" +
                                          std::to_string(kMaxImportedServers) + ") servers");
}

std::string decoded(std::string_view key, bool escaped) {
  return escaped ? json::unescape(key) : std::string(key);
}

std::string list_name(json::View entry, std::size_t index) {
  const std::optional<std::string> name =
      entry.is(json::Type::object) ? text_of(entry["name"]) : std::nullopt;
  return name.value_or("server " + std::to_string(index + 1));
}

// The names that were given to rows and secrets.
struct GivenNames {
  RowNames rows;
  SecretNames secrets;
};

// Reads all servers of one file.
class FileReader {
 public:
  FileReader(const Document& document, const ReadOptions& options, GivenNames& names)
      : root_(document.json), options_(options), names_(names) {
    owner_ = {options.client, false};
    if (options.client == nullptr) owner_ = recognise(root_, document.format, options.path);
  }

  Result<ImportedFile> read() {
    ImportedFile file;
    file.format = owner_.is_native ? "fairlead" : owner_.client != nullptr ? owner_.client->id : "generic";
    const std::vector<ServerTable> tables = server_tables(root_, owner_.client);
    if (tables.empty() && !options_.may_be_empty) return Error(ErrorKind::validation, no_servers());
    if (tables.empty()) file.remarks.push_back({"", no_servers()});
    for (const ServerTable& table : tables)
      if (!collect(table, file)) return too_many_servers();
    const EntryFormat& format = owner_.client != nullptr ? *owner_.client->entry : generic_format();
    FileContext context(format, file.format, options_);
    read_inputs(beside_servers()["inputs"], context);
    read_excluded(root_["mcp"]);
    for (const Found& found : found_) file.servers.push_back(read_server(found, context));
    return file;
  }

 private:
  std::string no_servers() const {
    if (owner_.client == nullptr)
      return "the file has no servers that are recognised, such as those in `mcpServers`";
    std::string path;
    for (const std::string_view key : owner_.client->container)
      path += (path.empty() ? "" : ".") + std::string(key);
    return "the file has no `" + path + "`, where " + std::string(owner_.client->title) + " has its servers";
  }

  // The object that contains the servers.
  json::View beside_servers() const {
    json::View object = root_;
    if (owner_.client == nullptr) return object;
    for (const std::string_view key : owner_.client->container.first(owner_.client->container.size() - 1))
      object = object[key];
    return object;
  }

  // Returns false if there are too many.
  bool collect(const ServerTable& table, ImportedFile& file) {
    const std::size_t first = found_.size();
    std::map<std::string, std::size_t> places;
    const auto add = [&](std::string name, json::View entry) {
      const auto [place, inserted] = places.try_emplace(name, found_.size());
      if (inserted) {
        found_.push_back({std::move(name), table.scope, entry});
      } else {
        file.remarks.push_back({"", "`" + name + "` is defined more than once; its last definition counts"});
        found_[place->second].entry = entry;
      }
      return found_.size() <= kMaxImportedServers;
    };
    table.servers.each_member([&](std::string_view key, bool escaped, json::View entry) {
      return add(decoded(key, escaped), entry);
    });
    table.servers.each_element(
        [&](json::View entry) { return add(list_name(entry, found_.size() - first), entry); });
    return found_.size() <= kMaxImportedServers;
  }

  void read_inputs(json::View inputs, FileContext& context) const {
    if (!inputs.is(json::Type::array)) return;
    inputs.each_element([&](json::View input) {
      const std::optional<std::string> id = text_of(input["id"]);
      if (id && context.inputs.size() < kMaxImportedServers) context.inputs[*id] = input_of(*id, input);
      return true;
    });
  }

  static ImportInput input_of(const std::string& id, json::View input) {
    ImportInput needed;
    needed.name = secret_name_of(id);
    needed.description = text_of(input["description"]).value_or("");
    needed.default_value = text_of(input["default"]).value_or("");
    needed.secret = input["password"].as_bool().value_or(false);
    input["options"].each_element([&](json::View option) {
      const json::View value = option.is(json::Type::object) ? option["value"] : option;
      if (const std::optional<std::string> choice = text_of(value)) needed.choices.push_back(*choice);
      return true;
    });
    return needed;
  }

  // Gemini's lists of the names that are allowed and excluded.
  void read_excluded(json::View rules) {
    if (owner_.client == nullptr || owner_.client->id != "gemini") return;
    has_allowed_ = rules["allowed"].is(json::Type::array);
    add_names(rules["allowed"], allowed_);
    add_names(rules["excluded"], excluded_);
  }
  static void add_names(json::View list, std::set<std::string>& names) {
    list.each_element([&](json::View name) { return names.insert(text_of(name).value_or("")), true; });
  }

  ImportedServer read_server(const Found& found, const FileContext& context) {
    ImportedServer server;
    server.name = found.name;
    server.scope = found.scope;
    if (!found.entry.is(json::Type::object)) {
      server.skip_reason = "it is not an object";
      return server;
    }
    if (found.entry.text().size() > registry::kMaxRowBytes.value) {
      server.skip_reason =
          "it is larger than max_row_bytes (" + std::to_string(registry::kMaxRowBytes.value) + ")";
      return server;
    }
    const std::string row_name = names_.rows.add(found.name);
    if (row_name != found.name)
      server.remarks.push_back(
          {"/name", "`" + found.name + "` is named `" + row_name +
                        "`: names have up to 32 letters, digits, `-` and `_`, and differ in more than case"});
    if (owner_.is_native) {
      read_native(found, row_name, server);
    } else {
      Draft draft = read_entry(found.entry, context.format);
      if (draft.title.empty() && row_name != found.name) draft.title = found.name;
      if (excluded_.contains(found.name) || (has_allowed_ && !allowed_.contains(found.name)))
        draft.enabled = false;
      build_row(std::move(draft), row_name, context, server);
    }
    if (!server.row.absent())
      server.literal_secrets = find_literal_secrets(server.row, row_name, names_.secrets);
    return server;
  }

  // A server with our own keys: its members are the `config` of the row, as they are.
  void read_native(const Found& found, const std::string& row_name, ImportedServer& server) {
    json::Writer out;
    out.begin_object().key("name").string(row_name);
    const std::optional<bool> enabled = found.entry["enabled"].as_bool();
    if (enabled) out.key("enabled").boolean(*enabled);
    json::Writer config;
    write_clean(config, found.entry);
    const json::Raw whole = std::move(config).finish();
    out.key("config").begin_object();
    json::View(whole).each_member([&](std::string_view key, bool escaped, json::View value) {
      const std::string name = decoded(key, escaped);
      if (name != "enabled" && name != "type") out.key(name).raw(value.text());
      return true;
    });
    out.end_object().end_object();
    Result<json::Raw> row = accepted_row(std::move(out).finish(), server.remarks);
    if (row) {
      server.row = std::move(*row);
    } else {
      server.skip_reason = "the registry does not accept it: " + row.error().message();
    }
  }

  json::View root_;
  const ReadOptions& options_;
  Owner owner_;
  std::vector<Found> found_;
  std::set<std::string> allowed_;
  std::set<std::string> excluded_;
  bool has_allowed_ = false;
  GivenNames& names_;
};

// Returns what a row says about its server, without its names.
std::string text_without_names(const json::Raw& row) {
  return std::string(
      merged(row, json::Raw::trusted(Bytes::constant(R"({"name":null,"title":null})"))).text());
}

// The servers of one name in all scopes.
using Namesakes = std::vector<ImportedServer*>;

bool is_of_user(const ImportedServer& server) {
  return server.scope.empty() || server.scope == to_string(FileScope::user);
}

// Skips servers that are equal to an earlier one, and says which of the others wins in the client: that of
// the project.
void compare_namesakes(const Namesakes& servers) {
  Namesakes different;
  std::set<std::string> texts;
  for (ImportedServer* server : servers) {
    if (server->skip_reason.empty() && !texts.insert(text_without_names(server->row)).second) {
      server->skip_reason = "an equal server of this name is in another scope";
    } else {
      different.push_back(server);
    }
  }
  const auto users = std::ranges::count_if(different, [](const auto* server) { return is_of_user(*server); });
  const std::size_t projects = different.size() - static_cast<std::size_t>(users);
  if (different.size() < 2 || projects == 0) return;
  for (ImportedServer* server : different) {
    server->remarks.push_back(
        {"", is_of_user(*server)
                 ? "in " + std::to_string(projects) + " other scopes a server of the same name wins"
                 : "wins in `" + server->scope + "` over other servers of the same name"});
  }
}

void compare_scopes(std::span<ImportedFile> files) {
  std::map<std::string, Namesakes> by_name;
  for (ImportedFile& file : files)
    for (ImportedServer& server : file.servers) by_name[server.name].push_back(&server);
  for (const auto& [name, servers] : by_name)
    if (servers.size() > 1) compare_namesakes(servers);
}

bool is_blank(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Result<ImportedFile> read_with_names(std::string_view text, const ReadOptions& options, GivenNames& names) {
  if (options.may_be_empty && is_blank(text)) {
    ImportedFile file;
    file.remarks.push_back({"", "the file is empty"});
    return file;
  }
  const Result<Document> document = clients::read_document(text, options.path);
  if (!document) return document.error();
  return FileReader(*document, options, names).read();
}

}  // namespace

Result<ImportedFile> read_client_file(std::string_view text, const ReadOptions& options) {
  GivenNames names;
  Result<ImportedFile> file = read_with_names(text, options, names);
  if (file) compare_scopes({&*file, 1});
  return file;
}

Result<std::vector<ImportedFile>> read_client_files(const std::vector<ClientSource>& files,
                                                    const ReadOptions& options) {
  GivenNames names;
  std::vector<ImportedFile> read;
  for (const ClientSource& file : files) {
    ReadOptions of_file = options;
    of_file.path = file.path;
    Result<ImportedFile> result = read_with_names(file.text, of_file, names);
    if (!result) return Error(ErrorKind::validation, file.path + ": " + result.error().message());
    for (ImportedServer& server : result->servers) {
      if (server.scope.empty() && file.scope == FileScope::project) server.scope = options.project;
      if (file.scope == FileScope::managed) server.scope = to_string(file.scope);
    }
    read.push_back(std::move(*result));
  }
  compare_scopes(read);
  return read;
}

}  // namespace fairlead::clients
