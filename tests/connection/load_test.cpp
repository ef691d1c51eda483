// Peers under load: large calls in both directions, an other side that never pauses.
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

struct Tally {
  int under_way = 0;
  int good = 0;
  std::string problem;
};

Task<void> call_echo(std::shared_ptr<Peer> peer, json::Raw params, Tally& tally) {
  const Result<json::Raw> got = co_await peer->call("echo", params);
  if (got && got->text() == params.text()) ++tally.good;
  if (!got) tally.problem = got.error().to_string();
  --tally.under_way;
}

void start_large_calls(Loop& loop, const std::shared_ptr<Peer>& peer, Tally& tally) {
  const json::Raw body = test::raw("[\"" + std::string(kLargeBody, 'x') + "\"]");
  for (int i = 0; i < kCalls; ++i) {
    ++tally.under_way;
    loop.spawn(call_echo(peer, body, tally));
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
  auto made = StreamConnection::create(loop, std::move(fd), UniqueFd(), options);
  EXPECT_TRUE(made);
  PeerOptions peer_options;
  peer_options.noise = Noise::skip;
  peer_options.limits.max_noise_frames = 0;
  return Peer::start(*made, echo_methods(), peer_options);
}

// Runs the loop until nothing is under way any more.
void finish(Loop& loop, const Tally& tally) {
  loop.run_until([&] { return tally.under_way == 0; });
}

void close_all(Loop& loop, std::initializer_list<std::shared_ptr<Peer>> peers) {
  for (const auto& peer : peers) peer->close();
  for (const auto& peer : peers) loop.run_until([&] { return peer->finished().is_set(); });
}

// More than backlog_pause_bytes of requests are queued. Their answers must be read all the same.
TEST(PeerLoad, LargeCallsToAChildCompleteThoughTheyFillTheQueue) {
  Loop loop;
  ProcessSpec spec;
  spec.command = FAIRLEAD_ECHO_SERVER;
  ConnectResult made = loop.block_on(connect_child(loop, spec));
  ASSERT_TRUE(made);
  const auto peer = Peer::start(*made);
  Tally tally;
  start_large_calls(loop, peer, tally);
  finish(loop, tally);
  EXPECT_EQ(tally.good, kCalls) << tally.problem;
  close_all(loop, {peer});
  loop.block_on((*made)->settled());
}

TEST(PeerLoad, PeersThatFloodEachOtherWithLargeCallsAllGetTheirAnswers) {
  Loop loop;
  auto [one, other] = socket_pair();
  const auto a = peer_on(loop, std::move(one));
  const auto b = peer_on(loop, std::move(other));
  Tally tally;
  start_large_calls(loop, a, tally);
  start_large_calls(loop, b, tally);
  finish(loop, tally);
  EXPECT_EQ(tally.good, 2 * kCalls) << tally.problem;
  close_all(loop, {a, b});
}

// Writes `what` again and again, from a thread of its own, until it is destroyed.
class Flood {
 public:
  Flood(UniqueFd fd, std::string what)
      : fd_(std::move(fd)), thread_([this, text = std::move(what)] { run(text); }) {}
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
    char answers[4096];
    while (!stop_) {
      const ssize_t n = ::send(fd_.get(), block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) bytes_ += static_cast<std::size_t>(n);
      while (::recv(fd_.get(), answers, sizeof answers, MSG_DONTWAIT) > 0) continue;
      if (n < 0) std::this_thread::yield();
    }
  }

  UniqueFd fd_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::size_t> bytes_ = 0;
  std::thread thread_;
};

class Flooding : public ::testing::TestWithParam<std::string> {};

Task<void> ping_often(std::shared_ptr<Peer> peer, const Flood& flood, int& answered) {
  while (flood.bytes() < (3u << 20) || answered < 100) {
    const Result<json::Raw> got = co_await peer->call("ping", json::Raw(), CallOptions(5s));
    if (!got) co_return;
    ++answered;
  }
}

TEST_P(Flooding, OtherConnectionsOnTheLoopAreAnsweredMeanwhile) {
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
    loop.turns().reset();
    loop.block_on(ping_often(client, flood, answered));
    EXPECT_LT(loop.turns().longest(), test::kTurnBound);
  }
  EXPECT_GE(answered, 100);
  close_all(loop, {flooded, server, client});
}

INSTANTIATE_TEST_SUITE_P(Notifications, Flooding,
                         ::testing::Values("{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n"));
std::string batch_of_notifications() {
  std::string batch = "[";
  for (int i = 0; i < 1000; ++i) batch += std::string(i ? "," : "") + R"({"jsonrpc":"2.0","method":"n"})";
  return batch + "]\n";
}
INSTANTIATE_TEST_SUITE_P(Batches, Flooding, ::testing::Values(batch_of_notifications()));
INSTANTIATE_TEST_SUITE_P(Noise, Flooding, ::testing::Values("x\n"));
INSTANTIATE_TEST_SUITE_P(Requests, Flooding,
                         ::testing::Values("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"));
INSTANTIATE_TEST_SUITE_P(AnswersNobodyAskedFor, Flooding,
                         ::testing::Values("{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":1}\n"));

}  // namespace
}  // namespace fairlead
