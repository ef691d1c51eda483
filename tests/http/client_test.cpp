// R8.3: the HTTP client over real sockets: proxies, redirects, TLS, and misbehaving
// servers.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "http/certificate.hpp"
#include "http/client_fixture.hpp"
#include "http/raw_client.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;

// A listener that never accepts. The kernel still completes connections and buffers some of the data.
class NonAcceptingListener {
 public:
  NonAcceptingListener() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }

 private:
  UniqueFd listener_;
  int port_ = 0;
};

TEST_F(HttpClientTest, RequestFailsWithTimeoutWhenServerReadsNothing) {
  const NonAcceptingListener server;
  options.limits.write_stall = 50ms;
  const Result<FetchedResponse> response = get(server.url(), "POST", std::string(64u << 20, 'x'));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::timeout);
  EXPECT_NE(response.error().message().find("sending to 127.0.0.1"), std::string::npos)
      << response.error().message();
}

TEST_F(HttpClientTest, CancelEndsRequestThatServerDoesNotRead) {
  const NonAcceptingListener server;
  create_client();
  const auto waiter = std::make_shared<CancellableWaiter>(loop);
  ClientRequest request("POST", Url::parse(server.url()).value());
  request.body.push_back(Bytes::adopt(std::string(64u << 20, 'x')));
  Timer timer(loop);
  timer.arm_after(50ms, [&] { waiter->cancel(); });
  const Result<std::shared_ptr<ClientResponse>> response =
      loop.block_on(client->send(std::move(request), waiter));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::cancelled);
}

TEST_F(HttpClientTest, IdleConnectionClosedByServerLeavesPool) {
  ScriptServer server([](const ReceivedRequest&, Reply& reply) {
    reply.respond(200, "text/plain", "ok");
    reply.disconnect();
  });
  EXPECT_TRUE(get(server.url()));
  EXPECT_TRUE(idle_connections_become(0));
}

TEST_F(HttpClientTest, IdleConnectionLeavesPoolAfterTimeout) {
  options.idle_timeout = 20ms;
  ScriptServer server([](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/plain", "ok"); });
  EXPECT_TRUE(get(server.url()));
  EXPECT_TRUE(idle_connections_become(0));
}

// If the server closes a reused connection without a response, the client retries the request on a new
// connection. If the server closes a new connection without a response, the request fails.
TEST_F(HttpClientTest, RequestOnLostReusedConnectionIsRetriedOnce) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.target == "/never" || (request.target == "/second" && request.connection == 1))
      return reply.disconnect();
    reply.respond(200, "text/plain", request.body);
  });
  EXPECT_TRUE(get(server.url("/first"), "POST", "1"));
  EXPECT_EQ(get(server.url("/second"), "POST", "2")->body, "2");
  EXPECT_EQ(server.requests("2").size(), 2U);
  EXPECT_EQ(get(server.url("/never"), "POST", "3").error().kind(), ErrorKind::closed);
  EXPECT_EQ(server.requests("3").size(), 2U);
}

TEST_F(HttpClientTest, RequestIsNotRetriedAfterResponseHasStarted) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.target == "/first") return reply.respond(200, "text/plain", "ok");
    reply.send("HTTP/1.1 200");
    reply.disconnect();
  });
  EXPECT_TRUE(get(server.url("/first")));
  EXPECT_EQ(get(server.url("/second"), "POST", "x").error().kind(), ErrorKind::closed);
  EXPECT_EQ(server.requests("x").size(), 1U);
}

TEST_F(HttpClientTest, TruncatedResponseFailsWithClosed) {
  ScriptServer server([](const ReceivedRequest&, Reply& reply) {
    reply.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    reply.disconnect();
  });
  EXPECT_EQ(get(server.url()).error().kind(), ErrorKind::closed);
}

