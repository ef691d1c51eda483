// What only SQLite databases do.
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "sql/harness.hpp"

namespace fairlead::sql::test {
namespace {

class SqliteTest : public testing::Test {
 protected:
  Result<DatabasePtr> try_open(const std::string& file) {
    return loop.block_on(Database::open(loop, "sqlite:" + file, item_migrations(), options));
  }
  DatabasePtr open() {
    Result<DatabasePtr> database = try_open(path);
    if (!database) throw std::runtime_error(database.error().to_string());
    return *database;
  }
  static unsigned mode_of(const std::string& file) {
    struct stat status {};
    return ::stat(file.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
  }

  Loop loop;
  TempDir directory;
  std::string path = directory / "test.db";
  DatabaseOptions options;
};

TEST_F(SqliteTest, FilesAreForTheirOwnerOnly) {
  path = directory / "new/deep/test.db";
  const DatabasePtr database = open();
  EXPECT_EQ(mode_of(directory / "new"), 0700u);
  EXPECT_EQ(mode_of(directory / "new/deep"), 0700u);
  for (const std::string suffix : {"", "-wal", "-shm", ".lock"})
    EXPECT_EQ(mode_of(path + suffix), 0600u) << suffix;
}

TEST_F(SqliteTest, CommittedTransactionsAreSynchronized) {
  const DatabasePtr database = open();
  EXPECT_EQ(*execute(loop, *database, "PRAGMA journal_mode"), (Rows{{"wal"}}));
  EXPECT_EQ(*execute(loop, *database, "PRAGMA synchronous"), (Rows{{2}}));  // FULL
}

TEST_F(SqliteTest, SecondGatewayIsRefused) {
  DatabasePtr first = open();
  std::filesystem::create_symlink(path, directory / "link.db");
  for (const std::string& other : {path, directory / "link.db"}) {
    const Result<DatabasePtr> second = try_open(other);
    ASSERT_FALSE(second);
    EXPECT_EQ(failure_code(second.error()), kDatabaseInUse);
    EXPECT_NE(second.error().message().find(path + ".lock"), std::string::npos);
    EXPECT_NE(second.error().message().find(std::to_string(::getpid())), std::string::npos);
  }
  EXPECT_TRUE(loop.block_on(first->run(insert_job("a", 1))));
  first.reset();
  EXPECT_EQ(count_items(loop, *open()), 1);
}

// If the refused gateway opened and closed the file, the locks of the first one in the same process would
// end: the next program that closes the file would then delete the write-ahead log.
TEST_F(SqliteTest, RefusedGatewayKeepsTheLocksOfTheFirst) {
  const DatabasePtr first = open();
  ASSERT_TRUE(loop.block_on(first->run(insert_job("a", 1))));
  ASSERT_FALSE(try_open(path));
  const std::string command = "python3 -c \"import sqlite3; c = sqlite3.connect('" + path +
                              "'); print(c.execute('SELECT name FROM items').fetchall()); c.close()\"";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_TRUE(std::filesystem::exists(path + "-wal"));
  EXPECT_TRUE(loop.block_on(first->run(insert_job("b", 1))));
}

TEST_F(SqliteTest, JobFailsWhenAnotherProgramLocksTheFile) {
  options.lock_timeout = 50ms;
  const DatabasePtr database = open();
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(connection, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const Result<void> locked = loop.block_on(database->run(insert_job("a", 1)));
  ASSERT_EQ(sqlite3_exec(connection, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(connection);
  ASSERT_FALSE(locked);
  EXPECT_EQ(locked.error().kind(), ErrorKind::timeout);
  EXPECT_NE(locked.error().message().find("lock_timeout (50ms)"), std::string::npos);
  EXPECT_TRUE(loop.block_on(database->run(insert_job("a", 1))));
}

TEST_F(SqliteTest, FullDatabaseRollsBackAndReadsGoOn) {
  const DatabasePtr database = open();
  ASSERT_TRUE(loop.block_on(database->run(insert_job("a", 1))));
  ASSERT_TRUE(execute(loop, *database, "PRAGMA max_page_count = 30"));
  Database::Job job = [](Transaction& transaction) -> Result<void> {
    const Result<Rows> fits = transaction.execute("INSERT INTO items VALUES ('b', 1)");
    EXPECT_TRUE(fits);
    const std::string large(1 << 20, 'x');
    const Result<Rows> full = transaction.execute("INSERT INTO log VALUES (1, $1)", {large});
    return full ? Result<void>() : full.error();
  };
  const Result<void> full = loop.block_on(database->run(std::move(job)));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().kind(), ErrorKind::io);
  EXPECT_EQ(failure_code(full.error()), kDatabaseFull);
  EXPECT_NE(full.error().message().find(path), std::string::npos);
  EXPECT_EQ(count_items(loop, *database), 1);
  EXPECT_TRUE(loop.block_on(database->run(insert_job("c", 1))));
}

// Limits the size of files of this process, as if the disk were full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit lowered{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &lowered);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(SqliteTest, FailedWriteToTheFileIsReportedAsFull) {
  const DatabasePtr database = open();
  Result<Rows> full = Rows();
  std::int64_t count = -1;
  {
    const FileSizeLimit limit(256 << 10);
    full = execute(loop, *database, "INSERT INTO log VALUES (1, $1)", {std::string(1 << 20, 'x')});
    count = count_items(loop, *database);
  }
  ASSERT_FALSE(full);
  EXPECT_EQ(failure_code(full.error()), kDatabaseFull) << full.error().to_string();
  EXPECT_EQ(count, 0);
  EXPECT_TRUE(loop.block_on(database->run(insert_job("a", 1))));
  EXPECT_EQ(*execute(loop, *database, "PRAGMA integrity_check"), (Rows{{"ok"}}));
}

TEST_F(SqliteTest, DeletedFileFailsJobs) {
  const DatabasePtr database = open();
  std::filesystem::remove(path);
  const Result<void> lost = loop.block_on(database->run(insert_job("a", 1)));
  ASSERT_FALSE(lost);
  EXPECT_EQ(failure_code(lost.error()), kDatabaseUnavailable);
  EXPECT_NE(lost.error().message().find("deleted or moved"), std::string::npos);
}

TEST_F(SqliteTest, FileThatIsNotADatabaseIsRefused) {
  std::ofstream(path) << std::string(8192, 'x');
  const Result<DatabasePtr> opened = try_open(path);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("not a database"), std::string::npos);
}

TEST_F(SqliteTest, PathThatIsNotARegularFileIsRejected) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  for (const std::string& other : {path, directory / "", std::string(), std::string(":memory:")}) {
    const Result<DatabasePtr> opened = try_open(other);
    ASSERT_FALSE(opened) << other;
    EXPECT_EQ(opened.error().kind(), ErrorKind::validation) << other;
  }
}

TEST_F(SqliteTest, PathBelowAFileFails) {
  std::ofstream(path) << "x";
  EXPECT_FALSE(try_open(path + "/test.db"));
}

TEST_F(SqliteTest, ForeignKeysAreEnforced) {
  const DatabasePtr database = open();
  ASSERT_TRUE(execute(loop, *database, "CREATE TABLE parts (item TEXT REFERENCES items(name))"));
  const Result<Rows> orphan = execute(loop, *database, "INSERT INTO parts VALUES ('missing')");
  ASSERT_FALSE(orphan);
  EXPECT_EQ(orphan.error().kind(), ErrorKind::validation);
  EXPECT_EQ(failure_code(orphan.error()), "");
}

TEST_F(SqliteTest, SurplusParameterFails) {
  const DatabasePtr database = open();
  EXPECT_FALSE(execute(loop, *database, "SELECT name FROM items WHERE size = $1", {1, 2}));
}

TEST_F(SqliteTest, ManyDifferentStatementsWork) {
  const DatabasePtr database = open();
  for (int i = 0; i < 500; ++i) {
    const Result<Rows> rows = execute(loop, *database, "SELECT " + std::to_string(i));
    ASSERT_TRUE(rows);
    ASSERT_EQ(integer(rows->at(0).at(0)), i);
  }
}

}  // namespace
}  // namespace fairlead::sql::test
