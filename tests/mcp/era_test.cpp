// Era detection of a client: slow servers, servers that must not be probed, and the EraCache.
// tests/cli/era_test.py tests the same with child processes.
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

const char* const kDiscovered =
    R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"})";

std::string initialize_result(const std::string& version) {
  return R"({"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":")" +
         version + R"("}})";
}

// A scripted server. Each connection starts a new instance of the server.
class EraTest : public ::testing::Test {
 public:
  struct ServerInstance {
    std::shared_ptr<Connection> connection;
    std::vector<std::string> methods;    // the methods of all received messages
    std::vector<rpc::Message> requests;  // received messages that are requests
  };
  using RequestHandler = std::function<void(EraTest&, ServerInstance&, const rpc::Message&)>;

  Loop loop;
  RequestHandler serve = [](EraTest& test, ServerInstance& instance, const rpc::Message& request) {
    if (request.method() == "initialize")
      return test.respond(instance, request, initialize_result(test.version));
    test.respond_with_error(instance, request, -32601);
  };
  std::string version = "1";
  ClientOptions options;
  std::vector<std::shared_ptr<ServerInstance>> instances;
  std::shared_ptr<Client> client;

  void respond(ServerInstance& instance, const rpc::Message& request, const std::string& result) {
    EXPECT_TRUE(instance.connection->post(rpc::make_response(request.id(), test::raw(result))));
  }
  void respond_with_error(ServerInstance& instance, const rpc::Message& request, int code) {
    EXPECT_TRUE(instance.connection->post(rpc::make_error(request.id(), code, "refused")));
  }
  static Task<void> run(EraTest& test, std::shared_ptr<ServerInstance> instance) {
    while (true) {
      const Result<rpc::Message> message = co_await instance->connection->receive();
      if (!message) co_return;
      instance->methods.emplace_back(message->method());
      if (message->is(rpc::Kind::notification)) continue;
      instance->requests.push_back(*message);
      test.serve(test, *instance, *message);
    }
  }
  Connector connector() {
    return [this](Loop& on, StreamConnectOptions) -> Task<ConnectResult> {
      auto [near_end, far_end] = make_channel(on, on);
      instances.push_back(std::make_shared<ServerInstance>());
      instances.back()->connection = far_end;
      on.spawn(run(*this, instances.back()));
      const auto ready_task_of = [](std::shared_ptr<Connection> end) -> Task<ConnectResult> {
        co_return end;
      };
      return ready_task_of(near_end);
    };
  }
  Result<std::shared_ptr<Client>> connect() {
    Result<std::shared_ptr<Client>> connected = loop.block_on(Client::connect(loop, connector(), options));
    if (connected) client = *connected;
    return connected;
  }
  // Returns whether the client has probed the newest instance of the server.
  bool was_probed() const {
    const std::vector<std::string>& methods = instances.back()->methods;
    return std::find(methods.begin(), methods.end(), "server/discover") != methods.end();
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
    for (const auto& instance : instances) instance->connection->close();
  }
};

// ---- slow servers ---------------------------------------------------------------------------------------

TEST_F(EraTest, PinnedRevisionWaitsForHandshakeTimeout) {
  options.pinned_revision = kNewestRevision;
  options.probe_timeout = 1ms;
  Timer timer(loop);
  serve = [&](EraTest& test, ServerInstance& instance, const rpc::Message& request) {
    timer.arm_after(50ms, [&test, &instance, request] { test.respond(instance, request, kDiscovered); });
  };
  const auto connected = connect();
  ASSERT_TRUE(connected) << connected.error().to_string();
  EXPECT_EQ(client->revision(), kNewestRevision);
}

TEST_F(EraTest, PinnedRevisionFailsWithTimeoutWhenServerNeverAnswers) {
  options.pinned_revision = kNewestRevision;
  options.handshake_timeout = 50ms;
  serve = [](EraTest&, ServerInstance&, const rpc::Message&) {};
  const auto connected = connect();
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().kind(), ErrorKind::timeout) << connected.error().to_string();
}

