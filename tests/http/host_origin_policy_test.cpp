// R8.2: Host and Origin are checked against DNS rebinding; configured origins get CORS headers.
#include <gtest/gtest.h>

#include "http/raw_client.hpp"

namespace fairlead::http {
namespace {

using test::HttpServer;
using test::RawClient;
using ExchangePtr = std::shared_ptr<Exchange>;

RawClient::Response send_request(HttpServer& server, std::string_view host, std::string_view origin,
                                 std::string_view more = "", std::string_view method = "GET") {
  std::string request = std::string(method) + " /x HTTP/1.1\r\nHost: " + std::string(host) + "\r\n";
  if (!origin.empty()) request += "Origin: " + std::string(origin) + "\r\n";
  return server.client().request(request + std::string(more) + "\r\n");
}

void respond_with_x(const ExchangePtr& exchange) {
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

TEST(HostOriginPolicyTest, LoopbackServerAllowsOnlyLoopbackHosts) {
  HttpServer server;
  server.route("/x", respond_with_x);
  for (const char* host :
       {"localhost", "LOCALHOST:1234", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8080"}) {
    EXPECT_EQ(send_request(server, host, "").status, 200) << host;
  }
  for (const char* host : {"evil.example", "evil.example:80", "localhost.evil.example",
                           "127.0.0.1.evil.example", "localhost:80:80", "localhost:x", "localhost:65536",
                           "[::1", "[::1]x", "[localhost]", "[]", "", "localhost@evil.example", "0.0.0.0"}) {
    const auto response = send_request(server, host, "");
    EXPECT_EQ(response.status, 403) << host;
    EXPECT_NE(response.body.find("Host"), std::string::npos);
  }
}

TEST(HostOriginPolicyTest, AbsoluteTargetTakesPrecedenceOverHost) {
  HttpServer server;
  server.route("/x", respond_with_x);
  EXPECT_EQ(server.client().request("GET http://evil.example/x HTTP/1.1\r\nHost: localhost\r\n\r\n").status,
            403);
}

TEST(HostOriginPolicyTest, RequestFromDisallowedOriginIsRejected) {
  HttpServer server(allowing({"https://app.example"}));
  server.route("/x", respond_with_x);
  for (const char* origin : {"http://localhost", "http://localhost:3000", "https://127.0.0.1:1",
                             "http://[::1]:5", "https://app.example", "HTTPS://APP.example"}) {
    const auto response = send_request(server, "localhost", origin);
    EXPECT_EQ(response.status, 200) << origin;
    EXPECT_TRUE(response.has("\r\nAccess-Control-Allow-Origin: " + std::string(origin) + "\r\n"))
        << response.head;
    EXPECT_TRUE(response.has("\r\nVary: Origin\r\n"));
    EXPECT_TRUE(response.has(
        "Access-Control-Expose-Headers: Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"));
  }
  for (const char* origin :
       {"https://evil.example", "http://app.example", "https://app.example:8443", "https://app.example.evil",
        "null", "localhost", "file://localhost", "http://", "http:localhost", "http://localhost/path",
        "http://localhost?x", "http://localhost#x", "//localhost", "http://evil.example@localhost",
        "http://localhost, http://x"}) {
    const auto response = send_request(server, "localhost", origin);
    EXPECT_EQ(response.status, 403) << origin;
    EXPECT_FALSE(response.has("Access-Control"));
  }
  EXPECT_EQ(send_request(server, "localhost", "http://localhost", "Origin: http://localhost\r\n").status,
            403);
}

TEST(HostOriginPolicyTest, OnlyOwnOriginIsAllowedWhenEveryHostIsAllowed) {
  HttpServer server(allowing({}, std::vector<std::string>{}));
  server.route("/x", respond_with_x);
  EXPECT_EQ(send_request(server, "any.example:8080", "").status, 200);
  EXPECT_EQ(send_request(server, "any.example:8080", "https://any.example:8080").status, 200);
  EXPECT_EQ(send_request(server, "any.example:8080", "https://any.example").status, 403);
  EXPECT_EQ(send_request(server, "any.example:8080", "https://other.example").status, 403);
}

// DNS rebinding makes a host name resolve to this server, but it cannot make a browser send an IP address in
// Host.
TEST(HostOriginPolicyTest, NetworkServerAllowsOnlyIpAddressesAndLocalhost) {
  HttpServer server(ServerOptions(), "0.0.0.0:0");
  server.route("/x", respond_with_x);
  for (const char* host : {"localhost:80", "127.0.0.1", "192.0.2.7:8808", "[2001:db8::1]:80", "[::1]"}) {
    EXPECT_EQ(send_request(server, host, "").status, 200) << host;
  }
  for (const char* host : {"evil.example", "192.0.2.7.evil.example", "192.0.2", "0x7f.1", "[evil]",
                           "2001:db8::1", "localhost.evil.example", "[192.0.2.7]", ""}) {
    const auto response = send_request(server, host, "");
    EXPECT_EQ(response.status, 403) << host;
    EXPECT_NE(response.body.find("allowed_hosts"), std::string::npos) << response.body;
  }
  EXPECT_EQ(send_request(server, "192.0.2.7:80", "http://192.0.2.7:80").status, 200);
  EXPECT_EQ(send_request(server, "192.0.2.7:80", "http://192.0.2.8:80").status, 403);
  EXPECT_EQ(send_request(server, "192.0.2.7:80", "http://evil.example").status, 403);
}

TEST(HostOriginPolicyTest, AllowedHostsReplaceDefaultsOfNetworkServer) {
  HttpServer server(allowing({}, std::vector<std::string>{"gateway.example"}), "0.0.0.0:0");
  server.route("/x", respond_with_x);
  EXPECT_EQ(send_request(server, "gateway.example", "").status, 200);
  EXPECT_EQ(send_request(server, "192.0.2.7", "").status, 403);
}

TEST(HostOriginPolicyTest, IsLocalAddressIsTrueForLoopbackAndUnixSockets) {
  for (const char* address : {"127.0.0.1:80", "127.9.9.9:0", "[::1]:80", "localhost:80", "unix:/tmp/x"}) {
    EXPECT_TRUE(is_local_address(address).value()) << address;
  }
  for (const char* address : {"0.0.0.0:80", "192.0.2.7:80", "[::]:80", "[2001:db8::1]:80"}) {
    EXPECT_FALSE(is_local_address(address).value()) << address;
  }
  EXPECT_EQ(is_local_address("nonsense").error().kind(), ErrorKind::validation);
}

TEST(HostOriginPolicyTest, AsteriskAllowsEveryOrigin) {
  HttpServer server(allowing({"*"}));
  server.route("/x", respond_with_x);
  EXPECT_EQ(send_request(server, "localhost", "https://anybody.example").status, 200);
}

TEST(HostOriginPolicyTest, PreflightFromAllowedOriginGetsCorsHeaders) {
  HttpServer server(allowing({"https://app.example"}));
  std::atomic<int> handled = 0;
  server.route("/x", [&](const ExchangePtr& exchange) {
    ++handled;
    exchange->respond(Response::text(405, "no"));
  });
  constexpr std::string_view kPreflightHeaders =
      "Access-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: content-type, mcp-param-region, x-other\r\n";
  const auto response =
      send_request(server, "localhost", "https://app.example", kPreflightHeaders, "OPTIONS");
  EXPECT_EQ(response.status, 204);
  EXPECT_TRUE(response.has("Access-Control-Allow-Origin: https://app.example\r\n"));
  EXPECT_TRUE(response.has("Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"));
  for (const char* name : {"Authorization", "Content-Type", "Last-Event-ID", "Mcp-Session-Id",
                           "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "mcp-param-region"}) {
    EXPECT_TRUE(response.has(name)) << name;
  }
  EXPECT_FALSE(response.has("x-other"));
  EXPECT_FALSE(response.has("Content-Length"));
  EXPECT_EQ(send_request(server, "localhost", "https://evil.example", kPreflightHeaders, "OPTIONS").status,
            403);
  EXPECT_EQ(handled, 0);
  // Without these fields it is an ordinary request.
  EXPECT_EQ(send_request(server, "localhost", "", "", "OPTIONS").status, 405);
  EXPECT_EQ(handled, 1);
}

}  // namespace
}  // namespace fairlead::http
