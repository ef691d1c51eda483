// The server against real sockets: keeping connections, pipelining, streaming, disconnects.
#include "fairlead/http/server.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>

#include "http/raw_client.hpp"
#include "support/support.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;
using test::HttpServer;
using test::RawClient;
using ExchangePtr = std::shared_ptr<Exchange>;

void echo(ExchangePtr exchange) {
  Response response(200);
  response.headers.add("Content-Type", "text/plain");
  response.body.push_back(exchange->request().body);
  exchange->respond(std::move(response));
}

std::string post(std::string_view body, std::string_view fields = "") {
  return "POST /echo HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string get(std::string_view path, std::string_view fields = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n";
}

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override { server.route("/echo", echo); }
  HttpServer server;
};

TEST_F(HttpServerTest, AnswersManyRequestsOnOneConnection) {
  RawClient client = server.client();
  for (int i = 0; i < 100; ++i) {
    const auto answer = client.ask(post("body " + std::to_string(i)));
    ASSERT_EQ(answer.status, 200);
    ASSERT_EQ(answer.body, "body " + std::to_string(i));
    ASSERT_TRUE(answer.has("\r\nDate: "));
    ASSERT_FALSE(answer.has("Connection:"));
  }
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(HttpServerTest, SeesTheWholeRequest) {
  server.route("/see", [](ExchangePtr exchange) {
    const Request& request = exchange->request();
    std::string seen = request.method + "|" + request.target + "|" + std::string(request.path()) + "|" +
                       std::string(request.query()) + "|" + std::string(request.headers.get("x-thing")) +
                       "|" + request.remote.substr(0, 10);
    exchange->respond(Response::text(200, seen));
  });
  RawClient client = server.client();
  const auto answer =
      client.ask("GET /see?a=%20b HTTP/1.1\r\nHost: localhost\r\nX-Thing:  some thing \r\n\r\n");
  EXPECT_EQ(answer.body, "GET|/see?a=%20b|/see|a=%20b|some thing|127.0.0.1:");
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  RawClient client = server.client();
  std::string all;
  for (int i = 0; i < 1000; ++i) all += post("number " + std::to_string(i));
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.answer().body, "number " + std::to_string(i));
}

TEST_F(HttpServerTest, AnAnswerThatTakesItsTimeHoldsThoseBehindIt) {
  std::vector<ExchangePtr> waiting;
  server.route("/wait", [&](ExchangePtr exchange) { waiting.push_back(std::move(exchange)); });
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait") + post("second") + get("/wait") + post("fourth")));
  const auto answer_first = [&](std::string_view text) {
    ASSERT_TRUE(test::holds_soon([&] { return server.thread().run([&] { return !waiting.empty(); }); }));
    server.thread().run([&] {
      ASSERT_EQ(waiting.size(), 1U);
      waiting.front()->respond(Response::text(200, text));
      waiting.clear();
    });
  };
  answer_first("first");
  EXPECT_EQ(client.answer().body, "first");
  EXPECT_EQ(client.answer().body, "second");
  answer_first("third");
  EXPECT_EQ(client.answer().body, "third");
  EXPECT_EQ(client.answer().body, "fourth");
}

TEST_F(HttpServerTest, BytesOneByOneMakeARequest) {
  RawClient client = server.client();
  for (const char c : post("slowly")) ASSERT_TRUE(client.send(std::string_view(&c, 1)));
  EXPECT_EQ(client.answer().body, "slowly");
  for (const char c :
       std::string_view("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n")) {
    ASSERT_TRUE(client.send(std::string_view(&c, 1)));
  }
  EXPECT_EQ(client.answer().body, "abc0123456789");
}

TEST_F(HttpServerTest, LargeBodiesArriveWhole) {
  RawClient client = server.client();
  for (const std::size_t size : {64u << 10, 1u << 20, (4u << 20) - 1, 4u << 20}) {
    std::string body(size, 'x');
    for (std::size_t i = 0; i < size; i += 1000) body[i] = static_cast<char>('a' + (i / 1000) % 26);
    std::thread sender([&] { EXPECT_TRUE(client.send(post(body))); });
    const auto answer = client.answer();
    sender.join();
    ASSERT_EQ(answer.status, 200);
    ASSERT_TRUE(answer.body == body);
  }
}

TEST_F(HttpServerTest, ExpectContinueIsAnsweredBeforeTheBodyComes) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_EQ(client.answer().status, 100);
  ASSERT_TRUE(client.send("hello"));
  EXPECT_EQ(client.answer().body, "hello");
  // A body that is there already is not waited for.
  EXPECT_EQ(client.ask(post("at once", "Expect: 100-continue\r\n")).status, 200);
}

