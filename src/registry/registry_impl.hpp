// Implementation of Registry. Private to the library.
#pragma once

#include <atomic>
#include <deque>

#include "fairlead/base/string_map.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/timer.hpp"
#include "registry/change_set.hpp"
#include "registry/operations.hpp"
#include "registry/secret_keyring.hpp"
#include "registry/stored_lists.hpp"
#include "registry/subscribers.hpp"

namespace fairlead::registry {

// What jobs on the thread of the database share with the registry.
struct JobState {
  Log log;
  std::size_t max_stored_drift = 0;
  std::int64_t max_stored_changes = 0;
  std::shared_ptr<SecretKeyring> secret_keys;
  UuidGenerator ids;                               // used by jobs only; they run one after the other
  std::atomic<std::int64_t> applied_revision = 0;  // of the state in memory
};

// The outcome of a change: its value, and what must be applied to the state.
template <class T>
struct Written {
  T value;
  ChangeSet changes;
};

// Returns an error unless the account of the actor and its token may still make changes.
Result<void> check_account(sql::Transaction& transaction, const Principal& actor, Time now);
// Writes the next revision with the rows that were changed, if any were, and notifies the other gateways.
Result<void> write_revision(WriteContext& context, JobState& jobs, std::int64_t locked_revision);

// Runs one change in its transaction. `actor` is null for changes that the gateway itself makes.
template <class T>
Result<Written<T>> run_write(sql::Transaction& transaction, JobState& jobs, const PrincipalPtr& actor,
                             const Configuration& configuration,
                             std::move_only_function<Result<T>(WriteContext&)>& operation) {
  static const Principal kGateway;
  Result<std::int64_t> revision = lock_revision(transaction);
  if (!revision) return revision.error();
  const Time now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  if (actor) {
    if (Result<void> checked = check_account(transaction, *actor, now); !checked) return checked.error();
  }
  WriteContext context{transaction, actor ? *actor : kGateway, configuration,    now,
                       jobs.ids,    jobs.max_stored_drift,     *jobs.secret_keys};
  Result<T> value = operation(context);
  if (!value) return value.error();
  if (Result<void> done = write_revision(context, jobs, *revision); !done) return done.error();
  Result<ChangeSet> changes = read_changes(transaction, jobs.applied_revision, jobs.log);
  if (!changes) return changes.error();
  return Written<T>{std::move(*value), std::move(*changes)};
}

class RegistryImpl final : public Registry, public std::enable_shared_from_this<RegistryImpl> {
 public:
  RegistryImpl(Loop& loop, RegistryOptions options);

  Task<Result<void>> start(std::string address);

  const State& state() const noexcept override { return state_; }
  std::optional<Error> database_problem() const override;

  Task<Result<ServerPtr>> create_server(PrincipalPtr actor, json::Raw body) override;
  Task<Result<ServerPtr>> patch_server(PrincipalPtr actor, std::string id, json::Raw patch,
                                       Version version) override;
  Task<Result<void>> remove_server(PrincipalPtr actor, std::string id, Version version) override;
  Task<Result<EndpointPtr>> create_endpoint(PrincipalPtr actor, json::Raw body) override;
  Task<Result<EndpointPtr>> patch_endpoint(PrincipalPtr actor, std::string id, json::Raw patch,
                                           Version version) override;
  Task<Result<void>> remove_endpoint(PrincipalPtr actor, std::string id, Version version) override;
  Task<Result<UserPtr>> create_user(PrincipalPtr actor, json::Raw body) override;
  Task<Result<UserPtr>> patch_user(PrincipalPtr actor, std::string id, json::Raw patch,
                                   Version version) override;
  Task<Result<void>> remove_user(PrincipalPtr actor, std::string id, Version version) override;
  Task<Result<GroupPtr>> create_group(PrincipalPtr actor, json::Raw body) override;
  Task<Result<GroupPtr>> patch_group(PrincipalPtr actor, std::string id, json::Raw patch,
                                     Version version) override;
  Task<Result<void>> remove_group(PrincipalPtr actor, std::string id, Version version) override;
  Task<Result<NewToken>> create_token(PrincipalPtr actor, json::Raw body) override;
  Task<Result<TokenPtr>> revoke_token(PrincipalPtr actor, std::string id) override;
  Task<Result<SecretPtr>> create_secret(PrincipalPtr actor, json::Raw body) override;
  Task<Result<SecretPtr>> patch_secret(PrincipalPtr actor, std::string id, json::Raw patch,
                                       Version version) override;
  Task<Result<void>> remove_secret(PrincipalPtr actor, std::string id, Version version) override;
  Task<Result<RekeyOutcome>> rekey_secrets(PrincipalPtr actor, RekeyRequest request) override;
  Result<SecretText> secret_value(const Secret& secret) const override;
  SecretKeyStatus secret_key_status() const override;
  Result<std::string> secret_digest(std::string_view text) const override;
  Task<Result<ConfigurationPtr>> set_config(PrincipalPtr actor, std::string full_key,
                                            json::Raw value) override;
  Task<Result<DriftPtr>> resolve_drift(PrincipalPtr actor, std::string id, DriftStatus resolution) override;

