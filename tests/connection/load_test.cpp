// Peers under load: large calls in both directions, and a remote peer that sends without pause.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "connection/stream_connection.hpp"
#include "fairlead/connection/connect.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/peer/peer.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr int kCalls = 16;
constexpr std::size_t kLargeBody = 3u << 20;

std::shared_ptr<const Methods> echo_methods() {
  auto methods = std::make_shared<Methods>();
  methods->on("ping", [](const Request&) { return json::string("pong"); });
  methods->on("echo", [](const Request& request) { return request.params(); });
  return methods;
}

struct CallCounts {
  int in_flight = 0;
  int succeeded = 0;
  std::string error;
};

Task<void> call_echo(std::shared_ptr<Peer> peer, json::Raw params, CallCounts& counts) {
  const Result<json::Raw> result = co_await peer->call("echo", params);
  if (result && result->text() == params.text()) ++counts.succeeded;
  if (!result) counts.error = result.error().to_string();
  --counts.in_flight;
}

void start_large_calls(Loop& loop, const std::shared_ptr<Peer>& peer, CallCounts& counts) {
  const json::Raw body = test::raw("[\"" + std::string(kLargeBody, 'x') + "\"]");
  for (int i = 0; i < kCalls; ++i) {
    ++counts.in_flight;
    loop.spawn(call_echo(peer, body, counts));
  }
}

std::pair<UniqueFd, UniqueFd> socket_pair() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::shared_ptr<Peer> peer_on(Loop& loop, UniqueFd fd) {
  StreamOptions options;
  options.description = "socket";
  auto connection = StreamConnection::create(loop, std::move(fd), UniqueFd(), options);
  EXPECT_TRUE(connection);
  PeerOptions peer_options;
  peer_options.malformed_frames = MalformedFramePolicy::skip;
  peer_options.limits.max_noise_frames = 0;
  return Peer::start(*connection, echo_methods(), peer_options);
}

// Runs the loop until all calls have ended.
void finish_calls(Loop& loop, const CallCounts& counts) {
  loop.run_until([&] { return counts.in_flight == 0; });
}

void close_all(Loop& loop, std::initializer_list<std::shared_ptr<Peer>> peers) {
  for (const auto& peer : peers) peer->close();
  for (const auto& peer : peers) loop.run_until([&] { return peer->finished().is_set(); });
}

// More than backlog_pause_bytes of requests are queued. The responses must be read nevertheless.
TEST(PeerLoadTest, LargeCallsToAChildCompleteAlthoughTheyFillTheQueue) {
  Loop loop;
  ProcessSpec spec;
  spec.command = FAIRLEAD_ECHO_SERVER;
  ConnectResult connection = loop.block_on(connect_child(loop, spec));
  ASSERT_TRUE(connection);
  const auto peer = Peer::start(*connection);
  CallCounts counts;
  start_large_calls(loop, peer, counts);
  finish_calls(loop, counts);
  EXPECT_EQ(counts.succeeded, kCalls) << counts.error;
  close_all(loop, {peer});
  loop.block_on((*connection)->wait_closed());
}

TEST(PeerLoadTest, PeersThatFloodEachOtherWithLargeCallsGetAllResponses) {
  Loop loop;
  auto [socket_a, socket_b] = socket_pair();
  const auto a = peer_on(loop, std::move(socket_a));
  const auto b = peer_on(loop, std::move(socket_b));
  CallCounts counts;
  start_large_calls(loop, a, counts);
  start_large_calls(loop, b, counts);
  finish_calls(loop, counts);
  EXPECT_EQ(counts.succeeded, 2 * kCalls) << counts.error;
  close_all(loop, {a, b});
}

// Writes `text` repeatedly on a thread of its own, until this object is destroyed.
class Flood {
 public:
  Flood(UniqueFd fd, std::string text)
      : fd_(std::move(fd)), thread_([this, block = std::move(text)] { run(block); }) {}
  ~Flood() {
    stop_ = true;
    ::shutdown(fd_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void run(const std::string& text) {
    std::string block;
    while (block.size() < (1u << 20)) block += text;
    char responses[4096];
    while (!stop_) {
      const ssize_t n = ::send(fd_.get(), block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) bytes_ += static_cast<std::size_t>(n);
      while (::recv(fd_.get(), responses, sizeof responses, MSG_DONTWAIT) > 0) continue;
      if (n < 0) std::this_thread::yield();
    }
  }

  UniqueFd fd_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::size_t> bytes_ = 0;
  std::thread thread_;
};

class PeerFloodTest : public ::testing::TestWithParam<std::string> {};

Task<void> ping_often(std::shared_ptr<Peer> peer, const Flood& flood, int& answered) {
  while (flood.bytes() < (3u << 20) || answered < 100) {
    const Result<json::Raw> result = co_await peer->call("ping", json::Raw(), CallOptions(5s));
    if (!result) co_return;
    ++answered;
  }
}

TEST_P(PeerFloodTest, OtherConnectionsOnTheLoopAreServedDuringFlood) {
  Loop loop;
  auto [flooded_end, flooding_end] = socket_pair();
  auto [server_end, client_end] = socket_pair();
  const auto flooded = peer_on(loop, std::move(flooded_end));
  const auto server = peer_on(loop, std::move(server_end));
  const auto client = peer_on(loop, std::move(client_end));
  int answered = 0;
  {
    const Flood flood(std::move(flooding_end), GetParam());
    loop.run_until([&] { return flood.bytes() > (1u << 20); });
    loop.turn_meter().reset();
    loop.block_on(ping_often(client, flood, answered));
    EXPECT_LT(loop.turn_meter().longest_turn(), test::kTurnBound);
  }
  EXPECT_GE(answered, 100);
  close_all(loop, {flooded, server, client});
}

INSTANTIATE_TEST_SUITE_P(Notifications, PeerFloodTest,
                         ::testing::Values("{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n"));
std::string batch_of_notifications() {
  std::string batch = "[";
  for (int i = 0; i < 1000; ++i) batch += std::string(i ? "," : "") + R"({"jsonrpc":"2.0","method":"n"})";
  return batch + "]\n";
}
INSTANTIATE_TEST_SUITE_P(Batches, PeerFloodTest, ::testing::Values(batch_of_notifications()));
INSTANTIATE_TEST_SUITE_P(MalformedFrames, PeerFloodTest, ::testing::Values("x\n"));
INSTANTIATE_TEST_SUITE_P(Requests, PeerFloodTest,
                         ::testing::Values("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"));
INSTANTIATE_TEST_SUITE_P(UnexpectedResponses, PeerFloodTest,
                         ::testing::Values("{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":1}\n"));

}  // namespace
}  // namespace fairlead
