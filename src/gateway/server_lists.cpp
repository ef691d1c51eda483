#include "gateway/server_lists.hpp"

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
  std::optional<std::string> own_name = name.as_string();
  if (!own_name || own_name->empty()) return reject("it has no " + std::string(name_member(kind)));
  CatalogueEntry entry;
  entry.server = server;
  entry.name = std::move(*own_name);
  entry.public_name = is_renamed(kind) ? public_name(server, entry.name) : entry.name;
  if (const auto problem = entry_problem(kind, json::View(raw), true))
    return reject(*problem + name_suffix(entry.name));
  if (const auto problem = parse_for_kind(entry, kind, raw, limits))
    return reject(*problem + name_suffix(entry.name));
  if (find(kind, EntryKey(entry.public_name))) return reject("`" + entry.public_name + "` is already in use");
  const auto legacy_problem = entry_problem(kind, json::View(raw), false);
  if (legacy_problem)
    reject("for clients before revision 2026-07-28 " + *legacy_problem + name_suffix(entry.name));
  const json::Raw renamed = is_renamed(kind) ? with_public_name(raw, name, entry.public_name) : raw;
  entry.modern_json = entry_for_era(kind, renamed, true);
  if (!legacy_problem) entry.legacy_json = entry_for_era(kind, renamed, false);
  std::deque<CatalogueEntry>& entries = entries_[index(kind)];
  entries.push_back(std::move(entry));
  by_name_[index(kind)].emplace(EntryKey(entries.back().public_name), entries.size() - 1);
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
