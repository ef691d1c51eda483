// Offer: an entry of a server's list, checked once and made ready for clients when it is listed. Listed: all
// offers of one server, found by name.
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
#include "mcp/uri_template.hpp"

namespace fairlead::gateway {

enum class Kind : std::uint8_t { tools, resources, templates, prompts };
inline constexpr std::array kKinds = {Kind::tools, Kind::resources, Kind::templates, Kind::prompts};
// "tools", "resources", "resourceTemplates", "prompts": the member of a list result.
std::string_view member_of(Kind kind) noexcept;

// One thing offered, and whose it is.
struct Offer {
  std::string server;
  std::string name;                         // the server's own: a tool's or prompt's name, a URI, a template
  std::string offered;                      // the name that clients use
  json::Raw entry;                          // as clients see it
  json::Raw legacy;                         // as clients before 2026-07-28 see it; absent: they do not
  std::optional<mcp::UriTemplate> pattern;  // of a template
  mcp::HeaderParams header_params;          // of a tool
};

// The name of an offer with its hash. Ordered by hash first: comparing two is cheap even if the names have
// long beginnings in common, and names chosen to collide cost no more than a comparison of text.
struct OfferKey {
  explicit OfferKey(std::string_view offered) noexcept
      : hash(std::hash<std::string_view>()(offered)), name(offered) {}
  std::size_t hash;
  std::string_view name;
  auto operator<=>(const OfferKey&) const = default;
};

// What one server last listed, with an index of its own. Never changed once it is part of a catalogue, and
// shared by all catalogues that have it in common.
class Listed {
 public:
  static constexpr std::size_t kMaxProblems = 100;  // whose text is kept; the others are counted

  Listed() = default;
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

  // The entries as the server sent them.
  const std::vector<json::Raw>& of(Kind kind) const { return entries_[index(kind)]; }
  std::vector<json::Raw>& of(Kind kind) { return entries_[index(kind)]; }

  // Adds the offer for an entry of `server`. What cannot be offered (no name, a name that another entry of
  // this server has, not as MCP has it, over a limit) becomes a problem. Called for each entry, in order.
  void add_offer(const std::string& server, Kind kind, const json::Raw& entry, const mcp::ListLimits& limits);

  const std::deque<Offer>& offers_of(Kind kind) const { return offers_[index(kind)]; }
  // Null if there is none of this name. Valid for as long as this object.
  const Offer* find(Kind kind, const OfferKey& key) const;
  // The position in offers_of() of the offer whose name has this hash; nullopt if there is none.
  std::optional<std::size_t> position(Kind kind, std::size_t hash) const;

  // Why the server's list of this kind is missing, or as it was before; empty if it is not.
  const std::string& missing(Kind kind) const { return missing_[index(kind)]; }
  void set_missing(Kind kind, std::string why) { missing_[index(kind)] = std::move(why); }

  // Why entries are left out, without repetitions.
  const std::set<std::string>& problems() const noexcept { return problems_; }
  std::size_t further_problems() const noexcept { return further_problems_; }

  // Frees up to `count` entries of the index, offers and entries. Returns false once nothing is left. For
  // PartReaper.
  bool free_some(std::size_t count);

 private:
  using Index = std::map<OfferKey, std::size_t>;  // positions in offers_; the keys point into it

  static constexpr std::size_t index(Kind kind) noexcept { return static_cast<std::size_t>(kind); }
  void leave_out(const std::string& server, Kind kind, const std::string& why);

  std::array<std::vector<json::Raw>, kKinds.size()> entries_;
  std::array<std::deque<Offer>, kKinds.size()> offers_;  // a deque: offers stay where they are
  std::array<Index, kKinds.size()> by_name_;
  std::array<std::string, kKinds.size()> missing_;
  std::set<std::string> problems_;
  std::size_t further_problems_ = 0;
};

// "`server`: one of its tools is left out: `why`".
std::string left_out(const std::string& server, Kind kind, const std::string& why);

}  // namespace fairlead::gateway
