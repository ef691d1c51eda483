// The tests of sql::Database that both databases must pass.
#include <array>
#include <cstdint>
#include <latch>
#include <limits>
#include <stdexcept>

#include "sql/fixture.hpp"

namespace fairlead::sql::test {
namespace {

TEST_P(DatabaseTest, StoresAndReturnsValues) {
  const DatabasePtr database = open();
  ASSERT_TRUE(execute(loop, *database, "INSERT INTO items VALUES ($1, $2)", {"a", 5}));
  ASSERT_TRUE(execute(loop, *database, "INSERT INTO items VALUES ($1, $2)", {"", Value()}));
  const Result<Rows> rows = execute(loop, *database, "SELECT name, size FROM items ORDER BY name");
  ASSERT_TRUE(rows) << rows.error().to_string();
  EXPECT_EQ(*rows, (Rows{{"", Value()}, {"a", 5}}));
}

TEST_P(DatabaseTest, ParameterMayBeUsedTwiceAndInAnyOrder) {
  const DatabasePtr database = open();
  const Result<Rows> rows =
      execute(loop, *database, "SELECT CAST($2 AS TEXT), CAST($1 AS BIGINT), CAST($2 AS TEXT)", {1, "b"});
  ASSERT_TRUE(rows) << rows.error().to_string();
  EXPECT_EQ(*rows, (Rows{{"b", 1, "b"}}));
}

TEST_P(DatabaseTest, MissingParameterFails) {
  const DatabasePtr database = open();
  EXPECT_FALSE(execute(loop, *database, "SELECT name FROM items WHERE size = $1", {}));
  EXPECT_FALSE(execute(loop, *database, "SELECT name FROM items WHERE size = $2", {1}));
}

TEST_P(DatabaseTest, SeveralStatementsInOneTextFail) {
  const DatabasePtr database = open();
  EXPECT_FALSE(execute(loop, *database, "DELETE FROM items; DELETE FROM log", {}));
}

TEST_P(DatabaseTest, SumsAndCountsAreIntegers) {
  const DatabasePtr database = open();
  ASSERT_TRUE(execute(loop, *database, "INSERT INTO items VALUES ('a', 3), ('b', 4)"));
  const Result<Rows> rows = execute(loop, *database,
                                    "SELECT SUM(size), COUNT(*), MAX(size), size IN (3) FROM items GROUP BY "
                                    "size IN (3, 4), size IN (3) ORDER BY 1");
  ASSERT_TRUE(rows) << rows.error().to_string();
  EXPECT_EQ(*rows, (Rows{{3, 1, 3, 1}, {4, 1, 4, 0}}));
}

TEST_P(DatabaseTest, LargestIntegersAreKept) {
  const DatabasePtr database = open();
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  const std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  ASSERT_TRUE(execute(loop, *database, "INSERT INTO items VALUES ('a', $1), ('b', $2)", {lowest, highest}));
  const Result<Rows> rows = execute(loop, *database, "SELECT size FROM items ORDER BY size");
  ASSERT_TRUE(rows) << rows.error().to_string();
  EXPECT_EQ(*rows, (Rows{{lowest}, {highest}}));
}

TEST_P(DatabaseTest, MetacharactersAreKept) {
  const DatabasePtr database = open();
  const std::string name =
      "'; DROP TABLE items; -- \" \\ $1 ? % _ \n\r\t \xe2\x82\xac \xf0\x9f\x98\x80 E'\\x00'";
  ASSERT_TRUE(execute(loop, *database, "INSERT INTO items VALUES ($1, 1)", {name}));
  const Result<Rows> rows = execute(loop, *database, "SELECT name FROM items WHERE name = $1", {name});
  ASSERT_TRUE(rows) << rows.error().to_string();
  EXPECT_EQ(*rows, (Rows{{name}}));
}

TEST_P(DatabaseTest, LongTextIsKept) {
  const DatabasePtr database = open();
  const std::string text(1 << 20, 'x');
  ASSERT_TRUE(execute(loop, *database, "INSERT INTO log VALUES (1, $1)", {text}));
  const Result<Rows> rows = execute(loop, *database, "SELECT item FROM log WHERE position = 1");
  ASSERT_TRUE(rows) << rows.error().to_string();
  EXPECT_TRUE(rows->at(0).at(0) == Value(text));
}

TEST_P(DatabaseTest, TextThatIsNotUtf8WithoutNulIsRejected) {
  const DatabasePtr database = open();
  using namespace std::string_literals;
  for (const std::string& name : {"a\0b"s, "\0"s, "\xff"s, "a\xc3"s, "\xed\xa0\x80"s, "\xc0\x80"s}) {
    const Result<Rows> inserted = execute(loop, *database, "INSERT INTO items VALUES ($1, 1)", {name});
    ASSERT_FALSE(inserted);
    EXPECT_EQ(inserted.error().kind(), ErrorKind::validation);
    EXPECT_NE(inserted.error().message().find("$1"), std::string::npos);
  }
  EXPECT_EQ(count_items(loop, *database), 0);
}

TEST_P(DatabaseTest, FailedJobIsRolledBack) {
  const DatabasePtr database = open();
  Database::Job job = [](Transaction& transaction) -> Result<void> {
    const Result<Rows> inserted = transaction.execute("INSERT INTO items VALUES ('a', 1)");
    if (!inserted) return inserted.error();
    return Error(ErrorKind::validation, "changed my mind");
  };
  const Result<void> outcome = loop.block_on(database->run(std::move(job)));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message(), "changed my mind");
  EXPECT_EQ(count_items(loop, *database), 0);
}

TEST_P(DatabaseTest, ThrowingJobIsRolledBackAndReported) {
  const DatabasePtr database = open();
  Database::Job job = [](Transaction& transaction) -> Result<void> {
    const Result<Rows> inserted = transaction.execute("INSERT INTO items VALUES ('a', 1)");
    throw std::runtime_error(inserted ? "after the insertion" : "no insertion");
  };
  const Result<void> outcome = loop.block_on(database->run(std::move(job)));
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message().find("after the insertion"), std::string::npos);
  EXPECT_EQ(count_items(loop, *database), 0);
}

