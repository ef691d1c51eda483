#include "gateway/upstream_log_levels.hpp"

#include "gateway/memory_servers.hpp"

namespace fairlead::gateway {
namespace {

using mcp::LoggingLevel;

class UpstreamLogLevelsTest : public MemoryServersTest {
 protected:
  void SetUp() override {
    open_pool();
    levels = std::make_shared<UpstreamLogLevels>(loop, pool, sessions, log);
  }
  // Starts an upstream and calls on_upstream_starting(), as UpstreamEvents does.
  std::shared_ptr<pool::Upstream> run(const std::string& server, const std::string& session = "",
                                      const std::string& user = "") {
    const auto upstream = start(server, session, user);
    levels->on_upstream_starting(upstream);
    return upstream;
  }
  void adjust() {
    levels->adjust();
    run_until_idle();
  }
  using Requests = std::vector<std::string>;

  std::shared_ptr<UpstreamLogLevels> levels;
};

TEST_F(UpstreamLogLevelsTest, SharedUpstreamIsSetOnceToLowestLevelOfAllSessions) {
  ASSERT_TRUE(pool->add(spec("a")));
  run("a");
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, Requests()) << "the handshake requested the default level";
  sessions->set_log_level("one", LoggingLevel::debug);
  sessions->set_log_level("two", LoggingLevel::error);
  adjust();
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, (Requests{"level debug"}));
  sessions->remove("one");
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, (Requests{"level debug", "level info"}));
}

TEST_F(UpstreamLogLevelsTest, PerSessionUpstreamIsSetToLevelOfItsSession) {
  ASSERT_TRUE(pool->add(spec("a", pool::Sharing::per_session)));
  run("a", "one");
  sessions->set_log_level("two", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, Requests());
  sessions->set_log_level("one", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, (Requests{"level debug"}));
}

TEST_F(UpstreamLogLevelsTest, PerUserUpstreamIsSetToLowestLevelOfAllSessions) {
  ASSERT_TRUE(pool->add(spec("a", pool::Sharing::per_user)));
  run("a", "one", "user");
  sessions->set_log_level("two", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, (Requests{"level debug"}));
}

TEST_F(UpstreamLogLevelsTest, LevelIsSetWhenUpstreamBecomesReady) {
  ASSERT_TRUE(pool->add(spec("a")));
  const auto upstream = run("a");
  end_connection("a", upstream);
  sessions->set_log_level("one", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, Requests());
  start("a");
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, (Requests{"level debug"}));
}

TEST_F(UpstreamLogLevelsTest, NoLevelIsSetAfterUpstreamEnded) {
  ASSERT_TRUE(pool->add(spec("a")));
  const auto upstream = run("a");
  levels->on_upstream_ended(upstream);
  levels->on_upstream_ended(upstream);
  sessions->set_log_level("one", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, Requests());
}

TEST_F(UpstreamLogLevelsTest, NoLevelIsSetWhenServerLacksLoggingCapability) {
  memory_servers["a"].capabilities = test::raw(R"({"tools":{}})");
  ASSERT_TRUE(pool->add(spec("a")));
  run("a");
  sessions->set_log_level("one", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, Requests());
}

TEST_F(UpstreamLogLevelsTest, LevelIsSetOnceWhenItChangesOftenInOneTurn) {
  ASSERT_TRUE(pool->add(spec("a")));
  run("a");
  for (int i = 0; i < 500; ++i) {
    sessions->set_log_level("one", i % 2 == 0 ? LoggingLevel::error : LoggingLevel::debug);
    levels->adjust();
  }
  run_until_idle();
  EXPECT_EQ(memory_servers["a"].requests, (Requests{"level debug"}));
}

TEST_F(UpstreamLogLevelsTest, NewestLevelIsSetAfterResponseToPendingRequest) {
  ASSERT_TRUE(pool->add(spec("a")));
  run("a");
  memory_servers["a"].unblock.emplace();
  for (const LoggingLevel level :
       {LoggingLevel::debug, LoggingLevel::error, LoggingLevel::debug, LoggingLevel::error}) {
    sessions->set_log_level("one", level);
    adjust();
  }
  EXPECT_EQ(memory_servers["a"].requests, (Requests{"level debug"}));
  memory_servers["a"].unblock->set();
  EXPECT_TRUE(wait_until([&] {
    return memory_servers["a"].requests == Requests{"level debug", "level info"};
  }));
}

TEST_F(UpstreamLogLevelsTest, LevelIsSetAfterRestartWhenFormerConnectionNeverResponded) {
  ASSERT_TRUE(pool->add(spec("a")));
  const auto upstream = run("a");
  memory_servers["a"].unblock.emplace();
  sessions->set_log_level("one", LoggingLevel::debug);
  adjust();
  levels->on_upstream_ended(upstream);
  levels->on_upstream_starting(upstream);
  sessions->set_log_level("one", LoggingLevel::error);
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, (Requests{"level debug", "level info"}));
}

TEST_F(UpstreamLogLevelsTest, FailureOfOneServerIsLoggedAndOtherServersAreStillSet) {
  memory_servers["a"].refusal_error = Error::rpc(-32603, "no levels here");
  ASSERT_TRUE(pool->add(spec("a")));
  ASSERT_TRUE(pool->add(spec("b")));
  run("a");
  run("b");
  sessions->set_log_level("one", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory_servers["a"].requests, (Requests{"level debug"}));
  EXPECT_EQ(memory_servers["b"].requests, (Requests{"level debug"}));
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_NE(logged[0].find("cannot set log level"), std::string::npos) << logged[0];
  EXPECT_NE(logged[0].find("no levels here"), std::string::npos) << logged[0];
}

}  // namespace
}  // namespace fairlead::gateway
