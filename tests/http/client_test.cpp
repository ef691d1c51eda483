// R8.3: requests over kept connections, proxies, redirects, TLS, and servers that misbehave. Real sockets.
#include "http/client.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "http/certificate.hpp"
#include "http/raw_client.hpp"
#include "http/script_server.hpp"
#include "support/support.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using test::Reply;
using test::ScriptServer;

class HttpClientTest : public ::testing::Test {
 public:
  Loop loop;
  ClientOptions options;
  std::shared_ptr<HttpClient> client;

  void make() { client = HttpClient::create(loop, options).value(); }
  void TearDown() override {
    if (client) client->close();
  }

  struct Got {
    int status = 0;
    Headers headers;
    std::string body;
  };
  Task<Result<Got>> fetch(Outgoing request) {
    auto interrupt = std::make_shared<Interrupt>(loop);
    Task<Result<std::shared_ptr<Incoming>>> asking = client->ask(std::move(request), interrupt);
    Result<std::shared_ptr<Incoming>> incoming = co_await asking;
    if (!incoming) co_return incoming.error();
    Task<Result<std::string>> reading = (*incoming)->read_all(options.max_response_bytes);
    Result<std::string> body = co_await reading;
    if (!body) co_return body.error();
    co_return Got{(*incoming)->status(), (*incoming)->headers(), std::move(*body)};
  }
  Result<Got> get(const std::string& url, const std::string& method = "GET", const std::string& body = "") {
    if (!client) make();
    Outgoing request(method, Url::parse(url).value());
    if (!body.empty()) request.body.push_back(Bytes::copy_of(body));
    return loop.block_on(fetch(std::move(request)));
  }
  Task<void> get_many(std::string url, int count, int* served) {
    for (int i = 0; i < count; ++i) {
      Task<Result<Got>> fetching = fetch(Outgoing("GET", Url::parse(url).value()));
      const Result<Got> got = co_await fetching;
      if (!got || got->status != 200) break;
      ++*served;
    }
  }
  bool idle_connections_become(std::size_t count) {
    return loop.block_on(test::eventually(loop, [&] { return client->idle() == count; }));
  }
};

TEST_F(HttpClientTest, ConnectionsAreUsedAgain) {
  ScriptServer server([](const Asked&, Reply& reply) { reply.answer(200, "text/plain", "ok"); });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get(server.url())->body, "ok");
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(client->idle(), 1U);
}

// Counts the callbacks that the loop runs: a wait that is left behind by one call is woken by all later ones.
TEST_F(HttpClientTest, CallsOnAKeptConnectionDoNotGetSlower) {
  constexpr int kBlocks = 20;
  constexpr int kCallsPerBlock = 1'000;
  constexpr std::size_t kMostCallbacks = 6 * kCallsPerBlock;
  test::HttpServer server;
  server.route(
      "/x", [](const std::shared_ptr<Exchange>& exchange) { exchange->respond(Response::text(200, "x")); });
  make();
  std::size_t memory = 0;
  for (int block = 0; block < kBlocks; ++block) {
    std::size_t callbacks = 0;
    int served = 0;
    loop.spawn(get_many("http://" + server.address() + "/x", kCallsPerBlock, &served));
    loop.run_until([&] { return ++callbacks > kMostCallbacks || served == kCallsPerBlock; });
    ASSERT_EQ(served, kCallsPerBlock) << "in block " << block;
    if (block == 0) memory = test::allocated_bytes();
  }
  EXPECT_LT(test::allocated_bytes(), memory + (8u << 20));
  EXPECT_EQ(client->idle(), 1U);
}

TEST_F(HttpClientTest, AConnectionTheServerClosesIsNotKept) {
  ScriptServer server([](const Asked&, Reply& reply) {
    reply.answer(200, "text/plain", "ok", "Connection: close\r\n");
    reply.hang_up();
  });
  EXPECT_TRUE(get(server.url()));
  EXPECT_TRUE(get(server.url()));
  EXPECT_EQ(server.connections(), 2);
  EXPECT_EQ(client->idle(), 0U);
}