TEST_P(DatabaseTest, UniqueViolationHasACodeAndRollsBack) {
  const DatabasePtr database = open();
  ASSERT_TRUE(loop.block_on(database->run(insert_job("a", 1))));
  Database::Job job = [](Transaction& transaction) -> Result<void> {
    const Result<Rows> first = transaction.execute("INSERT INTO items VALUES ('b', 1)");
    const Result<Rows> second = transaction.execute("INSERT INTO items VALUES ('a', 2)");
    EXPECT_TRUE(first);
    return second ? Result<void>() : second.error();
  };
  const Result<void> outcome = loop.block_on(database->run(std::move(job)));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind(), ErrorKind::validation);
  EXPECT_EQ(failure_code(outcome.error()), kUniqueViolation);
  EXPECT_EQ(count_items(loop, *database), 1);
}

TEST_P(DatabaseTest, JobThatIgnoresAFailedStatementFails) {
  const DatabasePtr database = open();
  Database::Job job = [](Transaction& transaction) -> Result<void> {
    const bool failed = !transaction.execute("SELECT missing FROM items");
    const Result<Rows> later = transaction.execute("INSERT INTO items VALUES ('a', 1)");
    EXPECT_TRUE(failed);
    EXPECT_FALSE(later);
    return {};
  };
  EXPECT_FALSE(loop.block_on(database->run(std::move(job))));
  EXPECT_EQ(count_items(loop, *database), 0);
}

TEST_P(DatabaseTest, JobsRunInTheOrderOfSubmission) {
  const DatabasePtr database = open();
  const auto outcomes = std::make_shared<Outcomes>();
  for (int i = 0; i < 50; ++i) {
    Database::Job job = [i](Transaction& transaction) -> Result<void> {
      const Result<Rows> inserted =
          transaction.execute("INSERT INTO log SELECT MAX(position) + 1, $1 FROM log", {std::to_string(i)});
      return inserted ? Result<void>() : inserted.error();
    };
    start(record(database->run(std::move(job)), i, outcomes));
  }
  loop.run_until([&] { return outcomes->size() == 50; });
  const Result<Rows> rows =
      execute(loop, *database, "SELECT item FROM log WHERE position > 0 ORDER BY position");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 50u);
  for (int i = 0; i < 50; ++i) {
    const auto index = static_cast<std::size_t>(i);
    EXPECT_EQ((*outcomes)[index].first, i);
    EXPECT_EQ(text((*rows)[index][0]), std::to_string(i));
  }
}

