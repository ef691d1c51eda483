#include "search/tool_index.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "fairlead/loop/all.hpp"

namespace fairlead::search {
namespace {

std::vector<Document> documents(DocumentNumber count, const std::string& name) {
  std::vector<Document> made(count);
  for (DocumentNumber i = 0; i < count; ++i) {
    made[i].number = i;
    made[i].text.name = name;
  }
  return made;
}

Query query_for(std::string text) {
  Query query;
  query.text = std::move(text);
  return query;
}

// Blocks the thread of an index when it next uses SQLite, as long as this object exists.
class IndexBlock {
 public:
  IndexBlock() { sqlite3_mutex_enter(mutex_); }
  ~IndexBlock() { sqlite3_mutex_leave(mutex_); }
  IndexBlock(const IndexBlock&) = delete;

 private:
  sqlite3_mutex* mutex_ = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_MEM);
};

// Operations that wait for the index at the same time.
struct QueueTest {
  explicit QueueTest(const ToolIndexLimits& limits) : index(loop, limits) {}

  Task<void> put() {
    ++started;
    std::vector<Document> put = documents(3, "alpha");
    Task<Result<void>> putting = index.put(std::move(put));
    const Result<void> done = co_await putting;
    EXPECT_TRUE(done) << done.error().message();
    ++ended;
  }
  Task<void> query(std::string client) {
    ++started;
    Query query = query_for("alpha");
    Task<Result<Hits>> querying = index.query(std::move(query), std::move(client));
    const Result<Hits> hits = co_await querying;
    if (!hits) errors.push_back(hits.error());
    ++ended;
  }
  // Starts ten queries of each client between two changes, while the index is blocked by the first one.
  void run(const std::vector<std::string>& clients) {
    const int count = static_cast<int>(clients.size()) * 10 + 2;
    started = ended = 0;
    errors.clear();
    {
      const IndexBlock block;
      loop.spawn(put());
      for (const std::string& client : clients) {
        for (int i = 0; i < 10; ++i) loop.spawn(query(client));
      }
      loop.spawn(put());
      loop.run_until([&] { return started == count; });
    }
    loop.run_until([&] { return ended == count; });
  }

  Loop loop;
  ToolIndex index;
  std::vector<Error> errors;
  int started = 0;
  int ended = 0;
};

TEST(ToolIndexTest, QueryFindsWhatWasPutAndNotWhatWasRemoved) {
  Loop loop;
  ToolIndex index(loop);
  ASSERT_TRUE(loop.block_on(index.put(documents(3, "alpha"))));
  ASSERT_TRUE(loop.block_on(index.remove({1})));
  const Result<Hits> hits = loop.block_on(index.query(query_for("alpha")));
  ASSERT_TRUE(hits);
  ASSERT_EQ(hits->hits.size(), 2u);
  EXPECT_EQ(hits->hits[0].number, 0u);
  EXPECT_EQ(hits->hits[1].number, 2u);
}

TEST(ToolIndexTest, QueriesFailButChangesDoNotWhenTheQueueIsFull) {
  ToolIndexLimits limits;
  limits.max_search_queue = 2;
  QueueTest test(limits);
  test.run({"a"});
  ASSERT_EQ(test.errors.size(), 8u);
  EXPECT_EQ(test.errors.front().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(test.errors.front().message().find("max_search_queue (2)"), std::string::npos);
}

TEST(ToolIndexTest, QueriesOfOneClientLeavePlacesInTheQueueToOthers) {
  ToolIndexLimits limits;
  limits.max_search_queue = 12;
  limits.max_client_search_queue = 4;
  QueueTest test(limits);
  for (int i = 0; i < 2; ++i) {
    test.run({"a", "b"});
    EXPECT_EQ(test.errors.size(), 12u);
    for (const Error& error : test.errors)
      EXPECT_NE(error.message().find("max_client_search_queue (4)"), std::string::npos) << error.message();
  }
}

TEST(ToolIndexTest, QueryThatWaitedTooLongFailsWithTimeout) {
  Loop loop;
  ToolIndexLimits limits;
  limits.search_timeout = std::chrono::milliseconds(-1);
  ToolIndex index(loop, limits);
  const Result<Hits> hits = loop.block_on(index.query(query_for("alpha")));
  ASSERT_FALSE(hits);
  EXPECT_EQ(hits.error().kind(), ErrorKind::timeout);
}

TEST(ToolIndexTest, DestroyingTheIndexWithQueuedOperationsWaitsForTheRunningOneOnly) {
  Loop loop;
  std::vector<Task<Result<void>>> tasks;
  {
    ToolIndex index(loop);
    for (int i = 0; i < 5; ++i) tasks.push_back(index.put(documents(100, "alpha")));
    tasks.clear();
  }
}

}  // namespace
}  // namespace fairlead::search
