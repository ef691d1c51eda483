// A gateway behind its listener: routes, authentication, health, failure details, and the order of the
// shutdown.
#include "fairlead/gateway/gateway_server.hpp"

#include <time.h>

#include <atomic>
#include <thread>

#include "gateway/harness.hpp"
#include "http/certificate.hpp"
#include "http/raw_client.hpp"
#include "http/tls_client.hpp"

namespace fairlead::gateway {
namespace {

using namespace std::chrono_literals;
using http::StaticTokenAuthenticator;
using test::RawClient;

const std::string kAdminToken = "admin-0123456789abcdef";
const std::string kUserToken = "user-0123456789abcdef";
const std::string kSecretAddress = "upstream.internal:4711";

class GatewayServerTest : public GatewayTest {
 protected:
  GatewayServerOptions options;
  std::shared_ptr<GatewayServer> server;

  GatewayServerTest() {
    config.listen = "127.0.0.1:0";
    config.list_wait = 10s;
  }
  void TearDown() override {
    if (server && !server->stopping()) server->stop();
    if (server) loop.run_until([&] { return server->stopped().is_set(); });
    server.reset();
    GatewayTest::TearDown();
  }

  void authenticate() {
    auto tokens = std::make_shared<StaticTokenAuthenticator>();
    Principal user;
    user.issuer = "test";
    user.subject = user.user = "someone";
    Principal admin = user;
    admin.subject = admin.user = "operator";
    admin.roles = {std::string(kAdminRole)};
    ASSERT_TRUE(tokens->add(kUserToken, user));
    ASSERT_TRUE(tokens->add(kAdminToken, admin));
    options.authenticator = std::move(tokens);
  }
  void start() {
    Result<std::shared_ptr<GatewayServer>> listening = GatewayServer::listen(loop, config, options);
    ASSERT_TRUE(listening) << listening.error().to_string();
    server = *listening;
  }
  // Returns the subject of the certificate of a new connection.
  std::string certificate_subject() {
    const std::string address = server->url().substr(8, server->url().rfind('/') - 8);
    std::atomic<bool> done = false;
    std::string subject;
    std::thread client([&] {
      subject = test::TlsClient(address).subject();
      done = true;
      loop.post([] {});
    });
    loop.run_until([&] { return done.load(); });
    client.join();
    return subject;
  }
  // Adds a server that cannot be reached; its error contains secret details.
  void add_unreachable(const std::string& name) {
    pool::ServerSpec spec;
    spec.name = name;
    spec.transport = pool::ConnectorName{name};
    config.connectors[name] = [](Loop&, StreamConnectOptions) { return fail(); };
    config.servers.push_back(spec);
  }
  static Task<ConnectResult> fail() {
    co_return Error(ErrorKind::connection_failed, "cannot connect to " + kSecretAddress)
        .with([](ErrorDetail& detail) {
          detail.command_line = "/opt/secret/command";
          detail.stderr_lines = {"a line of stderr"};
        });
  }

  std::string address() const {
    const std::string url = server->url();
    return url.substr(7, url.size() - 7 - 4);  // "http://…/mcp"
  }
  // Sends a request from another thread while the loop runs in this one.
  RawClient::Response send(const std::string& request) {
    RawClient::Response answer;
    std::atomic<bool> done = false;
    std::thread client([&, at = address()] {
      answer = RawClient(at).request(request);
      done = true;
      loop.post([] {});
    });
    loop.run_until([&] { return done.load(); });
    client.join();
    return answer;
  }
  RawClient::Response get(const std::string& path, const std::string& token = "") {
    return send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + credentials(token) +
                "\r\n");
  }
  std::string call_tool(const std::string& tool, const std::string& token = "") {
    return send(call_request(tool, token)).body;
  }
  static std::string call_request(const std::string& tool, const std::string& token = "") {
    const std::string body =
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" + tool +
        R"(","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
        R"("io.modelcontextprotocol/clientCapabilities":{}}}})";
    return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + credentials(token) +
           "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
           "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: " +
           tool + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  static std::string credentials(const std::string& token) {
    return token.empty() ? "" : "Authorization: Bearer " + token + "\r\n";
  }
  // Polls /health until its status is `status`.
  RawClient::Response health_when(const std::string& status, const std::string& token = "") {
    RawClient::Response answer = get("/health", token);
    const auto until = Clock::now() + 10s;
    while (Clock::now() < until && answer.body.find(R"({"status":")" + status + "\"") == std::string::npos)
      answer = get("/health", token);
    EXPECT_NE(answer.body.find(R"({"status":")" + status + "\""), std::string::npos) << answer.body;
    return answer;
  }
};

