#include "gateway/offers.hpp"

#include "fairlead/json/writer.hpp"
#include "gateway/entry_rules.hpp"
#include "gateway/names.hpp"
#include "json/members.hpp"
#include "json/splice.hpp"

namespace fairlead::gateway {

namespace {

std::string_view key_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::tools:
    case Kind::prompts: return "name";
    case Kind::resources: return "uri";
    case Kind::templates: break;
  }
  return "uriTemplate";
}

// Only tools and prompts are renamed: a URI is an address, and links in results must lead there.
bool renamed(Kind kind) noexcept {
  return kind == Kind::tools || kind == Kind::prompts;
}

json::Raw with_name(const json::Raw& entry, json::View name, std::string_view offered) {
  return json::Raw::trusted(
      json::Splice(entry.bytes()).replace(name.text(), json::string(offered).bytes()).joined(),
      entry.one_line());
}

json::Raw without(const json::Raw& entry, json::View member) {
  if (member.absent()) return entry;
  return json::Raw::trusted(json::Splice(entry.bytes()).remove_member(member.text()).joined(),
                            entry.one_line());
}

json::Raw for_era(Kind kind, const json::Raw& entry, bool modern) {
  if (kind != Kind::tools) return entry;
  const json::Members members(json::View(entry), {"execution", "outputSchema"});
  if (modern) return without(entry, members["execution"]);
  // Up to 2025-11-25 structured content is an object.
  const json::View output = members["outputSchema"];
  return output["type"].as_string() == "object" ? entry : without(entry, output);
}

std::string over(std::string_view what, std::string_view limit, std::size_t value) {
  return std::string(what) + " is over the limit " + std::string(limit) + " (" + std::to_string(value) + ")";
}

// Which limit a tool is over; fills in what its annotations say.
std::optional<std::string> tool_problem(Offer& offer, const json::Raw& entry, const mcp::ListLimits& limits) {
  const json::Members tool(json::View(entry), {"inputSchema", "outputSchema"});
  for (const std::string_view which : {"inputSchema", "outputSchema"}) {
    std::optional<std::string> problem = mcp::schema_limit_problem(which, tool[which], limits);
    if (problem) return problem;
  }
  offer.header_params = mcp::read_header_annotations(tool["inputSchema"], limits).shared();
  return std::nullopt;
}

std::optional<std::string> template_problem(Offer& offer, const mcp::ListLimits& limits) {
  Result<mcp::UriTemplate> parsed = mcp::UriTemplate::parse(offer.name, limits);
  if (!parsed) return parsed.error().message();
  offer.pattern = std::move(*parsed);
  return std::nullopt;
}

std::optional<std::string> kind_problem(Offer& offer, Kind kind, const json::Raw& entry,
                                        const mcp::ListLimits& limits) {
  if (kind == Kind::tools) return tool_problem(offer, entry, limits);
  if (kind == Kind::templates) return template_problem(offer, limits);
  if (kind == Kind::resources && offer.name.size() > limits.max_uri_bytes)
    return over("its uri", "max_uri_bytes", limits.max_uri_bytes);
  return std::nullopt;
}

std::string quoted(const std::string& name) {
  constexpr std::size_t kMostShown = 200;
  return " (`" + (name.size() > kMostShown ? name.substr(0, kMostShown) + "…" : name) + "`)";
}

}  // namespace

std::string_view member_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::tools: return "tools";
    case Kind::resources: return "resources";
    case Kind::templates: return "resourceTemplates";
    case Kind::prompts: break;
  }
  return "prompts";
}

std::string left_out(const std::string& server, Kind kind, const std::string& why) {
  return server + ": one of its " + std::string(member_of(kind)) + " is left out: " + why;
}

void Listed::leave_out(const std::string& server, Kind kind, const std::string& why) {
  if (problems_.size() < kMaxProblems) {
    problems_.insert(left_out(server, kind, why));
  } else if (!problems_.contains(left_out(server, kind, why))) {
    ++further_problems_;
  }
}

void Listed::add_offer(const std::string& server, Kind kind, const json::Raw& entry,
                       const mcp::ListLimits& limits) {
  const auto refuse = [&](const std::string& why) { leave_out(server, kind, why); };
  if (entry.text().size() > limits.max_entry_bytes)
    return refuse(over("it", "max_entry_bytes", limits.max_entry_bytes));
  const json::View name = json::View(entry)[key_of(kind)];
  std::optional<std::string> own = name.as_string();
  if (!own || own->empty()) return refuse("it has no " + std::string(key_of(kind)));
  Offer offer;
  offer.server = server;
  offer.name = std::move(*own);
  offer.offered = renamed(kind) ? offered_name(server, offer.name) : offer.name;
  if (const auto why = entry_problem(kind, json::View(entry), true)) return refuse(*why + quoted(offer.name));
  if (const auto why = kind_problem(offer, kind, entry, limits)) return refuse(*why + quoted(offer.name));
  if (find(kind, OfferKey(offer.offered))) return refuse("`" + offer.offered + "` is taken");
  const auto narrower = entry_problem(kind, json::View(entry), false);
  if (narrower) refuse("for clients before 2026-07-28 " + *narrower + quoted(offer.name));
  const json::Raw shown = renamed(kind) ? with_name(entry, name, offer.offered) : entry;
  offer.entry = for_era(kind, shown, true);
  if (!narrower) offer.legacy = for_era(kind, shown, false);
  std::deque<Offer>& offers = offers_[index(kind)];
  offers.push_back(std::move(offer));
  by_name_[index(kind)].emplace(OfferKey(offers.back().offered), offers.size() - 1);
}

const Offer* Listed::find(Kind kind, const OfferKey& key) const {
  const Index& names = by_name_[index(kind)];
  const auto found = names.find(key);
  return found == names.end() ? nullptr : &offers_[index(kind)][found->second];
}

std::optional<std::size_t> Listed::position(Kind kind, std::size_t hash) const {
  OfferKey first("");  // the empty name comes before all others of its hash
  first.hash = hash;
  const auto found = by_name_[index(kind)].lower_bound(first);
  if (found == by_name_[index(kind)].end() || found->first.hash != hash) return std::nullopt;
  return found->second;
}

bool Listed::free_some(std::size_t count) {
  for (Index& names : by_name_) {
    while (count > 0 && !names.empty()) {
      names.erase(names.begin());
      --count;
    }
  }
  for (std::deque<Offer>& offers : offers_) {
    while (count > 0 && !offers.empty()) {
      offers.pop_back();
      --count;
    }
  }
  for (std::vector<json::Raw>& entries : entries_) {
    while (count > 0 && !entries.empty()) {
      entries.pop_back();
      --count;
    }
  }
  return count == 0;
}

}  // namespace fairlead::gateway
