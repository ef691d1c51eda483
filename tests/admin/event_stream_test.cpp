#include "admin/event_stream.hpp"

#include <gtest/gtest.h>

#include "../http/raw_client.hpp"
#include "admin/event_hub.hpp"
#include "admin/problem.hpp"

namespace fairlead::admin {
namespace {

using fairlead::test::HttpServer;
using fairlead::test::RawClient;

PrincipalSelector everyone() {
  return [](const Principal&) { return true; };
}

json::Raw number(int value) {
  return *json::Raw::parse(std::to_string(value));
}

class EventHubTest : public testing::Test {
 protected:
  void SetUp() override {
    hub_ = std::make_shared<EventHub>(EventHub::Limits{2, 2});
    server_.route("/events", [hub = hub_](const std::shared_ptr<http::Exchange>& exchange) {
      const Result<void> started = hub->stream(exchange, exchange->request().headers.get("Last-Event-ID"));
      if (!started) exchange->respond(problem_response(started.error(), "/events", "r"));
    });
  }
  void TearDown() override {
    server_.thread().run([&] { hub_->close(); });
  }
  RawClient connect(const std::string& last_id = std::string()) {
    RawClient client = server_.client();
    std::string request = "GET /events HTTP/1.1\r\nHost: localhost\r\n";
    if (!last_id.empty()) request += "Last-Event-ID: " + last_id + "\r\n";
    EXPECT_TRUE(client.send(request + "\r\n"));
    return client;
  }
  // Reads until `text` has arrived, and returns everything read so far.
  static std::string read_until(RawClient& client, const std::string& text) {
    while (client.buffered().find(text) == std::string::npos && client.receive_more()) continue;
    return client.buffered();
  }
  void publish(int value, PrincipalSelector visible = everyone()) {
    server_.thread().run([&] { hub_->publish("changed", number(value), visible); });
  }

  HttpServer server_;
  std::shared_ptr<EventHub> hub_;
};

std::string id_before(const std::string& stream, const std::string& data) {
  const std::size_t end = stream.find(data);
  const std::size_t begin = stream.rfind("id: ", end) + 4;
  return stream.substr(begin, stream.find('\n', begin) - begin);
}

TEST_F(EventHubTest, ClientReceivesEventsAndResumesAfterTheLast) {
  RawClient client = connect();
  EXPECT_NE(read_until(client, ": open").find("text/event-stream"), std::string::npos);
  publish(1);
  publish(2);
  const std::string received = read_until(client, "data: 2\n\n");
  EXPECT_NE(received.find("event: changed\ndata: 1\n\n"), std::string::npos) << received;
  client.close();
  publish(3);
  RawClient again = connect(id_before(received, "data: 1"));
  const std::string resumed = read_until(again, "data: 3\n\n");
  EXPECT_EQ(resumed.find("data: 1\n"), std::string::npos);
  EXPECT_NE(resumed.find("data: 2\n"), std::string::npos);
}

TEST_F(EventHubTest, UnknownOrLostIdGetsReset) {
  for (int i = 0; i < 1'100; ++i) publish(i);
  RawClient stranger = connect("other.1");
  EXPECT_NE(read_until(stranger, "event: reset").find("event: reset"), std::string::npos);
  const std::string first = id_before(stranger.buffered(), "event: reset");
  RawClient late = connect(first.substr(0, first.find('.')) + ".1");
  EXPECT_NE(read_until(late, "event: reset").find("event: reset"), std::string::npos);
}

TEST_F(EventHubTest, InvisibleEventsAreNotSent) {
  RawClient client = connect();
  read_until(client, ": open");
  publish(1, [](const Principal&) { return false; });
  publish(2);
  EXPECT_EQ(read_until(client, "data: 2\n\n").find("data: 1\n"), std::string::npos);
}

TEST_F(EventHubTest, StreamsBeyondTheLimitAreRejected) {
  RawClient first = connect();
  RawClient second = connect();
  read_until(first, ": open");
  read_until(second, ": open");
  RawClient third = connect();
  const RawClient::Response response = third.read_response();
  EXPECT_EQ(response.status, 429);
  EXPECT_NE(response.body.find("max_event_streams (2)"), std::string::npos);
  first.close();
  EXPECT_TRUE(fairlead::test::wait_until([&] {
    RawClient next = connect();
    return read_until(next, "HTTP/1.1").find("HTTP/1.1 200") != std::string::npos;
  }));
}

TEST_F(EventHubTest, RevokedClientsAreCut) {
  RawClient client = connect();
  read_until(client, ": open");
  server_.thread().run([&] { hub_->end_streams(everyone()); });
  EXPECT_NE(read_until(client, "0\r\n\r\n").find("0\r\n\r\n"), std::string::npos);
}

TEST_F(EventHubTest, ClientThatDoesNotReadIsCut) {
  RawClient client = connect();
  read_until(client, ": open");
  const json::Raw large = json::Raw::trusted(Bytes::adopt('"' + std::string(256u << 10, 'x') + '"'), true);
  for (int i = 0; i < 100; ++i) server_.thread().run([&] { hub_->publish("changed", large, everyone()); });
  const std::string all = client.read_to_end();
  EXPECT_LT(all.size(), 100u * (256u << 10));
  EXPECT_EQ(all.find("0\r\n\r\n"), std::string::npos) << "the stream must not look complete";
}

TEST(EventTest, DataOfSeveralLinesIsSentInOneLine) {
  const json::Raw data = *json::Raw::parse("{\n\"a\":1\n}");
  const std::string text(encode_event("x", data).view());
  EXPECT_EQ(text.find("event: x\ndata: {"), 0u);
  EXPECT_EQ(text.find("\n\n"), text.size() - 2);
}

}  // namespace
}  // namespace fairlead::admin
