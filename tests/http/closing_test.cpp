// Many connections that end at the same time are closed in slices.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "fairlead/process/descriptor_limit.hpp"
#include "http/raw_client.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::http {
namespace {

using namespace std::chrono_literals;
using test::holds_soon;
using test::HttpServer;
using test::RawClient;

constexpr std::size_t kClients = 1'500;
constexpr std::size_t kLargestStep = 1'100;  // two slices

class ManyConnections : public testing::Test {
 protected:
  void open(ServerOptions options) {
    const Result<std::size_t> limit = raise_descriptor_limit();
    ASSERT_TRUE(limit);
    if (*limit < 2 * kClients + 100) GTEST_SKIP() << "no more than " << *limit << " descriptors can be open";
    server.emplace(std::move(options));
    for (std::size_t i = 0; i < kClients; ++i) clients.push_back(server->client());
    ASSERT_TRUE(holds_soon([&] { return connections() == kClients; }));
  }
  std::size_t connections() {
    std::size_t count = 0;
    server->thread().run([&] { count = (*server)->connections(); });
    return count;
  }
  // Watches, on the server's loop, how the connections end.
  static Task<void> watch(ManyConnections* self) {
    Task<void> watching = test::watch_fall(
        self->server->thread().loop(), [self] { return (*self->server)->connections(); }, self->largest_step);
    co_await watching;
    self->all_ended = true;
  }
  void begin_watching() {
    server->thread().run([this] { server->thread().loop().spawn(watch(this)); });
  }

  std::optional<HttpServer> server;
  std::vector<RawClient> clients;
  std::size_t largest_step = 0;
  std::atomic<bool> all_ended = false;
};

TEST_F(ManyConnections, AreClosedInSlicesByADrain) {
  ASSERT_NO_FATAL_FAILURE(open(ServerOptions()));
  if (IsSkipped()) return;
  begin_watching();
  server->thread().run([this] { server->thread().loop().spawn((*server)->drain()); });
  ASSERT_TRUE(holds_soon([this] { return all_ended.load(); }));
  EXPECT_LE(largest_step, kLargestStep);
}

TEST_F(ManyConnections, AreClosedInSlicesWhenTheGraceOfADrainIsOver) {
  ServerOptions options;
  options.drain_grace = 1ms;
  ASSERT_NO_FATAL_FAILURE(open(std::move(options)));
  if (IsSkipped()) return;
  // Half a request, so that none is idle.
  for (RawClient& client : clients) ASSERT_TRUE(client.send("GET /x HTTP/1.1\r\n"));
  // The server has read all of them when it has answered one that came last.
  EXPECT_EQ(server->client().ask("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 404);
  begin_watching();
  server->thread().run([this] { server->thread().loop().spawn((*server)->drain()); });
  ASSERT_TRUE(holds_soon([this] { return all_ended.load(); }));
  EXPECT_LE(largest_step, kLargestStep);
}

TEST_F(ManyConnections, AreClosedInSlicesWhenTheirTimesAreOverTogether) {
  ServerOptions options;
  options.keep_alive_timeout = 3s;
  ASSERT_NO_FATAL_FAILURE(open(std::move(options)));
  if (IsSkipped()) return;
  begin_watching();
  // Holds the loop until the time of each of them is over.
  server->thread().run([] { std::this_thread::sleep_for(3s); });
  ASSERT_TRUE(holds_soon([this] { return all_ended.load(); }));
  EXPECT_LE(largest_step, kLargestStep);
}

}  // namespace
}  // namespace fairlead::http
