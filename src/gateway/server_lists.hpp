// CatalogueEntry: one entry of a server's list, validated and encoded for clients when the list is fetched.
// ServerLists: all lists of one server, indexed by name.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/json/raw.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "fairlead/protocol/list_limits.hpp"
#include "gateway/list_rules.hpp"
#include "mcp/catalogue.hpp"
#include "mcp/uri_template.hpp"

namespace fairlead::gateway {

inline constexpr std::array kListKinds = {ListKind::tools, ListKind::resources, ListKind::templates,
                                          ListKind::prompts};
// Returns the member of a list result that has the entries: "tools", "resources", "resourceTemplates" or
// "prompts".
std::string_view result_member(ListKind kind) noexcept;
// Returns the server's own name of an entry that it has listed: a name, a URI or a URI template. Returns
// nullopt if the entry has none.
std::optional<std::string> own_name(ListKind kind, const json::Raw& entry);

// A tool, prompt, resource or resource template of one server.
struct CatalogueEntry {
  std::string server;
  std::string name;         // as the server lists it: a tool's or prompt's name, a URI, or a URI template
  std::string public_name;  // the name that clients use
  json::Raw modern_json;    // the entry for modern clients
  json::Raw legacy_json;    // the entry for legacy clients; absent: it is hidden from them
  std::optional<mcp::UriTemplate> uri_template;  // the parsed name of a template; nullopt for other kinds
  mcp::HeaderParams header_params;  // the arguments that clients repeat as HTTP headers; tools only
  bool listed = true;               // if false, the entry is callable but not listed
};

// The public name of a catalogue entry with its hash. Keys are ordered by hash first, so that comparing two
// keys is cheap even if the names have a long common prefix. If a server chooses names whose hashes collide,
// comparing them costs no more than comparing the names.
struct EntryKey {
  explicit EntryKey(std::string_view public_name) noexcept
      : hash(std::hash<std::string_view>()(public_name)), name(public_name) {}
  std::size_t hash;
  std::string_view name;
  auto operator<=>(const EntryKey&) const = default;
};

// The lists of one server as they were last fetched, with an index by name. Immutable once a catalogue refers
// to them; all catalogues with the same lists share one object.
class ServerLists {
 public:
  static constexpr std::size_t kMaxStoredProblems = 100;  // further problems are only counted

  ServerLists() = default;
  ServerLists(const ServerLists&) = delete;
  ServerLists& operator=(const ServerLists&) = delete;

  // Returns the entries as the server sent them.
  const std::vector<json::Raw>& raw_entries(ListKind kind) const { return raw_entries_[index(kind)]; }
  std::vector<json::Raw>& raw_entries(ListKind kind) { return raw_entries_[index(kind)]; }

  // Sets the rules for the entries that are added. Called once, after raw_entries() are complete and before
  // the first add_entry().
  void set_rules(const std::string& server, ListRulesPtr rules);
  const ListRulesPtr& rules() const noexcept { return rules_; }
  // Adds the catalogue entry for `raw`, an entry that `server` sent, unless the rules exclude it. Rejects an
  // entry that has no name, whose name is a duplicate within this server, also after renaming, that does not
  // conform to MCP, or that exceeds a limit: then records a problem instead. Called once for each raw entry,
  // in order.
  void add_entry(const std::string& server, ListKind kind, const json::Raw& raw,
                 const mcp::ListLimits& limits);

  // Adds the entries of `base` for which `name_of` returns a name, under that name. Used instead of
  // raw_entries() and add_entry() for the lists of an endpoint.
  using EntryNamer = std::function<std::optional<std::string>(ListKind kind, const CatalogueEntry& entry)>;
  void add_offered(const ServerLists& base, const EntryNamer& name_of);
  // Returns the lists that have been derived from these lists for the endpoint scope with this id: null if
  // they are the same lists; nullopt if store_derived() was not called. The last kMaxDerived are kept.
  std::optional<std::shared_ptr<const ServerLists>> find_derived(std::uint64_t scope) const;
  void store_derived(std::uint64_t scope, std::shared_ptr<const ServerLists> derived) const;

  // Returns the entries that were not rejected, in the server's order.
  const std::deque<CatalogueEntry>& entries(ListKind kind) const { return entries_[index(kind)]; }
  // Returns null if no entry has this name. The pointer is valid for the lifetime of this object.
  const CatalogueEntry* find(ListKind kind, const EntryKey& key) const;
  // Returns the position in entries() of the entry whose public name has this hash; nullopt if there is none.
  std::optional<std::size_t> position_by_hash(ListKind kind, std::size_t hash) const;

  // Returns why the server's list of this kind is missing or outdated; empty if it is current.
  const std::string& missing_reason(ListKind kind) const { return missing_reasons_[index(kind)]; }
  void set_missing_reason(ListKind kind, std::string why) { missing_reasons_[index(kind)] = std::move(why); }

  // Returns why entries were rejected, one text per problem, without duplicates.
  const std::set<std::string>& problems() const noexcept { return problems_; }
  // Returns the number of problems beyond kMaxStoredProblems.
  std::size_t further_problem_count() const noexcept { return further_problem_count_; }

  // Frees up to `count` elements of the index, the entries and the raw entries. Returns false once all are
  // freed. Called by ListReclaimer only.
  bool free_some(std::size_t count);

 private:
  using Index = std::map<EntryKey, std::size_t>;  // positions in entries_, by public names in entries_

  static constexpr std::size_t index(ListKind kind) noexcept { return static_cast<std::size_t>(kind); }
  void add_problem(const std::string& server, ListKind kind, const std::string& why);
  void add(ListKind kind, CatalogueEntry entry);
  // Returns whether the tool gets its public name, because no other tool has a better claim to it.
  bool owns_public_name(const CatalogueEntry& tool) const;

  std::array<std::vector<json::Raw>, kListKinds.size()> raw_entries_;
  // Deques, because pointers to entries must stay valid.
  std::array<std::deque<CatalogueEntry>, kListKinds.size()> entries_;
  std::array<Index, kListKinds.size()> by_name_;
  std::array<std::string, kListKinds.size()> missing_reasons_;
  ListRulesPtr rules_;
  // If the rules rename tools: which tool gets each public name, as "is renamed" and its own name. A tool
  // that is not renamed precedes those that are; these are ordered by their own names.
  std::map<std::string, std::pair<bool, std::string>> owners_of_public_names_;
  static constexpr std::size_t kMaxDerived = 64;
  mutable std::vector<std::pair<std::uint64_t, std::shared_ptr<const ServerLists>>> derived_;
  std::set<std::string> problems_;
  std::size_t further_problem_count_ = 0;
};

// Returns a problem text such as "`server`: one of its tools is omitted: `why`".
std::string omitted_entry_text(const std::string& server, ListKind kind, const std::string& why);

}  // namespace fairlead::gateway
