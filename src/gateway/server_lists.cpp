#include "gateway/server_lists.hpp"

#include <algorithm>

#include "fairlead/json/writer.hpp"
#include "gateway/entry_rules.hpp"
#include "gateway/names.hpp"
#include "json/members.hpp"
#include "json/splice.hpp"

namespace fairlead::gateway {

namespace {

// Returns the member of an entry by which its server identifies it.
std::string_view name_member(ListKind kind) noexcept {
  switch (kind) {
    case ListKind::tools:
    case ListKind::prompts: return "name";
    case ListKind::resources: return "uri";
    case ListKind::templates: break;
  }
  return "uriTemplate";
}

// Only tools and prompts get public names. URIs stay as they are, because results contain links to them.
bool is_renamed(ListKind kind) noexcept {
  return kind == ListKind::tools || kind == ListKind::prompts;
}

// Returns `raw` with `name`, a value in it, replaced by the public name.
json::Raw with_public_name(const json::Raw& raw, json::View name, std::string_view public_name) {
  return json::Raw::trusted(
      json::Splice(raw.bytes()).replace(name.text(), json::string(public_name).bytes()).joined(),
      raw.is_one_line());
}

// Returns `raw` without the member whose value is `member`; unchanged if `member` is absent.
json::Raw without_member(const json::Raw& raw, json::View member) {
  if (member.absent()) return raw;
  return json::Raw::trusted(json::Splice(raw.bytes()).remove_member(member.text()).joined(),
                            raw.is_one_line());
}

// Returns `raw` without the members that clients of this era do not know or cannot use.
json::Raw entry_for_era(ListKind kind, const json::Raw& raw, bool modern) {
  if (kind != ListKind::tools) return raw;
  const json::Members members(json::View(raw), {"execution", "outputSchema"});
  if (modern) return without_member(raw, members["execution"]);
  // In revisions up to 2025-11-25, structured content must be an object.
  const json::View output = members["outputSchema"];
  return output["type"].as_string() == "object" ? raw : without_member(raw, output);
}

// Replaces the public name of a tool or prompt.
void set_public_name(CatalogueEntry& entry, std::string name) {
  for (json::Raw* const text : {&entry.modern_json, &entry.legacy_json}) {
    if (!text->absent()) *text = with_public_name(*text, json::View(*text)["name"], name);
  }
  entry.public_name = std::move(name);
}

std::string over_limit_text(std::string_view subject, std::string_view limit, std::size_t value) {
  return std::string(subject) + " is over the limit " + std::string(limit) + " (" + std::to_string(value) +
         ")";
}

// Sets `entry.header_params` from the annotations of the tool `raw`. Returns a problem if a schema exceeds a
// limit; nullopt otherwise.
std::optional<std::string> parse_tool(CatalogueEntry& entry, const json::Raw& raw,
                                      const mcp::ListLimits& limits) {
  const json::Members tool(json::View(raw), {"inputSchema", "outputSchema"});
  for (const std::string_view schema_member : {"inputSchema", "outputSchema"}) {
    std::optional<std::string> problem =
        mcp::schema_limit_problem(schema_member, tool[schema_member], limits);
    if (problem) return problem;
  }
  entry.header_params = mcp::read_header_annotations(tool["inputSchema"], limits).shared_params();
  return std::nullopt;
}

// Sets `entry.uri_template`. Returns a problem if the URI template is invalid; nullopt otherwise.
std::optional<std::string> parse_template(CatalogueEntry& entry, const mcp::ListLimits& limits) {
  Result<mcp::UriTemplate> parsed = mcp::UriTemplate::parse(entry.name, limits);
  if (!parsed) return parsed.error().message();
  entry.uri_template = std::move(*parsed);
  return std::nullopt;
}

// Sets the members of `entry` that only entries of this kind have. Returns a problem or nullopt.
std::optional<std::string> parse_for_kind(CatalogueEntry& entry, ListKind kind, const json::Raw& raw,
                                          const mcp::ListLimits& limits) {
  if (kind == ListKind::tools) return parse_tool(entry, raw, limits);
  if (kind == ListKind::templates) return parse_template(entry, limits);
  if (kind == ListKind::resources && entry.name.size() > limits.max_uri_bytes)
    return over_limit_text("its uri", "max_uri_bytes", limits.max_uri_bytes);
  return std::nullopt;
}

// Returns " (`name`)", for the end of a problem text. A long name is shortened.
std::string name_suffix(const std::string& name) {
  constexpr std::size_t kMaxShownBytes = 200;
  return " (`" + (name.size() > kMaxShownBytes ? name.substr(0, kMaxShownBytes) + "…" : name) + "`)";
}

}  // namespace

std::string_view result_member(ListKind kind) noexcept {
  switch (kind) {
    case ListKind::tools: return "tools";
    case ListKind::resources: return "resources";
    case ListKind::templates: return "resourceTemplates";
    case ListKind::prompts: break;
  }
  return "prompts";
}

std::optional<std::string> own_name(ListKind kind, const json::Raw& entry) {
  return json::View(entry)[name_member(kind)].as_string();
}

std::string omitted_entry_text(const std::string& server, ListKind kind, const std::string& why) {
  return server + ": one of its " + std::string(result_member(kind)) + " is omitted: " + why;
}

void ServerLists::add_problem(const std::string& server, ListKind kind, const std::string& why) {
  if (problems_.size() < kMaxStoredProblems) {
    problems_.insert(omitted_entry_text(server, kind, why));
  } else if (!problems_.contains(omitted_entry_text(server, kind, why))) {
    ++further_problem_count_;
  }
}

void ServerLists::add_entry(const std::string& server, ListKind kind, const json::Raw& raw,
                            const mcp::ListLimits& limits) {
  const auto reject = [&](const std::string& why) { add_problem(server, kind, why); };
  if (raw.text().size() > limits.max_entry_bytes)
    return reject(over_limit_text("it", "max_entry_bytes", limits.max_entry_bytes));
  const json::View name = json::View(raw)[name_member(kind)];
  std::optional<std::string> name_at_server = name.as_string();
  if (!name_at_server || name_at_server->empty())
    return reject("it has no " + std::string(name_member(kind)));
  CatalogueEntry entry;
  entry.server = server;
  entry.name = std::move(*name_at_server);
  if (rules_ && !rules_->exists(kind, entry.name)) return;
  entry.listed = !rules_ || rules_->lists(kind, entry.name);
  const std::string& offered_name = rules_ ? rules_->offered_name(kind, entry.name) : entry.name;
  entry.public_name = is_renamed(kind) ? public_name(server, offered_name) : entry.name;
  if (const auto problem = entry_problem(kind, json::View(raw), true))
    return reject(*problem + name_suffix(entry.name));
  if (const auto problem = parse_for_kind(entry, kind, raw, limits))
    return reject(*problem + name_suffix(entry.name));
  if (find(kind, EntryKey(entry.public_name)) || (kind == ListKind::tools && !owns_public_name(entry)))
    return reject("`" + entry.public_name + "` is already in use");
  const auto legacy_problem = entry_problem(kind, json::View(raw), false);
  if (legacy_problem)
    reject("for clients before revision 2026-07-28 " + *legacy_problem + name_suffix(entry.name));
  const json::Raw renamed = is_renamed(kind) ? with_public_name(raw, name, entry.public_name) : raw;
  entry.modern_json = entry_for_era(kind, renamed, true);
  if (!legacy_problem) entry.legacy_json = entry_for_era(kind, renamed, false);
  add(kind, std::move(entry));
}

void ServerLists::add(ListKind kind, CatalogueEntry entry) {
  std::deque<CatalogueEntry>& entries = entries_[index(kind)];
  entries.push_back(std::move(entry));
  by_name_[index(kind)].emplace(EntryKey(entries.back().public_name), entries.size() - 1);
}

// ---- rules -----------------------------------------------------------------------------------------------

void ServerLists::set_rules(const std::string& server, ListRulesPtr rules) {
  rules_ = std::move(rules);
  if (!rules_ || rules_->tools.rename.empty()) return;
  for (const json::Raw& raw : raw_entries(ListKind::tools)) {
    const std::optional<std::string> name = own_name(ListKind::tools, raw);
    if (!name || !rules_->exists(ListKind::tools, *name)) continue;
    const std::string& offered_name = rules_->offered_name(ListKind::tools, *name);
    const std::pair<bool, std::string> claim(offered_name != *name, *name);
    const auto [at, first] = owners_of_public_names_.emplace(public_name(server, offered_name), claim);
    if (!first) at->second = std::min(at->second, claim);
  }
}

bool ServerLists::owns_public_name(const CatalogueEntry& tool) const {
  const auto owner = owners_of_public_names_.find(tool.public_name);
  return owner == owners_of_public_names_.end() || owner->second.second == tool.name;
}

void ServerLists::add_offered(const ServerLists& base, const EntryNamer& name_of) {
  rules_ = base.rules_;
  for (const ListKind kind : kListKinds) {
    set_missing_reason(kind, base.missing_reason(kind));
    if (!is_renamed(kind)) raw_entries(kind) = base.raw_entries(kind);
    for (const CatalogueEntry& entry : base.entries(kind)) {
      std::optional<std::string> name = name_of(kind, entry);
      if (!name) continue;
      const bool renamed = *name != entry.public_name;
      const CatalogueEntry* const other = renamed ? base.find(kind, EntryKey(*name)) : nullptr;
      const bool taken = other && other != &entry && name_of(kind, *other) == *name;
      if (taken || find(kind, EntryKey(*name))) {
        add_problem(entry.server, kind, "`" + *name + "` is already in use");
        continue;
      }
      CatalogueEntry offered = entry;
      if (renamed) set_public_name(offered, std::move(*name));
      add(kind, std::move(offered));
    }
  }
}

std::optional<std::shared_ptr<const ServerLists>> ServerLists::find_derived(std::uint64_t scope) const {
  const auto found = std::ranges::find(derived_, scope, [](const auto& derived) { return derived.first; });
  return found == derived_.end() ? std::nullopt : std::optional(found->second);
}

void ServerLists::store_derived(std::uint64_t scope, std::shared_ptr<const ServerLists> derived) const {
  derived_.emplace_back(scope, std::move(derived));
  if (derived_.size() > kMaxDerived) derived_.erase(derived_.begin());
}

const CatalogueEntry* ServerLists::find(ListKind kind, const EntryKey& key) const {
  const Index& names = by_name_[index(kind)];
  const auto found = names.find(key);
  return found == names.end() ? nullptr : &entries_[index(kind)][found->second];
}

std::optional<std::size_t> ServerLists::position_by_hash(ListKind kind, std::size_t hash) const {
  EntryKey first("");  // the empty name precedes all other names with the same hash
  first.hash = hash;
  const auto found = by_name_[index(kind)].lower_bound(first);
  if (found == by_name_[index(kind)].end() || found->first.hash != hash) return std::nullopt;
  return found->second;
}

bool ServerLists::free_some(std::size_t count) {
  derived_.clear();
  for (Index& names : by_name_) {
    while (count > 0 && !names.empty()) {
      names.erase(names.begin());
      --count;
    }
  }
  for (std::deque<CatalogueEntry>& entries : entries_) {
    while (count > 0 && !entries.empty()) {
      entries.pop_back();
      --count;
    }
  }
  for (std::vector<json::Raw>& raw_entries : raw_entries_) {
    while (count > 0 && !raw_entries.empty()) {
      raw_entries.pop_back();
      --count;
    }
  }
  return count == 0;
}

}  // namespace fairlead::gateway
