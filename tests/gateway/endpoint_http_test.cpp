// Endpoints over HTTP: their paths, and sessions that belong to one endpoint and one principal.
#include <atomic>
#include <thread>

#include "fairlead/gateway/gateway_server.hpp"
#include "fairlead/http/authenticator.hpp"
#include "gateway/endpoint_harness.hpp"
#include "http/raw_client.hpp"

namespace fairlead::gateway {
namespace {

using namespace std::chrono_literals;
using Response = test::RawClient::Response;

const std::string kAnn = "token-of-ann-0123456789";
const std::string kBob = "token-of-bob-0123456789";
const std::string kRoot = "token-of-root-0123456789";

class EndpointHttpTest : public EndpointGatewayTest {
 protected:
  GatewayServerOptions options;
  std::shared_ptr<GatewayServer> server;

  void start(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      add(name, Sharing::shared);
      specs[name] = config.servers.back();
    }
    config.servers.clear();
    config.listen = "127.0.0.1:0";
    auto tokens = std::make_shared<http::StaticTokenAuthenticator>();
    ASSERT_TRUE(tokens->add(kAnn, *user("ann")));
    ASSERT_TRUE(tokens->add(kBob, *user("bob")));
    ASSERT_TRUE(tokens->add(kRoot, *admin()));
    options.authenticator = std::move(tokens);
    Result<std::shared_ptr<GatewayServer>> listening = GatewayServer::listen(loop, config, options);
    ASSERT_TRUE(listening) << listening.error().to_string();
    server = *listening;
    gateway = std::shared_ptr<Gateway>(server, &server->gateway());
    for (const std::string& name : names) put(name);
  }
  void TearDown() override {
    for (const auto& client : clients) disconnect(client);
    clients.clear();
    if (server && !server->stopping()) server->stop();
    if (server) loop.run_until([&] { return server->stopped().is_set(); });
    gateway = nullptr;
    server = nullptr;
  }

  std::string address() const {
    const std::string url = server->url();
    return url.substr(7, url.size() - 7 - 4);  // "http://…/mcp"
  }
  std::shared_ptr<Client> connect_to(const std::string& url, const std::string& token,
                                     mcp::Revision revision = mcp::kNewestLegacyRevision) {
    auto client = std::make_shared<Client>();
    mcp::ClientOptions client_options;
    client_options.pinned_revision = revision;
    client_options.cache_results = false;
    client_options.connect.headers.add("Authorization", "Bearer " + token);
    Result<std::shared_ptr<mcp::Client>> opened =
        loop.block_on(mcp::Client::connect(loop, url, std::move(client_options)));
    EXPECT_TRUE(opened) << url << ": " << opened.error().to_string();
    if (!opened) return nullptr;
    client->client = *opened;
    clients.push_back(client);
    return client;
  }
  std::string url(const std::string& path) const { return "http://" + address() + path; }

