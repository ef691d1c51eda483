// Stored lists, and uses of tokens.
#include <algorithm>
#include <utility>

#include "registry/registry_impl.hpp"
#include "registry/stored_lists.hpp"

namespace fairlead::registry {

namespace {

// How often the time of the last fetch of unchanged lists is written.
constexpr std::chrono::minutes kFetchTimeInterval{1};
// Lists that are stored in one transaction: thousands of servers list themselves when a gateway starts.
constexpr std::size_t kListsPerTransaction = 50;
// For a full disk; after an outage of PostgreSQL the lists are stored at once.
constexpr std::chrono::seconds kListsRetryInterval{10};

Time time_now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

// Lists of the later fetch replace those of the earlier one.
void join(FetchedEntries& earlier, FetchedEntries later) {
  for (const ListMember& list : kListMembers) {
    if (later.*list.fetched) earlier.*list.fetched = std::move(later.*list.fetched);
  }
}

// Errors of one server's lists and rows, after which the transaction can go on with those of the next one.
// If the database has failed, it does not.
bool concerns_one_server(const Error& error) {
  return error.kind() == ErrorKind::resource_exhausted || error.kind() == ErrorKind::validation ||
         error.kind() == ErrorKind::parse;
}

bool may_work_later(const Error& error) {
  return error.kind() == ErrorKind::io || error.kind() == ErrorKind::timeout ||
         error.kind() == ErrorKind::resource_exhausted;
}

}  // namespace

const StoredLists* RegistryImpl::stored_lists(const std::string& server_id) const {
  const auto found = state_.lists.find(server_id);
  return found == state_.lists.end() ? nullptr : found->second.get();
}

// Large lists are compared byte by byte only, because more would occupy the loop for too long: what has
// changed is quarantined until the lists are stored.
StoredListsPtr RegistryImpl::preview_lists(const std::string& server_id, const FetchedEntries& lists) const {
  constexpr std::size_t kMaxMergedBytes = 512u << 10;
  const ServerPtr server = state_.servers.find(server_id);
  if (!server) return nullptr;
  const StoredLists* const stored = stored_lists(server_id);
  const auto found = state_.drift_by_server.find(server_id);
  const DriftRows* const drift = found == state_.drift_by_server.end() ? nullptr : &found->second;
  if (!can_quarantine(*server, stored, drift)) return nullptr;
  if (work_to_merge(lists) > kMaxMergedBytes)
    return std::make_shared<const StoredLists>(preview_large_lists(stored, lists, time_now()));
  ListMerge merge = merge_lists(*server, stored, drift, lists, time_now());
  return std::make_shared<const StoredLists>(std::move(merge.lists));
}

// Returns the stored lists if storing these would change nothing but the time of the fetch, by little.
StoredListsPtr RegistryImpl::recently_stored(const std::string& server_id,
                                             const FetchedEntries& lists) const {
  const auto stored = state_.lists.find(server_id);
  if (stored == state_.lists.end() || lists_waiting_.contains(server_id) ||
      lists_in_progress_.contains(server_id))
    return nullptr;
  if (time_now() - stored->second->fetched_at >= kFetchTimeInterval) return nullptr;
  return is_unchanged(*stored->second, lists) ? stored->second : nullptr;
}

Task<Result<StoredListsPtr>> RegistryImpl::store_lists(std::string server_id, FetchedEntries lists) {
  const std::shared_ptr<RegistryImpl> self = shared_from_this();
  StoredListsPtr stored = recently_stored(server_id, lists);
  if (stored) co_return stored;
  const std::shared_ptr<ListsSubmission> submission = submit_lists(std::move(server_id), std::move(lists));
  if (!storing_lists_) loop_.spawn(store_submitted_lists(self));
  co_await submission->finished.wait(loop_);
  co_return submission->outcome;
}

std::shared_ptr<RegistryImpl::ListsSubmission> RegistryImpl::submit_lists(std::string server_id,
                                                                          FetchedEntries lists) {
  std::shared_ptr<ListsSubmission>& waiting = lists_waiting_[server_id];
  if (waiting) {
    join(waiting->lists, std::move(lists));
    return waiting;
  }
  waiting = std::make_shared<ListsSubmission>();
  waiting->server_id = std::move(server_id);
  waiting->lists = std::move(lists);
  lists_queue_.push_back(waiting);
  return waiting;
}

RegistryImpl::ListsBatch RegistryImpl::take_lists() {
  ListsBatch batch;
  while (!lists_queue_.empty() && batch.size() < kListsPerTransaction) {
    batch.push_back(std::move(lists_queue_.front()));
    lists_queue_.pop_front();
    lists_waiting_.erase(batch.back()->server_id);
    lists_in_progress_.insert_or_assign(batch.back()->server_id, batch.back());
  }
  return batch;
}

Task<void> RegistryImpl::store_submitted_lists(std::shared_ptr<RegistryImpl> self) {
  if (self->storing_lists_) co_return;
  self->storing_lists_ = true;
  while (!self->lists_queue_.empty()) {
    ListsBatch batch = self->take_lists();
    const bool usable = co_await self->store_batch(std::move(batch));
    if (!usable) break;
  }
  self->storing_lists_ = false;
}

Task<bool> RegistryImpl::store_batch(ListsBatch batch) {
  using Outcomes = std::vector<Result<StoredListsPtr>>;
  Operation<Outcomes> operation =
      [batch, limits = ListLimits{options_.max_stored_list_bytes, options_.max_user_list_characters}](
          WriteContext& context) -> Result<Outcomes> {
    Outcomes outcomes;
    for (const std::shared_ptr<ListsSubmission>& submission : batch) {
      outcomes.push_back(write_fetched_lists(context, submission->server_id, submission->lists, limits));
      const Result<StoredListsPtr>& outcome = outcomes.back();
      if (!outcome && !concerns_one_server(outcome.error())) return outcome.error();
    }
    return outcomes;
  };
  Result<Outcomes> outcomes = co_await write<Outcomes>(nullptr, std::move(operation));
  lists_in_progress_.clear();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Result<StoredListsPtr> outcome = outcomes ? (*outcomes)[i] : Result<StoredListsPtr>(outcomes.error());
    finish_lists(*batch[i], std::move(outcome));
  }
  const bool usable = outcomes || !may_work_later(outcomes.error());
  if (!usable) retry_lists_later(batch);
  co_return usable;
}

