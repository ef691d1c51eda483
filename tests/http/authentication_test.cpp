// Authentication of requests: on every route, before the body, at once or asynchronously.
#include "fairlead/http/authenticator.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "fairlead/loop/event.hpp"
#include "http/raw_client.hpp"
#include "support/support.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;
using test::HttpServer;
using test::RawClient;

constexpr std::string_view kAnnToken = "ann-0123456789abcdef";

std::string post_request(std::string_view path, std::string_view token, std::string_view body = "",
                         std::string_view fields = "") {
  std::string request = "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n";
  if (!token.empty()) request += "Authorization: Bearer " + std::string(token) + "\r\n";
  return request + std::string(fields) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

// Responds with the principal, the address and the body of the request.
void respond_with_principal(std::shared_ptr<Exchange> exchange) {
  const Request& request = exchange->request();
  const Principal& client = *request.principal;
  exchange->respond(Response::text(200, client.issuer + "|" + client.user + "|" + client.client_address +
                                            "|" + std::string(request.body.view())));
}

Principal make_principal(const std::string& user) {
  Principal principal;
  principal.issuer = "test";
  principal.subject = user;
  principal.user = user;
  return principal;
}

ServerOptions with_tokens() {
  auto tokens = std::make_shared<StaticTokenAuthenticator>();
  EXPECT_TRUE(tokens->add(kAnnToken, make_principal("ann")));
  EXPECT_TRUE(tokens->add("bob-0123456789abcdef", make_principal("bob")));
  ServerOptions options;
  options.authenticator = std::move(tokens);
  return options;
}

class AuthenticationTest : public testing::Test {
 protected:
  void SetUp() override {
    server.route("/who", respond_with_principal);
    server.route("/health", respond_with_principal);
  }
  HttpServer server{with_tokens()};
  RawClient client = server.client();
};

TEST_F(AuthenticationTest, RequestWithoutTokenGetsChallengeOnEveryRoute) {
  for (const std::string_view path : {"/who", "/health", "/nothing-here"}) {
    const auto response = client.request(post_request(path, ""));
    EXPECT_EQ(response.status, 401) << path;
    EXPECT_TRUE(response.has("\r\nWWW-Authenticate: Bearer realm=\"fairlead\"\r\n")) << response.head;
    EXPECT_FALSE(response.has("Connection: close")) << "the request was complete";
  }
}

TEST_F(AuthenticationTest, HandlerGetsPrincipalOfTokenWithConnectionAddress) {
  const auto ann = client.request(post_request("/who", kAnnToken, "hello"));
  EXPECT_TRUE(ann.body.starts_with("test|ann|127.0.0.1:")) << ann.body;
  EXPECT_TRUE(ann.body.ends_with("|hello")) << ann.body;
  const auto bob = client.request(post_request("/who", "bob-0123456789abcdef"));
  EXPECT_TRUE(bob.body.starts_with("test|bob|127.0.0.1:"))
      << "another request, another principal: " << bob.body;
  EXPECT_EQ(client.request(post_request("/who", "")).status, 401) << "the connection keeps no authentication";
}

TEST_F(AuthenticationTest, RequestWithInvalidTokenIsRejected) {
  for (const std::string_view token :
       {"ann-0123456789abcdeX", "ann-0123456789abcde", "x", "ann-0123456789abcdef0"}) {
    const auto response = client.request(post_request("/who", token));
    EXPECT_EQ(response.status, 401) << token;
    EXPECT_TRUE(response.has("error=\"invalid_token\"")) << response.head;
  }
  const std::string basic = "Authorization: Basic " + std::string(kAnnToken) + "\r\n";
  EXPECT_EQ(client.request(post_request("/who", "", "", basic)).status, 401);
  const std::string again = "Authorization: Bearer " + std::string(kAnnToken) + "\r\n";
  EXPECT_EQ(client.request(post_request("/who", kAnnToken, "", again)).status, 400)
      << "the request is ambiguous";
}

TEST_F(AuthenticationTest, RequestIsRejectedBeforeBodyArrives) {
  const std::string head = "POST /who HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n";
  const auto response = client.request(head + "\r\nthe beginning of it");
  EXPECT_EQ(response.status, 401);
  EXPECT_TRUE(response.has("Connection: close")) << "the rest of the body is not read";
  RawClient polite = server.client();
  EXPECT_EQ(polite.request(head + "Expect: 100-continue\r\n\r\n").status, 401) << "100 Continue is not sent";
}

TEST_F(AuthenticationTest, DisallowedHostIsRejectedWithOrWithoutToken) {
  EXPECT_EQ(client.request("GET /who HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 403);
  EXPECT_EQ(client.request("POST /who HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 9\r\n\r\n").status,
            403);
}

TEST_F(AuthenticationTest, PreflightRequestNeedsNoToken) {
  const auto response = client.request(
      "OPTIONS /who HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  EXPECT_EQ(response.status, 204);
  const auto refused = client.request(post_request("/who", "", "", "Origin: http://localhost:3000\r\n"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.has("Access-Control-Allow-Origin: http://localhost:3000")) << refused.head;
}

TEST(StaticTokenAuthenticatorTest, AddRejectsShortAndMalformedTokens) {
  StaticTokenAuthenticator tokens;
  EXPECT_EQ(tokens.add("short", Principal()).error().message(), "a token must have at least 16 characters");
  EXPECT_EQ(tokens.add("with blanks in between", Principal()).error().kind(), ErrorKind::validation);
}

TEST(NoAuthenticatorTest, TcpClientIsAnonymousWithItsAddress) {
  HttpServer server;
  server.route("/who", respond_with_principal);
  RawClient client = server.client();
  EXPECT_TRUE(client.request(post_request("/who", "")).body.starts_with("||127.0.0.1:"));
}

TEST(NoAuthenticatorTest, UnixSocketClientIsUserOfItsProcess) {
  const test::TempDir directory;
  HttpServer server(ServerOptions(), "unix:" + (directory / "s"));
  server.route("/who", respond_with_principal);
  RawClient client = server.client();
  EXPECT_EQ(client.request(post_request("/who", "")).body,
            "local|uid:" + std::to_string(::getuid()) + "|unix|");
}

// ---- asynchronous authentication -------------------------------------------------------------------------

// Decides only after `release` is set. `waiting` counts the authentications in progress.
class SlowAuthenticator final : public Authenticator {
 public:
  explicit SlowAuthenticator(Loop& loop) : loop_(loop) {}

  Task<Authentication> authenticate(const Request& head) override {
    const Waiting counted(waiting);
    co_await release.wait(loop_);
    if (head.headers.has("X-Throw")) throw std::runtime_error("on purpose");
    const bool known = head.headers.has("Authorization");
    co_return known ? Authentication(std::make_shared<const Principal>(make_principal("slow")))
                    : Authentication(Response(401));
  }

  Event release;
  std::atomic<int> waiting = 0;

 private:
  struct Waiting {
    explicit Waiting(std::atomic<int>& counter) : count(counter) { ++count; }
    Waiting(const Waiting&) = delete;
    ~Waiting() { --count; }
    std::atomic<int>& count;
  };
  Loop& loop_;
};

class SlowAuthenticationTest : public testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.authenticator = authenticator;
    options.authentication_timeout = timeout;
    options.budget = budget;
    server = thread.run([&] { return Server::listen(thread.loop(), "127.0.0.1:0", options).value(); });
    thread.run([&] { server->route("/who", respond_with_principal); });
  }
  void TearDown() override {
    thread.run([&] {
      server->close();
      server.reset();
    });
  }
  void release() {
    ASSERT_TRUE(test::wait_until([&] { return authenticator->waiting > 0; }));
    thread.run([&] { authenticator->release.set(); });
  }
  void wait_for_pending(int count) {
    ASSERT_TRUE(test::wait_until([&] { return authenticator->waiting == count; })) << authenticator->waiting;
  }

  std::size_t charged() {
    return thread.run([&] { return budget->used_bytes(); });
  }

  std::chrono::milliseconds timeout{60'000};
  std::shared_ptr<ByteBudget> budget = ByteBudget::create();
  test::LoopThread thread;
  std::shared_ptr<SlowAuthenticator> authenticator = std::make_shared<SlowAuthenticator>(thread.loop());
  std::shared_ptr<Server> server;
};

TEST_F(SlowAuthenticationTest, PipelinedRequestsAreServedInOrder) {
  RawClient client(server->address());
  ASSERT_TRUE(client.send(post_request("/who", kAnnToken, "first") + post_request("/who", "", "second") +
                          post_request("/who", kAnnToken, "third")));
  release();
  EXPECT_TRUE(client.read_response().body.ends_with("|first"));
  EXPECT_EQ(client.read_response().status, 401);
  EXPECT_TRUE(client.read_response().body.ends_with("|third"));
}

TEST_F(SlowAuthenticationTest, BodyReceivedMeanwhileIsNotChargedAfterRejection) {
  RawClient client(server->address());
  const std::string request = post_request("/who", "", std::string(100'000, 'b'));
  ASSERT_TRUE(client.send(request.substr(0, 200)));
  wait_for_pending(1);
  ASSERT_TRUE(client.send(request.substr(200, 10'000)));
  ASSERT_TRUE(test::wait_until([&] { return charged() >= 10'000; }));
  release();
  EXPECT_EQ(client.read_response().status, 401);
  EXPECT_EQ(charged(), 0u) << "the connection is still open";
}

TEST_F(SlowAuthenticationTest, BodyReceivedMeanwhileReachesHandler) {
  RawClient client(server->address());
  const std::string body(300'000, 'b');
  const std::string request = post_request("/who", kAnnToken, body);
  ASSERT_TRUE(client.send(request.substr(0, 200)));
  wait_for_pending(1);
  std::thread sender([&] { EXPECT_TRUE(client.send(request.substr(200))); });
  release();
  const auto response = client.read_response();
  sender.join();
  EXPECT_TRUE(response.body.ends_with("|" + body));
}

TEST_F(SlowAuthenticationTest, ContinueIsSentAfterAuthenticationOnly) {
  RawClient client(server->address());
  const std::string request = post_request("/who", kAnnToken, "body", "Expect: 100-continue\r\n");
  ASSERT_TRUE(client.send(request.substr(0, request.size() - 4)));
  wait_for_pending(1);
  EXPECT_EQ(client.buffered(), "");
  release();
  EXPECT_EQ(client.read_response().status, 100);
  EXPECT_TRUE(client.request("body").body.ends_with("|body"));
}

TEST_F(SlowAuthenticationTest, ClientDisconnectCancelsAuthentication) {
  RawClient client(server->address());
  ASSERT_TRUE(client.send(post_request("/who", kAnnToken)));
  wait_for_pending(1);
  client.close();
  wait_for_pending(0);
  EXPECT_EQ(thread.run([&] { return server->connection_count(); }), 0U);
}

TEST_F(SlowAuthenticationTest, ServerCloseCancelsAuthentication) {
  RawClient client(server->address());
  ASSERT_TRUE(client.send(post_request("/who", kAnnToken)));
  wait_for_pending(1);
  thread.run([&] { server->close(); });
  EXPECT_EQ(authenticator->waiting, 0);
}

TEST_F(SlowAuthenticationTest, RequestGets500WhenAuthenticatorThrows) {
  RawClient client(server->address());
  ASSERT_TRUE(client.send(post_request("/who", kAnnToken, "", "X-Throw: 1\r\n")));
  release();
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body.find("on purpose"), std::string::npos) << response.body;
}

class AuthenticationTimeoutTest : public SlowAuthenticationTest {
 protected:
  AuthenticationTimeoutTest() { timeout = 100ms; }
};

TEST_F(AuthenticationTimeoutTest, RequestGets503NamingTheLimit) {
  RawClient client(server->address());
  const auto response = client.request(post_request("/who", kAnnToken));
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(response.body.find("authentication_timeout (100 ms)"), std::string::npos) << response.body;
  wait_for_pending(0);
}

}  // namespace
}  // namespace fairlead::http
