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

bool has_resources(const Catalogue::Part& part) {
  return !part.listed->of(Kind::resources).empty() || !part.listed->of(Kind::templates).empty();
}

using Servers = std::vector<const std::string*>;

// "`a`, `b` and 3 others".
std::string names_of(const Servers& servers) {
  constexpr std::size_t kMaxShown = 10;
  std::string names;
  for (std::size_t i = 0; i < std::min(servers.size(), kMaxShown); ++i)
    names += (i == 0 ? "`" : ", `") + *servers[i] + "`";
  if (servers.size() > kMaxShown) names += " and " + std::to_string(servers.size() - kMaxShown) + " others";
  return names;
}

// The servers whose templates match a URI.
struct TemplateMatches {
  Servers specific;                         // by a template that names the URI's scheme
  Servers catch_all;                        // only by one that does not
  const std::string* over_limit = nullptr;  // one whose templates could not all be compared
};

enum class Fit : std::uint8_t { none, catch_all, specific };

// The best fit among the templates of one server that the budget allows to compare.
Fit best_fit(const Listed& listed, std::string_view uri, mcp::MatchBudget& budget) {
  Fit best = Fit::none;
  for (const Offer& offer : listed.offers_of(Kind::templates)) {
    if (!budget.spend_on_template()) break;
    const bool specific = offer.pattern->names_scheme();
    if ((best == Fit::catch_all && !specific) || !offer.pattern->fits(uri, budget)) continue;
    if (specific) return Fit::specific;
    best = Fit::catch_all;
  }
  return best;
}

// Each server has an equal share of the steps that those before it have left over.
TemplateMatches match_templates(std::span<const Catalogue::Part> parts, std::string_view uri,
                                std::size_t max_steps) {
  const auto has_templates = [](const Catalogue::Part& part) {
    return !part.listed->offers_of(Kind::templates).empty();
  };
  auto servers = static_cast<std::size_t>(std::ranges::count_if(parts, has_templates));
  std::size_t steps = max_steps;
  TemplateMatches matches;
  for (const Catalogue::Part& part : parts | std::views::filter(has_templates)) {
    const std::size_t share = steps / servers--;
    mcp::MatchBudget budget(share);
    const Fit fit = best_fit(*part.listed, uri, budget);
    steps -= share - budget.left();
    if (fit == Fit::specific) matches.specific.push_back(&part.server);
    if (fit == Fit::catch_all) matches.catch_all.push_back(&part.server);
    if (budget.exhausted()) matches.over_limit = &part.server;
  }
  return matches;
}

Error ambiguous(const std::string& why) {
  return refusal_of(rpc::kInvalidParams, "Resource is ambiguous: " + why, failure::invalid_request);
}

}  // namespace

Catalogue::Catalogue(const Lists& lists, const mcp::ListLimits& limits) : limits_(limits) {
  parts_.reserve(lists.size());
  for (const auto& [server, listed] : lists) parts_.push_back(Part{server, listed});
}

const Catalogue::Part* Catalogue::part_of(std::string_view server) const {
  const auto found = std::ranges::lower_bound(parts_, server, {}, &Part::server);
  return found == parts_.end() || found->server != server ? nullptr : &*found;
}

// No server's name has `__` in it, and none is long enough to be cut (names.hpp): the first `__` ends it.
const Offer* Catalogue::find(Kind kind, std::string_view offered) const {
  const std::size_t end = offered.find("__");
  if (end == std::string_view::npos) return nullptr;
  const Part* const part = part_of(offered.substr(0, end));
  return part ? part->listed->find(kind, OfferKey(offered)) : nullptr;
}

const Offer* Catalogue::find_uri(Kind kind, const OfferKey& uri) const {
  for (const Part& part : parts_) {
    if (const Offer* const found = part.listed->find(kind, uri)) return found;
  }
  return nullptr;
}

Result<const std::string*> Catalogue::server_of_resource(std::string_view uri, bool complete) const {
  if (uri.size() > limits_.max_uri_bytes)
    return refusal_of(rpc::kInvalidParams,
                      "uri is over the limit " + limit_text("max_uri_bytes", limits_.max_uri_bytes),
                      failure::invalid_request);
  const OfferKey key(uri);
  for (const Kind kind : {Kind::resources, Kind::templates}) {
    if (const Offer* const listed = find_uri(kind, key)) return &listed->server;
  }
  return server_by_template(uri, complete);
}

Result<const std::string*> Catalogue::server_by_template(std::string_view uri, bool complete) const {
  const TemplateMatches matches = match_templates(parts_, uri, limits_.max_template_steps);
  if (matches.specific.size() == 1) return matches.specific.front();
  if (matches.specific.size() > 1)
    return ambiguous("the templates of several servers match `" + std::string(uri) + "` (" +
                     names_of(matches.specific) + ")");
  Servers having;
  for (const Part& part : parts_) {
    if (has_resources(part)) having.push_back(&part.server);
  }
  if (having.size() == 1 && complete) return having.front();
  if (!matches.catch_all.empty() && having.size() > 1)
    return ambiguous("no server lists `" + std::string(uri) + "`, and only a template for any URI (of " +
                     names_of(matches.catch_all) + ") matches it; servers with resources are " +
                     names_of(having));
  if (matches.over_limit)
    return refusal_of(rpc::kInvalidParams,
                      "Resource not found: comparing the uri with all templates of server `" +
                          *matches.over_limit + "` takes more than its share of " +
                          limit_text("max_template_steps", limits_.max_template_steps),
                      failure::resource_exhausted);
  return nullptr;
}

}  // namespace fairlead::gateway
