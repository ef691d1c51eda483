#include "clients/import_plan.hpp"

#include <algorithm>
#include <set>

#include "base/glob.hpp"
#include "clients/describe_changes.hpp"
#include "clients/row_strings.hpp"
#include "fairlead/json/writer.hpp"
#include "registry/json.hpp"

namespace fairlead::clients {

namespace {

std::string string_member(json::View object, std::string_view name) {
  return object[name].as_string().value_or("");
}

// Plans one server after another; names that were planned before are not planned again.
class Planner {
 public:
  Planner(const std::vector<json::Raw>& existing, const ImportChoices& choices) : choices_(choices) {
    for (const json::Raw& row : existing) existing_.insert_or_assign(name_key(row), json::View(row));
  }

  Result<PlannedServer> plan(const ImportedServer& server);

 private:
  static std::string name_key(const json::Raw& row) {
    std::string name = string_member(json::View(row), "name");
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
    return name;
  }

  Result<void> fill(const ImportedServer& server, PlannedServer& planned) const;
  bool has_value(const ImportInput& input) const;
  void plan_input_secrets(const ImportedServer& server, PlannedServer& planned) const;
  void move_secrets(const ImportedServer& server, json::View existing, PlannedServer& planned) const;
  void compare(const ImportedServer& server, json::View existing, json::View normalized,
               PlannedServer& planned) const;