// A listener that never accepts: the system connects, and takes as much as its buffers hold.
class Unaccepting {
 public:
  Unaccepting() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
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
  const Unaccepting server;
  options.limits.write_stall = 50ms;
  const Result<Got> got = get(server.url(), "POST", std::string(64u << 20, 'x'));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind(), ErrorKind::timeout);
  EXPECT_NE(got.error().message().find("sending to 127.0.0.1"), std::string::npos) << got.error().message();
}

TEST_F(HttpClientTest, RequestThatServerDoesNotReadEndsWhenItIsInterrupted) {
  const Unaccepting server;
  make();
  const auto interrupt = std::make_shared<Interrupt>(loop);
  Outgoing request("POST", Url::parse(server.url()).value());
  request.body.push_back(Bytes::adopt(std::string(64u << 20, 'x')));
  Timer timer(loop);
  timer.arm_after(50ms, [&] { interrupt->raise(); });
  const Result<std::shared_ptr<Incoming>> got = loop.block_on(client->ask(std::move(request), interrupt));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind(), ErrorKind::cancelled);
}

TEST_F(HttpClientTest, AKeptConnectionThatDiesIsForgotten) {
  ScriptServer server([](const Asked&, Reply& reply) {
    reply.answer(200, "text/plain", "ok");
    reply.hang_up();
  });
  EXPECT_TRUE(get(server.url()));
  EXPECT_TRUE(idle_connections_become(0));
}

TEST_F(HttpClientTest, AKeptConnectionGrowsOld) {
  options.idle_connection = 20ms;
  ScriptServer server([](const Asked&, Reply& reply) { reply.answer(200, "text/plain", "ok"); });
  EXPECT_TRUE(get(server.url()));
  EXPECT_TRUE(idle_connections_become(0));
}

// The server hangs up on reading the second request of a connection: nobody has answered it, so it is made
// again on a new one. On a new connection the same thing is an error.
TEST_F(HttpClientTest, ARequestOnAConnectionThatDiesIsMadeAgainOnce) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.target == "/never" || (asked.target == "/second" && asked.connection == 1))
      return reply.hang_up();
    reply.answer(200, "text/plain", asked.body);
  });
  EXPECT_TRUE(get(server.url("/first"), "POST", "1"));
  EXPECT_EQ(get(server.url("/second"), "POST", "2")->body, "2");
  EXPECT_EQ(server.asked("2").size(), 2U);
  EXPECT_EQ(get(server.url("/never"), "POST", "3").error().kind(), ErrorKind::closed);
  EXPECT_EQ(server.asked("3").size(), 2U);
}

TEST_F(HttpClientTest, ARequestWhoseAnswerHasBegunIsNotMadeAgain) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.target == "/first") return reply.answer(200, "text/plain", "ok");
    reply.send("HTTP/1.1 200");
    reply.hang_up();
  });
  EXPECT_TRUE(get(server.url("/first")));
  EXPECT_EQ(get(server.url("/second"), "POST", "x").error().kind(), ErrorKind::closed);
  EXPECT_EQ(server.asked("x").size(), 1U);
}

TEST_F(HttpClientTest, AnAnswerThatIsCutIsAnError) {
  ScriptServer server([](const Asked&, Reply& reply) {
    reply.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    reply.hang_up();
  });
  EXPECT_EQ(get(server.url()).error().kind(), ErrorKind::closed);
}

TEST_F(HttpClientTest, RedirectsAreRefusedUnlessAskedFor) {
  ScriptServer server([](const Asked&, Reply& reply) { reply.answer(307, "", "", "Location: /there\r\n"); });
  const auto got = get(server.url(), "POST", "x");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind(), ErrorKind::http_status);
  EXPECT_EQ(got.error().detail().http_status, 307);
  EXPECT_NE(got.error().message().find("a redirect to /there; redirects are not followed"),
            std::string::npos);
  EXPECT_EQ(server.asked().size(), 1U);
}