  // Sends a request from another thread while the loop runs in this one.
  Response send(const std::string& method, const std::string& path, const std::string& token,
                const std::string& body = "", const std::string& session = "") {
    std::string request = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    if (!token.empty()) request += "Authorization: Bearer " + token + "\r\n";
    if (!session.empty()) request += "Mcp-Session-Id: " + session + "\r\n";
    request += method == "GET" ? "Accept: text/event-stream\r\n\r\n"
                               : "Accept: application/json, text/event-stream\r\nContent-Type: "
                                 "application/json\r\nContent-Length: " +
                                     std::to_string(body.size()) + "\r\n\r\n" + body;
    Response answer;
    std::atomic<bool> done = false;
    std::thread client([&, at = address()] {
      answer = test::RawClient(at).request(request);
      done = true;
      loop.post([] {});
    });
    loop.run_until([&] { return done.load(); });
    client.join();
    return answer;
  }
  // Returns the id of a new session.
  std::string open_session(const std::string& path, const std::string& token) {
    const Response opened =
        send("POST", path, token,
             R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
             R"("capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
    EXPECT_EQ(opened.status, 200) << opened.body;
    const std::string_view header = "Mcp-Session-Id: ";
    const std::size_t at = opened.head.find(header);
    if (at == std::string::npos) return {};
    const std::size_t from = at + header.size();
    return opened.head.substr(from, opened.head.find("\r\n", from) - from);
  }
  static inline const std::string kPing = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";
};

TEST_F(EndpointHttpTest, EveryTransportServesEveryEndpoint) {
  start({"s"});
  ASSERT_TRUE(gateway->endpoints().put(endpoint("x")));
  for (const auto& [path, tool] :
       {std::pair("/mcp", "s__which"), std::pair("/mcp/e/x", "s__which"), std::pair("/mcp/s", "which")}) {
    for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
      SCOPED_TRACE(std::string(path) + " " + std::string(to_string(revision)));
      EXPECT_EQ(call(connect_to(url(path), kAnn, revision), tool), "0");
      EXPECT_EQ(call(connect_to("ws://" + address() + path, kAnn, revision), tool), "0");
    }
  }
  EXPECT_EQ(call(connect_to(url("/sse"), kAnn), "s__which"), "0");
  EXPECT_EQ(call(connect_to(url("/mcp/e/x/sse"), kAnn), "s__which"), "0");
  EXPECT_EQ(call(connect_to(url("/mcp/s/sse"), kAnn), "which"), "0");
}

TEST_F(EndpointHttpTest, UnknownAndForbiddenEndpointsAreAnsweredAlike) {
  start({"s"});
  registry::Endpoint team = endpoint("team");
  team.users = {"ann"};
  ASSERT_TRUE(gateway->endpoints().put(team));
  put("s", visible_to(Visibility::hidden));
  EXPECT_FALSE(open_session("/mcp/e/team", kAnn).empty());
  for (const std::string path : {"/mcp/e/team", "/mcp/e/none", "/mcp/s", "/mcp/none", "/mcp/e/team/sse"}) {
    const Response answer = send("POST", path, kBob, kPing);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_NE(answer.body.find(R"("code":"unknown_endpoint")"), std::string::npos) << answer.body;
    EXPECT_TRUE(answer.has("application/json")) << answer.head;
  }
  EXPECT_EQ(send("GET", "/mcp/e/team", kBob).status, 404);
}

TEST_F(EndpointHttpTest, SessionBelongsToItsEndpointAndPrincipal) {
  start({"s"});
  ASSERT_TRUE(gateway->endpoints().put(endpoint("x")));
  const std::string session = open_session("/mcp/e/x", kAnn);
  ASSERT_FALSE(session.empty());
  EXPECT_EQ(send("POST", "/mcp/e/x", kAnn, kPing, session).status, 200);
  const Response unknown = send("POST", "/mcp/e/x", kAnn, kPing, "no-such-session");
  EXPECT_EQ(unknown.status, 404);
  for (const auto& [path, token] : {std::pair("/mcp", kAnn), std::pair("/mcp/s", kAnn),
                                    std::pair("/mcp/e/x", kBob), std::pair("/mcp/e/x", kRoot)}) {
    const Response other = send("POST", path, token, kPing, session);
    EXPECT_EQ(other.status, 404) << path;
    EXPECT_EQ(other.body, unknown.body);
    EXPECT_EQ(send("GET", path, token, "", session).status, 404);
    EXPECT_EQ(send("DELETE", path, token, "", session).status, 404);
  }
  EXPECT_EQ(send("POST", "/mcp/e/x", kAnn, kPing, session).status, 200) << "the session was ended";
}

TEST_F(EndpointHttpTest, SessionsEndWhenAccessToTheirEndpointIsRevoked) {
  start({"s"});
  ASSERT_TRUE(gateway->endpoints().put(endpoint("x")));
  const auto socket = connect_to("ws://" + address() + "/mcp/e/x", kAnn);
  const auto pair = connect_to(url("/mcp/e/x/sse"), kAnn);
  const auto listening = connect_to(url("/mcp/e/x"), kAnn, mcp::kNewestRevision);
  const auto kept = connect_to("ws://" + address() + "/mcp/e/x", kBob);
  EXPECT_EQ(call(socket, "s__which"), "0");
  const std::string session = open_session("/mcp/e/x", kAnn);
  registry::Endpoint closed = endpoint("x");
  closed.users = {"bob"};
  ASSERT_TRUE(gateway->endpoints().put(closed));
  EXPECT_EQ(send("POST", "/mcp/e/x", kAnn, kPing, session).status, 404);
  EXPECT_FALSE(loop.block_on(listening->client->call_tool("s__which", raw("{}"))));
  EXPECT_FALSE(loop.block_on(socket->client->call_tool("s__which", raw("{}"))));
  EXPECT_FALSE(loop.block_on(pair->client->call_tool("s__which", raw("{}"))));
  EXPECT_EQ(call(kept, "s__which"), "0");
}

TEST_F(EndpointHttpTest, CallsContinueWhileOtherEndpointsAndPoliciesChange) {
  start({"s"});
  ASSERT_TRUE(gateway->endpoints().put(endpoint("x")));
  const auto client = connect_to(url("/mcp/e/x"), kAnn);
  bool failed = false;
  loop.spawn(call_until_failure(client->client, "s__wait", mcp::ClientCallOptions(), &failed));
  EXPECT_TRUE(wait_until([&] { return instance("s", 0).waiting; }));
  ServerPolicy policy;
  policy.tools.deny = {"touch"};
  put("s", policy);
  registry::Endpoint changed = endpoint("x");
  changed.deny = {"s__ask"};
  ASSERT_TRUE(gateway->endpoints().put(changed));
  ASSERT_TRUE(gateway->endpoints().put(endpoint("y")));
  EXPECT_NE(call(client, "s__touch").find("Unknown tool"), std::string::npos);
  EXPECT_EQ(call(client, "s__which"), "0");
  EXPECT_FALSE(failed);
  EXPECT_FALSE(instance("s", 0).cancelled);
  disconnect(client);
  EXPECT_TRUE(wait_until([&] { return failed; }));  // the call refers to `failed`
}

TEST_F(EndpointHttpTest, EndSessionsEndsThoseOfSelectedPrincipals) {
  start({"s"});
  const std::string ann = open_session("/mcp", kAnn);
  const std::string bob = open_session("/mcp", kBob);
  server->end_sessions([](const Principal& principal) { return principal.user == "ann"; });
  EXPECT_EQ(send("POST", "/mcp", kAnn, kPing, ann).status, 404);
  EXPECT_EQ(send("POST", "/mcp", kBob, kPing, bob).status, 200);
}

TEST_F(EndpointHttpTest, SessionsAreListedAndEnded) {
  start({"s"});
  const std::string session = open_session("/mcp/s", kAnn);
  connect_to("ws://" + address() + "/mcp", kBob);
  const std::vector<SessionInfo> open = server->sessions();
  ASSERT_EQ(open.size(), 2u);
  const SessionInfo& info = open.at(open.at(0).transport == "http" ? 0 : 1);
  EXPECT_EQ(info.endpoint, "/mcp/s");
  EXPECT_EQ(info.revision, "2025-11-25");
  EXPECT_EQ(info.client, "t 1");
  EXPECT_EQ(info.principal->user, "ann");
  EXPECT_NE(info.id, session);
  EXPECT_FALSE(server->end_session("none"));
  EXPECT_TRUE(server->end_session(info.id));
  EXPECT_EQ(send("POST", "/mcp/s", kAnn, kPing, session).status, 404);
  EXPECT_EQ(server->sessions().size(), 1u);
}

TEST_F(EndpointHttpTest, ReadinessReportsItsProblemAndLivenessDoesNot) {
  std::optional<std::string> problem;
  options.readiness_problem = [&] { return problem; };
  start({"s"});
  EXPECT_EQ(send("GET", "/healthz", kAnn).status, 200);
  EXPECT_EQ(send("GET", "/readyz", kAnn).status, 200);
  problem = "the database cannot be reached";
  const Response unready = send("GET", "/readyz", kAnn);
  EXPECT_EQ(unready.status, 503);
  EXPECT_NE(unready.body.find("the database cannot be reached"), std::string::npos);
  EXPECT_EQ(send("GET", "/healthz", kAnn).status, 200);
  EXPECT_EQ(call(connect_to(url("/mcp"), kAnn), "s__which"), "0");
}

TEST_F(EndpointHttpTest, AddedRoutesPrecedeEndpoints) {
  options.add_routes = [](http::Server& http, Gateway&) {
    http.route("/mcp/servers", [](const std::shared_ptr<http::Exchange>& exchange) {
      exchange->respond(http::Response::text(200, "the API"));
    });
  };
  start({"s"});
  EXPECT_EQ(send("GET", "/mcp/servers", kAnn).body, "the API");
  EXPECT_EQ(send("GET", "/mcp/e", kAnn).status, 404);
}

}  // namespace
}  // namespace fairlead::gateway
