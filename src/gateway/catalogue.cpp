#include "gateway/catalogue.hpp"

#include <algorithm>
#include <ranges>

#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/failure.hpp"

namespace fairlead::gateway {

namespace {

std::string limit_text(std::string_view name, std::size_t value) {
  return std::string(name) + " (" + std::to_string(value) + ")";
}

bool has_resources(const Catalogue::ListedServer& server) {
  if (server.lists->rules()) {
    return !server.lists->entries(ListKind::resources).empty() ||
           !server.lists->entries(ListKind::templates).empty();
  }
  return !server.lists->raw_entries(ListKind::resources).empty() ||
         !server.lists->raw_entries(ListKind::templates).empty();
}

using ServerNames = std::vector<const std::string*>;

// Returns text such as "`a`, `b` and 3 others".
std::string quoted_names(const ServerNames& servers) {
  constexpr std::size_t kMaxShown = 10;
  std::string names;
  for (std::size_t i = 0; i < std::min(servers.size(), kMaxShown); ++i)
    names += (i == 0 ? "`" : ", `") + *servers[i] + "`";
  if (servers.size() > kMaxShown) names += " and " + std::to_string(servers.size() - kMaxShown) + " others";
  return names;
}

// The servers whose templates match a URI.
struct TemplateMatches {
  ServerNames specific;   // servers with a matching template that names the URI's scheme
  ServerNames catch_all;  // servers that match only by a template without a scheme
  const std::string* server_over_limit = nullptr;  // a server whose templates could not all be compared
};

enum class TemplateMatch : std::uint8_t { none, catch_all, specific };

// Returns the best match of `uri` among the templates of one server. Stops early when `budget` is exhausted.
TemplateMatch best_template_match(const ServerLists& lists, std::string_view uri, mcp::MatchBudget& budget) {
  TemplateMatch best = TemplateMatch::none;
  for (const CatalogueEntry& entry : lists.entries(ListKind::templates)) {
    if (!budget.spend_on_template()) break;
    const bool specific = entry.uri_template->has_literal_scheme();
    if ((best == TemplateMatch::catch_all && !specific) || !entry.uri_template->matches(uri, budget))
      continue;
    if (specific) return TemplateMatch::specific;
    best = TemplateMatch::catch_all;
  }
  return best;
}

// Compares `uri` with the templates of all servers, in at most `max_steps` steps. The steps that the previous
// servers have not used are shared equally among the remaining servers.
TemplateMatches match_templates(std::span<const Catalogue::ListedServer> servers, std::string_view uri,
                                std::size_t max_steps) {
  const auto has_templates = [](const Catalogue::ListedServer& server) {
    return !server.lists->entries(ListKind::templates).empty();
  };
  auto remaining = static_cast<std::size_t>(std::ranges::count_if(servers, has_templates));
  std::size_t steps = max_steps;
  TemplateMatches matches;
  for (const Catalogue::ListedServer& server : servers | std::views::filter(has_templates)) {
    const std::size_t share = steps / remaining--;
    mcp::MatchBudget budget(share);
    const TemplateMatch match = best_template_match(*server.lists, uri, budget);
    steps -= share - budget.steps_left();
    if (match == TemplateMatch::specific) matches.specific.push_back(&server.name);
    if (match == TemplateMatch::catch_all) matches.catch_all.push_back(&server.name);
    if (budget.exhausted()) matches.server_over_limit = &server.name;
  }
  return matches;
}

// Returns whether the rules of the server exclude the resource, which may be one that the server does not
// list.
bool is_quarantined(const ServerLists& lists, std::string_view uri, const mcp::ListLimits& limits) {
  const ListRules* const rules = lists.rules().get();
  if (!rules || rules->quarantined.empty() || lists.find(ListKind::resources, EntryKey(uri))) return false;
  mcp::MatchBudget budget(limits.max_template_steps);
  return std::ranges::any_of(rules->quarantined, [&](const auto& entry) {
    const auto& [kind, name] = entry;
    if (kind != ListKind::resources && kind != ListKind::templates) return false;
    if (name == uri) return true;
    if (kind == ListKind::resources) return false;
    const Result<mcp::UriTemplate> pattern = mcp::UriTemplate::parse(name, limits);
    return pattern && budget.spend_on_template() && (pattern->matches(uri, budget) || budget.exhausted());
  });
}

Error ambiguous_resource_error(const std::string& why) {
  return refusal_error(rpc::kInvalidParams, "Resource is ambiguous: " + why, failure::invalid_request);
}

}  // namespace

Catalogue::Catalogue(const ListsByServer& lists, const mcp::ListLimits& limits) : limits_(limits) {
  servers_.reserve(lists.size());
  for (const auto& [name, server_lists] : lists) servers_.push_back(ListedServer{name, server_lists});
}

Catalogue::Catalogue(std::vector<ListedServer> servers, Names names)
    : servers_(std::move(servers)), names_(std::move(names)) {
  index_renamed_tools();
}

void Catalogue::index_renamed_tools() {
  for (const auto& [name_at_default, name] : names_.renames) {
    const ListedServer* const server = find_server(name_at_default.substr(0, name_at_default.find("__")));
    const CatalogueEntry* const tool =
        server ? server->lists->find(ListKind::tools, EntryKey(name)) : nullptr;
    if (!tool) continue;
    const CatalogueEntry* const other = find_by_prefix(ListKind::tools, name);
    const bool used = (other && other != tool) || !renamed_tools_.emplace(name, tool).second;
    if (used) unused_names_.push_back(name);
  }
}

const Catalogue::ListedServer* Catalogue::find_server(std::string_view name) const {
  const auto found = std::ranges::lower_bound(servers_, name, {}, &ListedServer::name);
  return found == servers_.end() || found->name != name ? nullptr : &*found;
}

// The part of a public name before its first `__` is the server's name, because no server's name contains
// `__`, and none is long enough to be truncated (names.hpp).
const CatalogueEntry* Catalogue::find_by_prefix(ListKind kind, std::string_view public_name) const {
  const std::size_t end = public_name.find("__");
  if (end == std::string_view::npos) return nullptr;
  const ListedServer* const server = find_server(public_name.substr(0, end));
  return server ? server->lists->find(kind, EntryKey(public_name)) : nullptr;
}

const CatalogueEntry* Catalogue::find_by_public_name(ListKind kind, std::string_view public_name) const {
  if (names_.own)
    return servers_.empty() ? nullptr : servers_.front().lists->find(kind, EntryKey(public_name));
  const CatalogueEntry* const found = find_by_prefix(kind, public_name);
  if (found || kind != ListKind::tools || renamed_tools_.empty()) return found;
  const auto renamed = renamed_tools_.find(public_name);
  return renamed == renamed_tools_.end() ? nullptr : renamed->second;
}

bool Catalogue::lists(ListKind kind, const CatalogueEntry& entry) const {
  switch (kind) {
    case ListKind::tools: break;
    case ListKind::prompts: return true;  // their names are unique
    case ListKind::resources:
    case ListKind::templates: return find_uri(kind, EntryKey(entry.public_name)) == &entry;
  }
  if (!entry.listed) return false;
  if (names_.listed_tools && !names_.listed_tools->matches(entry.public_name)) return false;
  return names_.renames.empty() || find_tool(entry.public_name) == &entry;
}

const CatalogueEntry* Catalogue::find_uri(ListKind kind, const EntryKey& uri) const {
  for (const ListedServer& server : servers_) {
    if (const CatalogueEntry* const found = server.lists->find(kind, uri)) return found;
  }
  return nullptr;
}

Result<const std::string*> Catalogue::server_of_resource(std::string_view uri, bool complete) const {
  const Result<const std::string*> found = server_by_rules(uri, complete);
  if (!found || !*found || !is_quarantined(*find_server(**found)->lists, uri, limits_)) return found;
  return nullptr;
}

Result<const std::string*> Catalogue::server_by_rules(std::string_view uri, bool complete) const {
  if (uri.size() > limits_.max_uri_bytes)
    return refusal_error(rpc::kInvalidParams,
                         "uri is over the limit " + limit_text("max_uri_bytes", limits_.max_uri_bytes),
                         failure::invalid_request);
  const EntryKey key(uri);
  for (const ListKind kind : {ListKind::resources, ListKind::templates}) {
    if (const CatalogueEntry* const entry = find_uri(kind, key)) return &entry->server;
  }
  return server_of_unlisted_resource(uri, complete);
}

Result<const std::string*> Catalogue::server_of_unlisted_resource(std::string_view uri, bool complete) const {
  const TemplateMatches matches = match_templates(servers_, uri, limits_.max_template_steps);
  if (matches.specific.size() == 1) return matches.specific.front();
  if (matches.specific.size() > 1)
    return ambiguous_resource_error("the templates of several servers match `" + std::string(uri) + "` (" +
                                    quoted_names(matches.specific) + ")");
  ServerNames with_resources;
  for (const ListedServer& server : servers_) {
    if (has_resources(server)) with_resources.push_back(&server.name);
  }
  if (with_resources.size() == 1 && complete) return with_resources.front();
  if (!matches.catch_all.empty() && with_resources.size() > 1)
    return ambiguous_resource_error(
        "no server lists `" + std::string(uri) + "`, and only a template for any URI (of " +
        quoted_names(matches.catch_all) + ") matches it; servers with resources are " +
        quoted_names(with_resources));
  if (matches.server_over_limit)
    return refusal_error(rpc::kInvalidParams,
                         "Resource not found: comparing the uri with all templates of server `" +
                             *matches.server_over_limit + "` needs more than its share of " +
                             limit_text("max_template_steps", limits_.max_template_steps),
                         failure::resource_exhausted);
  return nullptr;
}

}  // namespace fairlead::gateway