TEST_F(HttpClientTest, RedirectsWithinTheOriginAreFollowedWhereAskedFor) {
  options.follow_redirects = true;
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.target == "/end") return reply.answer(200, "text/plain", asked.method + asked.body);
    if (asked.target == "/see") return reply.answer(303, "", "", "Location: /end\r\n");
    if (asked.target == "/loop") return reply.answer(308, "", "", "Location: /loop\r\n");
    if (asked.target == "/moved") return reply.answer(301, "", "", "Location: /end\r\n");
    if (asked.target == "/away") return reply.answer(307, "", "", "Location: http://127.0.0.2:1/\r\n");
    reply.answer(asked.target == "/307" ? 307 : 308, "", "", "Location: end\r\n");
  });
  EXPECT_EQ(get(server.url("/307"), "POST", "x")->body, "POSTx");
  EXPECT_EQ(get(server.url("/308"), "POST", "x")->body, "POSTx");
  EXPECT_EQ(get(server.url("/see"), "POST", "x")->body, "GET");
  EXPECT_EQ(get(server.url("/moved"))->body, "GET");
  EXPECT_EQ(get(server.url("/moved"), "POST", "x").error().kind(), ErrorKind::http_status);
  EXPECT_EQ(get(server.url("/away")).error().kind(), ErrorKind::http_status);
  EXPECT_EQ(get(server.url("/loop")).error().kind(), ErrorKind::http_status);
  EXPECT_EQ(server.asked().size(), 16U);
}

TEST_F(HttpClientTest, CompressedBodiesAreRefusedUnread) {
  ScriptServer server([](const Asked&, Reply& reply) {
    reply.answer(200, "application/json", "\x1f\x8b", "Content-Encoding: gzip\r\n");
  });
  const auto got = get(server.url());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind(), ErrorKind::invalid_content_type);
  EXPECT_FALSE(server.asked().front().headers.has("Accept-Encoding"));
}

TEST_F(HttpClientTest, AnswersOverTheLimitAreRefused) {
  options.max_response_bytes = 1000;
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.target == "/length") return reply.answer(200, "text/plain", std::string(100'000, 'x'));
    reply.begin_events();
    for (int i = 0; i < 1000; ++i) reply.chunk(std::string(1000, 'x'));
  });
  const auto sized = get(server.url("/length"));
  ASSERT_FALSE(sized);
  EXPECT_EQ(sized.error().kind(), ErrorKind::frame_too_large);
  EXPECT_NE(sized.error().message().find("max_response_bytes"), std::string::npos);
  EXPECT_EQ(get(server.url("/chunks")).error().kind(), ErrorKind::frame_too_large);
}

TEST_F(HttpClientTest, ExchangesAtOnceAreBounded) {
  options.max_exchanges = 0;
  const auto got = get("http://127.0.0.1:9/");
  EXPECT_EQ(got.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(got.error().message().find("max_exchanges"), std::string::npos);
}

// Conformance trap 27: a server may listen on one loopback only.
TEST_F(HttpClientTest, LocalhostIsBothLoopbacks) {
  for (const char* const host : {"127.0.0.1", "::1"}) {
    std::unique_ptr<ScriptServer> server;
    try {
      server = std::make_unique<ScriptServer>(
          [](const Asked&, Reply& reply) { reply.answer(200, "text/plain", "ok"); }, host);
    } catch (const std::runtime_error&) {
      continue;  // this machine has no such address
    }
    const auto got = get("http://localhost:" + std::to_string(server->port()) + "/");
    ASSERT_TRUE(got) << host << ": " << got.error().message();
    EXPECT_EQ(server->asked().front().headers.get("Host"), "localhost:" + std::to_string(server->port()));
  }
}

TEST_F(HttpClientTest, NobodyListening) {
  const auto got = get("http://127.0.0.1:1/");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind(), ErrorKind::connection_failed);
  EXPECT_NE(got.error().message().find("http://127.0.0.1:1"), std::string::npos);
}

TEST_F(HttpClientTest, AHeadThatTakesTooLong) {
  ScriptServer server([](const Asked&, Reply& reply) { reply.client_closes(); });
  make();
  Outgoing request("GET", Url::parse(server.url()).value());
  request.response_timeout = 20ms;
  EXPECT_EQ(loop.block_on(fetch(std::move(request))).error().kind(), ErrorKind::timeout);
}

