// What only PostgreSQL databases do: servers that stop, hang and crash, and notifications.
#include <functional>
#include <latch>

#include "sql/harness.hpp"
#include "support/postgres.hpp"

namespace fairlead::sql::test {
namespace {

using fairlead::test::PostgresServer;

class PostgresTest : public testing::Test {
 protected:
  PostgresTest() {
    options.first_reconnect_delay = 10ms;
    options.max_reconnect_delay = 50ms;
  }
  ~PostgresTest() override {
    server.resume();
    server.start();  // does nothing if it runs
  }

  // For servers that hang: long enough for one that only is slow.
  void shorten_timeouts() {
    options.connect_timeout = 1s;
    options.statement_timeout = 1s;
  }
  DatabasePtr open() {
    Result<DatabasePtr> database = loop.block_on(Database::open(loop, address, item_migrations(), options));
    if (!database) throw std::runtime_error(database.error().to_string());
    return *database;
  }
  // Counts the calls of the callbacks of `database`.
  void observe(Database& database) {
    database.on_notification([this] { ++notifications; });
    database.on_availability(
        [this](const std::optional<Error>& problem) { problem ? ++losses : ++recoveries; });
  }
  template <class Condition>
  void run_until(Condition condition) {
    Timer deadline(loop);
    bool expired = false;
    deadline.arm_after(30s, [&] { expired = true; });
    loop.run_until([&] { return expired || condition(); });
    EXPECT_FALSE(expired);
  }
  Result<void> insert(Database& database, const std::string& name) {
    return loop.block_on(database.run(insert_job(name, 1)));
  }
  void start(Task<void> task) {
    tasks.push_back(std::move(task));
    tasks.back().await_suspend(std::noop_coroutine()).resume();
  }
  // Returns the outcome of a job if run() fails before it suspends.
  std::optional<Result<void>> immediate_outcome(const DatabasePtr& database) {
    const auto outcomes = std::make_shared<Outcomes>();
    start(record(database->run(insert_job("immediate", 1)), 0, outcomes));
    return outcomes->empty() ? std::nullopt : std::optional(outcomes->front().second);
  }

