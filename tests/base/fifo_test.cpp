#include "fairlead/base/fifo.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

namespace fairlead {
namespace {

TEST(FifoTest, ElementsArePoppedInOrder) {
  Fifo<int> queue;
  std::vector<int> popped;
  int next = 0;
  // Pushes three and pops two elements per round, so that the queue grows while popped elements are removed.
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 3; ++i) queue.push(next++);
    for (int i = 0; i < 2; ++i) {
      popped.push_back(queue.front());
      queue.pop();
    }
  }
  EXPECT_EQ(queue.size(), 100U);
  EXPECT_EQ(std::vector<int>(queue.begin(), queue.end()).front(), 200);
  for (; !queue.empty(); queue.pop()) popped.push_back(queue.front());
  std::vector<int> expected(300);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(popped, expected);
}

TEST(FifoTest, EmptyQueueOwnsNoElement) {
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

TEST(FifoTest, QueueThatIsNeverEmptyReleasesPoppedElements) {
  const auto element = std::make_shared<int>(1);
  Fifo<std::shared_ptr<int>> queue;
  queue.push(element);
  for (int i = 0; i < 1000; ++i) {
    queue.push(element);
    queue.pop();
  }
  EXPECT_LE(element.use_count(), 20);
}

TEST(FifoTest, MemoryOfOneElementIsReused) {
  Fifo<int> queue;
  queue.push(1);
  const int* const address = &queue.front();
  queue.pop();
  queue.push(2);
  EXPECT_EQ(&queue.front(), address);
}

TEST(FifoTest, EraseRemovesElementAtAnyPosition) {
  Fifo<int> queue;
  for (int i = 0; i < 5; ++i) queue.push(i);
  queue.pop();
  queue.erase(queue.begin());  // 1
  queue.erase(queue.begin() + 1);
  EXPECT_EQ(std::vector<int>(queue.begin(), queue.end()), (std::vector<int>{2, 4}));
  EXPECT_EQ(queue.back(), 4);
  queue.erase(queue.begin() + 1);
  queue.erase(queue.begin());
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace fairlead