// A server may refuse a large body without reading it.
TEST_F(HttpClientTest, AnAnswerThatComesBeforeTheBodyIsReadIsHeard) {
  ScriptServer server([](const Asked&, Reply& reply) { reply.answer(413, "text/plain", "too large"); });
  make();
  Outgoing request("POST", Url::parse(server.url()).value());
  request.headers.set("Content-Length", "0");  // so that the server does not wait for the body
  request.body.push_back(Bytes::copy_of(std::string(100'000, 'x')));
  EXPECT_EQ(loop.block_on(fetch(std::move(request)))->status, 413);
}

TEST_F(HttpClientTest, AnEarlyAnswerOnAKeptConnectionIsHeardWhole) {
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.target == "/mcp") reply.answer(413, "text/plain", "too large");
  });
  make();
  EXPECT_TRUE(get(server.url()));
  Outgoing request("POST", Url::parse(server.url()).value());
  request.headers.set("Content-Length", "0");
  request.body.push_back(Bytes::copy_of(std::string(16u << 20, 'x')));
  const auto got = loop.block_on(fetch(std::move(request)));
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->body, "too large");
}

TEST_F(HttpClientTest, OwnHeadersAreSentAndThoseThatCannotBeAreRefused) {
  options.headers = Headers{{"Authorization", "Bearer x"}, {"User-Agent", "mine"}};
  ScriptServer server([](const Asked&, Reply& reply) { reply.answer(200, "text/plain", "ok"); });
  EXPECT_TRUE(get(server.url()));
  EXPECT_EQ(server.asked().front().headers.get("Authorization"), "Bearer x");
  EXPECT_EQ(server.asked().front().headers.get("User-Agent"), "mine");
  EXPECT_EQ(server.asked().front().headers.count("User-Agent"), 1U);
  options.headers = Headers{{"X", "a\r\nY: b"}};
  EXPECT_EQ(HttpClient::create(loop, options).error().kind(), ErrorKind::validation);
}

// R8.3: authorization is asked for before each request, and once more when the server wants another.
Task<Result<Headers>> token_headers(std::shared_ptr<std::string> token) {
  co_return Headers{{"Authorization", *token}};
}
Task<Result<bool>> take_new_token(std::shared_ptr<std::string> token, Headers answer) {
  *token = answer.get("WWW-Authenticate");
  co_return true;
}