  const ImportChoices& choices_;
  std::map<std::string, json::View> existing_;  // by name in lower case
  std::set<std::string> planned_;               // names in lower case
};

Result<PlannedServer> Planner::plan(const ImportedServer& server) {
  PlannedServer planned;
  planned.body = server.row;
  planned.name = string_member(json::View(server.row), "name");
  if (planned.name.empty()) planned.name = server.name;
  planned.remarks = server.remarks;
  planned.reason = server.skip_reason;
  if (!planned.reason.empty()) return planned;
  const std::string key = name_key(server.row);
  if (!planned_.insert(key).second) {
    planned.reason = "the file has another server of this name, which is used";
    return planned;
  }
  if (const Result<void> filled = fill(server, planned); !filled) return filled.error();
  if (!planned.reason.empty()) return planned;
  plan_input_secrets(server, planned);
  const auto found = existing_.find(key);
  const json::View existing = found == existing_.end() ? json::View() : found->second;
  move_secrets(server, existing, planned);
  const Result<registry::Server> row = registry::new_server(json::View(planned.body));
  const bool is_incomplete = !planned.missing_inputs.empty();  // a URL with <NAME> may be invalid
  if (!row && !(is_incomplete && existing.absent())) {
    planned.reason = "the server cannot be registered: " + row.error().message();
    return planned;
  }
  if (existing.absent()) {
    planned.action = ImportAction::add;
    planned.changes = describe_row(json::View(planned.body), server.literal_secrets);
  } else {
    const json::Raw normalized = registry::to_json(*row);
    compare(server, existing, json::View(normalized), planned);
  }
  return planned;
}

// Returns `server` with <NAME> in place of the values of `missing`.
ImportedServer with_placeholders(const ImportedServer& server, const std::vector<ImportInput>& missing) {
  ImportedServer shown = server;
  for (const ImportInput& input : missing) {
    std::erase_if(shown.inputs, [&](const ImportInput& other) { return other.name == input.name; });
    shown.row = change_strings(json::View(shown.row),
                               [&](const std::string&, std::string text) -> std::optional<std::string> {
                                 const std::string value = "<" + input.name + ">";
                                 for (std::size_t at = text.find(input.placeholder); at != std::string::npos;
                                      at = text.find(input.placeholder, at + value.size()))
                                   text.replace(at, input.placeholder.size(), value);
                                 return text;
                               });
  }
  return shown;
}

// Puts the values of the inputs into the body, or says which are missing.
Result<void> Planner::fill(const ImportedServer& server, PlannedServer& planned) const {
  for (const ImportInput& input : server.inputs)
    if (!input.secret && input.required && !has_value(input)) planned.missing_inputs.push_back(input);
  if (!planned.missing_inputs.empty() && !choices_.dry_run) {
    std::string names;
    for (const ImportInput& input : planned.missing_inputs)
      names += (names.empty() ? "--input " : " --input ") + input.name + "=VALUE";
    planned.reason = "it needs a value: pass " + names;
    return {};
  }
  Result<json::Raw> filled = fill_inputs(with_placeholders(server, planned.missing_inputs), choices_.inputs);
  if (!filled) return filled.error();
  planned.body = std::move(*filled);
  return {};
}

bool Planner::has_value(const ImportInput& input) const {
  const auto is_given = [](const std::string& value) { return !value.empty(); };
  const auto given = choices_.inputs.find(input.name);
  if (given != choices_.inputs.end() && std::ranges::any_of(given->second, is_given)) return true;
  return !input.default_value.empty() ||
         (input.multiple && std::ranges::any_of(input.default_values, is_given));
}

void Planner::plan_input_secrets(const ImportedServer& server, PlannedServer& planned) const {
  for (const ImportInput& input : server.inputs) {
    if (!input.secret) continue;
    const auto given = choices_.inputs.find(input.name);
    const bool has_value =
        given != choices_.inputs.end() && !given->second.empty() && !given->second.front().empty();
    if (has_value) {
      planned.secrets.push_back({input.name, given->second.front()});
    } else if (input.required) {
      planned.missing_secrets.push_back(input);
    }
  }
}

// A secret that an earlier import has moved stays moved.
void Planner::move_secrets(const ImportedServer& server, json::View existing, PlannedServer& planned) const {
  std::map<std::string, std::string> replacements;  // by pointer
  for (const LiteralSecret& secret : server.literal_secrets) {
    const bool moved_before =
        value_at(existing, secret.pointer).as_string().value_or("") == secret.replacement;
    if (!choices_.move_secrets && !moved_before) continue;
    replacements.insert_or_assign(secret.pointer, secret.replacement);
    planned.secrets.push_back({secret.name, secret.value});
  }
  if (replacements.empty()) return;
  planned.body =
      change_strings(json::View(planned.body),
                     [&](const std::string& pointer, const std::string&) -> std::optional<std::string> {
                       const auto found = replacements.find(pointer);
                       return found == replacements.end() ? std::nullopt : std::optional(found->second);
                     });
}

// Compares the members that the importer sets; all others of the row are the registry's own.
void Planner::compare(const ImportedServer& server, json::View existing, json::View normalized,
                      PlannedServer& planned) const {
  json::Writer before;
  json::Writer after;
  before.begin_object();
  after.begin_object();
  json::View(planned.body).each_member([&](std::string_view key, bool escaped, json::View) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    if (name == "name") return true;
    if (const json::View value = existing[name]; !value.absent()) before.key(name).raw(value.text());
    if (const json::View value = normalized[name]; !value.absent()) after.key(name).raw(value.text());
    return true;
  });
  before.end_object();
  after.end_object();
  const json::Raw old_members = std::move(before).finish();
  const json::Raw new_members = std::move(after).finish();
  const bool is_wanted = json::View(planned.body)["enabled"].as_bool().value_or(true);
  if (is_wanted && existing["enabled"].as_bool() == false)
    planned.remarks.push_back(
        {"/enabled", "it is disabled in the gateway: `fairlead servers enable " + planned.name + "`"});
  planned.existing_id = string_member(existing, "id");
  planned.existing_etag = "\"" + std::string(existing["version"].text()) + "\"";
  planned.patch = registry::merge_difference(json::View(old_members), json::View(new_members));
  planned.changes =
      describe_patch(json::View(old_members), json::View(planned.patch), server.literal_secrets);
  const bool stores_secrets = choices_.update && !planned.secrets.empty();
  planned.action = planned.changes.empty() && !stores_secrets ? ImportAction::unchanged
                   : choices_.update                          ? ImportAction::update
                                                              : ImportAction::differs;
}

}  // namespace

std::vector<const ImportedServer*> selected_servers(const ImportedFile& file, const ImportChoices& choices) {
  std::vector<const ImportedServer*> selected;
  for (const ImportedServer& server : file.servers) {
    const std::string row_name = string_member(json::View(server.row), "name");
    const bool named = choices.names.empty() || any_glob_matches(choices.names, server.name) ||
                       any_glob_matches(choices.names, row_name);
    if (named) selected.push_back(&server);
  }
  return selected;
}

Result<std::vector<PlannedServer>> plan_import(const ImportedFile& file,
                                               const std::vector<json::Raw>& existing,
                                               const ImportChoices& choices) {
  std::vector<PlannedServer> plan;
  Planner planner(existing, choices);
  for (const ImportedServer* const server : selected_servers(file, choices)) {
    Result<PlannedServer> planned = planner.plan(*server);
    if (!planned) return planned.error();
    if (choices.disabled && planned->action == ImportAction::add)
      planned->body = merged(planned->body, json::Raw::trusted(Bytes::constant(R"({"enabled":false})")));
    plan.push_back(std::move(*planned));
  }
  return plan;
}

}  // namespace fairlead::clients
