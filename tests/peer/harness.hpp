// A peer on one end of a channel, and on the other either a second peer or the test itself, speaking raw
// JSON.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fairlead/connection/channel.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/peer/peer.hpp"
#include "support/support.hpp"

namespace fairlead::test {

class PeerTest : public ::testing::Test {
 public:
  Event gate;  // for handlers to wait for; outlives the loop and what is suspended on it
  Loop loop;
  std::shared_ptr<Methods> methods = std::make_shared<Methods>();
  PeerOptions options;
  std::shared_ptr<Connection> far;  // the test's end
  std::shared_ptr<Peer> peer;

  void start() {
    auto [near_end, far_end] = make_channel(loop, loop);
    far = far_end;
    peer = Peer::start(near_end, methods, options);
  }

  // Runs the body of a test, a coroutine, to its end.
  void run(Task<void> body) { loop.block_on(std::move(body)); }

  void TearDown() override {
    if (peer) peer->close();
    if (far) far->close();
    bool done = false;
    loop.post([&] { loop.post([&] { done = true; }); });
    loop.run_until([&] { return done; });
  }

  // Sends a frame as the other side.
  Task<void> say(std::string text) {
    const Result<void> sent = co_await far->send(rope(text));
    EXPECT_TRUE(sent) << (sent ? "" : sent.error().to_string());
  }
  // The next frame that reaches the other side.
  Task<std::string> hear() {
    const Result<rpc::Message> got = co_await far->receive();
    if (!got) co_return "<" + got.error().to_string() + ">";
    co_return std::string(got->frame().view());
  }
  Task<void> expect(std::string text) {
    Task<std::string> hearing = hear();
    const std::string got = co_await hearing;
    EXPECT_EQ(got, text);
  }
  // One exchange: `request` goes in, `answer` must come out.
  Task<void> exchange(std::string request, std::string answer) {
    Task<void> saying = say(std::move(request));
    co_await saying;
    Task<void> expecting = expect(std::move(answer));
    co_await expecting;
  }
};

}  // namespace fairlead::test
