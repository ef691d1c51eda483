// The server over real sockets: persistent connections, pipelining, streaming, disconnects.
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

TEST_F(HttpServerTest, ServesManyRequestsOnOneConnection) {
  RawClient client = server.client();
  for (int i = 0; i < 100; ++i) {
    const auto response = client.request(post("body " + std::to_string(i)));
    ASSERT_EQ(response.status, 200);
    ASSERT_EQ(response.body, "body " + std::to_string(i));
    ASSERT_TRUE(response.has("\r\nDate: "));
    ASSERT_FALSE(response.has("Connection:"));
  }
  EXPECT_EQ(server.connection_count(), 1U);
}

TEST_F(HttpServerTest, HandlerGetsCompleteRequest) {
  server.route("/see", [](ExchangePtr exchange) {
    const Request& request = exchange->request();
    std::string seen = request.method + "|" + request.target + "|" + std::string(request.path()) + "|" +
                       std::string(request.query()) + "|" + std::string(request.headers.get("x-thing")) +
                       "|" + request.remote.substr(0, 10);
    exchange->respond(Response::text(200, seen));
  });
  RawClient client = server.client();
  const auto response =
      client.request("GET /see?a=%20b HTTP/1.1\r\nHost: localhost\r\nX-Thing:  some thing \r\n\r\n");
  EXPECT_EQ(response.body, "GET|/see?a=%20b|/see|a=%20b|some thing|127.0.0.1:");
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  RawClient client = server.client();
  std::string all;
  for (int i = 0; i < 1000; ++i) all += post("number " + std::to_string(i));
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.read_response().body, "number " + std::to_string(i));
}

TEST_F(HttpServerTest, SlowResponseDelaysLaterPipelinedResponses) {
  std::vector<ExchangePtr> waiting;
  server.route("/wait", [&](ExchangePtr exchange) { waiting.push_back(std::move(exchange)); });
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait") + post("second") + get("/wait") + post("fourth")));
  const auto respond_to_first = [&](std::string_view text) {
    ASSERT_TRUE(test::wait_until([&] { return server.thread().run([&] { return !waiting.empty(); }); }));
    server.thread().run([&] {
      ASSERT_EQ(waiting.size(), 1U);
      waiting.front()->respond(Response::text(200, text));
      waiting.clear();
    });
  };
  respond_to_first("first");
  EXPECT_EQ(client.read_response().body, "first");
  EXPECT_EQ(client.read_response().body, "second");
  respond_to_first("third");
  EXPECT_EQ(client.read_response().body, "third");
  EXPECT_EQ(client.read_response().body, "fourth");
}

TEST_F(HttpServerTest, RequestSentByteByByteIsServed) {
  RawClient client = server.client();
  for (const char c : post("slowly")) ASSERT_TRUE(client.send(std::string_view(&c, 1)));
  EXPECT_EQ(client.read_response().body, "slowly");
  for (const char c :
       std::string_view("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n")) {
    ASSERT_TRUE(client.send(std::string_view(&c, 1)));
  }
  EXPECT_EQ(client.read_response().body, "abc0123456789");
}

TEST_F(HttpServerTest, LargeBodiesArriveCompletely) {
  RawClient client = server.client();
  for (const std::size_t size : {64u << 10, 1u << 20, (4u << 20) - 1, 4u << 20}) {
    std::string body(size, 'x');
    for (std::size_t i = 0; i < size; i += 1000) body[i] = static_cast<char>('a' + (i / 1000) % 26);
    std::thread sender([&] { EXPECT_TRUE(client.send(post(body))); });
    const auto response = client.read_response();
    sender.join();
    ASSERT_EQ(response.status, 200);
    ASSERT_TRUE(response.body == body);
  }
}

TEST_F(HttpServerTest, BodiesOfAlternatingSizesArriveCompletely) {
  RawClient client = server.client();
  for (const std::size_t size :
       {100u, 70'000u, 70'000u, 20u, 5'000u, 16'384u, 0u, 100'000u, 3'900u, 64u << 10}) {
    const std::string body(size, static_cast<char>('a' + size % 26));
    std::thread sender([&] { EXPECT_TRUE(client.send(post(body) + post("next " + body))); });
    EXPECT_TRUE(client.read_response().body == body) << size;
    EXPECT_TRUE(client.read_response().body == "next " + body) << size;
    sender.join();
  }
}

TEST_F(HttpServerTest, ContinueIsSentBeforeBodyArrives) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_EQ(client.read_response().status, 100);
  ASSERT_TRUE(client.send("hello"));
  EXPECT_EQ(client.read_response().body, "hello");
  // The server does not send 100 Continue if the body has already arrived.
  EXPECT_EQ(client.request(post("at once", "Expect: 100-continue\r\n")).status, 200);
}

