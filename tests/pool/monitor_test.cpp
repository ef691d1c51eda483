#include "fairlead/pool/monitor.hpp"

#include <gtest/gtest.h>

namespace fairlead::pool {
namespace {

TEST(PoolMonitorTest, KeepsTheLastLinesOfEachServer) {
  PoolMonitor monitor(std::make_shared<SharedRedactor>());
  for (int i = 0; i < 1'500; ++i) monitor.add_line(StderrLine{"a", "", std::to_string(i)});
  monitor.add_line(StderrLine{"b", "k", "other"});
  const auto lines = monitor.last_lines("a", 5'000);
  ASSERT_EQ(lines.size(), PoolMonitor::kMaxServerLines);
  EXPECT_EQ(lines.front().text, "500");
  EXPECT_EQ(lines.back().text, "1499");
  EXPECT_EQ(monitor.last_lines("a", 2).front().text, "1498");
  EXPECT_EQ(monitor.last_lines("b", 10).front().key, "k");
  EXPECT_TRUE(monitor.last_lines("c", 10).empty());
}

TEST(PoolMonitorTest, DiscardsTheOldestLinesOfAllServersBeyondTheLimits) {
  PoolMonitor monitor(std::make_shared<SharedRedactor>());
  const std::size_t servers = PoolMonitor::kMaxTotalLines + 10;
  for (std::size_t i = 0; i < servers; ++i) monitor.add_line(StderrLine{"s" + std::to_string(i), "", "x"});
  EXPECT_TRUE(monitor.last_lines("s9", 1).empty());
  EXPECT_FALSE(monitor.last_lines("s10", 1).empty());
  monitor.add_line(StderrLine{"large", "", std::string(PoolMonitor::kMaxTotalBytes - 10, 'x')});
  EXPECT_TRUE(monitor.last_lines("s" + std::to_string(servers - 11), 1).empty());
  EXPECT_FALSE(monitor.last_lines("large", 1).empty());
}

TEST(PoolMonitorTest, RemovedServersHaveNoLines) {
  PoolMonitor monitor(std::make_shared<SharedRedactor>());
  monitor.add_line(StderrLine{"a", "", "1"});
  monitor.add_line(StderrLine{"b", "", "2"});
  monitor.remove_server("a");
  EXPECT_TRUE(monitor.last_lines("a", 1).empty());
  EXPECT_FALSE(monitor.last_lines("b", 1).empty());
}

TEST(PoolMonitorTest, CallbacksEndWithTheirHandle) {
  PoolMonitor monitor(std::make_shared<SharedRedactor>());
  std::vector<std::string> seen;
  std::shared_ptr<void> handle;
  handle = monitor.on_line([&](const StderrLine& line) {
    seen.push_back(line.text);
    if (line.text == "2") handle = nullptr;
  });
  for (const char* text : {"1", "2", "3"}) monitor.add_line(StderrLine{"a", "", text});
  EXPECT_EQ(seen, (std::vector<std::string>{"1", "2"}));
}

}  // namespace
}  // namespace fairlead::pool
