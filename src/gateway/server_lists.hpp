// CatalogueEntry: one entry of a server's list, validated and encoded for clients when the list is fetched.
// ServerLists: all lists of one server, indexed by name.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/json/raw.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "fairlead/protocol/list_limits.hpp"
#include "mcp/catalogue.hpp"
#include "mcp/uri_template.hpp"

namespace fairlead::gateway {

using mcp::ListKind;
inline constexpr std::array kListKinds = {ListKind::tools, ListKind::resources, ListKind::templates,
                                          ListKind::prompts};
// Returns the member of a list result that has the entries: "tools", "resources", "resourceTemplates" or
// "prompts".
std::string_view result_member(ListKind kind) noexcept;

// A tool, prompt, resource or resource template of one server.
struct CatalogueEntry {
  std::string server;
  std::string name;         // as the server lists it: a tool's or prompt's name, a URI, or a URI template
  std::string public_name;  // the name that clients use
  json::Raw modern_json;    // the entry for modern clients
  json::Raw legacy_json;    // the entry for legacy clients; absent: it is hidden from them
  std::optional<mcp::UriTemplate> uri_template;  // the parsed name of a template; nullopt for other kinds
  mcp::HeaderParams header_params;  // the arguments that clients repeat as HTTP headers; tools only
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

  // Adds the catalogue entry for `raw`, an entry that `server` sent. Rejects an entry that has no name, whose
  // name is a duplicate within this server, that does not conform to MCP, or that exceeds a limit: then
  // records a problem instead. Called once for each raw entry, in order.
  void add_entry(const std::string& server, ListKind kind, const json::Raw& raw,
                 const mcp::ListLimits& limits);

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

  std::array<std::vector<json::Raw>, kListKinds.size()> raw_entries_;
  // Deques, because pointers to entries must stay valid.
  std::array<std::deque<CatalogueEntry>, kListKinds.size()> entries_;
  std::array<Index, kListKinds.size()> by_name_;
  std::array<std::string, kListKinds.size()> missing_reasons_;
  std::set<std::string> problems_;
  std::size_t further_problem_count_ = 0;
};

// Returns a problem text such as "`server`: one of its tools is omitted: `why`".
std::string omitted_entry_text(const std::string& server, ListKind kind, const std::string& why);

}  // namespace fairlead::gateway
