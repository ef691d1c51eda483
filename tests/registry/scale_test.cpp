// A registry with many servers: what it costs to open it and to change one row.
#include <sys/resource.h>

#include <cstdlib>

#include "base/uuid.hpp"
#include "registry/fixture.hpp"
#include "registry/rows.hpp"
#include "registry/schema.hpp"
#include "registry/stored_lists.hpp"

namespace fairlead::registry::test {
namespace {

std::chrono::duration<double, std::milli> cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto milliseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return std::chrono::duration<double, std::milli>(milliseconds(usage.ru_utime) +
                                                   milliseconds(usage.ru_stime));
}

class ScaleTest : public RegistryTest {
 protected:
  static constexpr int kToolsPerServer = 10;
  static int server_count() {
    const char* const count = std::getenv("FAIRLEAD_TEST_SERVERS");
    return count ? std::atoi(count) : 1'000;
  }

  // Writes the rows without the registry, in one transaction.
  void fill(int count) {
    close(open());
    const auto database = wait(sql::Database::open(loop, address(), migrations(), options.database));
    ASSERT_TRUE(database);
    const Result<void> filled = wait((*database)->run([count](sql::Transaction& transaction) {
      UuidGenerator ids;
      Result<void> done;
      for (int i = 0; i < count && done; ++i) done = add(transaction, ids, i);
      return done;
    }));
    ASSERT_TRUE(filled) << filled.error().to_string();
    wait((*database)->close());
  }

  static Result<void> add(sql::Transaction& transaction, UuidGenerator& ids, int number) {
    Server server = *new_server(json::View(server_body("server" + std::to_string(number))));
    server.id = *ids.next(Time());
    StoredLists lists;
    lists.kinds_listed = 1;
    for (int i = 0; i < kToolsPerServer; ++i) {
      ListedEntry& entry = lists.tools.emplace_back();
      entry.entry = raw(
          R"({"name":"tool)" + std::to_string(i) + R"(","title":"A tool","description":")" +
          std::string(150, 'd') +
          R"(","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"The path of )"
          R"(the file"},"limit":{"type":"integer","minimum":1}},"required":["path"]}})");
    }
    Result<void> done = insert_row(transaction, server);
    if (done) done = write_lists(transaction, server.id, encode_lists(lists), Time());
    return done;
  }
};

INSTANTIATE_TEST_SUITE_P(Databases, ScaleTest, testing::Values(Kind::sqlite, Kind::postgresql), kind_name);

TEST_P(ScaleTest, OpeningReadsAllAndAChangeCostsNoMoreThanItsRow) {
  const int count = server_count();
  fill(count);
  const std::size_t bytes_before = fairlead::test::allocated_bytes();
  const auto cpu_before = cpu_time();
  const RegistryHandle registry = open();
  const auto opening = cpu_time() - cpu_before;
  const std::size_t bytes = fairlead::test::allocated_bytes() - bytes_before;
  ASSERT_EQ(registry->state().servers.size(), static_cast<std::size_t>(count));
  ASSERT_EQ(registry->state().lists.size(), static_cast<std::size_t>(count));
  std::size_t text = 0;
  for (const auto& [id, lists] : registry->state().lists) {
    for (const ListedEntry& entry : lists->tools) text += entry.entry.text().size();
  }

  const ServerPtr first = registry->state().servers.by_id().begin()->second;
  const auto before_changes = cpu_time();
  constexpr int kChanges = 50;
  for (int i = 0; i < kChanges; ++i)
    ASSERT_TRUE(patch_server(*registry, first, R"({"title":")" + std::to_string(i) + R"("})"));
  const auto change = (cpu_time() - before_changes) / kChanges;

  const auto per_server = [count](std::size_t of) { return of / static_cast<std::size_t>(count); };
  RecordProperty("open_cpu_ms", std::to_string(opening.count()));
  std::printf("open: %.0f ms CPU; %zu bytes per server, %zu of them text of tools; a change: %.2f ms CPU\n",
              opening.count(), per_server(bytes), per_server(text), change.count());
  EXPECT_LT(per_server(bytes), per_server(text) + 6'000);
  EXPECT_LT(change.count(), 20.0);
}

}  // namespace
}  // namespace fairlead::registry::test
