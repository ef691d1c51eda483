#include "gateway/listing.hpp"

#include <algorithm>
#include <utility>

#include "fairlead/process/failure.hpp"
#include "json/redact.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

std::string_view list_method(Kind kind) noexcept {
  switch (kind) {
    case Kind::tools: return "tools/list";
    case Kind::resources: return "resources/list";
    case Kind::templates: return "resources/templates/list";
    case Kind::prompts: break;
  }
  return "prompts/list";
}

namespace {

constexpr std::chrono::milliseconds kMaxRetryDelay = std::chrono::minutes(5);
constexpr std::chrono::milliseconds kMinListInterval{100};

// An upstream that has changed is asked even when it has its fill of calls.
Task<Result<pool::Lease>> lease_of(std::shared_ptr<pool::Pool> pool, std::string server,
                                   std::shared_ptr<pool::Upstream> changed) {
  if (changed) {
    Result<pool::Lease> held = pool->hold(changed);
    if (held) co_return held;
  }
  pool::Target target(std::move(server));
  Task<Result<pool::Lease>> acquiring =
      pool->acquire(std::move(target), std::stop_token(), pool::StartPriority::background);
  Result<pool::Lease> lease = co_await acquiring;
  co_return lease;
}

Error shutting_down() {
  return with_failure_code(Error(ErrorKind::closed, "the gateway is shutting down"), failure::draining);
}

// Charges a list to what the lists of its server may still have.
Result<std::vector<json::Raw>> within(std::size_t& budget, std::vector<json::Raw> entries) {
  std::size_t bytes = 0;
  for (const json::Raw& entry : entries) bytes += entry.text().size();
  if (bytes > budget)
    return Error(ErrorKind::resource_exhausted,
                 "the server's lists together are over the limit max_server_list_bytes (" +
                     std::to_string(mcp::ListLimits().max_server_list_bytes) + ")");
  budget -= bytes;
  return entries;
}

}  // namespace

void Listing::refresh(const EntryPtr& entry, const std::shared_ptr<pool::Upstream>& changed) {
  if (stopping_ || entry->retired || !entry->enabled) return;
  entry->shared.again = true;
  entry->shared.changed = changed;
  if (std::exchange(entry->shared.asking, true)) return;
  loop_.spawn(list_shared(shared_from_this(), entry));
}

void Listing::refresh_own(const EntryPtr& entry, const std::shared_ptr<pool::Upstream>& upstream) {
  if (stopping_ || entry->retired || !entry->enabled) return;
  if (upstream->state() != pool::State::ready) return;  // its session may have ended
  std::shared_ptr<ListCache>& cache = entry->own.try_emplace(upstream->key()).first->second;
  if (!cache) cache = std::make_shared<ListCache>();
  cache->again = true;
  if (std::exchange(cache->asking, true)) return;
  loop_.spawn(list_own(shared_from_this(), entry, upstream, cache));
}

void Listing::stop() {
  stopping_ = true;
  for (const EntryPtr& entry : servers_->all()) entry->stop_listing();
  call_waiters();
}

void Listing::check_complete() {
  if (!catalogue_->complete().is_set() && all_attempted()) catalogue_->complete().set();
  call_waiters();
}

// Looks on where it found a server that had not tried to list, so that each of many is looked at once or
// twice.
bool Listing::all_attempted() {
  const auto& entries = servers_->by_name();
  const auto waits = [](const auto& one) { return !one.second->listing.attempted; };
  const auto from = entries.lower_bound(awaited_);
  auto found = std::find_if(from, entries.end(), waits);
  if (found == entries.end()) found = std::find_if(entries.begin(), from, waits);
  const bool all = found == entries.end() || !waits(*found);
  awaited_ = all ? std::string() : found->first;
  return all;
}

// ---- waiting ---------------------------------------------------------------------------------------------

void Listing::call_waiters() {
  for (const auto& waiter : std::exchange(waiters_, {})) waiter->call();
}

Task<void> Listing::next_attempt(std::stop_token stop) {
  const auto keep = shared_from_this();
  const auto waiter = std::make_shared<pool::Waiter>(loop_);
  waiters_.push_back(waiter);
  Task<bool> waiting = pool::Waiter::wait(waiter, Clock::duration::max(), std::move(stop));
  const bool called = co_await waiting;
  if (!called) std::erase(waiters_, waiter);
}

