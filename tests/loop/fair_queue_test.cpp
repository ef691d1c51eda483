// FairQueue: clients are served round-robin, and the loop's other callbacks run in between.
#include "fairlead/loop/fair_queue.hpp"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

#include "fairlead/loop/loop.hpp"

namespace fairlead {
namespace {

class FairQueueTest : public ::testing::Test {
 public:
  Loop loop;
  FairQueue& queue = loop.fair_queue();
  std::vector<std::string> ran;
  int many = 0;  // clients
  int quiet = 0;
  int other = 0;

  void post(const int& client, const std::string& name) {
    queue.post(&client, [this, name] { ran.push_back(name); });
  }
  void run() {
    loop.run_until([this] { return queue.empty() && ran.size() >= expected; });
  }
  std::size_t expected = 0;
};

TEST_F(FairQueueTest, ClientWithOneCallbackWaitsForOneCallbackOfEachOtherClient) {
  for (const char* name : {"m1", "m2", "m3", "m4"}) post(many, name);
  post(other, "o1");
  post(other, "o2");
  post(quiet, "q1");
  expected = 7;
  run();
  EXPECT_EQ(ran, (std::vector<std::string>{"m1", "o1", "q1", "m2", "o2", "m3", "m4"}));
}

TEST_F(FairQueueTest, LaterClientWaitsForOneCallbackOfEachOtherClient) {
  for (const char* name : {"m1", "m2", "m3"}) post(many, name);
  queue.post(&other, [this] { post(quiet, "q1"); });
  expected = 4;
  run();
  EXPECT_EQ(ran, (std::vector<std::string>{"m1", "m2", "q1", "m3"}));
}

TEST_F(FairQueueTest, OtherCallbacksOfLoopRunInBetween) {
  for (const char* name : {"m1", "m2", "m3"}) {
    queue.post(&many, [this, name] {
      ran.push_back(name);
      loop.post([this] { ran.push_back("loop"); });
    });
  }
  expected = 6;
  run();
  EXPECT_EQ(ran, (std::vector<std::string>{"m1", "m2", "loop", "m3", "loop", "loop"}));
}

TEST_F(FairQueueTest, ThrowingCallbackDoesNotStopTheQueue) {
  queue.post(&many, [] { throw std::bad_alloc(); });
  post(many, "m2");
  expected = 1;
  run();
  EXPECT_EQ(ran, (std::vector<std::string>{"m2"}));
}

TEST_F(FairQueueTest, QueuedCallbacksAreDestroyedWithTheLoop) {
  const auto kept = std::make_shared<int>(1);
  {
    Loop ended;
    ended.fair_queue().post(this, [kept] {});
    EXPECT_EQ(kept.use_count(), 2);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace fairlead
