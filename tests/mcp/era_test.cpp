// Which era a client finds its server to speak: slow servers, servers that must not be probed, and what is
// remembered of both. tests/cli/era_test.py does the same with processes.
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

const char* const kDiscovered =
    R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"})";

std::string hello_result(const std::string& version) {
  return R"({"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":")" +
         version + R"("}})";
}

// A server that does what the test says at each request, started anew by each connection.
class EraTest : public ::testing::Test {
 public:
  struct Start {
    std::shared_ptr<Connection> connection;
    std::vector<std::string> methods;    // received
    std::vector<rpc::Message> requests;  // of these
  };
  using Serve = std::function<void(EraTest&, Start&, const rpc::Message&)>;

  Loop loop;
  Serve serve = [](EraTest& test, Start& start, const rpc::Message& request) {
    if (request.method() == "initialize") return test.answer(start, request, hello_result(test.version));
    test.refuse(start, request, -32601);
  };
  std::string version = "1";
  ClientOptions options;
  std::vector<std::shared_ptr<Start>> starts;
  std::shared_ptr<Client> client;

  void answer(Start& start, const rpc::Message& request, const std::string& result) {
    EXPECT_TRUE(start.connection->post(rpc::make_response(request.id(), test::raw(result))));
  }
  void refuse(Start& start, const rpc::Message& request, int code) {
    EXPECT_TRUE(start.connection->post(rpc::make_error(request.id(), code, "refused")));
  }
  static Task<void> run(EraTest& test, std::shared_ptr<Start> start) {
    while (true) {
      const Result<rpc::Message> message = co_await start->connection->receive();
      if (!message) co_return;
      start->methods.emplace_back(message->method());
      if (message->is(rpc::Kind::notification)) continue;
      start->requests.push_back(*message);
      test.serve(test, *start, *message);
    }
  }
  Connector connector() {
    return [this](Loop& on, ConnectOptions) -> Task<ConnectResult> {
      auto [near_end, far_end] = make_channel(on, on);
      starts.push_back(std::make_shared<Start>());
      starts.back()->connection = far_end;
      on.spawn(run(*this, starts.back()));
      const auto made = [](std::shared_ptr<Connection> end) -> Task<ConnectResult> { co_return end; };
      return made(near_end);
    };
  }
  Result<std::shared_ptr<Client>> connect() {
    Result<std::shared_ptr<Client>> made = loop.block_on(Client::connect(loop, connector(), options));
    if (made) client = *made;
    return made;
  }
  // Whether the newest start was probed.
  bool probed() const {
    const std::vector<std::string>& methods = starts.back()->methods;
    return std::find(methods.begin(), methods.end(), "server/discover") != methods.end();
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
    for (const auto& start : starts) start->connection->close();
  }
};

// ---- slow servers ---------------------------------------------------------------------------------------

TEST_F(EraTest, PinnedRevisionWaitsForTheHandshakeTimeout) {
  options.pinned = kNewest;
  options.probe_timeout = 1ms;
  Timer timer(loop);
  serve = [&](EraTest& test, Start& start, const rpc::Message& request) {
    timer.arm_after(50ms, [&test, &start, request] { test.answer(start, request, kDiscovered); });
  };
  const auto made = connect();
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(client->revision(), kNewest);
}

TEST_F(EraTest, PinnedRevisionFailsWithTimeoutWhenServerNeverAnswers) {
  options.pinned = kNewest;
  options.handshake_timeout = 50ms;
  serve = [](EraTest&, Start&, const rpc::Message&) {};
  const auto made = connect();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), ErrorKind::timeout) << made.error().to_string();
}

// The server answers the probe when it has initialize too, and initialize after that or not at all.
TEST_F(EraTest, LateDiscoverAnswerWinsWhileInitializeIsUnanswered) {
  options.probe_timeout = 1ms;
  for (const std::string later : {"nothing", "result", "error"}) {
    serve = [&](EraTest& test, Start& start, const rpc::Message& request) {
      if (request.method() == "ping") return test.answer(start, request, R"({"resultType":"complete"})");
      if (request.method() != "initialize") return;
      test.answer(start, start.requests.front(), kDiscovered);
      if (later == "result") test.answer(start, request, hello_result("1"));
      if (later == "error") test.refuse(start, request, -32601);
    };
    const auto made = connect();
    ASSERT_TRUE(made) << made.error().to_string();
    EXPECT_EQ(client->revision(), kNewest) << later;
    EXPECT_TRUE(loop.block_on(client->request("ping"))) << later;
    EXPECT_EQ(starts.back()->methods, (std::vector<std::string>{"server/discover", "initialize", "ping"}));
    loop.block_on(client->close());
  }
  EXPECT_EQ(starts.size(), 3u);
}

TEST_F(EraTest, DiscoverAnswerAfterInitializeIsIgnored) {
  options.probe_timeout = 1ms;
  serve = [&](EraTest& test, Start& start, const rpc::Message& request) {
    if (request.method() == "ping") return test.answer(start, request, "{}");
    if (request.method() != "initialize") return;
    test.answer(start, request, hello_result("1"));
    test.answer(start, start.requests.front(), kDiscovered);
  };
  ASSERT_TRUE(connect());
  EXPECT_TRUE(loop.block_on(client->request("ping")));
  EXPECT_EQ(client->revision(), kNewestLegacy);
}

// ---- servers that must not be probed --------------------------------------------------------------------

// Takes the first request for the start of its only session.
void serve_one_session(EraTest& test, EraTest::Start& start, const rpc::Message& request) {
  const bool first = start.requests.size() == 1;
  if (request.method() == "initialize" && first) return test.answer(start, request, hello_result("1"));
  test.refuse(start, request, request.method() == "initialize" ? -32600 : -32000);
}