TEST_F(HttpServerTest, ExpectContinueWithTooLargeBodyGets413) {
  RawClient client = server.client();
  const auto response = client.request(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n");
  EXPECT_EQ(response.status, 413);
}

TEST_F(HttpServerTest, ConnectionOfHttp10ClientIsClosedAfterResponse) {
  RawClient client = server.client();
  const auto response =
      client.request("POST /echo HTTP/1.0\r\nContent-Length: 3\r\nHost: localhost\r\n\r\nold");
  EXPECT_EQ(response.body, "old");
  EXPECT_TRUE(response.has("Connection: close"));
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(HttpServerTest, Http10KeepAliveIsHonoured) {
  RawClient client = server.client();
  for (int i = 0; i < 3; ++i) {
    const auto response = client.request(
        "POST /echo HTTP/1.0\r\nHost: localhost\r\nConnection: Keep-Alive\r\nContent-Length: 3\r\n\r\nold");
    EXPECT_EQ(response.body, "old");
    EXPECT_TRUE(response.has("Connection: keep-alive"));
  }
}

TEST_F(HttpServerTest, ConnectionCloseIsHonoured) {
  RawClient client = server.client();
  const auto response = client.request(post("x", "Connection: close\r\n") + post("never"));
  EXPECT_EQ(response.body, "x");
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(HttpServerTest, CompleteResponseIsWrittenAfterHalfClose) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(post(std::string(3u << 20, 'x'))));
  client.shutdown_output();
  EXPECT_EQ(client.read_response().body.size(), 3u << 20);
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(HttpServerTest, ResponseToHeadHasNoBody) {
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
  const auto head = client.read_response(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.has("Content-Length: 10\r\n"));
  EXPECT_EQ(client.read_response(true).status, 200);
  EXPECT_EQ(client.read_response().body, "after");
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
  EXPECT_EQ(client.request(get("/a")).body, "exact");
  EXPECT_EQ(client.request(get("/a?x/b")).body, "exact");
  EXPECT_EQ(client.request(get("/a/x")).body, "below a");
  EXPECT_EQ(client.request(get("/a/b/x")).body, "below b");
  EXPECT_EQ(client.request(get("/a/b/c")).body, "c");
  const auto nothing = client.request(get("/ab"));
  EXPECT_EQ(nothing.status, 404);
  EXPECT_NE(nothing.body.find(R"({"jsonrpc":"2.0","error":{"code":-32000,)"), std::string::npos);
  EXPECT_EQ(client.request("GET http://localhost/a/x HTTP/1.1\r\nHost: localhost\r\n\r\n").body, "below a");
}

TEST_F(HttpServerTest, RequestGets500WhenHandlerThrowsOrDropsExchange) {
  server.route("/forgets", [](const ExchangePtr&) {});
  server.route("/throws", [](const ExchangePtr&) { throw std::runtime_error("not said to clients"); });
  server.route("/cuts", [](const ExchangePtr& exchange) { exchange->start(Response(200)); });
  RawClient client = server.client();
  EXPECT_EQ(client.request(get("/forgets")).status, 500);
  const auto thrown = client.request(get("/throws"));
  EXPECT_EQ(thrown.status, 500);
  EXPECT_EQ(thrown.body.find("not said"), std::string::npos);
  EXPECT_EQ(client.request(post("still here")).body, "still here");
  ASSERT_TRUE(client.send(get("/cuts")));
  EXPECT_EQ(client.read_to_end().find("0\r\n\r\n"),
            std::string::npos);  // an aborted response does not look complete
}

TEST_F(HttpServerTest, HeaderValueCannotSplitResponse) {
  server.route("/split", [](ExchangePtr exchange) {
    Response response(200);
    response.headers.add("X-Evil", "a\r\nSet-Cookie: b\r\n\r\n<html>");
    response.headers.add("Bad Name", "x");
    response.headers.add("Content-Length", "1000");
    exchange->respond(std::move(response));
  });
  RawClient client = server.client();
  const auto response = client.request(get("/split"));
  EXPECT_TRUE(response.has("X-Evil: a  Set-Cookie: b    <html>\r\n"));
  EXPECT_FALSE(response.has("Bad Name"));
  EXPECT_TRUE(response.has("Content-Length: 0\r\n"));
}

// ---- streams ---------------------------------------------------------------------------------------------

TEST_F(HttpServerTest, HeadAndFirstChunksAreSentInOneWrite) {
  server.route("/stream", [](ExchangePtr exchange) {
    exchange->start(Response(200));
    exchange->write({Bytes::constant("one"), Bytes::constant(" and ")});
    exchange->write({Bytes::constant("two")});
    exchange->finish();
  });
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/stream")));
  ASSERT_TRUE(client.receive_more());  // one read returns all of it
  EXPECT_TRUE(client.buffered().ends_with("8\r\none and \r\n3\r\ntwo\r\n0\r\n\r\n")) << client.buffered();
  EXPECT_EQ(client.read_response().body, "one and two");
  EXPECT_EQ(client.request(post("goes on")).body, "goes on");
}

TEST_F(HttpServerTest, EachWriteOfStreamIsSentAtOnce) {
  ExchangePtr stream;
  server.route("/stream", [&](ExchangePtr exchange) {
    exchange->start(Response(200));
    stream = std::move(exchange);
  });
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/stream")));
  ASSERT_TRUE(client.read_response(true).has("Transfer-Encoding: chunked"));  // before the first write
  for (int i = 0; i < 10; ++i) {
    server.thread().run([&] { stream->write({Bytes::copy_of("event " + std::to_string(i))}); });
    EXPECT_EQ(client.read_chunk(), "event " + std::to_string(i));
  }
  server.thread().run([&] {
    stream->finish();
    stream.reset();
  });
  EXPECT_EQ(client.read_chunk(), "");
}

TEST_F(HttpServerTest, StreamToHttp10ClientEndsWithConnection) {
  server.route("/stream", [](ExchangePtr exchange) {
    exchange->start(Response(200));
    exchange->write({Bytes::constant("one ")});
    exchange->write({Bytes::constant("two")});
    exchange->finish();
  });
  RawClient client = server.client();
  const auto response =
      client.request("GET /stream HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(response.body, "one two");
  EXPECT_FALSE(response.has("chunked"));
  EXPECT_TRUE(response.has("Connection: close"));
}

class HttpDisconnectTest : public HttpServerTest {
 protected:
  void SetUp() override {
    HttpServerTest::SetUp();
    server.route("/wait", [this](ExchangePtr exchange) {
      exchange->when_disconnected([this] { ++disconnects; });
      pending = std::move(exchange);
      ++requests;
    });
  }
  void TearDown() override {
    server.thread().run([this] { pending.reset(); });
  }
  void wait_for_request() {
    ASSERT_TRUE(test::wait_until([&] { return requests > 0; }));
  }
  ExchangePtr pending;
  std::atomic<int> requests = 0;
  std::atomic<int> disconnects = 0;
};

TEST_F(HttpDisconnectTest, CallbackIsCalledWhenClientDisconnectsBeforeResponse) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_for_request();
  client.close();
  EXPECT_TRUE(test::wait_until([&] { return disconnects == 1; }));
  server.thread().run([&] {
    EXPECT_TRUE(pending->disconnected());
    pending->respond(Response::text(200, "too late"));  // has no effect
  });
  EXPECT_EQ(server.connection_count(), 0U);
}

TEST_F(HttpDisconnectTest, CallbackIsCalledWhenClientResetsConnection) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_for_request();
  client.reset();
  EXPECT_TRUE(test::wait_until([&] { return disconnects == 1; }));
}

TEST_F(HttpDisconnectTest, HalfCloseCountsAsDisconnect) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_for_request();
  client.shutdown_output();
  EXPECT_TRUE(test::wait_until([&] { return disconnects == 1; }));
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(HttpDisconnectTest, PipelinedBytesAreNotADisconnect) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_for_request();
  ASSERT_TRUE(client.send(post("behind")));
  server.thread().run([&] {
    pending->start(Response(200));
    pending->write({Bytes::constant("still wanted")});
  });
  EXPECT_EQ(client.read_response(true).status, 200);
  EXPECT_EQ(client.read_chunk(), "still wanted");
  EXPECT_EQ(disconnects, 0);
  client.close();
  EXPECT_TRUE(test::wait_until([&] { return disconnects == 1; }));
}

TEST_F(HttpDisconnectTest, CallbackSetAfterDisconnectIsCalledToo) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_for_request();
  client.close();
  ASSERT_TRUE(test::wait_until([&] { return disconnects == 1; }));
  server.thread().run([&] { pending->when_disconnected([this] { ++disconnects; }); });
  EXPECT_TRUE(test::wait_until([&] { return disconnects == 2; }));
}

TEST_F(HttpDisconnectTest, AbortClosesConnectionWithoutCallback) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_for_request();
  server.thread().run([&] { pending->abort(); });
  EXPECT_TRUE(client.closed_by_server());
  EXPECT_EQ(disconnects, 0);
}

TEST_F(HttpDisconnectTest, ExchangeCanOutliveServer) {
  RawClient client = server.client();
  ASSERT_TRUE(client.send(get("/wait")));
  wait_for_request();
  server.thread().run([&] { server->close(); });
  EXPECT_TRUE(client.closed_by_server());
  server.thread().run([&] {
    pending->start(Response(200));
    pending->write({Bytes::constant("x")});
    pending->finish();
  });
}

}  // namespace
}  // namespace fairlead::http