TEST_F(HttpClientTest, AChallengeIsAnsweredOnce) {
  auto token = std::make_shared<std::string>("old");
  options.authorization.headers = [token](std::string, std::string) { return token_headers(token); };
  options.authorization.challenged = [token](int, Headers answer) {
    return take_new_token(token, std::move(answer));
  };
  ScriptServer server([](const Asked& asked, Reply& reply) {
    if (asked.headers.get("Authorization") == "new" && asked.target == "/mcp")
      return reply.answer(200, "text/plain", "ok");
    reply.answer(401, "text/plain", "no", "WWW-Authenticate: new\r\n");
  });
  EXPECT_EQ(get(server.url())->status, 200);
  EXPECT_EQ(server.asked().size(), 2U);
  EXPECT_EQ(get(server.url("/never"))->status, 401);
  EXPECT_EQ(server.asked().size(), 4U);
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

TEST_F(HttpClientTest, PlainRequestsGoThroughAProxyWhole) {
  ScriptServer proxy([](const Asked&, Reply& reply) { reply.answer(200, "text/plain", "ok"); });
  const EnvironmentVariable variable("http_proxy",
                                     "http://me:pass%20word@127.0.0.1:" + std::to_string(proxy.port()));
  EXPECT_EQ(get("http://server.test/mcp?x")->body, "ok");
  const Asked asked = proxy.asked().front();
  EXPECT_EQ(asked.target, "http://server.test/mcp?x");
  EXPECT_EQ(asked.headers.get("Host"), "server.test");
  EXPECT_EQ(asked.headers.get("Proxy-Authorization"), "Basic bWU6cGFzcyB3b3Jk");
}

TEST_F(HttpClientTest, ProxiesOfTheEnvironmentCanBeLeftOut) {
  ScriptServer proxy([](const Asked&, Reply& reply) { reply.answer(200, "text/plain", "ok"); });
  const EnvironmentVariable variable("http_proxy", "http://127.0.0.1:" + std::to_string(proxy.port()));
  options.proxies_from_environment = false;
  options.limits.connect_timeout = 2s;
  EXPECT_FALSE(get("http://server.invalid/"));
  EXPECT_TRUE(proxy.asked().empty());
}

TEST_F(HttpClientTest, AProxyThatRefusesATunnelIsNamed) {
  ScriptServer proxy([](const Asked&, Reply& reply) { reply.answer(407, "text/plain", "no"); });
  const EnvironmentVariable variable("https_proxy", "http://127.0.0.1:" + std::to_string(proxy.port()));
  const auto got = get("https://server.test/mcp");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind(), ErrorKind::connection_failed);
  EXPECT_NE(got.error().message().find("refuses a tunnel to server.test:443: 407"), std::string::npos)
      << got.error().message();
  EXPECT_EQ(proxy.asked().front().method, "CONNECT");
  EXPECT_EQ(proxy.asked().front().target, "server.test:443");
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

TEST_F(HttpsClientTest, AnAuthorityOfOnesOwnIsTrusted) {
  serve("IP:127.0.0.1");
  options.ca_file = files.certificate;
  for (int i = 0; i < 3; ++i) {
    const auto got = get(url());
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->body, "secret");
  }
  EXPECT_EQ(server->connections(), 1U);
}

TEST_F(HttpsClientTest, ACertificateNobodyVouchesForIsRefused) {
  serve("IP:127.0.0.1");
  const auto got = get(url());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind(), ErrorKind::connection_failed);
  EXPECT_EQ(got.error().message(), "the certificate of 127.0.0.1 is not accepted: self-signed certificate");
}

TEST_F(HttpsClientTest, ACertificateOfSomebodyElseIsRefused) {
  serve("DNS:other.test");
  options.ca_file = files.certificate;
  const auto got = get(url());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind(), ErrorKind::connection_failed);
  EXPECT_NE(got.error().message().find("mismatch"), std::string::npos) << got.error().message();
}

TEST_F(HttpsClientTest, VerificationCanBeLeftOut) {
  serve("DNS:other.test");
  options.verify = false;
  EXPECT_EQ(get(url())->body, "secret");
}

TEST_F(HttpsClientTest, AServerWithoutTlsIsNamedAsSuch) {
  ScriptServer plain([](const Asked&, Reply& reply) { reply.answer(200, "text/plain", "ok"); });
  options.limits.connect_timeout = 100ms;
  const auto got = get("https" + plain.url().substr(4));
  ASSERT_FALSE(got);
  EXPECT_TRUE(got.error().kind() == ErrorKind::connection_failed || got.error().kind() == ErrorKind::timeout);
}

TEST_F(HttpsClientTest, AuthoritiesThatCannotBeReadAreNamed) {
  serve("IP:127.0.0.1");
  options.ca_file = directory / "missing.pem";
  const auto got = get(url());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind(), ErrorKind::validation);
  EXPECT_NE(got.error().message().find("missing.pem"), std::string::npos);
}

// The proxy sees where to, and nothing else.
TEST_F(HttpsClientTest, AProxyCarriesATunnel) {
  serve("DNS:server.test");
  options.ca_file = files.certificate;
  ScriptServer proxy([this](const Asked&, Reply& reply) {
    reply.send("HTTP/1.1 200 Connection established\r\n\r\n");
    reply.relay(port());
  });
  const EnvironmentVariable variable("https_proxy", "http://127.0.0.1:" + std::to_string(proxy.port()));
  const auto got = get("https://server.test/");
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->body, "secret");
  EXPECT_EQ(get("https://server.test/")->body, "secret");
  EXPECT_EQ(proxy.asked().size(), 1U);
}

}  // namespace
}  // namespace fairlead::http
