// R8.2: Host and Origin are checked (DNS rebinding); pages of configured origins are let in by CORS.
#include <gtest/gtest.h>

#include "http/raw_client.hpp"

namespace fairlead::http {
namespace {

using test::HttpServer;
using test::RawClient;
using ExchangePtr = std::shared_ptr<Exchange>;

RawClient::Answer ask(HttpServer& server, std::string_view host, std::string_view origin,
                      std::string_view more = "", std::string_view method = "GET") {
  std::string request = std::string(method) + " /x HTTP/1.1\r\nHost: " + std::string(host) + "\r\n";
  if (!origin.empty()) request += "Origin: " + std::string(origin) + "\r\n";
  return server.client().ask(request + std::string(more) + "\r\n");
}

void answer_x(const ExchangePtr& exchange) {
  Response response = Response::text(200, "x");
  response.headers.add("Mcp-Session-Id", "s");
  exchange->respond(std::move(response));
}

ServerOptions allowing(std::vector<std::string> origins, std::optional<std::vector<std::string>> hosts = {}) {
  ServerOptions options;
  options.allowed_origins = std::move(origins);
  options.allowed_hosts = std::move(hosts);
  return options;
}

TEST(HttpGate, ALoopbackServerAnswersToItsOwnNamesOnly) {
  HttpServer server;
  server.route("/x", answer_x);
  for (const char* host :
       {"localhost", "LOCALHOST:1234", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8080"}) {
    EXPECT_EQ(ask(server, host, "").status, 200) << host;
  }
  for (const char* host : {"evil.example", "evil.example:80", "localhost.evil.example",
                           "127.0.0.1.evil.example", "localhost:80:80", "localhost:x", "localhost:65536",
                           "[::1", "[::1]x", "[localhost]", "[]", "", "localhost@evil.example", "0.0.0.0"}) {
    const auto answer = ask(server, host, "");
    EXPECT_EQ(answer.status, 403) << host;
    EXPECT_NE(answer.body.find("Host"), std::string::npos);
  }
}

TEST(HttpGate, AnAbsoluteTargetCountsInsteadOfHost) {
  HttpServer server;
  server.route("/x", answer_x);
  EXPECT_EQ(server.client().ask("GET http://evil.example/x HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 403);
}

TEST(HttpGate, ForeignPagesAreRefused) {
  HttpServer server(allowing({"https://app.example"}));
  server.route("/x", answer_x);
  for (const char* origin : {"http://localhost", "http://localhost:3000", "https://127.0.0.1:1",
                             "http://[::1]:5", "https://app.example", "HTTPS://APP.example"}) {
    const auto answer = ask(server, "localhost", origin);
    EXPECT_EQ(answer.status, 200) << origin;
    EXPECT_TRUE(answer.has("\r\nAccess-Control-Allow-Origin: " + std::string(origin) + "\r\n"))
        << answer.head;
    EXPECT_TRUE(answer.has("\r\nVary: Origin\r\n"));
    EXPECT_TRUE(
        answer.has("Access-Control-Expose-Headers: Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"));
  }
  for (const char* origin :
       {"https://evil.example", "http://app.example", "https://app.example:8443", "https://app.example.evil",
        "null", "localhost", "file://localhost", "http://", "http:localhost", "http://localhost/path",
        "http://localhost?x", "http://localhost#x", "//localhost", "http://evil.example@localhost",
        "http://localhost, http://x"}) {
    const auto answer = ask(server, "localhost", origin);
    EXPECT_EQ(answer.status, 403) << origin;
    EXPECT_FALSE(answer.has("Access-Control"));
  }
  EXPECT_EQ(ask(server, "localhost", "http://localhost", "Origin: http://localhost\r\n").status, 403);
}

TEST(HttpGate, WhereEveryNameIsAnsweredToAPageMayAskItsOwnServer) {
  HttpServer server(allowing({}, std::vector<std::string>{}));
  server.route("/x", answer_x);
  EXPECT_EQ(ask(server, "any.example:8080", "").status, 200);
  EXPECT_EQ(ask(server, "any.example:8080", "https://any.example:8080").status, 200);
  EXPECT_EQ(ask(server, "any.example:8080", "https://any.example").status, 403);
  EXPECT_EQ(ask(server, "any.example:8080", "https://other.example").status, 403);
}

// DNS rebinding leads a page's own name here; an address it cannot make a browser send.
TEST(HttpGate, ServerBeyondLoopbackAnswersToAddressesAndLocalhostOnly) {
  HttpServer server(ServerOptions(), "0.0.0.0:0");
  server.route("/x", answer_x);
  for (const char* host : {"localhost:80", "127.0.0.1", "192.0.2.7:8808", "[2001:db8::1]:80", "[::1]"}) {
    EXPECT_EQ(ask(server, host, "").status, 200) << host;
  }
  for (const char* host : {"evil.example", "192.0.2.7.evil.example", "192.0.2", "0x7f.1", "[evil]",
                           "2001:db8::1", "localhost.evil.example", "[192.0.2.7]", ""}) {
    const auto answer = ask(server, host, "");
    EXPECT_EQ(answer.status, 403) << host;
    EXPECT_NE(answer.body.find("allowed_hosts"), std::string::npos) << answer.body;
  }
  EXPECT_EQ(ask(server, "192.0.2.7:80", "http://192.0.2.7:80").status, 200);
  EXPECT_EQ(ask(server, "192.0.2.7:80", "http://192.0.2.8:80").status, 403);
  EXPECT_EQ(ask(server, "192.0.2.7:80", "http://evil.example").status, 403);
}

TEST(HttpGate, NamesBeyondLoopbackCanBeAllowed) {
  HttpServer server(allowing({}, std::vector<std::string>{"gateway.example"}), "0.0.0.0:0");
  server.route("/x", answer_x);
  EXPECT_EQ(ask(server, "gateway.example", "").status, 200);
  EXPECT_EQ(ask(server, "192.0.2.7", "").status, 403);
}

TEST(HttpGate, LocalAddressesAreToldFromOthers) {
  for (const char* address : {"127.0.0.1:80", "127.9.9.9:0", "[::1]:80", "localhost:80", "unix:/tmp/x"}) {
    EXPECT_TRUE(is_local_address(address).value()) << address;
  }
  for (const char* address : {"0.0.0.0:80", "192.0.2.7:80", "[::]:80", "[2001:db8::1]:80"}) {
    EXPECT_FALSE(is_local_address(address).value()) << address;
  }
  EXPECT_EQ(is_local_address("nonsense").error().kind(), ErrorKind::validation);
}

TEST(HttpGate, AnyOriginCanBeAllowed) {
  HttpServer server(allowing({"*"}));
  server.route("/x", answer_x);
  EXPECT_EQ(ask(server, "localhost", "https://anybody.example").status, 200);
}

TEST(HttpGate, PreflightIsAnsweredForWhoMayAsk) {
  HttpServer server(allowing({"https://app.example"}));
  std::atomic<int> handled = 0;
  server.route("/x", [&](const ExchangePtr& exchange) {
    ++handled;
    exchange->respond(Response::text(405, "no"));
  });
  constexpr std::string_view kAsks =
      "Access-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: content-type, mcp-param-region, x-other\r\n";
  const auto answer = ask(server, "localhost", "https://app.example", kAsks, "OPTIONS");
  EXPECT_EQ(answer.status, 204);
  EXPECT_TRUE(answer.has("Access-Control-Allow-Origin: https://app.example\r\n"));
  EXPECT_TRUE(answer.has("Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS\r\n"));
  for (const char* name : {"Authorization", "Content-Type", "Last-Event-ID", "Mcp-Session-Id",
                           "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "mcp-param-region"}) {
    EXPECT_TRUE(answer.has(name)) << name;
  }
  EXPECT_FALSE(answer.has("x-other"));
  EXPECT_FALSE(answer.has("Content-Length"));
  EXPECT_EQ(ask(server, "localhost", "https://evil.example", kAsks, "OPTIONS").status, 403);
  EXPECT_EQ(handled, 0);
  // Without these fields it is a request as any other.
  EXPECT_EQ(ask(server, "localhost", "", "", "OPTIONS").status, 405);
  EXPECT_EQ(handled, 1);
}

}  // namespace
}  // namespace fairlead::http
