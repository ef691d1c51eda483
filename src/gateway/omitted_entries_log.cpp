#include "gateway/omitted_entries_log.hpp"

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

namespace {

// The cost of looking up a URI in one server's lists, in bytes for Slices::due().
constexpr std::size_t kLookupCost = 100;

void log_further_count(const Log& log, std::size_t further) {
  if (further == 0) return;
  log.warning("entry omitted", {{"problem", std::to_string(further) + " more entries are omitted"}});
}

// Returns a problem for each server whose entry with the URI of `listed_entry` is omitted, because a server
// that precedes it in the order of names has the same URI. Considers only conflicts in which
// `listed_entry.server` is one of the two servers.
std::vector<std::string> duplicate_problems(const ServerTable& servers, ListKind kind,
                                            const CatalogueEntry& listed_entry) {
  const EntryKey key(listed_entry.public_name);
  const std::string* owner = nullptr;
  std::vector<std::string> problems;
  for (const auto& [server, entry] : servers.by_name()) {
    if (!entry->shared.lists || !entry->shared.lists->find(kind, key)) continue;
    if (owner && (*owner == listed_entry.server || server == listed_entry.server))
      problems.push_back(
          omitted_entry_text(server, kind, "`" + listed_entry.public_name + "` is used by `" + *owner + "`"));
    if (!owner) owner = &server;
  }
  return problems;
}

}  // namespace

void log_omitted_entries(const Log& log, const ServerLists& before, const ServerLists& now) {
  for (const std::string& problem : now.problems()) {
    if (!before.problems().contains(problem)) log.warning("entry omitted", {{"problem", problem}});
  }
  log_further_count(log, now.further_problem_count());
}

Task<void> log_duplicate_uris(Loop& loop, Log log, std::shared_ptr<const ServerTable> servers,
                              std::shared_ptr<const ServerLists> lists,
                              std::shared_ptr<const ServerLists> before) {
  if (servers->by_name().size() < 2) co_return;
  Slices slices;
  std::size_t problem_count = 0;
  for (const ListKind kind : {ListKind::resources, ListKind::templates}) {
    for (const CatalogueEntry& listed_entry : lists->entries(kind)) {
      if (slices.due(servers->by_name().size() * kLookupCost)) co_await sleep_for(loop, Slices::kPause);
      if (before && before->find(kind, EntryKey(listed_entry.public_name))) continue;
      for (const std::string& problem : duplicate_problems(*servers, kind, listed_entry)) {
        if (++problem_count <= ServerLists::kMaxStoredProblems)
          log.warning("entry omitted", {{"problem", problem}});
      }
    }
  }
  if (problem_count > ServerLists::kMaxStoredProblems)
    log_further_count(log, problem_count - ServerLists::kMaxStoredProblems);
}

}  // namespace fairlead::gateway