  PostgresServer& server = PostgresServer::shared();
  Loop loop;
  std::string address = server.create_database();
  DatabaseOptions options;
  std::vector<Task<void>> tasks;
  int notifications = 0;
  int losses = 0;
  int recoveries = 0;
};

TEST_F(PostgresTest, NotificationReachesOtherSessionsOnly) {
  const DatabasePtr sender = open();
  const DatabasePtr receiver = open();
  int own = 0;
  sender->on_notification([&] { ++own; });
  observe(*receiver);
  Database::Job job = [](Transaction& transaction) { return transaction.notify(); };
  ASSERT_TRUE(loop.block_on(sender->run(std::move(job))));
  run_until([&] { return notifications > 0; });
  ASSERT_TRUE(insert(*sender, "a"));
  EXPECT_EQ(own, 0);
  EXPECT_EQ(notifications, 1);
}

TEST_F(PostgresTest, NotificationOfAFailedTransactionIsNotSent) {
  const DatabasePtr sender = open();
  const DatabasePtr receiver = open();
  observe(*receiver);
  Database::Job failing = [](Transaction& transaction) -> Result<void> {
    const Result<void> notified = transaction.notify();
    EXPECT_TRUE(notified);
    return Error(ErrorKind::validation, "rolled back");
  };
  EXPECT_FALSE(loop.block_on(sender->run(std::move(failing))));
  ASSERT_TRUE(insert(*sender, "a"));
  ASSERT_TRUE(insert(*receiver, "b"));
  EXPECT_EQ(notifications, 0);
}

TEST_F(PostgresTest, DatabasesWithOtherChannelsAreNotNotified) {
  const DatabasePtr sender = open();
  options.channel = "other \"channel\"";
  const DatabasePtr receiver = open();
  observe(*receiver);
  Database::Job job = [](Transaction& transaction) { return transaction.notify(); };
  ASSERT_TRUE(loop.block_on(sender->run(std::move(job))));
  ASSERT_TRUE(insert(*receiver, "b"));
  EXPECT_EQ(notifications, 0);
}

TEST_F(PostgresTest, LockedRowFailsWithTimeout) {
  options.lock_timeout = 300ms;
  const DatabasePtr first = open();
  const DatabasePtr second = open();
  ASSERT_TRUE(insert(*first, "a"));
  std::latch locked(1);
  std::latch release(1);
  Database::Job locking = [&](Transaction& transaction) -> Result<void> {
    const Result<Rows> updated = transaction.execute("UPDATE items SET size = 2");
    locked.count_down();
    release.wait();
    return updated ? Result<void>() : updated.error();
  };
  const auto outcomes = std::make_shared<Outcomes>();
  start(record(first->run(std::move(locking)), 0, outcomes));
  locked.wait();
  const Result<Rows> blocked = execute(loop, *second, "UPDATE items SET size = 3");
  release.count_down();
  run_until([&] { return !outcomes->empty(); });
  ASSERT_FALSE(blocked);
  EXPECT_EQ(blocked.error().kind(), ErrorKind::timeout);
  EXPECT_EQ(failure_code(blocked.error()), "database_busy");
  EXPECT_NE(blocked.error().message().find("lock_timeout (300ms)"), std::string::npos);
  EXPECT_TRUE(outcomes->front().second);
  EXPECT_TRUE(execute(loop, *second, "UPDATE items SET size = 3"));
}

TEST_F(PostgresTest, TransactionThatPausesDoesNotKeepItsLocks) {
  options.statement_timeout = 500ms;
  const DatabasePtr paused = open();
  options.statement_timeout = 60s;
  options.lock_timeout = 60s;
  const DatabasePtr other = open();
  ASSERT_TRUE(insert(*paused, "a"));
  std::latch locked(1);
  std::latch resume(1);
  Database::Job job = [&](Transaction& transaction) -> Result<void> {
    const Result<Rows> updated = transaction.execute("UPDATE items SET size = 2");
    locked.count_down();
    resume.wait();
    return updated ? Result<void>() : updated.error();
  };
  const auto outcomes = std::make_shared<Outcomes>();
  start(record(paused->run(std::move(job)), 0, outcomes));
  locked.wait();
  const Result<Rows> updated = execute(loop, *other, "UPDATE items SET size = 3");
  resume.count_down();
  run_until([&] { return !outcomes->empty(); });
  EXPECT_TRUE(updated) << updated.error().to_string();
  EXPECT_FALSE(outcomes->front().second);
  EXPECT_TRUE(insert(*paused, "b"));
}

TEST_F(PostgresTest, NotificationThatArrivesDuringACheckIsNotLost) {
  const DatabasePtr sender = open();
  options.idle_check = 0ms;
  const DatabasePtr receiver = open();
  observe(*receiver);
  for (int sent = 1; sent <= 20; ++sent) {
    Database::Job job = [](Transaction& transaction) { return transaction.notify(); };
    ASSERT_TRUE(loop.block_on(sender->run(std::move(job))));
    run_until([&] { return notifications == sent; });
    ASSERT_EQ(notifications, sent);
  }
}

Task<void> open_and_record(Loop& loop, std::string address, int number, std::shared_ptr<Outcomes> outcomes) {
  std::vector<Migration> migrations = item_migrations();
  const Result<DatabasePtr> opened = co_await Database::open(loop, std::move(address), std::move(migrations));
  Result<void> outcome = opened ? Result<void>() : Result<void>(opened.error());
  outcomes->emplace_back(number, std::move(outcome));
}

TEST_F(PostgresTest, ConcurrentOpeningAppliesMigrationsOnce) {
  const auto outcomes = std::make_shared<Outcomes>();
  for (int i = 0; i < 5; ++i) start(open_and_record(loop, address, i, outcomes));
  run_until([&] { return outcomes->size() == 5; });
  for (const auto& [number, outcome] : *outcomes)
    EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().to_string());
  EXPECT_EQ(count_items(loop, *open()), 0);
}

const std::string kEndOtherSessions =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()";

TEST_F(PostgresTest, ClosedConnectionIsReplacedBeforeTheNextJob) {
  const DatabasePtr database = open();
  const DatabasePtr administrator = open();
  observe(*database);
  ASSERT_TRUE(execute(loop, *administrator, kEndOtherSessions));
  EXPECT_TRUE(insert(*database, "a"));
  run_until([&] { return notifications > 0; });  // those of the lost connection may have been missed
  EXPECT_EQ(losses, 0);
}

TEST_F(PostgresTest, JobFailsWhenItsConnectionIsClosed) {
  const DatabasePtr database = open();
  const DatabasePtr administrator = open();
  observe(*database);
  std::latch begun(1);
  std::latch release(1);
  Database::Job job = [&](Transaction& transaction) -> Result<void> {
    const Result<Rows> first = transaction.execute("INSERT INTO items VALUES ('a', 1)");
    EXPECT_TRUE(first);
    begun.count_down();
    release.wait();
    const Result<Rows> second = transaction.execute("INSERT INTO items VALUES ('b', 1)");
    return second ? Result<void>() : second.error();
  };
  const auto outcomes = std::make_shared<Outcomes>();
  start(record(database->run(std::move(job)), 0, outcomes));
  begun.wait();
  ASSERT_TRUE(execute(loop, *administrator, kEndOtherSessions));
  release.count_down();
  run_until([&] { return !outcomes->empty(); });
  ASSERT_FALSE(outcomes->front().second);
  EXPECT_EQ(failure_code(outcomes->front().second.error()), kDatabaseUnavailable);
  EXPECT_EQ(count_items(loop, *database), 0);
  EXPECT_EQ(losses, 0);
}

TEST_F(PostgresTest, ConnectionLostDuringCommitIsReportedAsUnknown) {
  const DatabasePtr database = open();
  ASSERT_TRUE(execute(loop, *database,
                      "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
                      "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'"));
  ASSERT_TRUE(execute(loop, *database,
                      "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED "
                      "FOR EACH ROW EXECUTE FUNCTION die()"));
  const Result<void> outcome = insert(*database, "a");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind(), ErrorKind::io);
  EXPECT_EQ(failure_code(outcome.error()), kCommitOutcomeUnknown);
  EXPECT_EQ(count_items(loop, *database), 0);
}

