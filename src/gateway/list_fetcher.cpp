#include "gateway/list_fetcher.hpp"

#include <algorithm>
#include <utility>

#include "fairlead/process/failure.hpp"
#include "json/redact.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

std::string_view list_method(ListKind kind) noexcept {
  switch (kind) {
    case ListKind::tools: return "tools/list";
    case ListKind::resources: return "resources/list";
    case ListKind::templates: return "resources/templates/list";
    case ListKind::prompts: break;
  }
  return "prompts/list";
}

namespace {

constexpr std::chrono::milliseconds kMaxRetryDelay = std::chrono::minutes(5);

// Returns a lease of the upstream `changed` if it runs, even if it has max_calls active calls. Otherwise
// returns a lease of any upstream that serves all clients, which starts one if necessary.
Task<Result<pool::Lease>> acquire_lease(std::shared_ptr<pool::Pool> pool, std::string server,
                                        std::shared_ptr<pool::Upstream> changed) {
  if (changed) {
    Result<pool::Lease> running = pool->keep_alive(changed);
    if (running) co_return running;
  }
  pool::Target target(std::move(server));
  Result<pool::Lease> lease =
      co_await pool->acquire(std::move(target), std::stop_token(), pool::StartPriority::background);
  co_return lease;
}

Error shutting_down_error() {
  return with_failure_code(Error(ErrorKind::closed, "the gateway is shutting down"), failure::draining);
}

// Subtracts the size of a list from `budget`, the bytes left for the lists of its server. Returns `entries`,
// or fails with `resource_exhausted` if they exceed the budget.
Result<std::vector<json::Raw>> charge_to_budget(std::size_t& budget, std::vector<json::Raw> entries) {
  std::size_t bytes = 0;
  for (const json::Raw& entry : entries) bytes += entry.text().size();
  if (bytes > budget)
    return Error(ErrorKind::resource_exhausted,
                 "the server's lists together exceed the limit max_server_list_bytes (" +
                     std::to_string(mcp::ListLimits().max_server_list_bytes) + ")");
  budget -= bytes;
  return entries;
}

}  // namespace

void ListFetcher::refresh_shared(const EntryPtr& entry, const std::shared_ptr<pool::Upstream>& changed) {
  if (stopping_ || entry->retired || !entry->enabled) return;
  entry->shared.outdated = true;
  entry->shared.changed_upstream = changed;
  if (std::exchange(entry->shared.fetching, true)) return;
  loop_.spawn(fetch_shared(shared_from_this(), entry));
}

void ListFetcher::refresh_unshared(const EntryPtr& entry, const std::shared_ptr<pool::Upstream>& upstream) {
  if (stopping_ || entry->retired || !entry->enabled) return;
  if (upstream->state() != pool::UpstreamState::ready) return;  // the session may have ended
  std::shared_ptr<ListCache>& cache = entry->unshared.try_emplace(upstream->key()).first->second;
  if (!cache) cache = std::make_shared<ListCache>();
  cache->outdated = true;
  if (std::exchange(cache->fetching, true)) return;
  loop_.spawn(fetch_unshared(shared_from_this(), entry, upstream, cache));
}

void ListFetcher::stop() {
  stopping_ = true;
  for (const EntryPtr& entry : servers_->all()) entry->stop_fetching();
  wake_waiters();
}

void ListFetcher::update_initial_fetch_done() {
  if (!catalogue_->initial_fetch_done().is_set() && all_attempted()) catalogue_->initial_fetch_done().set();
  wake_waiters();
}

// Begins at the server at which the previous search stopped, so that with many servers each is examined only
// once or twice in total.
bool ListFetcher::all_attempted() {
  const auto& entries = servers_->by_name();
  const auto not_attempted = [](const auto& server) { return !server.second->fetch_state.attempted; };
  const auto from = entries.lower_bound(search_start_);
  auto found = std::find_if(from, entries.end(), not_attempted);
  if (found == entries.end()) found = std::find_if(entries.begin(), from, not_attempted);
  const bool all = found == entries.end() || !not_attempted(*found);
  search_start_ = all ? std::string() : found->first;
  return all;
}

// ---- waiting ---------------------------------------------------------------------------------------------

void ListFetcher::wake_waiters() {
  for (const auto& waiter : std::exchange(waiters_, {})) waiter->wake();
}

Task<void> ListFetcher::wait_for_any_attempt(std::stop_token stop, Clock::duration timeout) {
  const auto keep = shared_from_this();
  const auto waiter = std::make_shared<pool::Waiter>(loop_);
  waiters_.push_back(waiter);
  const bool woken = co_await pool::Waiter::wait(waiter, timeout, std::move(stop));
  if (!woken) std::erase(waiters_, waiter);
}

