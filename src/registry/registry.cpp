// Opening the registry, and bringing the state up to the revision of the database.
#include "registry/registry.hpp"

#include <algorithm>
#include <utility>

#include "registry/registry_impl.hpp"
#include "registry/schema.hpp"

namespace fairlead::registry {

namespace {

std::shared_ptr<JobState> make_job_state(const RegistryOptions& options) {
  auto jobs = std::make_shared<JobState>();
  jobs->log = options.log;
  jobs->max_stored_drift = options.max_stored_drift;
  jobs->max_stored_changes = static_cast<std::int64_t>(options.max_stored_changes);
  return jobs;
}

Result<void> execute_only(sql::Transaction& transaction, std::string_view statement,
                          std::initializer_list<sql::Value> parameters) {
  Result<std::vector<sql::Row>> done = transaction.execute(statement, parameters);
  if (!done) return done.error();
  return {};
}

// Removes old changes now and then, so that each change costs little.
Result<void> prune_changes(sql::Transaction& transaction, std::int64_t revision, std::int64_t max_stored) {
  constexpr std::int64_t kRevisionsBetween = 256;
  if (revision % kRevisionsBetween != 0) return {};
  return execute_only(transaction, "delete from changes where revision <= $1", {revision - max_stored});
}

struct Loaded {
  ChangeSet rows;
  std::string key_id;  // of the key that encrypts the data keys of secrets
};

// Prepares the database and reads it. The seed is written by the gateway that locks a new database first.
Result<Loaded> load(sql::Transaction& transaction, JobState& jobs, const RegistryOptions& options) {
  Result<std::int64_t> revision = lock_revision(transaction);
  if (!revision) return revision.error();
  if (Result<void> done = write_definitions(transaction); !done) return done.error();
  const PrincipalPtr actor = bootstrap_principal();
  const ConfigurationPtr configuration = Configuration::defaults();
  const Time now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  WriteContext context{transaction,           *actor,           *configuration, now, jobs.ids,
                       jobs.max_stored_drift, *jobs.secret_keys};
  Result<void> done;
  if (*revision == 0) done = seed(context, options.seed);
  if (!done) return done.error();
  Result<std::string> key_id = prepare_secret_keys(context, options.secret_key);
  if (!key_id) return key_id.error();
  done = write_revision(context, jobs, *revision);
  if (!done) return done.error();
  Result<ChangeSet> rows = read_everything(transaction, jobs.log);
  if (!rows) return rows.error();
  return Loaded{std::move(*rows), std::move(*key_id)};
}

Result<std::shared_ptr<SecretKeyring>> make_keyring(const SecretKeyOptions& options) {
  Result<std::vector<SecretKey>> keys = std::vector<SecretKey>();
  if (options.text) {
    keys = parse_secret_keys(options.text->view());
    if (!keys) return Error(ErrorKind::validation, options.source + ": " + keys.error().message());
  } else if (!options.file.empty()) {
    keys = SecretKeyFile(options.file).read();
    if (!keys) return keys.error();
  }
  return std::make_shared<SecretKeyring>(std::move(*keys), options.description());
}

}  // namespace

Task<Result<std::shared_ptr<Registry>>> Registry::open(Loop& loop, std::string address,
                                                       RegistryOptions options) {
  const auto registry = std::make_shared<RegistryImpl>(loop, std::move(options));
  const Result<void> started = co_await registry->start(std::move(address));
  if (!started) co_return started.error();
  co_return std::shared_ptr<Registry>(registry);
}

// The token may have been revoked after the request was authenticated, here or at another gateway.
Result<void> check_account(sql::Transaction& transaction, const Principal& actor, Time now) {
  Result<UserPtr> user = read_row<User>(transaction, actor.user);
  if (!user) return user.error();
  const Decision decision = decide_account(actor, user->get());
  if (!decision) return decision.error("the account");
  if (!is_registry_user(actor) || actor.token_id.empty()) return {};
  Result<TokenPtr> token = read_row<Token>(transaction, actor.token_id);
  if (!token) return token.error();
  const Decision by_token = decide_token(token->get(), now);
  if (!by_token) return by_token.error("the account");
  return {};
}

Result<void> write_revision(WriteContext& context, JobState& jobs, std::int64_t locked_revision) {
  if (context.changed.empty()) return {};
  const std::int64_t revision = locked_revision + 1;
  sql::Transaction& transaction = context.transaction;
  Result<void> done =
      execute_only(transaction, "update registry_revision set revision = $1 where id = 1", {revision});
  for (const auto& [kind, id] : context.changed) {
    if (!done) return done;
    done = execute_only(transaction, "insert into changes (revision, kind, row_id) values ($1, $2, $3)",
                        {revision, kind, id});
  }
  if (done) done = prune_changes(transaction, revision, jobs.max_stored_changes);
  if (done) done = transaction.notify();
  return done;
}

RegistryImpl::RegistryImpl(Loop& loop, RegistryOptions options)
    : loop_(loop),
      options_(std::move(options)),
      jobs_(make_job_state(options_)),
      poll_timer_(loop),
      token_timer_(loop),
      lists_timer_(loop),
      probe_timer_(loop) {
  state_.configuration = Configuration::defaults();
}

Task<Result<void>> RegistryImpl::start(std::string address) {
  Result<std::shared_ptr<sql::Database>> database =
      co_await sql::Database::open(loop_, std::move(address), migrations(), options_.database);
  if (!database) co_return database.error();
  database_ = std::move(*database);
  Result<std::shared_ptr<SecretKeyring>> keyring = make_keyring(options_.secret_key);
  if (!keyring) co_return keyring.error();
  jobs_->secret_keys = std::move(*keyring);
  std::move_only_function<Result<Loaded>(sql::Transaction&)> job =
      [jobs = jobs_, options = options_](sql::Transaction& transaction) {
        return load(transaction, *jobs, options);
      };
  Result<Loaded> loaded = co_await sql::query<Loaded>(*database_, std::move(job));
  if (!loaded) co_return loaded.error();
  apply(std::move(loaded->rows));
  settle_key_file(loaded->key_id);
  warn_of_missing_key();
  subscribe_to_database();
  if (database_->is_postgresql()) poll();
  co_return Result<void>();
}

void RegistryImpl::subscribe_to_database() {
  const std::weak_ptr<RegistryImpl> weak = weak_from_this();
  database_->on_notification([weak] {
    if (const auto self = weak.lock()) self->loop_.spawn(pull(self));
  });
  database_->on_availability([weak](const std::optional<Error>& problem) {
    const auto self = weak.lock();
    if (!self) return;
    if (!problem) self->loop_.spawn(store_submitted_lists(self));
    if (!problem && self->write_problem_)
      self->loop_.spawn(probe(self, self->options_.database.first_reconnect_delay));
    self->announce(problem);
  });
}

// Notifications are lost only with the connection, so this finds nothing to do, unless a proxy between the
// gateway and PostgreSQL drops them.
void RegistryImpl::poll() {
  poll_timer_.arm_after(options_.poll_interval, [this] {
    poll();
    loop_.spawn(pull(shared_from_this()));
  });
}

void RegistryImpl::apply(ChangeSet changes) {
  AppliedChanges applied = apply_changes(state_, std::move(changes), options_.log);
  jobs_->applied_revision = state_.revision;
  for (const std::variant<Change, ListsChange>& event : applied.events) {
    if (const auto* const change = std::get_if<Change>(&event)) {
      changes_.notify(*change);
    } else {
      lists_changes_.notify(std::get<ListsChange>(event));
    }
  }
}

// One pull runs at a time. Another one follows if a notification arrives meanwhile.
Task<void> RegistryImpl::pull(std::shared_ptr<RegistryImpl> self) {
  self->pull_again_ = true;
  if (self->pulling_ || self->closing_) co_return;
  self->pulling_ = true;
  while (std::exchange(self->pull_again_, false)) {
    const Result<void> pulled = co_await self->pull_once();
    // After a reconnect there is another notification.
    if (!pulled)
      self->options_.log.debug("changes of the registry were not read",
                               {{"error", pulled.error().message()}});
  }
  self->pulling_ = false;
}

Task<Result<void>> RegistryImpl::pull_once() {
  std::move_only_function<Result<ChangeSet>(sql::Transaction&)> job =
      [jobs = jobs_](sql::Transaction& transaction) {
        return read_changes(transaction, jobs->applied_revision, jobs->log);
      };
  Result<ChangeSet> changes = co_await sql::query<ChangeSet>(*database_, std::move(job));
  if (!changes) co_return changes.error();
  apply(std::move(*changes));
  co_return Result<void>();
}

Task<void> RegistryImpl::close() {
  const std::shared_ptr<RegistryImpl> self = shared_from_this();
  poll_timer_.cancel();
  token_timer_.cancel();
  lists_timer_.cancel();
  probe_timer_.cancel();
  co_await flush_token_uses(self);
  closing_ = true;
  co_await database_->close();
  for (const std::shared_ptr<ListsSubmission>& submission : std::exchange(lists_queue_, {}))
    finish_lists(*submission, Error(ErrorKind::closed, "the registry is closed"));
}

std::optional<Error> RegistryImpl::database_problem() const {
  std::optional<Error> problem = database_->problem();
  return problem ? problem : write_problem_;
}

// A full disk, a damaged file or a lock of another process does not end the connection: only changes show it.
// A change may also be the first to fail when the connection is lost.
void RegistryImpl::note_outcome(const Error* error) {
  const std::string code = error ? error->detail().failure_code : std::string();
  const bool is_problem =
      code == sql::kDatabaseFull || code == sql::kDatabaseBusy || code == sql::kDatabaseUnavailable;
  if ((error && !is_problem) || closing_ || database_->problem()) return;
  const bool had_problem = write_problem_.has_value();
  write_problem_ = error ? std::optional(*error) : std::nullopt;
  if (had_problem == write_problem_.has_value()) return;
  if (error) {
    probe_later(options_.database.first_reconnect_delay);
  } else {
    probe_timer_.cancel();
    loop_.spawn(store_submitted_lists(shared_from_this()));
  }
  announce(std::nullopt);
}

// Tells subscribers whether the database can be used, if that has changed.
void RegistryImpl::announce(const std::optional<Error>& connection_problem) {
  const std::optional<Error> problem = connection_problem ? connection_problem : write_problem_;
  if (problem.has_value() == announced_problem_) return;
  announced_problem_ = problem.has_value();
  availability_changes_.notify(problem);
}

void RegistryImpl::probe_later(std::chrono::milliseconds delay) {
  probe_timer_.arm_after(delay, [this, delay] { loop_.spawn(probe(shared_from_this(), delay)); });
}

// Writes nothing but the lock of the revision, to see whether changes are possible again, and goes on until
// they are: nobody else may make a change for a long time.
Task<void> RegistryImpl::probe(std::shared_ptr<RegistryImpl> self, std::chrono::milliseconds delay) {
  Operation<void> nothing = [](WriteContext&) { return Result<void>(); };
  const Result<void> done = co_await self->write_only(nullptr, std::move(nothing));
  if (!done)
    self->options_.log.debug("the database is still not usable", {{"error", done.error().message()}});
  if (self->write_problem_ && !self->closing_)
    self->probe_later(std::min(2 * delay, self->options_.database.max_reconnect_delay));
}

}  // namespace fairlead::registry
