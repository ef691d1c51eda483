// PeerTest: a fixture with a peer on one end of a channel. The test uses the other end: it sends and receives
// raw JSON, or starts a second peer there.
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
  Event
      handlers_released;  // slow handlers wait for it; declared first, to outlive suspended tasks of the loop
  Loop loop;
  std::shared_ptr<Methods> methods = std::make_shared<Methods>();
  PeerOptions options;
  std::shared_ptr<Connection> remote;  // the other end of the channel
  std::shared_ptr<Peer> peer;

  void start() {
    auto [local_end, remote_end] = make_channel(loop, loop);
    remote = remote_end;
    peer = Peer::start(local_end, methods, options);
  }

  // Runs the coroutine of a test until it ends.
  void run(Task<void> body) { loop.block_on(std::move(body)); }

  void TearDown() override {
    if (peer) peer->close();
    if (remote) remote->close();
    bool done = false;
    loop.post([&] { loop.post([&] { done = true; }); });
    loop.run_until([&] { return done; });
  }

  // Sends a frame as the remote peer.
  Task<void> send(std::string text) {
    const Result<void> sent = co_await remote->send(rope(text));
    EXPECT_TRUE(sent) << (sent ? "" : sent.error().to_string());
  }
  // Returns the next frame that the remote peer receives, or its error in angle brackets.
  Task<std::string> receive() {
    const Result<rpc::Message> received = co_await remote->receive();
    if (!received) co_return "<" + received.error().to_string() + ">";
    co_return std::string(received->frame().view());
  }
  Task<void> expect(std::string text) {
    const std::string received = co_await receive();
    EXPECT_EQ(received, text);
  }
  // Sends `request` and expects `response`.
  Task<void> exchange(std::string request, std::string response) {
    co_await send(std::move(request));
    co_await expect(std::move(response));
  }
};

}  // namespace fairlead::test