// The server answers the probe after it has received initialize, and answers initialize later or never.
TEST_F(EraTest, LateDiscoverResponseWinsWhileInitializeIsPending) {
  options.probe_timeout = 1ms;
  for (const std::string later : {"nothing", "result", "error"}) {
    serve = [&](EraTest& test, ServerInstance& instance, const rpc::Message& request) {
      if (request.method() == "ping") return test.respond(instance, request, R"({"resultType":"complete"})");
      if (request.method() != "initialize") return;
      test.respond(instance, instance.requests.front(), kDiscovered);
      if (later == "result") test.respond(instance, request, initialize_result("1"));
      if (later == "error") test.respond_with_error(instance, request, -32601);
    };
    const auto connected = connect();
    ASSERT_TRUE(connected) << connected.error().to_string();
    EXPECT_EQ(client->revision(), kNewestRevision) << later;
    EXPECT_TRUE(loop.block_on(client->request("ping"))) << later;
    EXPECT_EQ(instances.back()->methods, (std::vector<std::string>{"server/discover", "initialize", "ping"}));
    loop.block_on(client->close());
  }
  EXPECT_EQ(instances.size(), 3u);
}

TEST_F(EraTest, DiscoverResponseAfterInitializeIsIgnored) {
  options.probe_timeout = 1ms;
  serve = [&](EraTest& test, ServerInstance& instance, const rpc::Message& request) {
    if (request.method() == "ping") return test.respond(instance, request, "{}");
    if (request.method() != "initialize") return;
    test.respond(instance, request, initialize_result("1"));
    test.respond(instance, instance.requests.front(), kDiscovered);
  };
  ASSERT_TRUE(connect());
  EXPECT_TRUE(loop.block_on(client->request("ping")));
  EXPECT_EQ(client->revision(), kNewestLegacyRevision);
}

// ---- servers that must not be probed --------------------------------------------------------------------

// A server that regards the first request as the start of its only session, so that it rejects initialize
// after a probe.
void serve_one_session(EraTest& test, EraTest::ServerInstance& instance, const rpc::Message& request) {
  const bool first = instance.requests.size() == 1;
  if (request.method() == "initialize" && first)
    return test.respond(instance, request, initialize_result("1"));
  test.respond_with_error(instance, request, request.method() == "initialize" ? -32600 : -32000);
}

TEST_F(EraTest, ServerThatRejectsInitializeAfterProbeIsRestartedWithoutProbe) {
  serve = serve_one_session;
  options.era_cache = std::make_shared<EraCache>();
  options.era_key = "one-session";
  const auto connected = connect();
  ASSERT_TRUE(connected) << connected.error().to_string();
  EXPECT_EQ(client->revision(), kNewestLegacyRevision);
  ASSERT_EQ(instances.size(), 2u);
  EXPECT_TRUE(instances[0]->connection->closed());
  EXPECT_FALSE(was_probed());
  loop.block_on(client->close());
  ASSERT_TRUE(connect());
  EXPECT_EQ(instances.size(), 3u) << "the outcome is cached";
  EXPECT_FALSE(was_probed());
}

TEST_F(EraTest, ServerThatReadsProbeLateAndExitsIsRestartedWithoutProbe) {
  options.probe_timeout = 1ms;
  serve = [](EraTest& test, ServerInstance& instance, const rpc::Message& request) {
    if (request.method() == "server/discover") return;
    if (instance.requests.size() == 2) return instance.connection->close();
    test.respond(instance, request, initialize_result("1"));
  };
  const auto connected = connect();
  ASSERT_TRUE(connected) << connected.error().to_string();
  EXPECT_EQ(instances.size(), 2u);
  EXPECT_FALSE(was_probed());
}

TEST_F(EraTest, ServerThatAnswersProbeAndExitsIsNotRestarted) {
  serve = [](EraTest& test, ServerInstance& instance, const rpc::Message& request) {
    if (request.method() == "server/discover") return test.respond_with_error(instance, request, -32601);
    instance.connection->close();
  };
  EXPECT_FALSE(connect());
  EXPECT_EQ(instances.size(), 1u);
}

TEST_F(EraTest, ServerThatRejectsInitializeWithoutProbeIsNotRestartedAgain) {
  serve = [](EraTest& test, ServerInstance& instance, const rpc::Message& request) {
    test.respond_with_error(instance, request, -32000);
  };
  const auto connected = connect();
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().kind(), ErrorKind::remote);
  EXPECT_EQ(instances.size(), 2u);
}