TEST_F(HttpClientTest, RedirectFailsWithHttpStatusByDefault) {
  ScriptServer server(
      [](const ReceivedRequest&, Reply& reply) { reply.respond(307, "", "", "Location: /there\r\n"); });
  const auto response = get(server.url(), "POST", "x");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::http_status);
  EXPECT_EQ(response.error().detail().http_status, 307);
  EXPECT_NE(response.error().message().find("a redirect to /there; redirects are not followed"),
            std::string::npos);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(HttpClientTest, RedirectsWithinOriginAreFollowedWhenEnabled) {
  options.follow_redirects = true;
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.target == "/end") return reply.respond(200, "text/plain", request.method + request.body);
    if (request.target == "/see") return reply.respond(303, "", "", "Location: /end\r\n");
    if (request.target == "/loop") return reply.respond(308, "", "", "Location: /loop\r\n");
    if (request.target == "/moved") return reply.respond(301, "", "", "Location: /end\r\n");
    if (request.target == "/away") return reply.respond(307, "", "", "Location: http://127.0.0.2:1/\r\n");
    reply.respond(request.target == "/307" ? 307 : 308, "", "", "Location: end\r\n");
  });
  EXPECT_EQ(get(server.url("/307"), "POST", "x")->body, "POSTx");
  EXPECT_EQ(get(server.url("/308"), "POST", "x")->body, "POSTx");
  EXPECT_EQ(get(server.url("/see"), "POST", "x")->body, "GET");
  EXPECT_EQ(get(server.url("/moved"))->body, "GET");
  EXPECT_EQ(get(server.url("/moved"), "POST", "x").error().kind(), ErrorKind::http_status);
  EXPECT_EQ(get(server.url("/away")).error().kind(), ErrorKind::http_status);
  EXPECT_EQ(get(server.url("/loop")).error().kind(), ErrorKind::http_status);
  EXPECT_EQ(server.requests().size(), 16U);
}

TEST_F(HttpClientTest, CompressedResponseIsRejected) {
  ScriptServer server([](const ReceivedRequest&, Reply& reply) {
    reply.respond(200, "application/json", "\x1f\x8b", "Content-Encoding: gzip\r\n");
  });
  const auto response = get(server.url());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::invalid_content_type);
  EXPECT_FALSE(server.requests().front().headers.has("Accept-Encoding"));
}

TEST_F(HttpClientTest, ResponseOverLimitIsRejected) {
  options.max_response_bytes = 1000;
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.target == "/length") return reply.respond(200, "text/plain", std::string(100'000, 'x'));
    reply.begin_events();
    for (int i = 0; i < 1000; ++i) reply.chunk(std::string(1000, 'x'));
  });
  const auto sized = get(server.url("/length"));
  ASSERT_FALSE(sized);
  EXPECT_EQ(sized.error().kind(), ErrorKind::frame_too_large);
  EXPECT_NE(sized.error().message().find("max_response_bytes"), std::string::npos);
  EXPECT_EQ(get(server.url("/chunks")).error().kind(), ErrorKind::frame_too_large);
}

