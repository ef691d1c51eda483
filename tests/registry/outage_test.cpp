// Several gateways on one PostgreSQL, and databases that are full, stop, hang or are too new.
#include <sys/resource.h>

#include <csignal>

#include "registry/fixture.hpp"
#include "registry/schema.hpp"

namespace fairlead::registry::test {
namespace {

class GatewaysTest : public RegistryTest {
 protected:
  GatewaysTest() {
    options.database.first_reconnect_delay = 10ms;
    options.database.max_reconnect_delay = 50ms;
  }
  // Changes the title of the server `count` times, each time to a number greater by one than before.
  static Task<void> count_up(Loop& on, RegistryHandle registry, PrincipalPtr actor, std::string id, int count,
                             int& finished) {
    for (int done = 0; done < count;) {
      const ServerPtr server = registry->state().servers.find(id);
      const int next = server->title.empty() ? 1 : std::stoi(server->title) + 1;
      const json::Raw patch = raw(R"({"title":")" + std::to_string(next) + R"("})");
      const Result<ServerPtr> changed = co_await registry->patch_server(actor, id, patch, server->version);
      if (changed) {
        ++done;
        continue;
      }
      EXPECT_EQ(code_of(changed), kVersionMismatch) << changed.error().to_string();
      co_await sleep_for(on, 1ms);
    }
    ++finished;
  }
  static Task<void> add_servers(RegistryHandle registry, PrincipalPtr actor, std::string prefix, int count,
                                int& finished) {
    for (int i = 0; i < count; ++i) {
      const Result<ServerPtr> added =
          co_await registry->create_server(actor, server_body(prefix + std::to_string(i)));
      EXPECT_TRUE(added);
    }
    ++finished;
  }
  // Executes statements in one transaction of another client.
  void execute_elsewhere(std::vector<std::string> statements) {
    const auto database = wait(sql::Database::open(loop, address(), migrations(), options.database));
    ASSERT_TRUE(database) << database.error().to_string();
    sql::Database::Job job = [texts = std::move(statements)](sql::Transaction& transaction) -> Result<void> {
      for (const std::string& text : texts) {
        const auto executed = transaction.execute(text);
        if (!executed) return executed.error();
      }
      return {};
    };
    const Result<void> done = wait((*database)->run(std::move(job)));
    ASSERT_TRUE(done) << done.error().to_string();
  }
  // Makes every change fail with `sqlstate`, until the server is started again.
  void fail_changes_until_restart(const std::string& sqlstate) {
    execute_elsewhere(
        {"create table damaged as select pg_postmaster_start_time() as since",
         "create function fail() returns trigger language plpgsql as $$ begin "
         "if exists (select 1 from damaged where since = pg_postmaster_start_time()) then "
         "raise exception 'damaged' using errcode = '" +
             sqlstate + "'; end if; return new; end $$",
         "create trigger fail before update on registry_revision for each row execute function fail()"});
  }
  // Changes the database like a gateway of another version: `statement` writes the row.
  void change_elsewhere(std::string statement, const std::string& kind, const std::string& id) {
    execute_elsewhere({std::move(statement), "update registry_revision set revision = revision + 1",
                       "insert into changes (revision, kind, row_id) select revision, '" + kind + "', '" +
                           id + "' from registry_revision"});
  }
  // Returns whether `task` has ended when its coroutine is first suspended.
  template <class T>
  static bool ends_at_once(Task<T> task) {
    bool ended = false;
    Task<void> watched = [](Task<T> inner, bool& done) -> Task<void> {
      const T outcome = co_await std::move(inner);
      done = !outcome;
    }(std::move(task), ended);
    watched.await_suspend(std::noop_coroutine()).resume();
    return ended;
  }
  static std::string all_rows(const State& state) {
    std::string text;
    for (const auto& [id, server] : state.servers.by_id()) text += to_json(*server).text();
    return text;
  }
  fairlead::test::PostgresServer& server() { return fairlead::test::PostgresServer::shared(); }
};

INSTANTIATE_TEST_SUITE_P(Databases, GatewaysTest, testing::Values(Kind::postgresql), kind_name);

TEST_P(GatewaysTest, ConcurrentChangesOfTwoGatewaysAreNotLostAndBothConverge) {
  options.poll_interval = 1h;
  const RegistryHandle a = open();
  const RegistryHandle b = open();
  const ServerPtr counter = add_server(*a, "counter");
  ASSERT_TRUE(eventually([&] { return b->state().servers.find(counter->id) != nullptr; }));
  int finished = 0;
  for (const RegistryHandle& registry : {a, b}) {
    loop.spawn(count_up(loop, registry, admin, counter->id, 30, finished));
    loop.spawn(count_up(loop, registry, admin, counter->id, 20, finished));
    loop.spawn(add_servers(registry, admin, registry == a ? "a" : "b", 50, finished));
  }
  ASSERT_TRUE(eventually([&] { return finished == 6; }));
  ASSERT_TRUE(eventually([&] { return a->state().revision == b->state().revision; }));
  EXPECT_EQ(a->state().servers.find(counter->id)->title, "100");
  EXPECT_EQ(a->state().servers.size(), 101u);
  EXPECT_EQ(all_rows(a->state()), all_rows(b->state()));
}

TEST_P(GatewaysTest, ChangesReachTheOtherGatewayByNotification) {
  options.poll_interval = 1h;
  const RegistryHandle a = open();
  const RegistryHandle b = open();
  std::vector<std::string> seen;
  const auto changes = b->on_change([&](const Change& change) {
    if (const auto* const server = std::get_if<RowChange<Server>>(&change))
      seen.push_back(server->after ? server->after->name + server->after->title : "removed");
  });
  int lists = 0;
  const auto lists_changes = b->on_lists_change([&](const ListsChange&) { ++lists; });
  const ServerPtr server = add_server(*a, "s");
  ASSERT_TRUE(eventually([&] { return b->state().revision == a->state().revision; }));
  ASSERT_TRUE(patch_server(*a, server, R"({"title":"1"})"));
  ASSERT_TRUE(eventually([&] { return b->state().revision == a->state().revision; }));
  ASSERT_TRUE(wait(a->store_lists(server->id, tools({tool("read", "1")}))));
  ASSERT_TRUE(wait(a->set_config(admin, "mcp.max_stdio_processes", raw("9"))));
  ASSERT_TRUE(eventually([&] { return b->state().revision == a->state().revision; }));
  EXPECT_EQ(b->state().configuration->integer("mcp.max_stdio_processes"), 9);
  EXPECT_EQ(lists, 1);
  EXPECT_EQ(b->state().lists.at(server->id)->tools.size(), 1u);
  ASSERT_TRUE(wait(a->remove_server(admin, server->id, std::nullopt)));
  ASSERT_TRUE(eventually([&] { return b->state().revision == a->state().revision; }));
  EXPECT_EQ(seen, (std::vector<std::string>{"s", "s1", "removed"}));
  EXPECT_TRUE(b->state().lists.empty());
}

TEST_P(GatewaysTest, PollingFindsChangesThatWereNotNotified) {
  const RegistryHandle a = open();
  options.database.channel = "another_channel";
  options.poll_interval = 20ms;
  const RegistryHandle b = open();
  add_server(*a, "s");
  EXPECT_TRUE(eventually([&] { return b->state().revision == a->state().revision; }));
}

TEST_P(GatewaysTest, GatewayThatIsFarBehindReadsEverything) {
  options.max_stored_changes = 10;
  options.poll_interval = 1h;
  const RegistryHandle a = open();
  const ServerPtr removed = add_server(*a, "removed");
  const ServerPtr server = add_server(*a, "s");
  ASSERT_TRUE(wait(a->store_lists(removed->id, tools({tool("read", "1")}))));
  options.database.channel = "another_channel";
  options.poll_interval = 200ms;
  const RegistryHandle b = open();
  int added = 0;
  int changed = 0;
  int gone = 0;
  const auto changes = b->on_change([&](const Change& change) {
    const auto* const row = std::get_if<RowChange<Server>>(&change);
    if (!row) return;
    added += row->before == nullptr;
    gone += row->after == nullptr;
    changed += row->before && row->after;
  });
  ASSERT_TRUE(wait(a->remove_server(admin, removed->id, std::nullopt)));
  int finished = 0;
  loop.spawn(add_servers(a, admin, "new", 3, finished));
  loop.spawn(count_up(loop, a, admin, server->id, 280, finished));
  ASSERT_TRUE(eventually([&] { return finished == 2 && b->state().revision == a->state().revision; }));
  EXPECT_EQ(all_rows(a->state()), all_rows(b->state()));
  EXPECT_EQ(gone, 1);
  EXPECT_EQ(added, 3);
  EXPECT_GE(changed, 1);
  EXPECT_TRUE(b->state().lists.empty());
}

TEST_P(GatewaysTest, WhileTheDatabaseIsStoppedReadsGoOnAndChangesFailAtOnce) {
  const RegistryHandle a = open();
  const RegistryHandle b = open();
  const ServerPtr files = add_server(*a, "files");
  ASSERT_TRUE(eventually([&] { return b->state().revision == a->state().revision; }));
  std::vector<bool> available;
  const auto subscription =
      a->on_availability([&](const std::optional<Error>& problem) { available.push_back(!problem); });
  server().stop();
  ASSERT_TRUE(eventually([&] { return a->database_problem().has_value(); }));
  EXPECT_TRUE(a->state().servers.find(files->id));
  EXPECT_TRUE(ends_at_once(a->create_server(admin, server_body("other"))));
  const Result<ServerPtr> created = wait(a->create_server(admin, server_body("other")));
  EXPECT_EQ(code_of(created), sql::kDatabaseUnavailable);
  const Result<StoredListsPtr> stored = wait(a->store_lists(files->id, tools({tool("read", "1")})));
  EXPECT_EQ(code_of(stored), sql::kDatabaseUnavailable);
  server().start();
  ASSERT_TRUE(eventually([&] { return !a->database_problem() && !b->database_problem(); }));
  ASSERT_TRUE(wait(a->create_server(admin, server_body("other"))));
  EXPECT_TRUE(eventually([&] { return b->state().servers.find_by_name("other") != nullptr; }));
  EXPECT_TRUE(eventually([&] { return a->state().lists.contains(files->id); }))
      << "lists that were fetched during the outage are stored after it";
  EXPECT_TRUE(eventually([&] { return available == std::vector<bool>{false, true}; }));
}

TEST_P(GatewaysTest, ChangesMadeWhileAGatewayHasNoConnectionArriveAfterTheReconnect) {
  options.poll_interval = 1h;
  const RegistryHandle a = open();
  server().stop();
  ASSERT_TRUE(eventually([&] { return a->database_problem().has_value(); }));
  server().start();
  const RegistryHandle b = open();
  add_server(*b, "other");
  EXPECT_TRUE(eventually([&] { return a->state().servers.find_by_name("other") != nullptr; }));
}

TEST_P(GatewaysTest, CrashOfTheDatabaseLosesNoAcknowledgedChangeAndTheStateFollows) {
  for (int round = 0; round < 5; ++round) {
    const RegistryHandle a = open();
    std::vector<std::string> acknowledged;
    bool failed = false;
    loop.spawn([](RegistryHandle to, PrincipalPtr actor, int number, std::vector<std::string>& done,
                  bool& ended) -> Task<void> {
      for (int i = 0; !ended; ++i) {
        const std::string name = "r" + std::to_string(number) + "-" + std::to_string(i);
        const Result<ServerPtr> created = co_await to->create_server(actor, server_body(name));
        if (created) done.push_back(name);
        ended = !created;
      }
    }(a, admin, round, acknowledged, failed));
    ASSERT_TRUE(eventually([&] { return acknowledged.size() > static_cast<std::size_t>(round); }));
    server().crash();
    ASSERT_TRUE(eventually([&] { return failed; }));
    server().start();
    ASSERT_TRUE(eventually([&] { return !a->database_problem(); }));
    const RegistryHandle b = open();
    for (const std::string& name : acknowledged) EXPECT_TRUE(b->state().servers.find_by_name(name)) << name;
    EXPECT_TRUE(eventually([&] { return a->state().revision == b->state().revision; }));
    EXPECT_EQ(all_rows(a->state()), all_rows(b->state()));
    close(a);
    close(b);
  }
}

TEST_P(GatewaysTest, ProblemOfChangesEndsAfterAnOutageWithoutAnotherChange) {
  std::atomic<int> failed_probes = 0;
  options.log = Log(LogLevel::debug, LogFormat::text, [&](std::string_view line) {
    failed_probes += line.find("the database is still not usable") != std::string_view::npos;
  });
  const RegistryHandle a = open();
  std::vector<bool> available;
  const auto subscription =
      a->on_availability([&](const std::optional<Error>& problem) { available.push_back(!problem); });
  fail_changes_until_restart("XX001");
  EXPECT_EQ(code_of(wait(a->create_server(admin, server_body("s")))), sql::kDatabaseUnavailable);
  EXPECT_TRUE(a->database_problem());
  server().stop();
  ASSERT_TRUE(eventually([&] { return a->database_problem()->message().contains("cannot be used"); }));
  const int failed_before = failed_probes;
  ASSERT_TRUE(eventually([&] { return failed_probes > failed_before; }));
  server().start();
  ASSERT_TRUE(eventually([&] { return !a->database_problem(); }));
  ASSERT_TRUE(eventually([&] { return available.size() >= 2; }));
  EXPECT_EQ(available, (std::vector<bool>{false, true}));
}

TEST_P(GatewaysTest, HungDatabaseFailsChangesAfterTheTimeoutAndIsUsedAgain) {
  options.database.statement_timeout = 500ms;
  const RegistryHandle a = open();
  const ServerPtr files = add_server(*a, "files");
  server().suspend();
  const auto begun = Clock::now();
  const Result<ServerPtr> changed = patch_server(*a, files, R"({"title":"1"})");
  const Result<ServerPtr> second = patch_server(*a, files, R"({"title":"2"})");
  const auto took = Clock::now() - begun;
  server().resume();
  EXPECT_FALSE(changed);
  EXPECT_EQ(code_of(second), sql::kDatabaseUnavailable);
  EXPECT_LT(took, 20s);  // the timeouts are 1 s
  EXPECT_EQ(a->state().servers.find(files->id)->title, "");
  ASSERT_TRUE(eventually([&] { return !a->database_problem(); }));
  EXPECT_TRUE(patch_server(*a, files, R"({"title":"3"})"));
}

TEST_P(GatewaysTest, LockHeldByAnotherClientFailsTheChange) {
  options.database.lock_timeout = 100ms;
  const RegistryHandle a = open();
  const auto other = wait(sql::Database::open(loop, address(), migrations(), options.database));
  ASSERT_TRUE(other);
  std::atomic<bool> locked = false;
  std::atomic<bool> release = false;
  sql::Database::Job job = [&](sql::Transaction& transaction) -> Result<void> {
    const auto done = transaction.execute("update registry_revision set revision = revision");
    locked = true;
    while (!release) std::this_thread::yield();
    return done ? Result<void>() : done.error();
  };
  loop.spawn([](sql::Database& database, sql::Database::Job held) -> Task<void> {
    const Result<void> done = co_await database.run(std::move(held));
    EXPECT_TRUE(done);
  }(**other, std::move(job)));
  ASSERT_TRUE(eventually([&] { return locked.load(); }));
  const Result<ServerPtr> refused = wait(a->create_server(admin, server_body("a")));
  EXPECT_TRUE(a->database_problem());
  release = true;
  EXPECT_EQ(code_of(refused), "database_busy");
  EXPECT_TRUE(eventually([&] { return !a->database_problem(); }));
  EXPECT_TRUE(wait(a->create_server(admin, server_body("a"))));
}

TEST_P(GatewaysTest, DatabaseOfALowerRevisionIsReadAgain) {
  options.poll_interval = 20ms;
  const RegistryHandle a = open();
  add_server(*a, "s");
  const auto database = wait(sql::Database::open(loop, address(), migrations(), options.database));
  ASSERT_TRUE(database);
  // As if the database had been restored from a copy without the server.
  const Result<void> restored = wait((*database)->run([](sql::Transaction& transaction) -> Result<void> {
    for (const char* const statement :
         {"delete from servers", "delete from changes", "update registry_revision set revision = 1"}) {
      const auto done = transaction.execute(statement);
      if (!done) return done.error();
    }
    return {};
  }));
  ASSERT_TRUE(restored);
  EXPECT_TRUE(eventually([&] { return a->state().servers.size() == 0; }));
  EXPECT_EQ(a->state().revision, 1);
  add_server(*a, "t");
  EXPECT_EQ(a->state().revision, 2);
}

TEST_P(GatewaysTest, FullDiskFailsChangesClearlyReadsGoOnAndChangesWorkAgain) {
  const RegistryHandle a = open();
  const ServerPtr files = add_server(*a, "files");
  fail_changes_until_restart("53100");
  EXPECT_EQ(code_of(patch_server(*a, files, R"({"title":"1"})")), sql::kDatabaseFull);
  EXPECT_EQ(a->state().servers.find(files->id)->title, "");
  ASSERT_TRUE(a->database_problem());
  EXPECT_EQ(code_of(*a->database_problem()), sql::kDatabaseFull);
  execute_elsewhere({"delete from damaged"});
  EXPECT_TRUE(eventually([&] { return !a->database_problem(); }));
  EXPECT_TRUE(patch_server(*a, files, R"({"title":"1"})"));
}

TEST_P(GatewaysTest, ChangedRowThatCannotBeReadIsNotInForceAnyMore) {
  options.poll_interval = 20ms;
  const RegistryHandle a = open();
  const ServerPtr files = add_server(*a, "files");
  const UserPtr ann = add_user(*a, "ann");
  const NewToken token = add_token(*a, ann);
  ASSERT_TRUE(wait(a->store_lists(files->id, tools({tool("read", "1")}))));
  change_elsewhere("update servers set document = '[' || document", "server", files->id);
  change_elsewhere("update tokens set document = '[' || document", "token", token.token->id);
  EXPECT_TRUE(eventually([&] { return a->state().servers.size() == 0 && a->state().tokens.size() == 0; }));
  EXPECT_TRUE(a->state().tokens_by_sha256.empty());
  change_elsewhere("update servers set document = substr(document, 2)", "server", files->id);
  EXPECT_TRUE(eventually([&] { return a->state().servers.find(files->id) != nullptr; }));
  EXPECT_TRUE(a->state().lists.contains(files->id));
}

TEST_P(GatewaysTest, ListsAndValuesThatCannotBeReadDoNotStopTheGateway) {
  options.poll_interval = 20ms;
  const RegistryHandle a = open();
  const ServerPtr files = add_server(*a, "files");
  ASSERT_TRUE(wait(a->store_lists(files->id, tools({tool("read", "1")}))));
  ASSERT_TRUE(wait(a->set_config(admin, "mcp.max_stdio_processes", raw("9"))));
  change_elsewhere("update server_lists set document = '['", "lists", files->id);
  change_elsewhere("update config_values set value = '['", "config", "mcp.max_stdio_processes");
  EXPECT_TRUE(eventually([&] { return a->state().lists.empty(); }));
  EXPECT_TRUE(eventually([&] { return a->state().configuration->integer("mcp.max_stdio_processes") == 50; }));
  EXPECT_TRUE(wait(a->store_lists(files->id, tools({tool("read", "1")}))));
  EXPECT_TRUE(wait(a->set_config(admin, "mcp.max_stdio_processes", raw("8"))));
  EXPECT_EQ(a->state().lists.at(files->id)->tools.size(), 1u);
}

TEST_P(GatewaysTest, OneOfTwoGatewaysClaimsAnIdempotencyKey) {
  const RegistryHandle a = open();
  const RegistryHandle b = open();
  const auto claimed = wait(a->claim_response("ann", "1", "abc"));
  ASSERT_TRUE(claimed);
  EXPECT_FALSE(*claimed);
  const auto second = wait(b->claim_response("ann", "1", "abc"));
  ASSERT_TRUE(second);
  ASSERT_TRUE(*second);
  EXPECT_EQ((*second)->status, 0);
}

class SchemaTest : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Databases, SchemaTest, testing::Values(Kind::sqlite, Kind::postgresql), kind_name);

TEST_P(SchemaTest, DatabaseOfANewerVersionIsRefused) {
  std::vector<sql::Migration> newer = migrations();
  newer.push_back({static_cast<int>(newer.size()) + 1, "newer", {"create table later (id bigint)"}});
  close(open());
  const auto database = wait(sql::Database::open(loop, address(), newer, options.database));
  ASSERT_TRUE(database) << database.error().to_string();
  wait((*database)->close());
  const Result<RegistryHandle> opened = try_open();
  EXPECT_EQ(code_of(opened), sql::kSchemaTooNew);
}

TEST_P(SchemaTest, InvalidRowIsLeftOutAndCannotBeChanged) {
  RegistryHandle registry = open();
  const ServerPtr broken = add_server(*registry, "broken");
  add_server(*registry, "whole");
  close(std::move(registry));
  const auto database = wait(sql::Database::open(loop, address(), migrations(), options.database));
  ASSERT_TRUE(database);
  sql::Database::Job job = [&](sql::Transaction& transaction) -> Result<void> {
    const auto done = transaction.execute("update servers set document = '{\"x\":' where name = 'broken'");
    return done ? Result<void>() : done.error();
  };
  ASSERT_TRUE(wait((*database)->run(std::move(job))));
  wait((*database)->close());
  registry = open();
  EXPECT_FALSE(registry->state().servers.find(broken->id));
  EXPECT_TRUE(registry->state().servers.find_by_name("whole"));
  EXPECT_FALSE(patch_server(*registry, broken, R"({"title":"1"})"));
  EXPECT_EQ(code_of(wait(registry->create_server(admin, server_body("broken")))), kNameTaken);
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

class FullDiskTest : public RegistryTest {};
INSTANTIATE_TEST_SUITE_P(Databases, FullDiskTest, testing::Values(Kind::sqlite), kind_name);

TEST_P(FullDiskTest, ChangesFailClearlyReadsGoOnAndChangesWorkAgain) {
  options.database.max_reconnect_delay = 20ms;
  RegistryHandle registry = open();
  std::vector<bool> available;
  const auto subscription =
      registry->on_availability([&](const std::optional<Error>& problem) { available.push_back(!problem); });
  const ServerPtr files = add_server(*registry, "files");
  const std::string patch = R"({"metadata":{"x":")" + std::string(40'000, 'x') + R"("}})";
  int refused = 0;
  std::int64_t version = 0;
  {
    const FileSizeLimit limit(400 << 10);
    for (int i = 0; i < 40 && refused < 3; ++i) {
      const Result<ServerPtr> changed =
          wait(registry->create_server(admin, server_body("s" + std::to_string(i))));
      const Result<ServerPtr> grown = changed ? patch_server(*registry, *changed, patch) : changed;
      if (grown) continue;
      EXPECT_EQ(code_of(grown), sql::kDatabaseFull) << grown.error().to_string();
      ++refused;
    }
    EXPECT_TRUE(registry->state().servers.find(files->id));
    version = registry->state().revision;
    ASSERT_TRUE(registry->database_problem());
    EXPECT_EQ(code_of(*registry->database_problem()), sql::kDatabaseFull);
  }
  EXPECT_EQ(refused, 3);
  EXPECT_TRUE(eventually([&] { return !registry->database_problem(); }));
  EXPECT_EQ(available.front(), false);
  EXPECT_EQ(available.back(), true);
  EXPECT_TRUE(patch_server(*registry, files, R"({"title":"1"})"));
  EXPECT_EQ(registry->state().revision, version + 1);
  const std::size_t servers = registry->state().servers.size();
  registry = reopen(std::move(registry));
  EXPECT_EQ(registry->state().servers.size(), servers);
}

TEST_P(FullDiskTest, SecondGatewayOnOneFileIsRefused) {
  const RegistryHandle registry = open();
  const Result<RegistryHandle> second = try_open();
  EXPECT_EQ(code_of(second), sql::kDatabaseInUse);
}

}  // namespace
}  // namespace fairlead::registry::test