TEST_F(PostgresTest, StoppedServerFailsJobsAtOnceUntilItIsBack) {
  const DatabasePtr database = open();
  observe(*database);
  ASSERT_TRUE(insert(*database, "a"));
  server.stop();
  run_until([&] { return losses == 1; });
  ASSERT_TRUE(database->problem());
  EXPECT_EQ(failure_code(*database->problem()), kDatabaseUnavailable);
  const std::optional<Result<void>> refused = immediate_outcome(database);
  ASSERT_TRUE(refused);
  ASSERT_FALSE(*refused);
  EXPECT_EQ(failure_code(refused->error()), kDatabaseUnavailable);
  EXPECT_EQ(notifications, 0);
  server.start();
  run_until([&] { return recoveries == 1 && notifications == 1; });
  EXPECT_FALSE(database->problem());
  ASSERT_TRUE(insert(*database, "b"));
  EXPECT_EQ(count_items(loop, *database), 2);
  EXPECT_EQ(losses, 1);
}

TEST_F(PostgresTest, CrashKeepsCommittedTransactions) {
  const DatabasePtr database = open();
  observe(*database);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(insert(*database, std::to_string(i)));
  server.crash();
  server.start();
  run_until([&] { return notifications > 0; });
  EXPECT_EQ(count_items(loop, *database), 20);
}

