#include "search/tool_index.hpp"

#include <gtest/gtest.h>

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

Task<void> collect_error(ToolIndex& index, std::vector<Error>& errors) {
  const Result<Hits> hits = co_await index.query(query_for("alpha"));
  if (!hits) errors.push_back(hits.error());
}

Task<void> put_many(ToolIndex& index) {
  const Result<void> done = co_await index.put(documents(20'000, "alpha beta gamma"));
  EXPECT_TRUE(done);
}

// The large change keeps the thread busy while the queries are started, all in one turn of the loop.
Task<Result<void>> change_and_query(Loop& loop, ToolIndex& index, std::vector<Error>& errors) {
  loop.spawn(put_many(index));
  for (int i = 0; i < 10; ++i) loop.spawn(collect_error(index, errors));
  co_return Result<void>();
}

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

TEST(ToolIndexTest, OperationsFailWhenTheQueueIsFull) {
  Loop loop;
  ToolIndexLimits limits;
  limits.max_search_queue = 2;
  ToolIndex index(loop, limits);
  std::vector<Error> errors;
  ASSERT_TRUE(loop.block_on(change_and_query(loop, index, errors)));
  ASSERT_GE(errors.size(), 7u);
  EXPECT_EQ(errors.front().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(errors.front().message().find("max_search_queue (2)"), std::string::npos);
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