Task<Result<void>> ListFetcher::fetch_for_request(EntryPtr entry, ListKind kind, PrincipalPtr client,
                                                  std::stop_token stop) {
  const auto keep = shared_from_this();
  pool::Target target(entry->name());
  const Result<std::shared_ptr<pool::Upstream>> started =
      co_await pool_->warm(std::move(target), stop, client.get());
  if (entry->retired) co_return Result<void>();
  if (!started) co_return started.error();
  // If an attempt was in progress before the server started, it may have failed for a reason that no longer
  // applies. So this waits until an attempt that it has started itself has ended.
  bool started_fetch = false;
  while (!started_fetch && entry->may_have_unlisted_entries(kind) && !entry->retired) {
    started_fetch = !entry->shared.fetching;
    if (started_fetch) refresh_shared(entry, *started);
    const Result<void> ended = co_await wait_for_attempt(entry, stop);
    if (!ended) co_return ended.error();
  }
  if (entry->retired || !entry->may_have_unlisted_entries(kind)) co_return Result<void>();
  const std::optional<Error>& error = entry->fetch_state.errors_by_kind[static_cast<std::size_t>(kind)];
  co_return error ? *error : *entry->fetch_state.attempt_error;
}

Task<Result<void>> ListFetcher::wait_for_attempt(EntryPtr entry, std::stop_token stop) {
  if (stopping_) co_return shutting_down_error();
  const auto waiter = std::make_shared<pool::Waiter>(loop_);
  entry->fetch_state.waiters.push_back(waiter);
  const Clock::duration timeout = entry->spec.clocks.absolute;
  const bool woken = co_await pool::Waiter::wait(waiter, timeout, stop);
  if (stopping_) co_return shutting_down_error();
  if (woken) co_return Result<void>();
  std::erase(entry->fetch_state.waiters, waiter);
  if (stop.stop_requested())
    co_return with_failure_code(Error(ErrorKind::cancelled, "the request was cancelled"));
  co_return Error::timeout("the lists of server " + entry->name(), entry->spec.clocks.absolute);
}

// ---- fetching --------------------------------------------------------------------------------------------

Task<void> ListFetcher::fetch_shared(std::shared_ptr<ListFetcher> self, EntryPtr entry) {
  bool succeeded = true;
  while (succeeded && entry->shared.outdated) {
    succeeded = co_await self->fetch_shared_once(entry);
  }
  entry->shared.fetching = false;
  if (!entry->fetch_state.problem.empty()) self->retry_later(entry);
  self->end_attempt(*entry);
}

void ListFetcher::end_attempt(ServerEntry& entry) {
  entry.fetch_state.attempted = true;
  entry.wake_waiters();
  update_initial_fetch_done();
}

Task<bool> ListFetcher::fetch_shared_once(EntryPtr entry) {
  const bool running = co_await wait_for_rate_limit(entry->shared);
  if (!running || entry->retired) co_return false;
  Result<pool::Lease> lease =
      co_await acquire_lease(pool_, entry->name(), entry->shared.changed_upstream.lock());
  if (entry->retired) co_return false;
  if (!lease) {
    record_outcome(*entry, lease.error());
    co_return false;
  }
  entry->revision = lease->connection()->server().revision;
  const Result<ListOutcome> outcome = co_await fetch_lists(std::move(*lease), entry, entry->shared);
  if (entry->retired) co_return false;
  record_outcome(*entry, outcome);
  if (!outcome) co_return false;
  entry->lists_are_stored = false;
  catalogue_->publish_shared(*entry, outcome->lists);
  builder_->apply_rules(entry);
  end_attempt(*entry);  // here, because a server that keeps changing its lists never ends fetch_shared()
  co_return true;
}

void ListFetcher::record_outcome(ServerEntry& entry, const Result<ListOutcome>& outcome) {
  ListFetchState& fetch_state = entry.fetch_state;
  fetch_state.attempt_error = outcome ? std::nullopt : std::optional(outcome.error());
  fetch_state.errors_by_kind = outcome ? outcome->errors_by_kind : ListOutcome().errors_by_kind;
  std::string problem = outcome ? outcome->problem : outcome.error().to_string();
  if (problem.empty()) fetch_state.retry_delay = {};
  const bool changed = !stopping_ && !problem.empty() && problem != fetch_state.problem;
  fetch_state.problem = std::move(problem);
  if (changed)
    log_.warning("cannot fetch lists", {{"server", entry.name()}, {"reason", fetch_state.problem}});
}

// Without a retry nothing would start this server again: it has no entries in the catalogue, so no client
// calls it.
void ListFetcher::retry_later(const EntryPtr& entry) {
  if (stopping_ || entry->retired) return;
  ListFetchState& fetch_state = entry->fetch_state;
  fetch_state.retry_delay = fetch_state.retry_delay.count() == 0
                                ? first_retry_delay_
                                : std::min(2 * fetch_state.retry_delay, kMaxRetryDelay);
  fetch_state.retry_timer.emplace(loop_);
  fetch_state.retry_timer->arm_after(
      fetch_state.retry_delay, [weak = weak_from_this(), weak_entry = std::weak_ptr<ServerEntry>(entry)] {
        const auto self = weak.lock();
        const auto retried = weak_entry.lock();
        if (self && retried) self->refresh_shared(retried, nullptr);
      });
}