TEST_P(DatabaseTest, RunFailsWhenTheQueueIsFull) {
  options.max_queued_jobs = 2;
  const DatabasePtr database = open();
  const auto outcomes = std::make_shared<Outcomes>();
  std::latch started(1);
  std::latch release(1);
  Database::Job blocking = [&](Transaction&) -> Result<void> {
    started.count_down();
    release.wait();
    return {};
  };
  start(record(database->run(std::move(blocking)), 0, outcomes));
  started.wait();
  for (int i = 1; i <= 3; ++i) start(record(database->run(insert_job(std::to_string(i), i)), i, outcomes));
  ASSERT_EQ(outcomes->size(), 1u);  // the last one has failed at once
  EXPECT_EQ(outcomes->at(0).first, 3);
  ASSERT_FALSE(outcomes->at(0).second);
  EXPECT_EQ(outcomes->at(0).second.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(outcomes->at(0).second.error().message().find("max_queued_jobs (2)"), std::string::npos);
  release.count_down();
  loop.run_until([&] { return outcomes->size() == 4; });
  EXPECT_EQ(count_items(loop, *database), 2);
}

TEST_P(DatabaseTest, JobIsDestroyedOnTheThreadOfTheLoop) {
  const DatabasePtr database = open();
  std::thread::id destroyed_on;
  std::shared_ptr<void> guard(nullptr, [&](void*) { destroyed_on = std::this_thread::get_id(); });
  Database::Job job = [guard = std::move(guard)](Transaction&) -> Result<void> { return {}; };
  ASSERT_TRUE(loop.block_on(database->run(std::move(job))));
  EXPECT_EQ(destroyed_on, std::this_thread::get_id());
}

TEST_P(DatabaseTest, DestroyingTheTaskWhileTheJobRunsIsSafe) {
  const DatabasePtr database = open();
  std::latch started(1);
  std::latch release(1);
  const auto outcomes = std::make_shared<Outcomes>();
  Database::Job job = [&](Transaction& transaction) -> Result<void> {
    started.count_down();
    release.wait();
    const Result<Rows> inserted = transaction.execute("INSERT INTO items VALUES ('a', 1)");
    return inserted ? Result<void>() : inserted.error();
  };
  start(record(database->run(std::move(job)), 0, outcomes));
  started.wait();
  tasks.clear();
  release.count_down();
  EXPECT_EQ(count_items(loop, *database), 1);
  EXPECT_TRUE(outcomes->empty());
}

TEST_P(DatabaseTest, DestroyingTheDatabaseFailsQueuedJobs) {
  DatabasePtr database = open();
  const auto outcomes = std::make_shared<Outcomes>();
  std::latch started(1);
  std::latch release(1);
  Database::Job blocking = [&](Transaction&) -> Result<void> {
    started.count_down();
    release.wait();
    return {};
  };
  start(record(database->run(std::move(blocking)), 0, outcomes));
  started.wait();
  for (int i = 1; i <= 5; ++i) start(record(database->run(insert_job(std::to_string(i), i)), i, outcomes));
  std::thread releasing([&] { release.count_down(); });
  database.reset();
  releasing.join();
  loop.run_until([&] { return outcomes->size() == 6; });
  for (const auto& [number, outcome] : *outcomes) {
    if (number == 0 || outcome) continue;
    EXPECT_EQ(outcome.error().kind(), ErrorKind::closed);
  }
}

TEST_P(DatabaseTest, JobThatOwnsTheDatabaseMayOutliveAllOtherReferences) {
  DatabasePtr database = open();
  bool ended = false;
  Database::Job job = [database](Transaction&) -> Result<void> { return {}; };
  Database& reference = *database;
  database.reset();
  const auto outcomes = std::make_shared<Outcomes>();
  start(record(reference.run(std::move(job)), 0, outcomes));
  loop.run_until([&] { return ended = !outcomes->empty(); });
  EXPECT_TRUE(ended);
}

TEST_P(DatabaseTest, CloseRunsQueuedJobsAndRejectsLaterOnes) {
  const DatabasePtr database = open();
  const auto outcomes = std::make_shared<Outcomes>();
  for (int i = 0; i < 20; ++i) start(record(database->run(insert_job(std::to_string(i), i)), i, outcomes));
  loop.block_on(database->close());
  EXPECT_EQ(outcomes->size(), 20u);
  for (const auto& [number, outcome] : *outcomes) EXPECT_TRUE(outcome);
  const Result<void> later = loop.block_on(database->run(insert_job("later", 1)));
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().kind(), ErrorKind::closed);
  loop.block_on(database->close());
  const DatabasePtr again = open();
  EXPECT_EQ(count_items(loop, *again), 20);
}