// The callers have the error, but servers list themselves only when something changes, so their lists are
// stored when the database can be used again.
void RegistryImpl::retry_lists_later(const ListsBatch& batch) {
  if (closing_) return;
  for (const std::shared_ptr<ListsSubmission>& submission : batch) {
    FetchedEntries lists = submission->lists;
    if (const auto newer = lists_waiting_.find(submission->server_id); newer != lists_waiting_.end()) {
      join(lists, std::move(newer->second->lists));
      newer->second->lists = std::move(lists);
    } else {
      submit_lists(submission->server_id, std::move(lists));
    }
  }
  lists_timer_.arm_after(kListsRetryInterval,
                         [this] { loop_.spawn(store_submitted_lists(shared_from_this())); });
}

// The state has the lists already if they have changed. If not, it keeps their memory and gets the new times.
void RegistryImpl::finish_lists(ListsSubmission& submission, Result<StoredListsPtr> outcome) {
  const auto found = state_.lists.find(submission.server_id);
  if (outcome && found != state_.lists.end()) {
    const Time fetched_at = (*outcome)->fetched_at;
    if (found->second->fetched_at < fetched_at && is_unchanged(*found->second, submission.lists)) {
      found->second =
          std::make_shared<const StoredLists>(seen_again(*found->second, submission.lists, fetched_at));
    }
    outcome = found->second;
  }
  submission.outcome = std::move(outcome);
  submission.finished.set();
}

void RegistryImpl::note_token_use(const std::string& token_id) {
  const TokenPtr token = state_.tokens.find(token_id);
  const Time now = time_now();
  if (!token || (token->last_used_at && now - *token->last_used_at < options_.token_use_interval)) return;
  auto used = std::make_shared<Token>(*token);
  used->last_used_at = now;
  state_.tokens_by_sha256.insert_or_assign(used->sha256, used);
  state_.tokens.put(std::move(used));
  token_uses_.insert_or_assign(token_id, now);
  write_token_uses_later();
}

void RegistryImpl::write_token_uses_later() {
  if (token_timer_.armed() || closing_) return;
  token_timer_.arm_after(options_.token_use_interval,
                         [this] { loop_.spawn(flush_token_uses(shared_from_this())); });
}

Task<void> RegistryImpl::flush_token_uses(std::shared_ptr<RegistryImpl> self) {
  if (self->token_uses_.empty()) co_return;
  const StringMap<Time> uses = std::exchange(self->token_uses_, {});
  Operation<void> operation = [list = std::vector<std::pair<std::string, Time>>(uses.begin(), uses.end())](
                                  WriteContext& context) { return write_token_uses(context, list); };
  const Result<void> done = co_await self->write_only(nullptr, std::move(operation));
  if (done || self->closing_) co_return;
  // Newer uses stay.
  for (const auto& [id, time] : uses) self->token_uses_.try_emplace(id, time);
  self->write_token_uses_later();
}

}  // namespace fairlead::registry
