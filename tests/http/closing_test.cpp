// Many connections that end at the same time are closed in slices.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "fairlead/process/descriptor_limit.hpp"
#include "http/raw_client.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;
using test::FallWatch;
using test::holds_soon;
using test::HttpServer;
using test::RawClient;

class ManyConnections : public testing::Test {
 protected:
  void open(ServerOptions options, std::size_t count) {
    const Result<std::size_t> limit = raise_descriptor_limit();
    ASSERT_TRUE(limit);
    if (*limit < 2 * count + 100) GTEST_SKIP() << "no more than " << *limit << " descriptors can be open";
    server.emplace(std::move(options));
    // All are accepted at nearly the same time, when the loop is released.
    std::latch connected(1);
    std::jthread holder([&] { server->thread().run([&] { connected.wait(); }); });
    const std::size_t first =
        std::min<std::size_t>(count, 900);  // not many more fit into the queue of the kernel
    connect(first);
    connected.count_down();
    connect(count - first);
    ASSERT_TRUE(holds_soon([&] { return server->connections() == count; }));
  }
  void connect(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) clients.push_back(server->client());
  }
  // Runs `begin` on the loop and waits until all connections have ended. Returns the most that ended in one
  // pass.
  template <class Begin>
  std::size_t largest_step_after(Begin begin) {
    FallWatch watch([this] { return (*server)->connections(); });
    server->thread().run([&] {
      watch.begin(server->thread().loop());
      begin();
    });
    EXPECT_TRUE(holds_soon([&] { return watch.over(); }));
    EXPECT_GT(watch.largest_step(), 0u);
    return watch.largest_step();
  }
  void drain() { server->thread().loop().spawn((*server)->drain()); }

  std::optional<HttpServer> server;
  std::vector<RawClient> clients;
};

TEST_F(ManyConnections, AreClosedInSlicesByADrain) {
  ASSERT_NO_FATAL_FAILURE(open(ServerOptions(), 1'500));
  if (IsSkipped()) return;
  EXPECT_LE(largest_step_after([this] { drain(); }), FallWatch::kTwoSlices);
}

TEST_F(ManyConnections, AreClosedInSlicesWhenTheGraceOfADrainIsOver) {
  ServerOptions options;
  options.drain_grace = 1ms;
  ASSERT_NO_FATAL_FAILURE(open(std::move(options), 1'500));
  if (IsSkipped()) return;
  // Half a request, so that none is idle.
  for (RawClient& client : clients) ASSERT_TRUE(client.send("GET /x HTTP/1.1\r\n"));
  // The server has read all of them when it has answered one that came last.
  EXPECT_EQ(server->client().ask("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 404);
  EXPECT_LE(largest_step_after([this] { drain(); }), FallWatch::kTwoSlices);
}

TEST_F(ManyConnections, AreClosedInSlicesWhenTheirTimesAreOverTogether) {
  constexpr auto kTimeout = 3s;
  constexpr std::size_t kCount = 900;
  ServerOptions options;
  options.keep_alive_timeout = kTimeout;
  ASSERT_NO_FATAL_FAILURE(open(std::move(options), kCount));
  if (IsSkipped()) return;
  // Holds the loop until the time of each of them is over.
  EXPECT_LT(largest_step_after([&] { std::this_thread::sleep_for(kTimeout); }), kCount);
}

}  // namespace
}  // namespace fairlead::http