Task<Result<void>> Listing::list_for_request(EntryPtr entry, Kind kind, PrincipalPtr client,
                                             std::stop_token stop) {
  const auto keep = shared_from_this();
  pool::Target target(entry->name());
  Task<Result<std::shared_ptr<pool::Upstream>>> starting = pool_->warm(std::move(target), stop, client.get());
  const Result<std::shared_ptr<pool::Upstream>> started = co_await starting;
  if (entry->retired) co_return Result<void>();
  if (!started) co_return started.error();
  // An attempt that was under way before may have failed for a reason that is gone.
  bool fresh = false;
  while (!fresh && entry->unlisted(kind) && !entry->retired) {
    fresh = !entry->shared.asking;
    if (fresh) refresh(entry, *started);
    Task<Result<void>> waiting = wait_for_attempt(entry, stop);
    const Result<void> ended = co_await waiting;
    if (!ended) co_return ended.error();
  }
  if (entry->retired || !entry->unlisted(kind)) co_return Result<void>();
  const std::optional<Error>& error = entry->listing.errors[static_cast<std::size_t>(kind)];
  co_return error ? *error : *entry->listing.failure;
}

Task<Result<void>> Listing::wait_for_attempt(EntryPtr entry, std::stop_token stop) {
  if (stopping_) co_return shutting_down();
  const auto waiter = std::make_shared<pool::Waiter>(loop_);
  entry->listing.waiters.push_back(waiter);
  const Clock::duration timeout = entry->spec.clocks.absolute;
  Task<bool> waiting = pool::Waiter::wait(waiter, timeout, stop);
  const bool called = co_await waiting;
  if (stopping_) co_return shutting_down();
  if (called) co_return Result<void>();
  std::erase(entry->listing.waiters, waiter);
  if (stop.stop_requested()) co_return with_failure_code(Error(ErrorKind::cancelled, "given up"));
  co_return Error::timeout("the lists of server " + entry->name(), entry->spec.clocks.absolute);
}

// ---- asking ----------------------------------------------------------------------------------------------

Task<void> Listing::list_shared(std::shared_ptr<Listing> self, EntryPtr entry) {
  bool goes_on = true;
  while (goes_on && entry->shared.again) {
    Task<bool> listing = self->list_once(entry);
    goes_on = co_await listing;
  }
  entry->shared.asking = false;
  if (!entry->listing.problem.empty()) self->retry_later(entry);
  self->end_attempt(*entry);
}

void Listing::end_attempt(ServerEntry& entry) {
  entry.listing.attempted = true;
  entry.call_waiters();
  check_complete();
}

Task<bool> Listing::list_once(EntryPtr entry) {
  Task<bool> waiting = wait_for_rate_limit(entry->shared);
  const bool goes_on = co_await waiting;
  if (!goes_on || entry->retired) co_return false;
  Task<Result<pool::Lease>> leasing = lease_of(pool_, entry->name(), entry->shared.changed.lock());
  Result<pool::Lease> lease = co_await leasing;
  if (entry->retired) co_return false;
  if (!lease) {
    note_outcome(*entry, lease.error());
    co_return false;
  }
  entry->revision = lease->connection()->server().revision;
  Task<Result<ListOutcome>> asking = ask(std::move(*lease), entry->shared);
  const Result<ListOutcome> asked = co_await asking;
  if (entry->retired) co_return false;
  note_outcome(*entry, asked);
  if (!asked) co_return false;
  catalogue_->publish(*entry, asked->listed);
  end_attempt(*entry);  // now: a server that always has changed is asked again and again
  co_return true;
}

void Listing::note_outcome(ServerEntry& entry, const Result<ListOutcome>& outcome) {
  ListingState& listing = entry.listing;
  listing.failure = outcome ? std::nullopt : std::optional(outcome.error());
  listing.errors = outcome ? outcome->errors : ListOutcome().errors;
  std::string problem = outcome ? outcome->problem : outcome.error().to_string();
  if (problem.empty()) listing.pause = {};
  const bool news = !stopping_ && !problem.empty() && problem != listing.problem;
  listing.problem = std::move(problem);
  if (news) log_.warning("server does not list", {{"server", entry.name()}, {"reason", listing.problem}});
}

// With nothing of it offered nobody would call a server that could not list, so nothing else would start it.
void Listing::retry_later(const EntryPtr& entry) {
  if (stopping_ || entry->retired) return;
  ListingState& listing = entry->listing;
  listing.pause = listing.pause.count() == 0 ? retry_delay_ : std::min(2 * listing.pause, kMaxRetryDelay);
  listing.retry.emplace(loop_);
  listing.retry->arm_after(listing.pause, [weak = weak_from_this(), of = std::weak_ptr<ServerEntry>(entry)] {
    const auto self = weak.lock();
    const auto retried = of.lock();
    if (self && retried) self->refresh(retried, nullptr);
  });
}

