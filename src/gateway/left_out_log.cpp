#include "gateway/left_out_log.hpp"

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

namespace {

// What looking a URI up in one server's part costs, in the measure of Slices.
constexpr std::size_t kLookupCost = 100;

void log_number(const Log& log, std::size_t further) {
  if (further == 0) return;
  log.warning("not offered", {{"problem", std::to_string(further) + " more entries are left out"}});
}

// Collects the servers that list `offer` of `offer.server` in vain, because one that is earlier by name has
// it.
std::vector<std::string> duplicate_problems(const ServerTable& servers, Kind kind, const Offer& offer) {
  const OfferKey key(offer.offered);
  const std::string* owner = nullptr;
  std::vector<std::string> problems;
  for (const auto& [server, entry] : servers.by_name()) {
    if (!entry->shared.listed || !entry->shared.listed->find(kind, key)) continue;
    if (owner && (*owner == offer.server || server == offer.server))
      problems.push_back(left_out(server, kind, "`" + offer.offered + "` is taken by `" + *owner + "`"));
    if (!owner) owner = &server;
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

Task<void> log_duplicate_uris(Loop& loop, Log log, std::shared_ptr<const ServerTable> servers,
                              std::shared_ptr<const Listed> listed, std::shared_ptr<const Listed> before) {
  if (servers->by_name().size() < 2) co_return;
  Slices slices;
  std::size_t found = 0;
  for (const Kind kind : {Kind::resources, Kind::templates}) {
    for (const Offer& offer : listed->offers_of(kind)) {
      if (slices.due(servers->by_name().size() * kLookupCost)) co_await sleep_for(loop, Slices::kPause);
      if (before && before->find(kind, OfferKey(offer.offered))) continue;
      for (const std::string& problem : duplicate_problems(*servers, kind, offer)) {
        if (++found <= Listed::kMaxProblems) log.warning("not offered", {{"problem", problem}});
      }
    }
  }
  if (found > Listed::kMaxProblems) log_number(log, found - Listed::kMaxProblems);
}

}  // namespace fairlead::gateway
