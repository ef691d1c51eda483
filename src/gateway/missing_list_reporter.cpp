#include "gateway/missing_list_reporter.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/printable.hpp"
#include "fairlead/base/limits.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "fairlead/json/writer.hpp"
#include "gateway/list_fetcher.hpp"

namespace fairlead::gateway {

namespace {

// Returns why a server's list of this kind is missing; nullopt if it is not missing. `listed_server` is the
// server in the catalogue; null if the catalogue has no lists of it.
std::optional<std::string_view> missing_reason(const ServerEntry& entry, ListKind kind,
                                               const Catalogue::ListedServer* listed_server) {
  if (!entry.enabled) return std::nullopt;
  if (listed_server) {
    const std::string& why = listed_server->lists->missing_reason(kind);
    return why.empty() ? std::nullopt : std::optional<std::string_view>(why);
  }
  return entry.fetch_state.problem.empty() ? "its lists have not been fetched yet"
                                           : std::string_view(entry.fetch_state.problem);
}

void add_reason(std::string& reasons, const std::string& server, std::string_view why) {
  if (reasons.size() >= Limits::kMaxLogFieldBytes) return;
  reasons += (reasons.empty() ? "" : "; ") + server + ": " + shortened(why, Limits::kMaxLogFieldBytes);
}

// Finds servers of a catalogue by name. The names must be given in ascending order; then all calls together
// cost one pass over the servers.
class ListedServerCursor {
 public:
  explicit ListedServerCursor(std::span<const Catalogue::ListedServer> servers) : rest_(servers) {}
  // Returns null if the catalogue has no lists of `server`. REQUIRES: `server` is after the argument of the
  // previous call.
  const Catalogue::ListedServer* find(std::string_view server) {
    while (!rest_.empty() && rest_.front().name < server) rest_ = rest_.subspan(1);
    return !rest_.empty() && rest_.front().name == server ? &rest_.front() : nullptr;
  }

 private:
  std::span<const Catalogue::ListedServer> rest_;
};

}  // namespace

json::Raw MissingListReporter::report(ListKind kind, const Catalogue& catalogue, const ClientScope* client) {
  std::string reasons;
  std::size_t missing = 0;
  json::Writer meta;
  meta.begin_object().key(kIncompleteKey).begin_array();
  ListedServerCursor listed_servers(catalogue.servers());
  for (const auto& [name, entry] : servers_->by_name()) {
    const std::optional<std::string_view> why = missing_reason(*entry, kind, listed_servers.find(name));
    if (!why || (client && !client->offers(*entry)) || ++missing > kMaxNamedMissingServers) continue;
    meta.string(name);
    add_reason(reasons, name, *why);
  }
  meta.end_array();
  const std::size_t others = missing - std::min(missing, kMaxNamedMissingServers);
  if (others > 0) meta.key(kIncompleteOthersKey).unsigned_integer(others);
  meta.end_object();
  if (!client) log_if_changed(kind, std::move(reasons), others);
  return missing > 0 ? meta.finish() : json::Raw();
}

void MissingListReporter::log_if_changed(ListKind kind, std::string reasons, std::size_t others) {
  LoggedServers& logged = logged_[static_cast<std::size_t>(kind)];
  if (!reasons.empty() && (reasons != logged.reasons || others != logged.others))
    log_.warning("list is incomplete",
                 {{"method", list_method(kind)}, {"missing", reasons}, {"others", others}});
  logged = LoggedServers{std::move(reasons), others};
}

}  // namespace fairlead::gateway
