#include "gateway/left_out_log.hpp"

#include "fairlead/loop/timer.hpp"
#include "protocol/slices.hpp"

namespace fairlead::gateway {

namespace {

// What looking a URI up in one server's part costs, in the measure of Slices.
constexpr std::size_t kLookupCost = 100;

void log_number(const Log& log, std::size_t further) {
  if (further == 0) return;
  log.warning("not offered", {{"problem", std::to_string(further) + " more entries are left out"}});
}

// Collects the servers that list `offer` of `server` in vain, because one that is earlier by name has it.
std::vector<std::string> duplicate_problems(const Catalogue& catalogue, Kind kind, const Offer& offer) {
  const OfferKey key(offer.offered);
  const Offer* const owner = catalogue.find_uri(kind, key);
  std::vector<std::string> problems;
  for (const auto& [server, listed] : catalogue.parts()) {
    const Offer* const found = listed->find(kind, key);
    const bool concerned = owner->server == offer.server || server == offer.server;
    if (found && found != owner && concerned)
      problems.push_back(
          left_out(server, kind, "`" + offer.offered + "` is taken by `" + owner->server + "`"));
  }
  return problems;
}

}  // namespace

void log_left_out(const Log& log, const Listed& before, const Listed& now) {
  for (const std::string& problem : now.problems()) {
    if (!before.problems().contains(problem)) log.warning("not offered", {{"problem", problem}});
  }
  log_number(log, now.further_problems());
}

Task<void> log_duplicate_uris(Loop& loop, Log log, std::shared_ptr<const Catalogue> catalogue,
                              std::string server, std::shared_ptr<const Listed> before) {
  const Catalogue::Part* const part = catalogue->part_of(server);
  if (!part || catalogue->parts().size() < 2) co_return;
  mcp::Slices slices;
  std::size_t found = 0;
  for (const Kind kind : {Kind::resources, Kind::templates}) {
    for (const Offer& offer : part->listed->offers_of(kind)) {
      if (slices.due(catalogue->parts().size() * kLookupCost)) co_await sleep_for(loop, mcp::Slices::kPause);
      if (before && before->find(kind, OfferKey(offer.offered))) continue;
      for (const std::string& problem : duplicate_problems(*catalogue, kind, offer)) {
        if (++found <= Listed::kMaxProblems) log.warning("not offered", {{"problem", problem}});
      }
    }
  }
  if (found > Listed::kMaxProblems) log_number(log, found - Listed::kMaxProblems);
}

}  // namespace fairlead::gateway