TEST_F(PostgresTest, HangingServerFailsJobsAfterStatementTimeout) {
  shorten_timeouts();
  const DatabasePtr database = open();
  observe(*database);
  server.suspend();
  const auto outcomes = std::make_shared<Outcomes>();
  start(record(database->run(insert_job("a", 1)), 0, outcomes));
  start(record(database->run(insert_job("b", 1)), 1, outcomes));
  Timer timer(loop);
  int ticks = 0;
  const std::function<void()> tick = [&] { timer.arm_after(10ms, [&] { ++ticks, tick(); }); };
  tick();
  const auto before = Clock::now();
  run_until([&] { return !outcomes->empty(); });
  EXPECT_TRUE(database->problem());  // without another attempt to connect
  run_until([&] { return outcomes->size() == 2; });
  EXPECT_LT(Clock::now() - before, 10s);
  EXPECT_GT(ticks, 10);  // the loop is not blocked
  for (const auto& [number, outcome] : *outcomes) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(failure_code(outcome.error()), kDatabaseUnavailable);
    if (number == 0) {
      EXPECT_EQ(outcome.error().kind(), ErrorKind::timeout);
    }
  }
  run_until([&] { return losses == 1; });
  EXPECT_TRUE(immediate_outcome(database));
  server.resume();
  run_until([&] { return recoveries == 1; });
  EXPECT_EQ(count_items(loop, *database), 0);
}

TEST_F(PostgresTest, HangingServerIsNoticedWhileIdle) {
  shorten_timeouts();
  options.idle_check = 50ms;
  const DatabasePtr database = open();
  observe(*database);
  server.suspend();
  run_until([&] { return losses == 1; });
  server.resume();
  run_until([&] { return recoveries == 1; });
  EXPECT_TRUE(insert(*database, "a"));
}

TEST_F(PostgresTest, OpeningFailsWhenTheServerHangs) {
  shorten_timeouts();
  server.suspend();
  const Result<DatabasePtr> opened = loop.block_on(Database::open(loop, address, item_migrations(), options));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind(), ErrorKind::timeout);
  EXPECT_EQ(failure_code(opened.error()), kDatabaseUnavailable);
  EXPECT_NE(opened.error().message().find("connect_timeout (1s)"), std::string::npos);
}

TEST_F(PostgresTest, DestroyingTheDatabaseOfAHangingServerDoesNotWait) {
  options.statement_timeout = 60s;
  DatabasePtr database = open();
  server.suspend();
  const auto outcomes = std::make_shared<Outcomes>();
  start(record(database->run(insert_job("a", 1)), 0, outcomes));
  const auto before = Clock::now();
  database.reset();
  EXPECT_LT(Clock::now() - before, 10s);
  run_until([&] { return !outcomes->empty(); });
  EXPECT_FALSE(outcomes->front().second);
}

TEST_F(PostgresTest, ClosingEndsWhenTheServerHangs) {
  shorten_timeouts();
  const DatabasePtr database = open();
  server.suspend();
  const auto outcomes = std::make_shared<Outcomes>();
  for (int i = 0; i < 5; ++i) start(record(database->run(insert_job(std::to_string(i), 1)), i, outcomes));
  loop.block_on(database->close());
  EXPECT_EQ(outcomes->size(), 5u);
}

TEST_F(PostgresTest, DatabaseWithAnotherEncodingIsRefused) {
  address = server.create_database("ENCODING 'SQL_ASCII' TEMPLATE template0");
  const Result<DatabasePtr> opened = loop.block_on(Database::open(loop, address, item_migrations(), options));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind(), ErrorKind::validation);
  EXPECT_NE(opened.error().message().find("SQL_ASCII"), std::string::npos);
}

TEST_F(PostgresTest, SchemaThatBecameNewerIsRefusedAfterAReconnect) {
  const DatabasePtr database = open();
  const DatabasePtr administrator = open();
  observe(*database);
  ASSERT_TRUE(execute(loop, *administrator, "INSERT INTO schema_version VALUES (3, 'later', 0)"));
  ASSERT_TRUE(execute(loop, *administrator, kEndOtherSessions));
  run_until([&] { return losses == 1; });
  ASSERT_TRUE(database->problem());
  EXPECT_EQ(failure_code(*database->problem()), kSchemaTooNew);
}

}  // namespace
}  // namespace fairlead::sql::test
