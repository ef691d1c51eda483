#include "clients/row_builder.hpp"

#include <algorithm>
#include <array>

#include "base/contains.hpp"
#include "base/env_file.hpp"
#include "clients/entry_reader.hpp"
#include "clients/fill_inputs.hpp"
#include "clients/own_address.hpp"
#include "clients/placeholder_paths.hpp"
#include "clients/references_in.hpp"
#include "clients/row_strings.hpp"
#include "clients/server_command.hpp"
#include "fairlead/base/duration.hpp"
#include "fairlead/json/writer.hpp"
#include "registry/json.hpp"

namespace fairlead::clients {

namespace {

using Texts = Draft::Texts;

constexpr std::chrono::milliseconds kDefaultAbsolute = pool::Clocks().absolute;
constexpr std::size_t kMaxCleanDepth = 32;

bool is_own_command(const Draft& draft) {
  if (program_name(draft.command) != "fairlead") return false;
  return std::ranges::any_of(draft.args, [](const std::string& argument) {
    return argument == "serve" || argument == "--stdio" || argument.starts_with("--attach");
  });
}

// Appends a segment to a JSON pointer.
std::string pointer_to(std::string_view parent, std::string_view name) {
  std::string pointer = std::string(parent) + "/";
  for (const char c : name) pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return pointer;
}

// Translates the references of one entry and collects the inputs that it needs.
class EntryTranslator {
 public:
  EntryTranslator(const FileContext& context, const Draft& draft, ImportedServer& server)
      : context_(context), server_(server) {
    syntax_ = context.format.variables;
    if (draft.of_bridge) {
      syntax_.plain = true;
      syntax_.positions = kAllPositions;
    }
    references_.project = context.options.project;
    references_.input = [this](std::string_view id) { return input(id); };
    references_.secret = [this](std::string_view name) { return secret(name, ""); };
    references_.is_secret = [&draft](std::string_view name) { return contains(draft.env_secrets, name); };
  }

  void translate(std::string& text, const std::string& pointer, Position position) {
    std::vector<std::string> problems;
    references_.syntax = syntax_.at(position);
    text = translate_references(text, references_, problems);
    for (std::string& problem : problems) server_.remarks.push_back({pointer, std::move(problem)});
  }
  void translate(Texts& texts, std::string_view parent, Position position) {
    for (auto& [name, text] : texts) translate(text, pointer_to(parent, name), position);
  }

  std::string input(std::string_view id) {
    const auto declared = context_.inputs.find(id);
    if (declared != context_.inputs.end()) return add(declared->second);
    ImportInput needed;
    needed.name = secret_name_of(id);
    return add(std::move(needed));
  }

  std::string secret(std::string_view name, std::string description) {
    ImportInput needed;
    needed.name = secret_name_of(name);
    needed.description = std::move(description);
    needed.secret = true;
    return add(std::move(needed));
  }

 private:
  std::string add(ImportInput needed) {
    needed.placeholder = (needed.secret ? "${secret:" : "${input:") + needed.name + "}";
    const auto same = [&](const ImportInput& other) { return other.placeholder == needed.placeholder; };
    std::string placeholder = needed.placeholder;
    if (std::ranges::none_of(server_.inputs, same)) server_.inputs.push_back(std::move(needed));
    return placeholder;
  }