TEST_P(DatabaseTest, SlowStatementFailsAndLaterJobsRun) {
  options.statement_timeout = 200ms;
  const DatabasePtr database = open();
  const Result<Rows> slow = execute(loop, *database,
                                    "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 "
                                    "FROM n WHERE i < 4000000000) SELECT COUNT(*) FROM n");
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().kind(), ErrorKind::timeout);
  EXPECT_NE(slow.error().message().find("statement_timeout (200ms)"), std::string::npos);
  EXPECT_EQ(count_items(loop, *database), 0);
  EXPECT_FALSE(database->problem());
}

TEST_P(DatabaseTest, DestroyingTheDatabaseInterruptsARunningStatement) {
  DatabasePtr database = open();
  const auto outcomes = std::make_shared<Outcomes>();
  std::latch started(1);
  Database::Job job = [&](Transaction& transaction) -> Result<void> {
    started.count_down();
    const Result<Rows> rows = transaction.execute(
        "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < "
        "4000000000) SELECT COUNT(*) FROM n");
    return rows ? Result<void>() : rows.error();
  };
  start(record(database->run(std::move(job)), 0, outcomes));
  started.wait();
  const auto before = Clock::now();
  database.reset();
  EXPECT_LT(Clock::now() - before, 3s);  // statement_timeout is 10 s
  loop.run_until([&] { return !outcomes->empty(); });
  EXPECT_FALSE(outcomes->at(0).second);
}

TEST_P(DatabaseTest, MigrationsAreAppliedOnce) {
  EXPECT_EQ(count_items(loop, *open()), 0);
  ASSERT_TRUE(execute(loop, *open(), "INSERT INTO items VALUES ('a', 1)"));
  const DatabasePtr database = open();
  EXPECT_EQ(count_items(loop, *database), 1);
  const Result<Rows> versions =
      execute(loop, *database, "SELECT version, name FROM schema_version ORDER BY version");
  ASSERT_TRUE(versions);
  EXPECT_EQ(*versions, (Rows{{1, "items"}, {2, "log"}}));
}

TEST_P(DatabaseTest, LaterMigrationsAreAppliedToAnOlderSchema) {
  migrations.pop_back();
  ASSERT_TRUE(execute(loop, *open(), "INSERT INTO items VALUES ('a', 1)"));
  migrations = item_migrations();
  const DatabasePtr database = open();
  EXPECT_EQ(count_items(loop, *database), 1);
  EXPECT_TRUE(execute(loop, *database, "SELECT position FROM log"));
}

TEST_P(DatabaseTest, NewerSchemaIsRefused) {
  static_cast<void>(open());
  migrations.pop_back();
  const Result<DatabasePtr> older = try_open();
  ASSERT_FALSE(older);
  EXPECT_EQ(failure_code(older.error()), kSchemaTooNew);
  EXPECT_NE(older.error().message().find("schema version 2"), std::string::npos);
  EXPECT_NE(older.error().message().find("up to 1"), std::string::npos);
}

TEST_P(DatabaseTest, FailedMigrationIsRolledBackAndNamed) {
  migrations.push_back({3, "broken", {"CREATE TABLE third (id BIGINT)", "INSERT INTO missing VALUES (1)"}});
  const Result<DatabasePtr> broken = try_open();
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message().find("3 (broken)"), std::string::npos);
  migrations.pop_back();
  const DatabasePtr database = open();
  EXPECT_FALSE(execute(loop, *database, "SELECT id FROM third"));
  const Result<Rows> version = execute(loop, *database, "SELECT MAX(version) FROM schema_version");
  ASSERT_TRUE(version);
  EXPECT_EQ(integer(version->at(0).at(0)), 2);
}

TEST_P(DatabaseTest, MigrationsWithAGapAreRejected) {
  migrations.back().version = 3;
  EXPECT_FALSE(try_open());
}

INSTANTIATE_TEST_SUITE_P(Kinds, DatabaseTest, testing::Values(Kind::sqlite, Kind::postgresql), kind_name);

}  // namespace
}  // namespace fairlead::sql::test
