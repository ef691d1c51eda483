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
using test::DrainMonitor;
using test::HttpServer;
using test::RawClient;
using test::wait_until;

class ManyConnectionsTest : public testing::Test {
 protected:
  void open(ServerOptions options, std::size_t count) {
    const Result<std::size_t> limit = raise_descriptor_limit();
    ASSERT_TRUE(limit);
    if (*limit < 2 * count + 100) GTEST_SKIP() << "no more than " << *limit << " descriptors can be open";
    server.emplace(std::move(options));
    // The loop is blocked while the clients connect, so that it accepts all connections at nearly the same
    // time.
    std::latch connected(1);
    std::jthread loop_blocker([&] { server->thread().run([&] { connected.wait(); }); });
    // Not many more fit into the kernel's queue of connections that wait to be accepted.
    const std::size_t first = std::min<std::size_t>(count, 900);
    connect(first);
    connected.count_down();
    connect(count - first);
    ASSERT_TRUE(wait_until([&] { return server->connection_count() == count; }));
  }
  void connect(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) clients.push_back(server->client());
  }
  // Runs `begin` on the loop and waits until all connections have ended. Returns the largest number of
  // connections that ended in one pass of the loop.
  template <class Begin>
  std::size_t largest_step_after(Begin begin) {
    DrainMonitor monitor([this] { return (*server)->connection_count(); });
    server->thread().run([&] {
      monitor.start(server->thread().loop());
      begin();
    });
    EXPECT_TRUE(wait_until([&] { return monitor.done(); }));
    EXPECT_GT(monitor.largest_step(), 0u);
    return monitor.largest_step();
  }
  void drain() { server->thread().loop().spawn((*server)->drain()); }

  std::optional<HttpServer> server;
  std::vector<RawClient> clients;
};

TEST_F(ManyConnectionsTest, AreClosedInSlicesByDrain) {
  ASSERT_NO_FATAL_FAILURE(open(ServerOptions(), 1'500));
  if (IsSkipped()) return;
  EXPECT_LE(largest_step_after([this] { drain(); }), DrainMonitor::kTwoSlices);
}

TEST_F(ManyConnectionsTest, AreClosedInSlicesAfterDrainGrace) {
  ServerOptions options;
  options.drain_grace = 1ms;
  ASSERT_NO_FATAL_FAILURE(open(std::move(options), 1'500));
  if (IsSkipped()) return;
  // Each client sends half a request, so that no connection is idle.
  for (RawClient& client : clients) ASSERT_TRUE(client.send("GET /x HTTP/1.1\r\n"));
  // When the server has responded to a client that sent its request later, it has read all of these.
  EXPECT_EQ(server->client().request("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 404);
  EXPECT_LE(largest_step_after([this] { drain(); }), DrainMonitor::kTwoSlices);
}

TEST_F(ManyConnectionsTest, AreClosedInSlicesWhenTheyTimeOutTogether) {
  constexpr auto kTimeout = 3s;
  constexpr std::size_t kCount = 900;
  ServerOptions options;
  options.keep_alive_timeout = kTimeout;
  ASSERT_NO_FATAL_FAILURE(open(std::move(options), kCount));
  if (IsSkipped()) return;
  // Blocks the loop until every connection has timed out.
  EXPECT_LT(largest_step_after([&] { std::this_thread::sleep_for(kTimeout); }), kCount);
}

}  // namespace
}  // namespace fairlead::http
