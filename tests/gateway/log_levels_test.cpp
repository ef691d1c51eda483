#include "gateway/log_levels.hpp"

#include "gateway/memory_servers.hpp"

namespace fairlead::gateway {
namespace {

using mcp::LoggingLevel;

class LogLevelsTest : public MemoryServersTest {
 protected:
  void SetUp() override {
    open_pool();
    levels = std::make_shared<LogLevels>(loop, pool, sessions, log);
  }
  // Starts an upstream as UpstreamEvents tells of it.
  std::shared_ptr<pool::Upstream> run(const std::string& server, const std::string& session = "",
                                      const std::string& user = "") {
    const auto upstream = start(server, session, user);
    levels->started(upstream);
    return upstream;
  }
  void adjust() {
    levels->adjust();
    settle();
  }
  using Asked = std::vector<std::string>;

  std::shared_ptr<LogLevels> levels;
};

TEST_F(LogLevelsTest, SharedUpstreamIsAskedForTheLowestLevelOfAllSessionsOnce) {
  ASSERT_TRUE(pool->add(spec("a")));
  run("a");
  adjust();
  EXPECT_EQ(memory["a"].asked, Asked()) << "it was asked for the default in its handshake";
  sessions->set_level("one", LoggingLevel::debug);
  sessions->set_level("two", LoggingLevel::error);
  adjust();
  adjust();
  EXPECT_EQ(memory["a"].asked, (Asked{"level debug"}));
  sessions->remove("one");
  adjust();
  EXPECT_EQ(memory["a"].asked, (Asked{"level debug", "level info"}));
}

TEST_F(LogLevelsTest, UpstreamOfOneSessionIsAskedForTheLevelOfThatSession) {
  ASSERT_TRUE(pool->add(spec("a", pool::Sharing::per_session)));
  run("a", "one");
  sessions->set_level("two", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory["a"].asked, Asked());
  sessions->set_level("one", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory["a"].asked, (Asked{"level debug"}));
}

TEST_F(LogLevelsTest, UpstreamOfOneUserIsAskedForTheLowestLevelOfAllSessions) {
  ASSERT_TRUE(pool->add(spec("a", pool::Sharing::per_user)));
  run("a", "one", "user");
  sessions->set_level("two", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory["a"].asked, (Asked{"level debug"}));
}

TEST_F(LogLevelsTest, UpstreamThatIsNotReadyIsAskedWhenItIs) {
  ASSERT_TRUE(pool->add(spec("a")));
  const auto upstream = run("a");
  lose("a", upstream);
  sessions->set_level("one", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory["a"].asked, Asked());
  start("a");
  adjust();
  EXPECT_EQ(memory["a"].asked, (Asked{"level debug"}));
}

TEST_F(LogLevelsTest, UpstreamThatHasEndedIsNotAskedAgain) {
  ASSERT_TRUE(pool->add(spec("a")));
  const auto upstream = run("a");
  levels->ended(upstream);
  levels->ended(upstream);
  sessions->set_level("one", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory["a"].asked, Asked());
}

TEST_F(LogLevelsTest, ServerThatHasNoLoggingIsNotAsked) {
  memory["a"].capabilities = test::raw(R"({"tools":{}})");
  ASSERT_TRUE(pool->add(spec("a")));
  run("a");
  sessions->set_level("one", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory["a"].asked, Asked());
}

TEST_F(LogLevelsTest, UpstreamIsAskedOnceForLevelsThatChangeOftenInOneTurn) {
  ASSERT_TRUE(pool->add(spec("a")));
  run("a");
  for (int i = 0; i < 500; ++i) {
    sessions->set_level("one", i % 2 == 0 ? LoggingLevel::error : LoggingLevel::debug);
    levels->adjust();
  }
  settle();
  EXPECT_EQ(memory["a"].asked, (Asked{"level debug"}));
}

TEST_F(LogLevelsTest, UpstreamThatHasNotAnsweredIsAskedForTheNewestLevelWhenItHas) {
  ASSERT_TRUE(pool->add(spec("a")));
  run("a");
  memory["a"].held.emplace();
  for (const LoggingLevel level :
       {LoggingLevel::debug, LoggingLevel::error, LoggingLevel::debug, LoggingLevel::error}) {
    sessions->set_level("one", level);
    adjust();
  }
  EXPECT_EQ(memory["a"].asked, (Asked{"level debug"}));
  memory["a"].held->set();
  EXPECT_TRUE(comes_true([&] { return memory["a"].asked == Asked{"level debug", "level info"}; }));
}

TEST_F(LogLevelsTest, UpstreamThatIsStartedAnewIsAskedAlthoughTheFormerConnectionDidNotAnswer) {
  ASSERT_TRUE(pool->add(spec("a")));
  const auto upstream = run("a");
  memory["a"].held.emplace();
  sessions->set_level("one", LoggingLevel::debug);
  adjust();
  levels->ended(upstream);
  levels->started(upstream);
  sessions->set_level("one", LoggingLevel::error);
  adjust();
  EXPECT_EQ(memory["a"].asked, (Asked{"level debug", "level info"}));
}

TEST_F(LogLevelsTest, ServerThatRefusesIsLoggedAndTheOthersAreAskedNevertheless) {
  memory["a"].refusal = Error::rpc(-32603, "no levels here");
  ASSERT_TRUE(pool->add(spec("a")));
  ASSERT_TRUE(pool->add(spec("b")));
  run("a");
  run("b");
  sessions->set_level("one", LoggingLevel::debug);
  adjust();
  EXPECT_EQ(memory["a"].asked, (Asked{"level debug"}));
  EXPECT_EQ(memory["b"].asked, (Asked{"level debug"}));
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_NE(logged[0].find("server does not set its log level"), std::string::npos) << logged[0];
  EXPECT_NE(logged[0].find("no levels here"), std::string::npos) << logged[0];
}

}  // namespace
}  // namespace fairlead::gateway