Task<void> Listing::list_own(std::shared_ptr<Listing> self, EntryPtr entry,
                             std::shared_ptr<pool::Upstream> upstream, std::shared_ptr<ListCache> cache) {
  const std::string key = upstream->key();
  while (cache->again) {
    Task<bool> waiting = self->wait_for_rate_limit(*cache);
    const bool goes_on = co_await waiting;
    if (!goes_on || entry->retired) break;
    Result<pool::Lease> lease = self->pool_->hold(upstream);
    if (!lease) break;
    Task<Result<ListOutcome>> asking = self->ask(std::move(*lease), *cache);
    const Result<ListOutcome> asked = co_await asking;
    if (entry->retired) break;
    const std::string problem = asked ? asked->problem : asked.error().to_string();
    if (!problem.empty())
      self->log_.warning("server does not list",
                         {{"server", entry->name()}, {"for", key}, {"reason", problem}});
    if (!asked) break;
    self->catalogue_->publish_own(*entry, key, *cache, asked->listed);
  }
  cache->asking = false;
}

Task<bool> Listing::wait_for_rate_limit(ListCache& cache) {
  const Clock::duration left = cache.next - Clock::now();
  co_await sleep_for(loop_, left);
  cache.next = Clock::now() + kMinListInterval;
  cache.again = false;
  co_return !stopping_;
}

// ---- one upstream ----------------------------------------------------------------------------------------

Task<Result<Listing::ListOutcome>> Listing::ask(pool::Lease lease, ListCache& cache) {
  const std::shared_ptr<pool::UpstreamConnection> connection = lease.connection();
  const std::string server = lease.upstream()->spec().name;
  // Kept where stop() can take it away.
  cache.lease.emplace(std::move(lease));
  Task<void> listening = ask_for_changes(connection, cache);
  co_await listening;
  const std::shared_ptr<Listed> listed = catalogue_->make_part();
  ListOutcome outcome;
  std::size_t budget = mcp::ListLimits().max_server_list_bytes;
  for (const Kind kind : kKinds) {
    const std::string_view capability = kind == Kind::templates ? "resources" : member_of(kind);
    if (json::View(connection->server().capabilities)[capability].absent()) continue;
    Task<Result<std::vector<json::Raw>>> asking =
        connection->list(std::string(list_method(kind)), std::string(member_of(kind)));
    Result<std::vector<json::Raw>> entries = co_await asking;
    if (entries) entries = within(budget, std::move(*entries));
    if (entries) {
      listed->of(kind) = std::move(*entries);
      continue;
    }
    // Many servers have resources and no templates, and do not know the method.
    if (kind == Kind::templates && entries.error().kind() == ErrorKind::remote) continue;
    const Error error = json::redact(*pool_->redactor(), entries.error());
    outcome.problem = std::string(list_method(kind)) + ": " + error.to_string();
    outcome.errors[static_cast<std::size_t>(kind)] = error;
    if (connection->end_reason()) {
      cache.lease.reset();
      co_return error;
    }
    // What it says of the others still counts, and what it said of this before.
    if (cache.listed) listed->of(kind) = cache.listed->of(kind);
    listed->set_missing(kind, outcome.problem);
  }
  cache.lease.reset();
  if (cache.listed && same_entries(*cache.listed, *listed)) {
    outcome.listed = cache.listed;
    co_return outcome;
  }
  Task<void> making = make_offers(server, listed);
  co_await making;
  outcome.listed = listed;
  co_return outcome;
}

// Without it changes are seen only when the server is started anew.
Task<void> Listing::ask_for_changes(std::shared_ptr<pool::UpstreamConnection> connection, ListCache& cache) {
  if (!mcp::is_modern(connection->server().revision) || cache.listening.lock() == connection) co_return;
  cache.listening = connection;
  mcp::ListenFilter filter;
  filter.tools = filter.prompts = filter.resources = true;
  Task<Result<std::uint64_t>> listening = connection->subscribe(std::move(filter));
  const Result<std::uint64_t> number = co_await listening;
  static_cast<void>(number);
}

Task<void> Listing::make_offers(std::string server, std::shared_ptr<Listed> listed) {
  Slices slices;
  for (const Kind kind : kKinds) {
    for (const json::Raw& entry : listed->of(kind)) {
      listed->add_offer(server, kind, entry, mcp::ListLimits());
      if (slices.due(entry.text().size())) co_await sleep_for(loop_, Slices::kPause);
    }
  }
}

}  // namespace fairlead::gateway
