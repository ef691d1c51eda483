// R3.6: the blocking API.
#include "fairlead/blocking.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "fairlead/json/writer.hpp"
#include "support/support.hpp"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

const std::string kServer = "stdio:" FAIRLEAD_ECHO_SERVER;

TEST(BlockingTest, StartsServerAndCallsIt) {
  auto peer = blocking::Peer::connect(kServer);
  ASSERT_TRUE(peer) << peer.error().to_string();
  const auto echoed = peer->call("echo", R"({"b": 1.0,"a":[]})");
  ASSERT_TRUE(echoed) << echoed.error().to_string();
  EXPECT_EQ(echoed->text(), R"({"b": 1.0,"a":[]})");
  EXPECT_TRUE(peer->notify("ping"));
}

TEST(BlockingTest, PrettyPrintedParamsAreSentOnOneLine) {
  auto peer = blocking::Peer::connect(kServer);
  ASSERT_TRUE(peer);
  const auto echoed = peer->call("echo", "{\n  \"a\": \"x y\\n\"\n}");
  ASSERT_TRUE(echoed) << echoed.error().to_string();
  EXPECT_EQ(echoed->text(), R"({   "a": "x y\n" })");
}

TEST(BlockingTest, FailuresAreReturnedAsErrors) {
  EXPECT_EQ(blocking::Peer::connect("stdio:no-such-program-here").error().kind(), ErrorKind::spawn);
  EXPECT_EQ(blocking::Peer::connect("nonsense").error().kind(), ErrorKind::validation);
  auto peer = blocking::Peer::connect(kServer);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->call("echo", "{not json").error().kind(), ErrorKind::serialize);
  EXPECT_EQ(peer->call("nope").error().detail().rpc_code, -32601);
  peer->close();
  peer->close();
  EXPECT_TRUE(peer->closed());
  EXPECT_EQ(peer->call("ping").error().kind(), ErrorKind::closed);
}

TEST(BlockingTest, CallFailsWithConnectionFailedWhenNoHttpServerListens) {
  auto peer = blocking::Peer::connect("http://127.0.0.1:1/mcp");
  ASSERT_TRUE(peer) << peer.error().to_string();
  EXPECT_EQ(peer->call("ping").error().kind(), ErrorKind::connection_failed);
}

TEST(BlockingTest, CallFailsWithTimeoutWhenServerNeverResponds) {
  auto peer = blocking::Peer::connect("stdio:sleep 1000");
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->call("x", {}, 50ms).error().kind(), ErrorKind::timeout);
}

TEST(BlockingTest, ManyThreadsShareOnePeer) {
  auto peer = blocking::Peer::connect(kServer);
  ASSERT_TRUE(peer);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::string params = "[" + std::to_string(t) + "," + std::to_string(i) + "]";
        const auto result = peer->call("echo", params);
        EXPECT_TRUE(result && result->text() == params);
      }
    });
  }
}

TEST(BlockingTest, ServesCallsOfRemotePeer) {
  // `cat` echoes our request, which we serve as its request, and then echoes our response, which we receive
  // as the response to our request.
  auto methods = std::make_shared<Methods>();
  methods->on("whoami", [](const Request&) { return json::string("myself"); });
  auto peer = blocking::Peer::connect("stdio:cat", transport::ConnectOptions(), methods);
  ASSERT_TRUE(peer);
  const auto result = peer->call("whoami");
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->text(), "\"myself\"");
}

TEST(BlockingTest, ConnectionReceivesUntilClosed) {
  auto connection = blocking::Connection::connect("stdio:cat");
  ASSERT_TRUE(connection);
  ASSERT_TRUE(connection->send(R"({"jsonrpc":"2.0","method":"x"})"));
  const auto message = connection->receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->method(), "x");
  std::jthread closer([&] { connection->close(); });
  EXPECT_EQ(connection->receive().error().kind(), ErrorKind::closed);
}

TEST(BlockingTest, ConnectionSendsAnyJsonValueAndReportsItsChild) {
  auto cat = blocking::Connection::connect("stdio:cat");
  ASSERT_TRUE(cat) << cat.error().to_string();
  ASSERT_TRUE(cat->send("\"ping\""));
  const Result<rpc::Message> message = cat->receive();
  ASSERT_TRUE(message) << message.error().to_string();
  EXPECT_EQ(message->value().text(), "\"ping\"");
  const std::optional<ChildInfo> child = cat->child();
  ASSERT_TRUE(child);
  EXPECT_TRUE(child->is_running);
  EXPECT_GT(child->pid, 0);
}

TEST(BlockingTest, NoThreadOrDescriptorLeaks) {
  ASSERT_TRUE(
      blocking::Peer::connect("stdio:cat"));  // a sanitizer starts a thread when the first thread is created
  const std::size_t descriptors = test::open_descriptor_count();
  const std::size_t threads = test::thread_count();
  for (int i = 0; i < 10; ++i) {
    auto peer = blocking::Peer::connect("stdio:cat");
    ASSERT_TRUE(peer);
  }
  EXPECT_EQ(test::open_descriptor_count(), descriptors);
  EXPECT_EQ(test::thread_count(), threads);
}

}  // namespace
}  // namespace fairlead