TEST_F(EraTest, ServerThatDiscoversOnlyLegacyRevisionsIsInitialized) {
  serve = [](EraTest& test, ServerInstance& instance, const rpc::Message& request) {
    if (request.method() == "server/discover")
      return test.respond(
          instance, request,
          R"({"resultType":"complete","supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{}})");
    test.respond(instance, request, initialize_result("1"));
  };
  const auto connected = connect();
  ASSERT_TRUE(connected) << connected.error().to_string();
  EXPECT_EQ(client->revision(), kNewestLegacyRevision);
  EXPECT_EQ(instances.size(), 1u);
}

TEST_F(EraTest, ConnectFailsWhenServerDiscoversOnlyUnknownRevisions) {
  serve = [](EraTest& test, ServerInstance& instance, const rpc::Message& request) {
    test.respond(instance, request,
                 R"({"resultType":"complete","supportedVersions":["2999-01-01"],"capabilities":{}})");
  };
  const auto connected = connect();
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().kind(), ErrorKind::connection_failed);
}

// ---- EraCache -------------------------------------------------------------------------------------------

TEST_F(EraTest, LegacyServerIsProbedAgainAfterOneDay) {
  auto now = Clock::now();
  options.era_cache = std::make_shared<EraCache>(EraCache::kMaxAge, [&] { return now; });
  options.era_key = "a";
  const auto probed_at_start = [&] {
    EXPECT_TRUE(connect());
    loop.block_on(client->close());
    return was_probed();
  };
  EXPECT_TRUE(probed_at_start());
  now += 23h;
  EXPECT_FALSE(probed_at_start());
  now += 1h;
  EXPECT_TRUE(probed_at_start()) << "a connection without a probe must not extend the lifetime of the entry";
  EXPECT_FALSE(probed_at_start());
}

TEST_F(EraTest, LegacyServerIsProbedAgainAfterItsVersionChanged) {
  options.era_cache = std::make_shared<EraCache>();
  options.era_key = "a";
  ASSERT_TRUE(connect());
  version = "2";
  ASSERT_TRUE(connect());
  EXPECT_FALSE(was_probed());
  ASSERT_TRUE(connect());
  EXPECT_TRUE(was_probed());
}

TEST_F(EraTest, LegacyServerIsProbedAgainAfterFailedHandshake) {
  options.era_cache = std::make_shared<EraCache>();
  options.era_key = "a";
  options.handshake_timeout = 1s;
  ASSERT_TRUE(connect());
  const RequestHandler normal = std::exchange(
      serve, [](EraTest&, ServerInstance& instance, const rpc::Message&) { instance.connection->close(); });
  ASSERT_FALSE(connect());
  EXPECT_FALSE(was_probed());
  serve = normal;
  ASSERT_TRUE(connect());
  EXPECT_TRUE(was_probed());
}

TEST_F(EraTest, ServerThatBecameModernIsProbedOnSameConnection) {
  options.era_cache = std::make_shared<EraCache>();
  options.era_key = "a";
  ASSERT_TRUE(connect());
  serve = [](EraTest& test, ServerInstance& instance, const rpc::Message& request) {
    if (request.method() == "server/discover") return test.respond(instance, request, kDiscovered);
    test.respond_with_error(instance, request, -32601);
  };
  ASSERT_TRUE(connect());
  EXPECT_EQ(client->revision(), kNewestRevision);
  EXPECT_EQ(instances.size(), 2u);
}

TEST(EraCacheTest, EntriesAreLimited) {
  EraCache cache;
  for (std::size_t i = 0; i <= EraCache::kMaxEntries; ++i) cache.store_legacy(std::to_string(i), "1");
  EXPECT_TRUE(cache.is_legacy("0"));
  EXPECT_FALSE(cache.is_legacy(std::to_string(EraCache::kMaxEntries)));
  cache.erase("0");
  cache.store_legacy("new", "1");
  EXPECT_TRUE(cache.is_legacy("new"));
}

}  // namespace
}  // namespace fairlead::mcp
