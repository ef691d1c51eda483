#include "gateway/own_list_fetcher.hpp"

#include <vector>

#include "fairlead/process/failure.hpp"

namespace fairlead::gateway {

bool OwnListFetcher::is_needed(const ServerEntry& entry, const Principal& client) {
  return entry.per_user() && entry.enabled && !client.user.empty() && !entry.shared.lists &&
         entry.fetch_state.attempted && !entry.unshared_lists(std::string_view(), client.user);
}

// The upstream fetches its lists when it becomes ready; this waits for the end of that.
Task<Result<void>> OwnListFetcher::fetch(std::shared_ptr<OwnListFetcher> self,
                                         std::shared_ptr<ServerEntry> entry, PrincipalPtr client,
                                         std::stop_token stop) {
  constexpr std::chrono::milliseconds kMaxWait{1'000};
  pool::Target target(entry->name(), std::string(), client->user);
  const Result<std::shared_ptr<pool::Upstream>> started =
      co_await self->pool_->warm(std::move(target), stop, client.get());
  if (!started) co_return started.error();
  if (is_needed(*entry, *client)) self->list_fetcher_->refresh_unshared(entry, *started);
  const Clock::time_point deadline = Clock::now() + entry->spec.clocks.absolute;
  while (!entry->retired && !stop.stop_requested() && Clock::now() < deadline) {
    const auto cache = entry->unshared.find(client->user);
    if (cache == entry->unshared.end() || !cache->second->fetching) break;
    co_await self->list_fetcher_->wait_for_any_attempt(stop, kMaxWait);
  }
  if (entry->retired || !is_needed(*entry, *client)) co_return Result<void>();
  co_return with_failure_code(Error(ErrorKind::connection_failed, "the lists could not be fetched"));
}

void OwnListFetcher::start(const std::shared_ptr<ServerEntry>& entry, const PrincipalPtr& client) {
  if (entry->fetching_users.insert(client->user).second) loop_.spawn(run(shared_from_this(), entry, client));
}

Task<void> OwnListFetcher::run(std::shared_ptr<OwnListFetcher> self, std::shared_ptr<ServerEntry> entry,
                               PrincipalPtr client) {
  // The pool logs why a server does not start.
  const Result<void> fetched = co_await fetch(self, entry, client, std::stop_token());
  static_cast<void>(fetched);
  entry->fetching_users.erase(client->user);
  self->list_fetcher_->update_initial_fetch_done();  // wakes wait_for_all()
}

Task<void> OwnListFetcher::wait_for_all(std::shared_ptr<OwnListFetcher> self,
                                        std::shared_ptr<const ServerTable> servers,
                                        std::shared_ptr<const EndpointScope> scope, PrincipalPtr client,
                                        std::stop_token stop, Clock::duration timeout) {
  if (client->user.empty()) co_return;
  const ClientScope offered{*scope, *client};
  std::vector<std::shared_ptr<ServerEntry>> started;
  for (const auto& [name, entry] : servers->by_name()) {
    if (!is_needed(*entry, *client) || !offered.offers(*entry)) continue;
    self->start(entry, client);
    started.push_back(entry);
  }
  const Clock::time_point deadline = Clock::now() + timeout;
  for (const std::shared_ptr<ServerEntry>& entry : started) {
    while (entry->fetching_users.contains(client->user) && Clock::now() < deadline && !stop.stop_requested())
      co_await self->list_fetcher_->wait_for_any_attempt(stop, deadline - Clock::now());
  }
}

}  // namespace fairlead::gateway
