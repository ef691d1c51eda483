// Draining an endpoint: many sessions end in slices, and no new session or listening stream is accepted.
#include <gtest/gtest.h>

#include "support/turns.hpp"
#include "transport/endpoint_harness.hpp"

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSessionCount = 2'000;

class EndpointDrainTest : public EndpointTest {
 public:
  // Opens kSessionCount sessions, each with a standalone stream. Uses one callback per request instead of
  // on_loop(), which would be slow.
  void open_sessions() {
    endpoint = Endpoint::create(loop, application, options);
    for (std::size_t i = 0; i < kSessionCount; ++i) {
      session.clear();
      const FakeExchangePtr handshake =
          send_at_once("POST", headers(), request("0", "initialize", R"({"protocolVersion":"2025-11-25"})"));
      session = handshake->header("Mcp-Session-Id");
      streams.push_back(send_at_once("GET", headers("text/event-stream")));
    }
    ASSERT_EQ(endpoint->session_count(), kSessionCount);
    ASSERT_EQ(open_stream_count(), kSessionCount);
  }
  FakeExchangePtr send_at_once(const std::string& method, http::Headers request_headers,
                               const std::string& body = {}) {
    http::Request http_request;
    http_request.method = method;
    http_request.headers = std::move(request_headers);
    http_request.principal = principal;
    http_request.body = Bytes::copy_of(body);
    auto exchange = std::make_shared<FakeExchange>(loop, std::move(http_request));
    bool done = false;
    loop.post([&] { endpoint->handler()(exchange); });
    loop.post([&] { done = true; });
    loop.run_until([&] { return done; });
    return exchange;
  }
  std::size_t open_stream_count() const {
    std::size_t open = 0;
    for (const FakeExchangePtr& stream : streams) open += stream->finished ? 0 : 1;
    return open;
  }
  // Runs `task` until `count` is 0, and expects that it decreases in slices.
  void expect_slices(Task<void> task, std::function<std::size_t()> count) {
    test::DrainMonitor monitor(std::move(count));
    loop.post([&] {
      monitor.start(loop);
      loop.spawn(std::move(task));
    });
    loop.run_until([&] { return monitor.done(); });
    EXPECT_GT(monitor.largest_step(), 0u);
    EXPECT_LE(monitor.largest_step(), test::DrainMonitor::kTwoSlices);
  }

  std::vector<FakeExchangePtr> streams;
};

TEST_F(EndpointDrainTest, BeginDrainEndsManyStreamsInSlices) {
  open_sessions();
  expect_slices(endpoint->begin_drain(), [this] { return open_stream_count(); });
  EXPECT_EQ(endpoint->session_count(), kSessionCount);
}

TEST_F(EndpointDrainTest, DrainClosesManySessionsInSlices) {
  open_sessions();
  expect_slices(endpoint->drain(0ms), [this] { return endpoint->session_count(); });
}

TEST_F(EndpointDrainTest, ListeningStreamIsRejectedWhileDraining) {
  initialize("2025-11-25");
  const FakeExchangePtr before = get();
  const Task<void> not_awaited = endpoint->begin_drain();
  EXPECT_FALSE(before->finished);
  EXPECT_EQ(get()->status, 503);
  EXPECT_EQ(get("0-0")->status, 503);
  EXPECT_EQ(modern("subscriptions/listen")->status, 503);
  EXPECT_EQ(modern("ping")->status, 200);
}

TEST_F(EndpointDrainTest, StreamOfRequestInProgressCanBeResumedWhileDraining) {
  initialize("2025-11-25");
  const FakeExchangePtr events = post_for_events(request("1", "hang"));
  ASSERT_EQ(events->body, priming("1-1"));
  const Task<void> not_awaited = endpoint->begin_drain();
  const FakeExchangePtr resumed = get("1-1");
  EXPECT_EQ(resumed->status, 200);
  on_loop([&] { application->release(); });
  EXPECT_NE(resumed->body.find(result("1", "{}")), std::string::npos) << resumed->body;
}

}  // namespace
}  // namespace fairlead::transport