  const FileContext& context_;
  ImportedServer& server_;
  VariableSyntax syntax_;
  ReferenceContext references_;
};

// Returns the variables of the `envFile`. A relative path is one in the project, as in the editors.
Texts variables_of_file(const Draft& draft, const FileContext& context, ImportedServer& server) {
  if (draft.env_file.empty() || draft.command.empty()) return {};
  const std::string file = "the file `" + draft.env_file + "` with variables (`envFile`) ";
  if (!context.options.read_env_file) {
    server.remarks.push_back({"", file + "was not read"});
    return {};
  }
  std::string path = draft.env_file;
  if (!path.starts_with('/')) {
    if (context.options.project.empty() || path.starts_with("${")) {
      server.remarks.push_back(
          {"", file + "is in a project that is not known, and was not read: pass --project"});
      return {};
    }
    path.insert(0, context.options.project + "/");
  }
  const Result<std::string> text = context.options.read_env_file(path);
  if (text) return parse_env_file(*text);
  server.remarks.push_back({"", file + "cannot be read: " + text.error().message()});
  return {};
}

void add_codex_values(Draft& draft, Texts& env, Texts& headers) {
  for (const std::string& name : draft.env_names)
    if (is_variable_name(name)) env.try_emplace(name, "${env:" + name + "}");
  for (const auto& [header, name] : draft.env_headers)
    if (is_variable_name(name)) headers[header] = "${env:" + name + "}";
  if (is_variable_name(draft.bearer_variable))
    headers["Authorization"] = "Bearer ${env:" + draft.bearer_variable + "}";
}

void write_texts(json::Writer& out, std::string_view key, const Texts& texts) {
  if (texts.empty()) return;
  out.key(key).begin_object();
  for (const auto& [name, text] : texts) out.key(name).string(text);
  out.end_object();
}

void write_list(json::Writer& out, std::string_view key, const std::vector<std::string>& values) {
  out.key(key).begin_array();
  for (const std::string& value : values) out.string(value);
  out.end_array();
}

void write_clocks(json::Writer& out, const Draft& draft) {
  if (!draft.call_timeout && !draft.start_timeout) return;
  out.key("clocks").begin_object();
  if (draft.start_timeout) out.key("handshake").string(format_duration(*draft.start_timeout));
  if (draft.call_timeout) out.key("idle").string(format_duration(*draft.call_timeout));
  if (draft.call_timeout && *draft.call_timeout > kDefaultAbsolute)
    out.key("absolute").string(format_duration(*draft.call_timeout));
  out.end_object();
}

void write_config(json::Writer& out, const Draft& draft) {
  out.key("config").begin_object();
  if (draft.command.empty()) {
    out.key("url").string(draft.url);
    write_texts(out, "headers", draft.headers);
  } else {
    out.key("command").string(draft.command);
    if (!draft.args.empty()) write_list(out, "args", draft.args);
    write_texts(out, "env", draft.env);
    if (!draft.cwd.empty()) out.key("cwd").string(draft.cwd);
  }
  write_clocks(out, draft);
  out.end_object();
}

void write_tools(json::Writer& out, const Draft& draft) {
  const bool allows = draft.allow && !draft.allow->empty();
  const bool denies = draft.deny && !draft.deny->empty();
  if (!allows && !denies) return;
  out.key("tools").begin_object();
  if (allows) write_list(out, "allow", *draft.allow);
  if (denies) write_list(out, "deny", *draft.deny);
  out.end_object();
}

// Request options without the headers, which are in the row.
void write_other(json::Writer& out, const std::string& key, json::View value, const EntryFormat& format) {
  const KeyMeaning* meaning = meaning_of(format, key);
  const bool has_headers = meaning != nullptr && meaning->meaning == Meaning::request_options;
  if (!has_headers || !value.is(json::Type::object)) return write_clean(out, value);
  json::Writer clean;
  write_clean(clean, value);
  const json::Raw options = std::move(clean).finish();
  out.begin_object();
  json::View(options).each_member([&](std::string_view name, bool escaped, json::View option) {
    const std::string plain = escaped ? json::unescape(name) : std::string(name);
    if (plain != "headers") out.key(plain).raw(option.text());
    return true;
  });
  out.end_object();
}

// What only the client understands, under its id; and `transport`, if the server speaks HTTP+SSE.
void write_metadata(json::Writer& out, const Draft& draft, const FileContext& context, bool is_sse) {
  const bool has_env_file = !draft.env_file.empty();
  const bool has_others = !draft.others.empty() || !draft.unset.empty() || has_env_file;
  if (!has_others && !is_sse) return;
  out.key("metadata").begin_object();
  if (is_sse) out.key("transport").string("sse");
  if (has_others) {
    out.key(context.format_id).begin_object();
    if (has_env_file) out.key("envFile").string(draft.env_file);
    if (!draft.unset.empty()) write_list(out, "unset", draft.unset);
    for (const auto& [key, value] : draft.others) write_other(out.key(key), key, value, context.format);
    out.end_object();
  }
  out.end_object();
}

json::Raw written_row(const Draft& draft, const std::string& name, const FileContext& context, bool is_sse) {
  json::Writer out;
  out.begin_object().key("name").string(name);
  if (!draft.title.empty() && draft.title != name) out.key("title").string(draft.title);
  if (!draft.description.empty()) out.key("description").string(draft.description);
  if (!draft.enabled) out.key("enabled").boolean(false);
  write_config(out, draft);
  write_tools(out, draft);
  write_metadata(out, draft, context, is_sse);
  out.end_object();
  return std::move(out).finish();
}

// Keeps the command or the URL of an entry with both.
void choose_transport(Draft& draft) {
  if (draft.command.empty() || draft.url.empty()) return;
  const bool is_url = draft.type == Draft::Transport::http || draft.type == Draft::Transport::sse;
  draft.remark("", std::string("has both a command and a URL: the ") + (is_url ? "command `" : "URL `") +
                       (is_url ? draft.command : draft.url) + "` is omitted");
  if (!is_url) return draft.url.clear();
  draft.command.clear();
  draft.args.clear();
  draft.env.clear();
  draft.cwd.clear();
}

std::string reason_to_skip(const Draft& draft, const FileContext& context) {
  if (!draft.foreign_type.empty()) return "its type `" + draft.foreign_type + "` is not one of MCP servers";
  if (draft.command.empty() && draft.url.empty()) return "it has neither a command nor a URL";
  const bool is_own =
      draft.command.empty() ? is_own_url(draft.url, context.options.own_urls) : is_own_command(draft);
  return is_own ? "it is the entry of this gateway itself" : std::string();
}

bool is_sse_address(const Draft& draft) {
  if (draft.command.empty() && draft.type == Draft::Transport::sse) return true;
  if (!draft.command.empty() || draft.type == Draft::Transport::http || draft.url_is_http) return false;
  const std::string path = draft.url.substr(0, draft.url.find_first_of("?#"));
  return draft.url_is_sse || path.ends_with("/sse");
}

constexpr std::string_view kWorkspaceFolder = "${workspaceFolder}";

void replace_workspace(std::string& text, const std::string& value) {
  for (std::size_t at = text.find(kWorkspaceFolder); at != std::string::npos;
       at = text.find(kWorkspaceFolder, at + value.size()))
    text.replace(at, kWorkspaceFolder.size(), value);
}

// A server whose program or directory cannot be found is disabled. The directory of the project is asked for.
void disable_if_paths_have_references(Draft& draft, const FileContext& context, ImportedServer& server) {
  for (const auto& [pointer, text] :
       {std::pair("/config/command", &draft.command), std::pair("/config/cwd", &draft.cwd)}) {
    std::string other_text = *text;
    if (context.format.variables.editor) replace_workspace(other_text, "");
    if (!has_reference(other_text)) continue;
    draft.enabled = false;
    server.remarks.push_back(
        {pointer,
         "references are not replaced in `command` and `cwd`: write the path, and enable "
         "the server, which is disabled until then"});
  }
}

void translate_values(Draft& draft, const FileContext& context, ImportedServer& server) {
  Texts env;
  Texts headers;
  add_codex_values(draft, env, headers);
  EntryTranslator translator(context, draft, server);
  for (std::string* const path : {&draft.command, &draft.cwd})
    if (context.format.variables.editor && path->contains(kWorkspaceFolder))
      replace_workspace(*path, translator.input("workspaceFolder"));
  for (const std::string& name : draft.env_secrets)
    env.try_emplace(name, translator.secret(name, "the value of `" + name + "` in the keyring"));
  for (std::size_t i = 0; i < draft.args.size(); ++i)
    translator.translate(draft.args[i], "/config/args/" + std::to_string(i), Position::args);
  translator.translate(draft.env, "/config/env", Position::env);
  translator.translate(draft.headers, "/config/headers", Position::headers);
  translator.translate(draft.url, "/config/url", Position::url);
  if (!draft.api_key.empty()) {
    translator.translate(draft.api_key, "/config/headers/Authorization", Position::headers);
    headers.try_emplace("Authorization", "Bearer " + draft.api_key);
  }
  for (const auto& [name, text] : variables_of_file(draft, context, server))
    draft.env.try_emplace(name, literal_text(text));
  for (auto& [name, text] : env) draft.env.insert_or_assign(name, text);
  for (auto& [name, text] : headers) draft.headers.insert_or_assign(name, text);
}

}  // namespace

void build_row(Draft draft, const std::string& row_name, const FileContext& context, ImportedServer& server) {
  const PathPlaces places{context.options.home, context.options.project, context.format.variables.editor};
  for (std::string* const path : {&draft.command, &draft.cwd, &draft.env_file}) replace_places(*path, places);
  clear_up_command(draft, context.options.home);
  choose_transport(draft);
  server.skip_reason = reason_to_skip(draft, context);
  const bool is_sse = is_sse_address(draft);
  server.remarks.insert(server.remarks.end(), draft.remarks.begin(), draft.remarks.end());
  if (draft.command.empty() && draft.url.empty()) return;
  disable_if_paths_have_references(draft, context, server);
  translate_values(draft, context, server);
  Result<json::Raw> row = accepted_row(written_row(draft, row_name, context, is_sse), server.remarks);
  if (row) {
    server.row = std::move(*row);
  } else if (server.skip_reason.empty()) {
    server.skip_reason = "the registry does not accept it: " + row.error().message();
  }
}

void write_clean(json::Writer& out, json::View value, std::size_t depth) {
  if (depth > kMaxCleanDepth) {
    out.null();
  } else if (value.is(json::Type::object)) {
    std::vector<std::pair<std::string, json::View>> members;
    std::map<std::string, std::size_t> places;
    value.each_member([&](std::string_view key, bool escaped, json::View member) {
      const std::string name = escaped ? json::unescape(key) : std::string(key);
      const auto [place, inserted] = places.try_emplace(name, members.size());
      if (inserted) members.emplace_back(name, member);
      members[place->second].second = member;
      return true;
    });
    out.begin_object();
    for (const auto& [name, member] : members)
      if (!name.contains('\0')) write_clean(out.key(name), member, depth + 1);
    out.end_object();
  } else if (value.is(json::Type::array)) {
    out.begin_array();
    value.each_element([&](json::View element) { return write_clean(out, element, depth + 1), true; });
    out.end_array();
  } else if (value.is(json::Type::string)) {
    out.string(text_of(value).value_or(""));
  } else {
    out.raw(value.text());
  }
}

Result<json::Raw> accepted_row(json::Raw row, std::vector<Remark>& remarks) {
  constexpr std::array<std::string_view, 4> kOptional = {"title", "description", "tools", "metadata"};
  for (std::size_t attempt = 0; attempt <= kOptional.size(); ++attempt) {
    const Result<registry::Server> accepted = registry::new_server(json::View(row));
    if (accepted) return row;
    const std::string& pointer = accepted.error().detail().pointer;
    const std::string member =
        pointer.substr(std::min<std::size_t>(1, pointer.size()), pointer.find('/', 1) - 1);
    if (!contains(kOptional, member)) return accepted.error();
    remarks.push_back({"", "`" + member + "` is omitted: " + accepted.error().message()});
    json::Writer patch;
    patch.begin_object().key(member).null().end_object();
    row = merged(row, std::move(patch).finish());
  }
  return Error(ErrorKind::validation, "it has too many invalid members");
}

}  // namespace fairlead::clients
