#include "fairlead/base/fifo.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

namespace fairlead {
namespace {

TEST(Fifo, ElementsLeaveInTheOrderInWhichTheyCame) {
  Fifo<int> queue;
  std::vector<int> left;
  int next = 0;
  // Three in, two out: it grows while elements before the first are removed.
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 3; ++i) queue.push(next++);
    for (int i = 0; i < 2; ++i) {
      left.push_back(queue.front());
      queue.pop();
    }
  }
  EXPECT_EQ(queue.size(), 100U);
  EXPECT_EQ(std::vector<int>(queue.begin(), queue.end()).front(), 200);
  for (; !queue.empty(); queue.pop()) left.push_back(queue.front());
  std::vector<int> expected(300);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(left, expected);
}

TEST(Fifo, EmptyQueueOwnsNoElement) {
  const auto element = std::make_shared<int>(1);
  Fifo<std::shared_ptr<int>> queue;
  for (int i = 0; i < 10; ++i) queue.push(element);
  for (int i = 0; i < 10; ++i) queue.pop();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(element.use_count(), 1);
  queue.push(element);
  queue.clear();
  EXPECT_EQ(element.use_count(), 1);
}

TEST(Fifo, QueueThatNeverBecomesEmptyDoesNotKeepWhatWasTakenOut) {
  const auto element = std::make_shared<int>(1);
  Fifo<std::shared_ptr<int>> queue;
  queue.push(element);
  for (int i = 0; i < 1000; ++i) {
    queue.push(element);
    queue.pop();
  }
  EXPECT_LE(element.use_count(), 20);
}

TEST(Fifo, MemoryOfOneElementIsUsedAgain) {
  Fifo<int> queue;
  queue.push(1);
  const int* const place = &queue.front();
  queue.pop();
  queue.push(2);
  EXPECT_EQ(&queue.front(), place);
}

}  // namespace
}  // namespace fairlead
