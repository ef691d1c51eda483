// How an endpoint ends: in slices when it has many sessions, and with nothing that begins meanwhile.
#include <gtest/gtest.h>

#include "support/turns.hpp"
#include "transport/endpoint_harness.hpp"

namespace fairlead::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSessions = 2'000;

class EndpointEndTest : public EndpointTest {
 public:
  // Sessions that listen. Each handshake is one callback, without the pauses of on_loop().
  void open_sessions() {
    endpoint = Endpoint::create(loop, application, options);
    for (std::size_t i = 0; i < kSessions; ++i) {
      session.clear();
      const FakePtr begun =
          take("POST", headers(), request("0", "initialize", R"({"protocolVersion":"2025-11-25"})"));
      session = begun->header("Mcp-Session-Id");
      streams.push_back(take("GET", headers("text/event-stream")));
    }
    ASSERT_EQ(endpoint->sessions(), kSessions);
    ASSERT_EQ(listening(), kSessions);
  }
  FakePtr take(const std::string& method, http::Headers given, const std::string& body = {}) {
    http::Request one;
    one.method = method;
    one.headers = std::move(given);
    one.principal = principal;
    one.body = Bytes::copy_of(body);
    auto exchange = std::make_shared<FakeExchange>(loop, std::move(one));
    bool done = false;
    loop.post([&] { endpoint->handler()(exchange); });
    loop.post([&] { done = true; });
    loop.run_until([&] { return done; });
    return exchange;
  }
  std::size_t listening() const {
    std::size_t open = 0;
    for (const FakePtr& stream : streams) open += stream->finished ? 0 : 1;
    return open;
  }
  // Runs `ending` until `count` is 0, and checks that it falls in slices.
  void expect_slices(Task<void> ending, std::function<std::size_t()> count) {
    test::FallWatch watch(std::move(count));
    loop.post([&] {
      watch.begin(loop);
      loop.spawn(std::move(ending));
    });
    loop.run_until([&] { return watch.over(); });
    EXPECT_GT(watch.largest_step(), 0u);
    EXPECT_LE(watch.largest_step(), test::FallWatch::kTwoSlices);
  }

  std::vector<FakePtr> streams;
};

TEST_F(EndpointEndTest, ManyStreamsAreEndedInSlices) {
  open_sessions();
  expect_slices(endpoint->wind_down(), [this] { return listening(); });
  EXPECT_EQ(endpoint->sessions(), kSessions);
}

TEST_F(EndpointEndTest, ManySessionsAreClosedInSlices) {
  open_sessions();
  expect_slices(endpoint->finish(0ms), [this] { return endpoint->sessions(); });
}

TEST_F(EndpointEndTest, StreamThatOnlyListensIsRefusedOnceItWindsDown) {
  initialize("2025-11-25");
  const FakePtr before = get();
  const Task<void> not_awaited = endpoint->wind_down();
  EXPECT_FALSE(before->finished);
  EXPECT_EQ(get()->status, 503);
  EXPECT_EQ(get("0-0")->status, 503);
  EXPECT_EQ(modern("subscriptions/listen")->status, 503);
  EXPECT_EQ(modern("ping")->status, 200);
}

TEST_F(EndpointEndTest, StreamOfARequestUnderWayIsResumedWhileItWindsDown) {
  initialize("2025-11-25");
  const FakePtr events = send("POST", headers("text/event-stream"), request("1", "hang"));
  ASSERT_EQ(events->body, priming("1-1"));
  const Task<void> not_awaited = endpoint->wind_down();
  const FakePtr resumed = get("1-1");
  EXPECT_EQ(resumed->status, 200);
  on_loop([&] { application->release(); });
  EXPECT_NE(resumed->body.find(result("1", "{}")), std::string::npos) << resumed->body;
}

}  // namespace
}  // namespace fairlead::transport