TEST_F(HttpClientTest, RequestFailsWithResourceExhaustedOverMaxExchanges) {
  options.max_exchanges = 0;
  const auto response = get("http://127.0.0.1:9/");
  EXPECT_EQ(response.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(response.error().message().find("max_exchanges"), std::string::npos);
}

// Conformance trap 27: a server may listen on one loopback address only.
TEST_F(HttpClientTest, LocalhostMeansBothLoopbackAddresses) {
  for (const char* const host : {"127.0.0.1", "::1"}) {
    std::unique_ptr<ScriptServer> server;
    try {
      server = std::make_unique<ScriptServer>(
          [](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/plain", "ok"); }, host);
    } catch (const std::runtime_error&) {
      continue;  // this machine has no such address
    }
    const auto response = get("http://localhost:" + std::to_string(server->port()) + "/");
    ASSERT_TRUE(response) << host << ": " << response.error().message();
    EXPECT_EQ(server->requests().front().headers.get("Host"), "localhost:" + std::to_string(server->port()));
  }
}

TEST_F(HttpClientTest, RequestFailsWithConnectionFailedWhenPortIsClosed) {
  const auto response = get("http://127.0.0.1:1/");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::connection_failed);
  EXPECT_NE(response.error().message().find("http://127.0.0.1:1"), std::string::npos);
}

TEST_F(HttpClientTest, RequestFailsWithTimeoutWhenServerNeverResponds) {
  ScriptServer server([](const ReceivedRequest&, Reply& reply) { reply.wait_for_client_close(); });
  create_client();
  ClientRequest request("GET", Url::parse(server.url()).value());
  request.response_timeout = 20ms;
  EXPECT_EQ(loop.block_on(fetch(std::move(request))).error().kind(), ErrorKind::timeout);
}

// A server may reject a large body without reading it.
TEST_F(HttpClientTest, ResponseBeforeBodyIsWrittenIsRead) {
  ScriptServer server(
      [](const ReceivedRequest&, Reply& reply) { reply.respond(413, "text/plain", "too large"); });
  create_client();
  ClientRequest request("POST", Url::parse(server.url()).value());
  request.headers.set("Content-Length", "0");  // so that the server does not wait for the body
  request.body.push_back(Bytes::copy_of(std::string(100'000, 'x')));
  EXPECT_EQ(loop.block_on(fetch(std::move(request)))->status, 413);
}

TEST_F(HttpClientTest, EarlyResponseOnReusedConnectionIsReadCompletely) {
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.target == "/mcp") reply.respond(413, "text/plain", "too large");
  });
  create_client();
  EXPECT_TRUE(get(server.url()));
  ClientRequest request("POST", Url::parse(server.url()).value());
  request.headers.set("Content-Length", "0");
  request.body.push_back(Bytes::copy_of(std::string(16u << 20, 'x')));
  const auto response = loop.block_on(fetch(std::move(request)));
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->body, "too large");
}

TEST_F(HttpClientTest, ConfiguredHeadersAreSentAndInvalidOnesRejected) {
  options.headers = Headers{{"Authorization", "Bearer x"}, {"User-Agent", "mine"}};
  ScriptServer server([](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/plain", "ok"); });
  EXPECT_TRUE(get(server.url()));
  EXPECT_EQ(server.requests().front().headers.get("Authorization"), "Bearer x");
  EXPECT_EQ(server.requests().front().headers.get("User-Agent"), "mine");
  EXPECT_EQ(server.requests().front().headers.count("User-Agent"), 1U);
  options.headers = Headers{{"X", "a\r\nY: b"}};
  EXPECT_EQ(HttpClient::create(loop, options).error().kind(), ErrorKind::validation);
}

// R8.3: credentials are requested before each request, and once more after a challenge of the server.
Task<Result<Headers>> token_headers(std::shared_ptr<std::string> token) {
  co_return Headers{{"Authorization", *token}};
}
Task<Result<bool>> set_new_token(std::shared_ptr<std::string> token, Headers response) {
  *token = response.get("WWW-Authenticate");
  co_return true;
}

TEST_F(HttpClientTest, RequestIsRetriedOnceAfterChallenge) {
  auto token = std::make_shared<std::string>("old");
  options.authorization.headers = [token](std::string, std::string) { return token_headers(token); };
  options.authorization.on_challenge = [token](int, Headers response) {
    return set_new_token(token, std::move(response));
  };
  ScriptServer server([](const ReceivedRequest& request, Reply& reply) {
    if (request.headers.get("Authorization") == "new" && request.target == "/mcp")
      return reply.respond(200, "text/plain", "ok");
    reply.respond(401, "text/plain", "no", "WWW-Authenticate: new\r\n");
  });
  EXPECT_EQ(get(server.url())->status, 200);
  EXPECT_EQ(server.requests().size(), 2U);
  EXPECT_EQ(get(server.url("/never"))->status, 401);
  EXPECT_EQ(server.requests().size(), 4U);
}

// ---- proxies ----

class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~EnvironmentVariable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST_F(HttpClientTest, PlainRequestIsSentToProxyWithAbsoluteTarget) {
  ScriptServer proxy([](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/plain", "ok"); });
  const EnvironmentVariable variable("http_proxy",
                                     "http://me:pass%20word@127.0.0.1:" + std::to_string(proxy.port()));
  EXPECT_EQ(get("http://server.test/mcp?x")->body, "ok");
  const ReceivedRequest request = proxy.requests().front();
  EXPECT_EQ(request.target, "http://server.test/mcp?x");
  EXPECT_EQ(request.headers.get("Host"), "server.test");
  EXPECT_EQ(request.headers.get("Proxy-Authorization"), "Basic bWU6cGFzcyB3b3Jk");
}

TEST_F(HttpClientTest, ProxiesFromEnvironmentCanBeDisabled) {
  ScriptServer proxy([](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/plain", "ok"); });
  const EnvironmentVariable variable("http_proxy", "http://127.0.0.1:" + std::to_string(proxy.port()));
  options.proxies_from_environment = false;
  options.limits.connect_timeout = 2s;
  EXPECT_FALSE(get("http://server.invalid/"));
  EXPECT_TRUE(proxy.requests().empty());
}

TEST_F(HttpClientTest, ErrorNamesProxyThatRefusesTunnel) {
  ScriptServer proxy([](const ReceivedRequest&, Reply& reply) { reply.respond(407, "text/plain", "no"); });
  const EnvironmentVariable variable("https_proxy", "http://127.0.0.1:" + std::to_string(proxy.port()));
  const auto response = get("https://server.test/mcp");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::connection_failed);
  EXPECT_NE(response.error().message().find("refuses a tunnel to server.test:443: 407"), std::string::npos)
      << response.error().message();
  EXPECT_EQ(proxy.requests().front().method, "CONNECT");
  EXPECT_EQ(proxy.requests().front().target, "server.test:443");
}

// ---- TLS ----

class HttpsClientTest : public HttpClientTest {
 public:
  test::TempDir directory;
  std::unique_ptr<test::HttpServer> server;
  TlsFiles files;

  void serve(const std::string& names) {
    files = test::make_certificate(directory, "test", names);
    ServerOptions server_options;
    server_options.tls = files;
    server_options.allowed_hosts = std::vector<std::string>{"127.0.0.1", "localhost", "server.test"};
    server = std::make_unique<test::HttpServer>(server_options);
    server->route(
        "/", [](std::shared_ptr<Exchange> exchange) { exchange->respond(Response::text(200, "secret")); });
  }
  std::string url() const { return "https://" + server->address() + "/"; }
  int port() const { return std::atoi(server->address().c_str() + server->address().rfind(':') + 1); }
};

TEST_F(HttpsClientTest, AuthorityInCaFileIsTrusted) {
  serve("IP:127.0.0.1");
  options.ca_file = files.certificate;
  for (int i = 0; i < 3; ++i) {
    const auto response = get(url());
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(response->body, "secret");
  }
  EXPECT_EQ(server->connection_count(), 1U);
}

TEST_F(HttpsClientTest, SelfSignedCertificateIsRejected) {
  serve("IP:127.0.0.1");
  const auto response = get(url());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::connection_failed);
  EXPECT_EQ(response.error().message(),
            "the certificate of 127.0.0.1 is not accepted: self-signed certificate");
}

TEST_F(HttpsClientTest, CertificateForAnotherHostIsRejected) {
  serve("DNS:other.test");
  options.ca_file = files.certificate;
  const auto response = get(url());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::connection_failed);
  EXPECT_NE(response.error().message().find("mismatch"), std::string::npos) << response.error().message();
}

TEST_F(HttpsClientTest, VerificationCanBeDisabled) {
  serve("DNS:other.test");
  options.verify = false;
  EXPECT_EQ(get(url())->body, "secret");
}

TEST_F(HttpsClientTest, RequestFailsWhenServerHasNoTls) {
  ScriptServer plain([](const ReceivedRequest&, Reply& reply) { reply.respond(200, "text/plain", "ok"); });
  options.limits.connect_timeout = 100ms;
  const auto response = get("https" + plain.url().substr(4));
  ASSERT_FALSE(response);
  EXPECT_TRUE(response.error().kind() == ErrorKind::connection_failed ||
              response.error().kind() == ErrorKind::timeout);
}

TEST_F(HttpsClientTest, ErrorNamesUnreadableCaFile) {
  serve("IP:127.0.0.1");
  options.ca_file = directory / "missing.pem";
  const auto response = get(url());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().kind(), ErrorKind::validation);
  EXPECT_NE(response.error().message().find("missing.pem"), std::string::npos);
}

// The proxy sees only the host and port of the server.
TEST_F(HttpsClientTest, HttpsRequestIsSentThroughTunnelOfProxy) {
  serve("DNS:server.test");
  options.ca_file = files.certificate;
  ScriptServer proxy([this](const ReceivedRequest&, Reply& reply) {
    reply.send("HTTP/1.1 200 Connection established\r\n\r\n");
    reply.relay(port());
  });
  const EnvironmentVariable variable("https_proxy", "http://127.0.0.1:" + std::to_string(proxy.port()));
  const auto response = get("https://server.test/");
  ASSERT_TRUE(response) << response.error().message();
  EXPECT_EQ(response->body, "secret");
  EXPECT_EQ(get("https://server.test/")->body, "secret");
  EXPECT_EQ(proxy.requests().size(), 1U);
}

}  // namespace
}  // namespace fairlead::http