TEST_F(HttpServerTest, TooLargeABodyIsRefusedInsteadOfContinued) {
  RawClient client = server.client();
  const auto answer = client.ask(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n");
  EXPECT_EQ(answer.status, 413);
}

TEST_F(HttpServerTest, Http10ClientsAreServedAndHungUpOn) {
  RawClient client = server.client();
  const auto answer = client.ask("POST /echo HTTP/1.0\r\nContent-Length: 3\r\nHost: localhost\r\n\r\nold");
  EXPECT_EQ(answer.body, "old");
  EXPECT_TRUE(answer.has("Connection: close"));
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, Http10KeepAliveIsHonoured) {
  RawClient client = server.client();
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.ask(
        "POST /echo HTTP/1.0\r\nHost: localhost\r\nConnection: Keep-Alive\r\nContent-Length: 3\r\n\r\nold");
    EXPECT_EQ(answer.body, "old");
    EXPECT_TRUE(answer.has("Connection: keep-alive"));
  }
}

TEST_F(HttpServerTest, ConnectionCloseIsHonoured) {
  RawClient client = server.client();
  const auto answer = client.ask(post("x", "Connection: close\r\n") + post("never"));
  EXPECT_EQ(answer.body, "x");
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, AnswersAreFinishedForAClientThatHasFinishedSending) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(post(std::string(3u << 20, 'x'))));
  client.shut_output();
  EXPECT_EQ(client.answer().body.size(), 3u << 20);
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, HeadHasTheHeadOnly) {
  server.route("/head", [](ExchangePtr exchange) { exchange->respond(Response::text(200, "0123456789")); });
  server.route("/stream", [](ExchangePtr exchange) {
    exchange->start(Response(200));
    exchange->write({Bytes::constant("not seen")});
    exchange->finish();
  });
  RawClient client = server.client();
  ASSERT_TRUE(
      client.send("HEAD /head HTTP/1.1\r\nHost: localhost\r\n\r\n"
                  "HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n" +
                  post("after")));
  const auto head = client.answer(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.has("Content-Length: 10\r\n"));
  EXPECT_EQ(client.answer(true).status, 200);
  EXPECT_EQ(client.answer().body, "after");
}

TEST_F(HttpServerTest, RoutesAreFoundByTheLongestMatch) {
  const auto named = [](std::string name) {
    return [name](ExchangePtr exchange) { exchange->respond(Response::text(200, name)); };
  };
  server.route("/a", named("exact"));
  server.route("/a/*", named("below a"));
  server.route("/a/b/*", named("below b"));
  server.route("/a/b/c", named("c"));
  RawClient client = server.client();
  EXPECT_EQ(client.ask(get("/a")).body, "exact");
  EXPECT_EQ(client.ask(get("/a?x/b")).body, "exact");
  EXPECT_EQ(client.ask(get("/a/x")).body, "below a");
  EXPECT_EQ(client.ask(get("/a/b/x")).body, "below b");
  EXPECT_EQ(client.ask(get("/a/b/c")).body, "c");
  const auto nothing = client.ask(get("/ab"));
  EXPECT_EQ(nothing.status, 404);
  EXPECT_NE(nothing.body.find(R"({"jsonrpc":"2.0","error":{"code":-32000,)"), std::string::npos);
  EXPECT_EQ(client.ask("GET http://localhost/a/x HTTP/1.1\r\nHost: localhost\r\n\r\n").body, "below a");
}

TEST_F(HttpServerTest, AHandlerThatForgetsToAnswerIsAnsweredFor) {
  server.route("/forgets", [](const ExchangePtr&) {});
  server.route("/throws", [](const ExchangePtr&) { throw std::runtime_error("not said to clients"); });
  server.route("/cuts", [](const ExchangePtr& exchange) { exchange->start(Response(200)); });
  RawClient client = server.client();
  EXPECT_EQ(client.ask(get("/forgets")).status, 500);
  const auto thrown = client.ask(get("/throws"));
  EXPECT_EQ(thrown.status, 500);
  EXPECT_EQ(thrown.body.find("not said"), std::string::npos);
  EXPECT_EQ(client.ask(post("still here")).body, "still here");
  ASSERT_TRUE(client.send(get("/cuts")));
  EXPECT_EQ(client.rest().find("0\r\n\r\n"),
            std::string::npos);  // an answer cut short does not look complete
}

TEST_F(HttpServerTest, HeaderValuesOfHandlersCannotSplitTheAnswer) {
  server.route("/split", [](ExchangePtr exchange) {
    Response response(200);
    response.headers.add("X-Evil", "a\r\nSet-Cookie: b\r\n\r\n<html>");
    response.headers.add("Bad Name", "x");
    response.headers.add("Content-Length", "1000");
    exchange->respond(std::move(response));
  });
  RawClient client = server.client();
  const auto answer = client.ask(get("/split"));
  EXPECT_TRUE(answer.has("X-Evil: a  Set-Cookie: b    <html>\r\n"));
  EXPECT_FALSE(answer.has("Bad Name"));
  EXPECT_TRUE(answer.has("Content-Length: 0\r\n"));
}

// ---- streams ---------------------------------------------------------------------------------------------