  Task<Result<StoredListsPtr>> store_lists(std::string server_id, FetchedEntries lists) override;
  StoredListsPtr preview_lists(const std::string& server_id, const FetchedEntries& lists) const override;
  void note_token_use(const std::string& token_id) override;

  Task<Result<std::optional<StoredResponse>>> claim_response(std::string actor_key,
                                                             std::string idempotency_key,
                                                             std::string request_sha256) override;
  Task<Result<void>> store_response(std::string actor_key, std::string idempotency_key,
                                    StoredResponse response) override;
  Task<Result<void>> forget_request(std::string actor_key, std::string idempotency_key) override;

  std::shared_ptr<void> on_change(std::function<void(const Change&)> callback) override {
    return changes_.add(std::move(callback));
  }
  std::shared_ptr<void> on_lists_change(std::function<void(const ListsChange&)> callback) override {
    return lists_changes_.add(std::move(callback));
  }
  std::shared_ptr<void> on_availability(std::function<void(const std::optional<Error>&)> callback) override {
    return availability_changes_.add(std::move(callback));
  }
  Task<void> close() override;

 private:
  template <class T>
  using Operation = std::move_only_function<Result<T>(WriteContext&)>;

  // Fetched lists that wait to be stored. Fetches of one server while it waits are joined.
  struct ListsSubmission {
    std::string server_id;
    FetchedEntries lists;
    Result<StoredListsPtr> outcome = StoredListsPtr();
    Event finished;
  };
  using ListsBatch = std::vector<std::shared_ptr<ListsSubmission>>;

  template <class T>
  Task<Result<T>> write(PrincipalPtr actor, Operation<T> operation);
  // The same for an operation without a value.
  Task<Result<void>> write_only(PrincipalPtr actor, Operation<void> operation);
  void note_outcome(const Error* error);
  void announce(const std::optional<Error>& connection_problem);
  void probe_later(std::chrono::milliseconds delay);
  static Task<void> probe(std::shared_ptr<RegistryImpl> self, std::chrono::milliseconds delay);
  void apply(ChangeSet changes);
  void settle_key_file(const std::string& key_id);
  // Logs that no secrets can be stored, if neither the gateway nor the database has a key.
  void warn_of_missing_key() const;
  // Returns the id of the key-encryption key that replaces the current one.
  std::function<Result<std::string>(std::string_view)> next_key() const;
  // Completes a change of the key file.
  Result<void> finish_key_file(const RekeyOutcome& outcome);
  void subscribe_to_database();
  void poll();
  static Task<void> pull(std::shared_ptr<RegistryImpl> self);
  Task<Result<void>> pull_once();

  const StoredLists* stored_lists(const std::string& server_id) const;
  StoredListsPtr recently_stored(const std::string& server_id, const FetchedEntries& lists) const;
  std::shared_ptr<ListsSubmission> submit_lists(std::string server_id, FetchedEntries lists);
  ListsBatch take_lists();
  static Task<void> store_submitted_lists(std::shared_ptr<RegistryImpl> self);
  // Returns whether the database could be used.
  Task<bool> store_batch(ListsBatch batch);
  void retry_lists_later(const ListsBatch& batch);
  void finish_lists(ListsSubmission& submission, Result<StoredListsPtr> outcome);
  void write_token_uses_later();
  static Task<void> flush_token_uses(std::shared_ptr<RegistryImpl> self);

  Loop& loop_;
  const RegistryOptions options_;
  std::shared_ptr<sql::Database> database_;
  const std::shared_ptr<JobState> jobs_;
  State state_;
  Subscribers<Change> changes_;
  Subscribers<ListsChange> lists_changes_;
  Subscribers<std::optional<Error>> availability_changes_;
  std::optional<Error> write_problem_;  // why changes fail although the database can be reached
  bool announced_problem_ = false;      // what the subscribers of availability know
  bool pulling_ = false;
  bool pull_again_ = false;
  Timer poll_timer_;
  Timer token_timer_;
  Timer lists_timer_;           // runs while lists wait for the database to be usable again
  Timer probe_timer_;           // runs while changes fail
  StringMap<Time> token_uses_;  // not yet written
  std::deque<std::shared_ptr<ListsSubmission>> lists_queue_;
  StringMap<std::shared_ptr<ListsSubmission>> lists_waiting_;      // those in lists_queue_, by server
  StringMap<std::shared_ptr<ListsSubmission>> lists_in_progress_;  // those of the batch that is being stored
  bool storing_lists_ = false;
  bool rekeying_ = false;
  bool closing_ = false;
};

template <class T>
Task<Result<T>> RegistryImpl::write(PrincipalPtr actor, Operation<T> operation) {
  const std::shared_ptr<RegistryImpl> self = shared_from_this();
  std::move_only_function<Result<Written<T>>(sql::Transaction&)> job =
      [jobs = jobs_, actor = std::move(actor), configuration = state_.configuration,
       operation = std::move(operation)](sql::Transaction& transaction) mutable {
        return run_write<T>(transaction, *jobs, actor, *configuration, operation);
      };
  Result<Written<T>> written = co_await sql::query<Written<T>>(*database_, std::move(job));
  note_outcome(written ? nullptr : &written.error());
  if (!written) co_return written.error();
  apply(std::move(written->changes));
  co_return std::move(written->value);
}

}  // namespace fairlead::registry