bool has_details(const std::string& text) {
  return text.find(kSecretAddress) != std::string::npos || text.find("/opt/secret") != std::string::npos ||
         text.find("a line of stderr") != std::string::npos;
}

// ---- listening -------------------------------------------------------------------------------------------

TEST_F(GatewayServerTest, NonLocalAddressIsRejectedWithoutAuthentication) {
  add("s", Sharing::shared);
  config.listen = "0.0.0.0:0";
  const auto refused = GatewayServer::listen(loop, config, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
  EXPECT_TRUE(servers["s"]->empty()) << "no server is started";
  authenticate();
  start();
}

TEST_F(GatewayServerTest, NoServerIsStartedWhenListenFails) {
  add("s", Sharing::shared);
  start();
  const std::size_t instances = servers["s"]->size();
  config.listen = address();
  EXPECT_FALSE(GatewayServer::listen(loop, config, options));
  EXPECT_EQ(servers["s"]->size(), instances);
}

TEST_F(GatewayServerTest, EveryRouteRequiresAuthentication) {
  add("s", Sharing::shared);
  authenticate();
  start();
  for (const char* path : {"/mcp", "/sse", "/messages", "/health", "/nothing"}) {
    const auto answer = get(path);
    EXPECT_EQ(answer.status, 401) << path;
    EXPECT_TRUE(answer.has("WWW-Authenticate: Bearer")) << path;
  }
  EXPECT_EQ(get("/health", kUserToken).status, 200);
}

// ---- health ----------------------------------------------------------------------------------------------

// The configured cgroup parent is not a cgroup, so its measures cannot be applied.
TEST_F(GatewayServerTest, HealthNamesContainmentMeasuresThatAreNotInForce) {
  const test::TempDir plain;
  pool::ServerSpec spec;
  spec.name = "contained";
  pool::Program program;
  program.command = std::string(FAIRLEAD_FIXTURE_DIR) + "/mcp_server";
  program.containment.cgroup_parent = plain / "none";
  program.containment.memory_max = 1u << 30;
  spec.transport = program;
  config.servers.push_back(spec);
  config.failure_details = FailureDetails::administrators;
  authenticate();
  start();
  const auto missing = [&](const std::string& token) {
    const std::string health = health_when("ok", token).body;
    return std::string(json::View(health)["servers"][0]["missingContainment"].text());
  };
  ASSERT_TRUE(wait_until([&] {
    const json::Raw health = server->gateway().health();
    return json::View(health)["counts"]["servers"]["ready"].as_int() == 1;
  }));
  EXPECT_EQ(missing(kUserToken), R"([{"step":"cgroup"},{"step":"memory_max"}])");
  const std::string reason = (plain / "none") + " is not a cgroup";
  EXPECT_TRUE(
      missing(kAdminToken)
          .starts_with(R"([{"step":"cgroup","reason":")" + reason + R"("},{"step":"memory_max","reason":")"))
      << missing(kAdminToken);
}

TEST_F(GatewayServerTest, HealthReportIsCompleteWhenOtherClientsDisconnect) {
  constexpr std::size_t kCount = 1000;
  for (std::size_t i = 0; i < kCount; ++i) {
    add_unreachable("s" + std::to_string(i));
    config.servers.back().enabled = false;
  }
  start();
  std::atomic<bool> disconnected = false;
  std::thread disconnecting([&, at = address()] {
    for (int i = 0; i < 5; ++i) RawClient(at).send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    disconnected = true;
    loop.post([] {});
  });
  loop.run_until([&] { return disconnected.load(); });
  disconnecting.join();
  const RawClient::Response answer = get("/health");
  EXPECT_EQ(json::View(answer.body)["servers"].size(), kCount) << answer.status;
}

TEST_F(GatewayServerTest, HealthReportsCountsAndVersion) {
  add("s", Sharing::shared);
  start();
  EXPECT_NE(call_tool("s__which").find(R"("text":"0")"), std::string::npos);
  const auto answer = health_when("ok");
  EXPECT_EQ(answer.status, 200);
  const json::View health(answer.body);
  EXPECT_EQ(health["revision"].as_string(), "2026-07-28");
  EXPECT_FALSE(health["version"].as_string().value_or("").empty());
  EXPECT_GE(health["uptimeSeconds"].as_int().value_or(-1), 0);
  EXPECT_EQ(health["counts"]["servers"]["ready"].as_int(), 1);
  EXPECT_EQ(health["counts"]["servers"]["failed"].as_int(), 0);
  EXPECT_GE(health["counts"]["tools"].as_int().value_or(0), 5);
  EXPECT_EQ(health["counts"]["calls"].as_int(), 0);
}

TEST_F(GatewayServerTest, HealthIsDegradedWhenOneServerHasFailed) {
  add("s", Sharing::shared);
  add_unreachable("dead");
  start();
  const auto answer = health_when("degraded");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(json::View(answer.body)["counts"]["servers"]["failed"].as_int(), 1);
}

TEST_F(GatewayServerTest, HealthIsFailedWith503WhenAllServersHaveFailed) {
  add_unreachable("dead");
  add_unreachable("dead-too");
  start();
  EXPECT_EQ(health_when("failed").status, 503);
}

TEST_F(GatewayServerTest, HealthIsDegradedWhenAllToolsAreRejected) {
  add("s", Sharing::shared);
  auto scripted = std::make_shared<ScriptedServer>(loop);
  scripted->results = {{"tools/list", R"({"tools":[{"name":"no schema"}]})"},
                       {"prompts/list", R"({"prompts":[]})"}};
  customize = [&](Instance& instance) { instance.server.backend(scripted); };
  start();
  const auto answer = health_when("degraded");
  EXPECT_NE(answer.body.find("none of its 1 tools is valid"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find(R"("healthy":false)"), std::string::npos) << answer.body;
}

TEST_F(GatewayServerTest, HealthIsOkWithoutServers) {
  start();
  EXPECT_EQ(health_when("ok").status, 200);
}

// ---- failure details -------------------------------------------------------------------------------------

TEST_F(GatewayServerTest, FailureDetailsAreShownOnLoopbackWithoutAuthentication) {
  add_unreachable("dead");
  start();
  EXPECT_TRUE(has_details(call_tool("dead__x")));
  EXPECT_TRUE(has_details(health_when("failed").body));
}

TEST_F(GatewayServerTest, FailureDetailsAreHiddenOnLoopbackWhenConfigured) {
  config.failure_details = FailureDetails::administrators;
  add_unreachable("dead");
  start();
  const std::string answer = call_tool("dead__x");
  EXPECT_FALSE(has_details(answer)) << answer;
  EXPECT_NE(answer.find("it could not be reached"), std::string::npos) << answer;
  EXPECT_NE(answer.find(R"("code":"connection_failed")"), std::string::npos) << answer;
  EXPECT_NE(answer.find(R"("remedy":")"), std::string::npos) << answer;
  const std::string health = health_when("failed").body;
  EXPECT_FALSE(has_details(health)) << health;
  EXPECT_NE(health.find(R"("lastErrorCode":"connection_failed")"), std::string::npos) << health;
}

TEST_F(GatewayServerTest, FailureDetailsAreShownToAdministratorsOnlyWithAuthentication) {
  authenticate();
  add_unreachable("dead");
  start();
  EXPECT_FALSE(has_details(call_tool("dead__x", kUserToken)));
  EXPECT_TRUE(has_details(call_tool("dead__x", kAdminToken)));
  EXPECT_FALSE(has_details(health_when("failed", kUserToken).body));
  EXPECT_TRUE(has_details(health_when("failed", kAdminToken).body));
}

TEST_F(GatewayServerTest, FailureDetailsAreShownToEveryoneWhenConfigured) {
  authenticate();
  config.failure_details = FailureDetails::everyone;
  add_unreachable("dead");
  start();
  EXPECT_TRUE(has_details(call_tool("dead__x", kUserToken)));
}

// ---- shutdown --------------------------------------------------------------------------------------------

TEST_F(GatewayServerTest, CallInProgressIsAnsweredBeforeConnectionsClose) {
  add("s", Sharing::shared);
  config.drain_grace = 50ms;
  start();
  std::string answer;
  std::atomic<bool> done = false;
  const std::string body =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__wait","arguments":{},)"
      R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
      R"("io.modelcontextprotocol/clientCapabilities":{}}}})";
  std::thread client([&, at = address()] {
    answer =
        RawClient(at)
            .request(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"
                "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"
                "Mcp-Method: tools/call\r\nMcp-Name: s__wait\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body)
            .body;
    done = true;
    loop.post([] {});
  });
  loop.run_until([&] { return !servers["s"]->empty() && instance("s", 0).waiting; });
  server->stop();
  loop.run_until([&] { return server->gateway().health().text().starts_with(R"({"status":"draining")"); });
  loop.run_until([&] { return server->stopped().is_set() && done.load(); });
  client.join();
  EXPECT_NE(answer.find(R"("code":"draining")"), std::string::npos) << answer;
}

// Opens so many sessions that they are ended in several slices.
TEST_F(GatewayServerTest, SecondStopEndsCallsAtOnceWithManySessions) {
  add("s", Sharing::shared);
  config.drain_grace = 1h;
  start();
  std::atomic<int> step = 0;
  const std::string body =
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
      R"("capabilities":{},"clientInfo":{"name":"c","version":"1"}}})";
  std::thread client([&, at = address()] {
    RawClient sessions(at);
    for (int i = 0; i < 600; ++i) {
      sessions.request(
          "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"
          "Content-Type: application/json\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body);
    }
    step = 1;
    RawClient(at).request(call_request("s__wait"));
    step = 2;
    loop.post([] {});
  });
  loop.run_until([&] { return step == 1 && !servers["s"]->empty() && instance("s", 0).waiting; });
  loop.post([&] {
    server->stop();
    EXPECT_TRUE(server->gateway().health().text().starts_with(R"({"status":"draining")"));
    server->stop();
  });
  EXPECT_TRUE(wait_until([&] { return server->stopped().is_set() && step == 2; }));
  client.join();
}

TEST_F(GatewayServerTest, CallOverMaxClientWaitingCallsIsRejected) {
  add("s", Sharing::shared);
  config.servers.back().max_calls = 1;
  config.limits.max_client_waiting_calls = 0;
  config.drain_grace = 50ms;
  start();
  // A call made before the lists are fetched would be rejected because it waits for them.
  ASSERT_TRUE(wait_until([&] {
    const json::Raw health = server->gateway().health();
    return json::View(health)["counts"]["tools"].as_int().value_or(0) > 0;
  }));
  std::atomic<bool> done = false;
  std::thread client([&, at = address()] {
    RawClient(at).request(call_request("s__wait"));
    done = true;
    loop.post([] {});
  });
  loop.run_until([&] { return !servers["s"]->empty() && instance("s", 0).waiting; });
  const std::string answer = call_tool("s__wait");
  EXPECT_NE(answer.find("max_client_waiting_calls (0)"), std::string::npos) << answer;
  server->stop();
  loop.run_until([&] { return server->stopped().is_set() && done.load(); });
  client.join();
}

TEST_F(GatewayServerTest, ServerOfOneConnectionStopsWhenConnectionEnds) {
  add("s", Sharing::shared);
  auto [near_end, far_end] = make_channel(loop, loop);
  auto serving = GatewayServer::serve(loop, config, far_end, Principal::local(1, "stdio"), options);
  ASSERT_TRUE(serving);
  server = *serving;
  EXPECT_EQ(server->url(), "");
  near_end->close();
  loop.run_until([&] { return server->stopped().is_set(); });
}

TEST_F(GatewayServerTest, ReloadReturnsKeysThatNeedRestart) {
  add("s", Sharing::shared);
  start();
  Config next = config;
  next.drain_grace = 1s;
  next.failure_details = FailureDetails::everyone;
  const Result<std::string> restart = loop.block_on(server->reload(next));
  ASSERT_TRUE(restart);
  EXPECT_EQ(*restart, "drain_grace, failure_details");
}

TEST_F(GatewayServerTest, SlowTurnIsLogged) {
  std::string logged;
  options.log = Log(LogLevel::warning, LogFormat::text, [&](std::string_view line) { logged += line; });
  start();
  const auto cpu_ms = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
  };
  loop.post([&] {
    for (const auto until = cpu_ms() + 60; cpu_ms() < until;) continue;
  });
  loop.run_until([&] { return loop.turn_meter().slow_turn_count() > 0; });
  EXPECT_NE(logged.find("slow turn of the loop"), std::string::npos) << logged;
}

TEST_F(GatewayServerTest, FailedReloadKeepsCertificate) {
  const test::TempDir directory;
  const http::TlsFiles files = test::make_certificate(directory, "first", "IP:127.0.0.1");
  config.tls_certificate = files.certificate;
  config.tls_key = files.key;
  start();
  EXPECT_EQ(certificate_subject(), "first");
  test::make_certificate(directory, "second", "IP:127.0.0.1");
  Config next = config;
  next.servers.emplace_back().name = "cannot__be";
  EXPECT_FALSE(loop.block_on(server->reload(next)));
  EXPECT_EQ(certificate_subject(), "first");
  EXPECT_TRUE(loop.block_on(server->reload(config)));
  EXPECT_EQ(certificate_subject(), "second");
}

}  // namespace
}  // namespace fairlead::gateway