TEST_F(EraTest, ServerThatRefusesInitializeAfterAProbeIsStartedAgainWithoutOne) {
  serve = serve_one_session;
  options.eras = std::make_shared<EraCache>();
  options.era_key = "one-session";
  const auto made = connect();
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(client->revision(), kNewestLegacy);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_TRUE(starts[0]->connection->closed());
  EXPECT_FALSE(probed());
  loop.block_on(client->close());
  ASSERT_TRUE(connect());
  EXPECT_EQ(starts.size(), 3u) << "the outcome is remembered";
  EXPECT_FALSE(probed());
}

TEST_F(EraTest, ServerThatReadsTheProbeLateAndExitsIsStartedAgainWithoutOne) {
  options.probe_timeout = 1ms;
  serve = [](EraTest& test, Start& start, const rpc::Message& request) {
    if (request.method() == "server/discover") return;
    if (start.requests.size() == 2) return start.connection->close();
    test.answer(start, request, hello_result("1"));
  };
  const auto made = connect();
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(starts.size(), 2u);
  EXPECT_FALSE(probed());
}

TEST_F(EraTest, ServerThatAnswersTheProbeAndExitsIsNotStartedAgain) {
  serve = [](EraTest& test, Start& start, const rpc::Message& request) {
    if (request.method() == "server/discover") return test.refuse(start, request, -32601);
    start.connection->close();
  };
  EXPECT_FALSE(connect());
  EXPECT_EQ(starts.size(), 1u);
}

TEST_F(EraTest, ServerThatRefusesInitializeOnAFreshConnectionIsNotTriedAThirdTime) {
  serve = [](EraTest& test, Start& start, const rpc::Message& request) {
    test.refuse(start, request, -32000);
  };
  const auto made = connect();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), ErrorKind::remote);
  EXPECT_EQ(starts.size(), 2u);
}

TEST_F(EraTest, ServerThatDiscoversLegacyRevisionsOnlyIsInitialized) {
  serve = [](EraTest& test, Start& start, const rpc::Message& request) {
    if (request.method() == "server/discover")
      return test.answer(
          start, request,
          R"({"resultType":"complete","supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{}})");
    test.answer(start, request, hello_result("1"));
  };
  const auto made = connect();
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(client->revision(), kNewestLegacy);
  EXPECT_EQ(starts.size(), 1u);
}

TEST_F(EraTest, ServerThatDiscoversUnknownRevisionsOnlyIsRefused) {
  serve = [](EraTest& test, Start& start, const rpc::Message& request) {
    test.answer(start, request,
                R"({"resultType":"complete","supportedVersions":["2999-01-01"],"capabilities":{}})");
  };
  const auto made = connect();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), ErrorKind::connection_failed);
}

// ---- what is remembered ---------------------------------------------------------------------------------

TEST_F(EraTest, LegacyServerIsProbedAgainAfterADay) {
  auto now = Clock::now();
  options.eras = std::make_shared<EraCache>(EraCache::kMaxAge, [&] { return now; });
  options.era_key = "a";
  const auto probed_at_start = [&] {
    EXPECT_TRUE(connect());
    loop.block_on(client->close());
    return probed();
  };
  EXPECT_TRUE(probed_at_start());
  now += 23h;
  EXPECT_FALSE(probed_at_start());
  now += 1h;
  EXPECT_TRUE(probed_at_start()) << "a start without a probe must not prolong the entry";
  EXPECT_FALSE(probed_at_start());
}

TEST_F(EraTest, LegacyServerIsProbedAgainAfterItsVersionChanged) {
  options.eras = std::make_shared<EraCache>();
  options.era_key = "a";
  ASSERT_TRUE(connect());
  version = "2";
  ASSERT_TRUE(connect());
  EXPECT_FALSE(probed());
  ASSERT_TRUE(connect());
  EXPECT_TRUE(probed());
}

TEST_F(EraTest, LegacyServerIsProbedAgainAfterAFailedHandshake) {
  options.eras = std::make_shared<EraCache>();
  options.era_key = "a";
  options.handshake_timeout = 1s;
  ASSERT_TRUE(connect());
  const Serve well =
      std::exchange(serve, [](EraTest&, Start& start, const rpc::Message&) { start.connection->close(); });
  ASSERT_FALSE(connect());
  EXPECT_FALSE(probed());
  serve = well;
  ASSERT_TRUE(connect());
  EXPECT_TRUE(probed());
}

TEST_F(EraTest, ServerThatBecameModernIsProbedOnTheSameConnection) {
  options.eras = std::make_shared<EraCache>();
  options.era_key = "a";
  ASSERT_TRUE(connect());
  serve = [](EraTest& test, Start& start, const rpc::Message& request) {
    if (request.method() == "server/discover") return test.answer(start, request, kDiscovered);
    test.refuse(start, request, -32601);
  };
  ASSERT_TRUE(connect());
  EXPECT_EQ(client->revision(), kNewest);
  EXPECT_EQ(starts.size(), 2u);
}

TEST(EraCacheTest, KeepsNoMoreThanItsLimit) {
  EraCache cache;
  for (std::size_t i = 0; i <= EraCache::kMaxEntries; ++i) cache.remember(std::to_string(i), "1");
  EXPECT_TRUE(cache.is_legacy("0"));
  EXPECT_FALSE(cache.is_legacy(std::to_string(EraCache::kMaxEntries)));
  cache.forget("0");
  cache.remember("new", "1");
  EXPECT_TRUE(cache.is_legacy("new"));
}

}  // namespace
}  // namespace fairlead::mcp