Task<void> ListFetcher::fetch_unshared(std::shared_ptr<ListFetcher> self, EntryPtr entry,
                                       std::shared_ptr<pool::Upstream> upstream,
                                       std::shared_ptr<ListCache> cache) {
  const std::string key = upstream->key();
  while (cache->outdated) {
    const bool running = co_await self->wait_for_rate_limit(*cache);
    if (!running || entry->retired) break;
    Result<pool::Lease> lease = self->pool_->keep_alive(upstream);
    if (!lease) break;
    const Result<ListOutcome> outcome = co_await self->fetch_lists(std::move(*lease), entry, *cache);
    if (entry->retired) break;
    const std::string problem = outcome ? outcome->problem : outcome.error().to_string();
    if (!problem.empty())
      self->log_.warning("cannot fetch lists",
                         {{"server", entry->name()}, {"for", key}, {"reason", problem}});
    if (!outcome) break;
    self->catalogue_->publish_unshared(*entry, key, *cache, outcome->lists);
    self->builder_->apply_rules(entry);
    // The registry records what the shared lists have; they may have changed in the same way.
    if (!same_rules(ListBuilder::rules_for(*entry, *cache), entry->rules))
      self->refresh_shared(entry, nullptr);
  }
  cache->fetching = false;
  self->wake_waiters();
}

Task<bool> ListFetcher::wait_for_rate_limit(ListCache& cache) {
  const Clock::duration delay = cache.earliest_fetch - Clock::now();
  co_await sleep_for(loop_, delay);
  cache.earliest_fetch = Clock::now() + min_list_interval_;
  cache.outdated = false;
  co_return !stopping_;
}

// ---- one upstream ----------------------------------------------------------------------------------------

Task<Result<ListFetcher::ListOutcome>> ListFetcher::fetch_lists(pool::Lease lease, EntryPtr entry,
                                                                ListCache& cache) {
  const std::shared_ptr<pool::UpstreamConnection> connection = lease.connection();
  // The lease is stored in the cache, so that stop_fetching() can release it.
  cache.lease.emplace(std::move(lease));
  co_await subscribe_to_changes(connection, cache);
  const std::shared_ptr<ServerLists> lists = catalogue_->make_lists();
  ListOutcome outcome;
  std::size_t budget = mcp::ListLimits().max_server_list_bytes;
  for (const ListKind kind : kListKinds) {
    const std::string_view capability = kind == ListKind::templates ? "resources" : result_member(kind);
    if (json::View(connection->server().capabilities)[capability].absent()) continue;
    Result<std::vector<json::Raw>> entries =
        co_await connection->list(std::string(list_method(kind)), std::string(result_member(kind)));
    if (entries) entries = charge_to_budget(budget, std::move(*entries));
    if (entries) {
      lists->raw_entries(kind) = std::move(*entries);
      continue;
    }
    // Many servers that have resources have no templates and do not implement resources/templates/list.
    if (kind == ListKind::templates && entries.error().kind() == ErrorKind::remote) continue;
    const Error error = json::redact(*pool_->monitor()->redactor(), entries.error());
    outcome.problem = std::string(list_method(kind)) + ": " + error.to_string();
    outcome.errors_by_kind[static_cast<std::size_t>(kind)] = error;
    if (connection->end_reason()) {
      cache.lease.reset();
      co_return error;
    }
    // The lists of the other kinds are still used; for this kind the previous list is kept.
    if (cache.lists) lists->raw_entries(kind) = cache.lists->raw_entries(kind);
    lists->set_missing_reason(kind, outcome.problem);
  }
  cache.lease.reset();
  if (!entry->retired) builder_->observe(*entry, cache, *lists, outcome.errors_by_kind);
  ListRulesPtr rules = ListBuilder::rules_for(*entry, cache);
  const std::shared_ptr<const ServerLists> former = cache.lists;
  if (former && same_raw_lists(*former, *lists) && same_rules(former->rules(), rules)) {
    outcome.lists = former;
    co_return outcome;
  }
  co_await builder_->add_entries(entry, std::move(rules), lists);
  outcome.lists = lists;
  co_return outcome;
}

// A modern server notifies only subscribers of list changes. Without this subscription, the gateway would
// notice changes only when the server is restarted.
Task<void> ListFetcher::subscribe_to_changes(std::shared_ptr<pool::UpstreamConnection> connection,
                                             ListCache& cache) {
  if (!mcp::is_modern(connection->server().revision) || cache.subscribed_connection.lock() == connection)
    co_return;
  cache.subscribed_connection = connection;
  mcp::SubscriptionFilter filter;
  filter.tools = filter.prompts = filter.resources = true;
  static_cast<void>(co_await connection->subscribe(std::move(filter)));
}

}  // namespace fairlead::gateway
