// Who is let in: on every route, before the body, at once or after waiting.
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

std::string ask_for(std::string_view path, std::string_view token, std::string_view body = "",
                    std::string_view fields = "") {
  std::string request = "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n";
  if (!token.empty()) request += "Authorization: Bearer " + std::string(token) + "\r\n";
  return request + std::string(fields) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

// Says who asked, from where, and with which body.
void who_asks(std::shared_ptr<Exchange> exchange) {
  const Request& request = exchange->request();
  const Principal& asking = *request.principal;
  exchange->respond(Response::text(200, asking.issuer + "|" + asking.user + "|" + asking.client_address +
                                            "|" + std::string(request.body.view())));
}

Principal named(const std::string& user) {
  Principal made;
  made.issuer = "test";
  made.subject = user;
  made.user = user;
  return made;
}

ServerOptions with_tokens() {
  auto tokens = std::make_shared<StaticTokenAuthenticator>();
  EXPECT_TRUE(tokens->add(kAnnToken, named("ann")));
  EXPECT_TRUE(tokens->add("bob-0123456789abcdef", named("bob")));
  ServerOptions options;
  options.authenticator = std::move(tokens);
  return options;
}

class Authenticated : public testing::Test {
 protected:
  void SetUp() override {
    server.route("/who", who_asks);
    server.route("/health", who_asks);
  }
  HttpServer server{with_tokens()};
  RawClient client = server.client();
};

TEST_F(Authenticated, RequestWithoutATokenGetsAChallengeOnEveryRoute) {
  for (const std::string_view path : {"/who", "/health", "/nothing-here"}) {
    const auto answer = client.ask(ask_for(path, ""));
    EXPECT_EQ(answer.status, 401) << path;
    EXPECT_TRUE(answer.has("\r\nWWW-Authenticate: Bearer realm=\"fairlead\"\r\n")) << answer.head;
    EXPECT_FALSE(answer.has("Connection: close")) << "the request was complete";
  }
}

TEST_F(Authenticated, HandlerSeesThePrincipalOfTheTokenWithTheAddressOfTheConnection) {
  const auto ann = client.ask(ask_for("/who", kAnnToken, "hello"));
  EXPECT_TRUE(ann.body.starts_with("test|ann|127.0.0.1:")) << ann.body;
  EXPECT_TRUE(ann.body.ends_with("|hello")) << ann.body;
  const auto bob = client.ask(ask_for("/who", "bob-0123456789abcdef"));
  EXPECT_TRUE(bob.body.starts_with("test|bob|127.0.0.1:"))
      << "another request, another principal: " << bob.body;
  EXPECT_EQ(client.ask(ask_for("/who", "")).status, 401) << "nothing is remembered of the connection";
}

TEST_F(Authenticated, WrongTokensAreRefused) {
  for (const std::string_view token :
       {"ann-0123456789abcdeX", "ann-0123456789abcde", "x", "ann-0123456789abcdef0"}) {
    const auto answer = client.ask(ask_for("/who", token));
    EXPECT_EQ(answer.status, 401) << token;
    EXPECT_TRUE(answer.has("error=\"invalid_token\"")) << answer.head;
  }
  const std::string basic = "Authorization: Basic " + std::string(kAnnToken) + "\r\n";
  EXPECT_EQ(client.ask(ask_for("/who", "", "", basic)).status, 401);
  const std::string again = "Authorization: Bearer " + std::string(kAnnToken) + "\r\n";
  EXPECT_EQ(client.ask(ask_for("/who", kAnnToken, "", again)).status, 400) << "which of the two counts?";
}

TEST_F(Authenticated, RefusalDoesNotWaitForTheBody) {
  const std::string head = "POST /who HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n";
  const auto answer = client.ask(head + "\r\nthe beginning of it");
  EXPECT_EQ(answer.status, 401);
  EXPECT_TRUE(answer.has("Connection: close")) << "the rest of the body is not read";
  RawClient polite = server.client();
  EXPECT_EQ(polite.ask(head + "Expect: 100-continue\r\n\r\n").status, 401) << "it is not told to continue";
}

TEST_F(Authenticated, AnotherHostIsRefusedWhateverTheToken) {
  EXPECT_EQ(client.ask("GET /who HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 403);
  EXPECT_EQ(client.ask("POST /who HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 9\r\n\r\n").status, 403);
}

TEST_F(Authenticated, PreflightOfABrowserNeedsNoToken) {
  const auto answer = client.ask(
      "OPTIONS /who HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  EXPECT_EQ(answer.status, 204);
  const auto refused = client.ask(ask_for("/who", "", "", "Origin: http://localhost:3000\r\n"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.has("Access-Control-Allow-Origin: http://localhost:3000")) << refused.head;
}

TEST(StaticTokens, TokensThatCanBeGuessedOrNotSentAreNotTaken) {
  StaticTokenAuthenticator tokens;
  EXPECT_EQ(tokens.add("short", Principal()).error().message(), "a token has at least 16 characters");
  EXPECT_EQ(tokens.add("with blanks in between", Principal()).error().kind(), ErrorKind::validation);
}

TEST(Unauthenticated, ClientIsAnonymousWithItsAddress) {
  HttpServer server;
  server.route("/who", who_asks);
  RawClient client = server.client();
  EXPECT_TRUE(client.ask(ask_for("/who", "")).body.starts_with("||127.0.0.1:"));
}

TEST(Unauthenticated, ClientOfAUnixSocketIsTheUserOfItsProcess) {
  const test::TempDir directory;
  HttpServer server(ServerOptions(), "unix:" + (directory / "s"));
  server.route("/who", who_asks);
  RawClient client = server.client();
  EXPECT_EQ(client.ask(ask_for("/who", "")).body, "local|uid:" + std::to_string(::getuid()) + "|unix|");
}

// ---- deciding later --------------------------------------------------------------------------------------

// Decides when it is told to. Counts the questions that wait.
class SlowAuthenticator final : public Authenticator {
 public:
  explicit SlowAuthenticator(Loop& loop) : loop_(loop) {}

  Task<Authentication> authenticate(const Request& head) override {
    const Waiting counted(waiting);
    const bool told = co_await release.wait(loop_, Clock::duration::max());
    static_cast<void>(told);
    if (head.headers.has("X-Throw")) throw std::runtime_error("on purpose");
    const bool known = head.headers.has("Authorization");
    co_return known ? Authentication(std::make_shared<const Principal>(named("slow")))
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

class AuthenticatedLater : public testing::Test {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.authenticator = slow;
    options.authentication_timeout = timeout;
    options.budget = budget;
    server = thread.run([&] { return Server::listen(thread.loop(), "127.0.0.1:0", options).value(); });
    thread.run([&] { server->route("/who", who_asks); });
  }
  void TearDown() override {
    thread.run([&] {
      server->close();
      server.reset();
    });
  }
  void decide() {
    ASSERT_TRUE(test::holds_soon([&] { return slow->waiting > 0; }));
    thread.run([&] { slow->release.set(); });
  }
  void when_waiting(int count) {
    ASSERT_TRUE(test::holds_soon([&] { return slow->waiting == count; })) << slow->waiting;
  }

  std::size_t charged() {
    return thread.run([&] { return budget->used(); });
  }

  std::chrono::milliseconds timeout{60'000};
  std::shared_ptr<ByteBudget> budget = ByteBudget::create();
  test::LoopThread thread;
  std::shared_ptr<SlowAuthenticator> slow = std::make_shared<SlowAuthenticator>(thread.loop());
  std::shared_ptr<Server> server;
};

TEST_F(AuthenticatedLater, RequestsBehindOneThatWaitsAreServedInOrder) {
  RawClient client(server->address());
  ASSERT_TRUE(client.send(ask_for("/who", kAnnToken, "first") + ask_for("/who", "", "second") +
                          ask_for("/who", kAnnToken, "third")));
  decide();
  EXPECT_TRUE(client.answer().body.ends_with("|first"));
  EXPECT_EQ(client.answer().status, 401);
  EXPECT_TRUE(client.answer().body.ends_with("|third"));
}

TEST_F(AuthenticatedLater, BodyThatComesMeanwhileIsNotChargedAfterARefusal) {
  RawClient client(server->address());
  const std::string request = ask_for("/who", "", std::string(100'000, 'b'));
  ASSERT_TRUE(client.send(request.substr(0, 200)));
  when_waiting(1);
  ASSERT_TRUE(client.send(request.substr(200, 10'000)));
  ASSERT_TRUE(test::holds_soon([&] { return charged() >= 10'000; }));
  decide();
  EXPECT_EQ(client.answer().status, 401);
  EXPECT_EQ(charged(), 0u) << "the connection is still open";
}

TEST_F(AuthenticatedLater, BodyThatComesMeanwhileIsKept) {
  RawClient client(server->address());
  const std::string body(300'000, 'b');
  const std::string request = ask_for("/who", kAnnToken, body);
  ASSERT_TRUE(client.send(request.substr(0, 200)));
  when_waiting(1);
  std::thread sender([&] { EXPECT_TRUE(client.send(request.substr(200))); });
  decide();
  const auto answer = client.answer();
  sender.join();
  EXPECT_TRUE(answer.body.ends_with("|" + body));
}

TEST_F(AuthenticatedLater, ContinueIsSaidOnlyAfterwards) {
  RawClient client(server->address());
  const std::string request = ask_for("/who", kAnnToken, "body", "Expect: 100-continue\r\n");
  ASSERT_TRUE(client.send(request.substr(0, request.size() - 4)));
  when_waiting(1);
  EXPECT_EQ(client.buffered(), "");
  decide();
  EXPECT_EQ(client.answer().status, 100);
  EXPECT_TRUE(client.ask("body").body.ends_with("|body"));
}

TEST_F(AuthenticatedLater, ClientThatLeavesCancelsTheQuestion) {
  RawClient client(server->address());
  ASSERT_TRUE(client.send(ask_for("/who", kAnnToken)));
  when_waiting(1);
  client.close();
  when_waiting(0);
  EXPECT_EQ(thread.run([&] { return server->connections(); }), 0U);
}

TEST_F(AuthenticatedLater, ServerThatClosesCancelsTheQuestion) {
  RawClient client(server->address());
  ASSERT_TRUE(client.send(ask_for("/who", kAnnToken)));
  when_waiting(1);
  thread.run([&] { server->close(); });
  EXPECT_EQ(slow->waiting, 0);
}

TEST_F(AuthenticatedLater, WhatItThrowsIsAnInternalError) {
  RawClient client(server->address());
  ASSERT_TRUE(client.send(ask_for("/who", kAnnToken, "", "X-Throw: 1\r\n")));
  decide();
  const auto answer = client.answer();
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body.find("on purpose"), std::string::npos) << answer.body;
}

class AuthenticatedNever : public AuthenticatedLater {
 protected:
  AuthenticatedNever() { timeout = 100ms; }
};

TEST_F(AuthenticatedNever, RequestGets503ThatNamesTheLimit) {
  RawClient client(server->address());
  const auto answer = client.ask(ask_for("/who", kAnnToken));
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("authentication_timeout (100 ms)"), std::string::npos) << answer.body;
  when_waiting(0);
}

}  // namespace
}  // namespace fairlead::http