TEST_F(HttpServerTest, HeadAndFirstChunksLeaveInOneWrite) {
  server.route("/stream", [](ExchangePtr exchange) {
    exchange->start(Response(200));
    exchange->write({Bytes::constant("one"), Bytes::constant(" and ")});
    exchange->write({Bytes::constant("two")});
    exchange->finish();
  });
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/stream")));
  ASSERT_TRUE(client.more());  // one read has all of it
  EXPECT_TRUE(client.buffered().ends_with("8\r\none and \r\n3\r\ntwo\r\n0\r\n\r\n")) << client.buffered();
  EXPECT_EQ(client.answer().body, "one and two");
  EXPECT_EQ(client.ask(post("goes on")).body, "goes on");
}

TEST_F(HttpServerTest, AStreamGoesOutPieceByPiece) {
  ExchangePtr stream;
  server.route("/stream", [&](ExchangePtr exchange) {
    exchange->start(Response(200));
    stream = std::move(exchange);
  });
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/stream")));
  ASSERT_TRUE(client.answer(true).has("Transfer-Encoding: chunked"));  // without a write
  for (int i = 0; i < 10; ++i) {
    server.thread().run([&] { stream->write({Bytes::copy_of("event " + std::to_string(i))}); });
    EXPECT_EQ(client.chunk(), "event " + std::to_string(i));
  }
  server.thread().run([&] {
    stream->finish();
    stream.reset();
  });
  EXPECT_EQ(client.chunk(), "");
}

TEST_F(HttpServerTest, AStreamToHttp10EndsWithTheConnection) {
  server.route("/stream", [](ExchangePtr exchange) {
    exchange->start(Response(200));
    exchange->write({Bytes::constant("one ")});
    exchange->write({Bytes::constant("two")});
    exchange->finish();
  });
  RawClient client = server.client();
  const auto answer = client.ask("GET /stream HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(answer.body, "one two");
  EXPECT_FALSE(answer.has("chunked"));
  EXPECT_TRUE(answer.has("Connection: close"));
}

class GoneTest : public HttpServerTest {
 protected:
  void SetUp() override {
    HttpServerTest::SetUp();
    server.route("/wait", [this](ExchangePtr exchange) {
      exchange->when_gone([this] { ++gone; });
      held = std::move(exchange);
      ++asked;
    });
  }
  void TearDown() override {
    server.thread().run([this] { held.reset(); });
  }
  void wait_until_asked() {
    ASSERT_TRUE(test::holds_soon([&] { return asked > 0; }));
  }
  ExchangePtr held;
  std::atomic<int> asked = 0;
  std::atomic<int> gone = 0;
};

TEST_F(GoneTest, ADisconnectBeforeTheAnswerIsTold) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_until_asked();
  client.close();
  EXPECT_TRUE(test::holds_soon([&] { return gone == 1; }));
  server.thread().run([&] {
    EXPECT_TRUE(held->gone());
    held->respond(Response::text(200, "to nobody"));  // does nothing
  });
  EXPECT_EQ(server.connections(), 0U);
}

TEST_F(GoneTest, AResetIsTold) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_until_asked();
  client.reset();
  EXPECT_TRUE(test::holds_soon([&] { return gone == 1; }));
}

TEST_F(GoneTest, AHalfCloseCountsAsGone) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_until_asked();
  client.shut_output();
  EXPECT_TRUE(test::holds_soon([&] { return gone == 1; }));
  EXPECT_TRUE(client.ended());
}

TEST_F(GoneTest, PipelinedBytesAreNotADisconnect) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_until_asked();
  ASSERT_TRUE(client.send(post("behind")));
  server.thread().run([&] {
    held->start(Response(200));
    held->write({Bytes::constant("still wanted")});
  });
  EXPECT_EQ(client.answer(true).status, 200);
  EXPECT_EQ(client.chunk(), "still wanted");
  EXPECT_EQ(gone, 0);
  client.close();
  EXPECT_TRUE(test::holds_soon([&] { return gone == 1; }));
}

TEST_F(GoneTest, WhoeverAsksAfterwardsIsToldToo) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_until_asked();
  client.close();
  ASSERT_TRUE(test::holds_soon([&] { return gone == 1; }));
  server.thread().run([&] { held->when_gone([this] { ++gone; }); });
  EXPECT_TRUE(test::holds_soon([&] { return gone == 2; }));
}

TEST_F(GoneTest, AbortEndsTheConnectionWithoutTelling) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_until_asked();
  server.thread().run([&] { held->abort(); });
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(gone, 0);
}

TEST_F(GoneTest, AnExchangeThatOutlivesItsServerIsHarmless) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_until_asked();
  server.thread().run([&] { server->close(); });
  EXPECT_TRUE(client.ended());
  server.thread().run([&] {
    held->start(Response(200));
    held->write({Bytes::constant("x")});
    held->finish();
  });
}

}  // namespace
}  // namespace fairlead::http
