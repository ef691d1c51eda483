// R3: the contract of Connection, tested on every kind of connection (channel, Unix socket, TCP, child
// process) in every applicable framing. The child process is `cat`, which echoes all messages.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "connection/connect_stream.hpp"
#include "fairlead/connection/channel.hpp"
#include "fairlead/connection/listen.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/loop/event.hpp"
#include "support/hostile_json.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead {
namespace {

using test::rope;
using namespace std::chrono_literals;

struct ConnectionKind {
  std::string name;
  std::string transport;
  rpc::Framing framing;
};

void PrintTo(const ConnectionKind& kind, std::ostream* out) {
  *out << kind.name;
}

class ConnectionContractTest : public ::testing::TestWithParam<ConnectionKind> {
 public:
  test::TempDir dir;
  Loop loop;
  std::shared_ptr<Listener> listener;
  std::shared_ptr<Connection> a;
  std::shared_ptr<Connection> b;  // the other end; for a child process, which echoes, the same as `a`

  void SetUp() override {
    const std::string& transport = GetParam().transport;
    if (transport == "channel") {
      std::tie(a, b) = make_channel(loop, loop);
    } else if (transport == "child") {
      ProcessSpec spec;
      spec.command = "cat";
      ConnectResult connected = loop.block_on(connect_child(loop, spec, options()));
      ASSERT_TRUE(connected) << connected.error().to_string();
      a = b = *connected;
    } else {
      connect_sockets(transport == "unix" ? "unix:" + dir / "socket" : "tcp:127.0.0.1:0");
    }
  }

  void connect_sockets(const std::string& address) {
    const Result<Uri> uri = Uri::parse(address);
    auto listening =
        Listener::listen(loop, *uri, options(), [this](std::shared_ptr<Connection> c) { b = std::move(c); });
    ASSERT_TRUE(listening) << listening.error().to_string();
    listener = *listening;
    ConnectResult connected =
        loop.block_on(connect_stream(loop, Uri::parse(listener->address()).value(), options()));
    ASSERT_TRUE(connected) << connected.error().to_string();
    a = *connected;
    loop.run_until([this] { return b != nullptr; });
  }

  StreamConnectOptions options() const {
    StreamConnectOptions result;
    result.framing = GetParam().framing;
    return result;
  }

  void TearDown() override {
    for (const auto& connection : {a, b}) {
      if (connection) connection->close();
    }
    if (a) loop.block_on(a->wait_closed());
  }

  std::string send(const std::shared_ptr<Connection>& from, const std::string& text) {
    auto body = [](std::shared_ptr<Connection> c, std::string t) -> Task<Result<void>> {
      Result<void> sent = co_await c->send(rope(t));
      co_return sent;
    };
    const Result<void> sent = loop.block_on(body(from, text));
    return sent ? "" : sent.error().to_string();
  }
  static Task<Result<rpc::Message>> receive_message(std::shared_ptr<Connection> c) {
    Result<rpc::Message> received = co_await c->receive();
    co_return received;
  }
  std::string receive(const std::shared_ptr<Connection>& at) {
    const Result<rpc::Message> received = loop.block_on(receive_message(at));
    return received ? std::string(received->frame().view()) : received.error().to_string();
  }
};

std::string message(int n, std::size_t size = 0) {
  return R"({"jsonrpc":"2.0","method":"m","params":[)" + std::to_string(n) + ",\"" + std::string(size, 'x') +
         "\"]}";
}

TEST_P(ConnectionContractTest, MessagesArriveWholeAndInOrder) {  // R3.1
  for (const std::size_t size : {0uz, 1uz, 1000uz, 70'000uz, 3'000'000uz}) {
    auto body = [](ConnectionContractTest* self, std::size_t n) -> Task<void> {
      const Result<void> sent = co_await self->a->send(rope(message(1, n)));
      EXPECT_TRUE(sent);
    };
    loop.spawn(body(this, size));
    EXPECT_EQ(receive(b), message(1, size)) << size;
  }
}

Task<void> send_many(std::shared_ptr<Connection> c, int from, int count, std::size_t size, int& done) {
  for (int i = 0; i < count; ++i) {
    const Result<void> sent = co_await c->send(rope(message(from + i, size)));
    EXPECT_TRUE(sent);
  }
  ++done;
}

Task<void> receive_many(std::shared_ptr<Connection> c, int count, std::vector<int>& received) {
  for (int i = 0; i < count; ++i) {
    const Result<rpc::Message> message = co_await c->receive();
    if (!message || message->is(rpc::Kind::malformed)) {
      ADD_FAILURE() << (message ? message->problem().to_string() : message.error().to_string());
      co_return;
    }
    received.push_back(static_cast<int>(*json::View(message->params_text())[std::size_t{0}].as_int()));
  }
}

// A connection carries any JSON value; only a peer on it would reject values that are not JSON-RPC messages.
TEST_P(ConnectionContractTest, AnyJsonValueCanBeSent) {
  for (const std::string value : {"\"ping\"", "7", "null", "[]", "{\"a\":1}"}) {
    EXPECT_EQ(send(a, value), "");
    const Result<rpc::Message> received = loop.block_on(receive_message(b));
    ASSERT_TRUE(received) << received.error().to_string();
    EXPECT_EQ(received->value().text(), value);
  }
}

Task<void> send_text(std::shared_ptr<Connection> c, std::string text) {
  const Result<void> sent = co_await c->send(rope(text));
  EXPECT_TRUE(sent);
}

// Frames of maximum size with JSON that is costly to scan.
TEST_P(ConnectionContractTest, LargestFramesDoNotBlockTheLoop) {
  for (const std::string& value : test::hostile_values(test::kLargeFrameBytes)) {
    SCOPED_TRACE(value.substr(0, 40));
    const std::string text = R"({"jsonrpc":"2.0","method":"m","params":{"a":)" + value + "}}";
    test::expect_short_turns(loop, [&] {
      loop.spawn(send_text(a, text));
      const Result<rpc::Message> received = loop.block_on(receive_message(b));
      ASSERT_TRUE(received) << received.error().to_string();
      EXPECT_EQ(received->kind(), rpc::Kind::notification);
      EXPECT_TRUE(received->frame().view() == text);
    });
  }
}

TEST_P(ConnectionContractTest, LargeFrameIsReceivedBeforeFollowingFrames) {
  const std::string large = R"({"jsonrpc":"2.0","method":"m","params":)" +
                            test::shuffled("[", {"[],", "1,"}, "1", "]", 3u << 20) + "}";
  const std::vector<std::string> texts = {message(1), large, message(2), large, large, message(3)};
  auto body = [](std::shared_ptr<Connection> c, std::vector<std::string> all) -> Task<void> {
    for (const std::string& text : all) {
      const Result<void> sent = co_await c->send(rope(text));
      EXPECT_TRUE(sent);
    }
  };
  loop.spawn(body(a, texts));
  for (const std::string& text : texts) EXPECT_TRUE(receive(b) == text);
}

TEST_P(ConnectionContractTest, LargeFrameBeforeCloseIsReceived) {
  if (a == b) GTEST_SKIP() << "a child ends only when its input does";
  const std::string large = R"({"jsonrpc":"2.0","method":"m","params":)" +
                            test::shuffled("[", {"[],", "1,"}, "1", "]", 3u << 20) + "}";
  auto body = [](std::shared_ptr<Connection> c, std::string text) -> Task<void> {
    const Result<void> sent = co_await c->send(rope(text));
    EXPECT_TRUE(sent);
    c->close();
  };
  loop.spawn(body(a, large));
  EXPECT_TRUE(receive(b) == large);
  const Result<rpc::Message> after = loop.block_on(receive_message(b));
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().kind(), ErrorKind::closed);
}

TEST_P(ConnectionContractTest, CloseWhileALargeFrameIsParsedWakesTheReceiver) {
  const std::string large = R"({"jsonrpc":"2.0","method":"m","params":)" +
                            test::shuffled("[", {"[],", "1,"}, "1", "]", 8u << 20) + "}";
  bool sent = false;
  auto body = [](std::shared_ptr<Connection> c, std::string text, bool& done) -> Task<void> {
    static_cast<void>(co_await c->send(rope(text)));
    done = true;
  };
  loop.spawn(body(a, large, sent));
  bool woken = false;
  auto receiver = [](std::shared_ptr<Connection> c, bool& done) -> Task<void> {
    const Result<rpc::Message> received = co_await c->receive();
    EXPECT_FALSE(received);
    done = true;
  };
  loop.spawn(receiver(b, woken));
  loop.run_until([&] { return sent; });
  b->close();
  loop.run_until([&] { return woken; });
}

TEST_P(ConnectionContractTest, ConcurrentSendersNeverInterleave) {  // R3.4
  int done = 0;
  std::vector<int> received;
  for (int sender = 0; sender < 10; ++sender) loop.spawn(send_many(a, sender * 1000, 100, 3000, done));
  loop.block_on(receive_many(b, 1000, received));
  loop.run_until([&] { return done == 10; });
  // Every message was received once, and the messages of each sender are in order.
  std::vector<int> next(10, 0);
  for (const int n : received) EXPECT_EQ(n % 1000, next[static_cast<std::size_t>(n / 1000)]++);
  for (const int count : next) EXPECT_EQ(count, 100);
}

TEST_P(ConnectionContractTest, CloseIsIdempotentAndLaterOperationsFailWithTheSameError) {  // R3.5
  a->close();
  a->close();
  EXPECT_TRUE(a->closed());
  const std::string why = "connection closed: the connection was closed by this side";
  EXPECT_EQ(receive(a), why);
  EXPECT_EQ(send(a, message(1)), why);
  EXPECT_EQ(receive(a), why);
}

TEST_P(ConnectionContractTest, CloseFromAnotherThreadWakesReaderAndWriter) {
  std::atomic<int> woken = 0;
  auto reader = [](ConnectionContractTest* self, std::atomic<int>& count) -> Task<void> {
    Result<rpc::Message> received = co_await self->a->receive();
    while (received) received = co_await self->a->receive();
    EXPECT_EQ(received.error().kind(), ErrorKind::closed);
    ++count;
  };
  auto writer = [](ConnectionContractTest* self, std::atomic<int>& count) -> Task<void> {
    Result<void> sent = co_await self->a->send(rope(message(0, 100'000)));
    while (sent)
      sent = co_await self->a->send(rope(message(0, 100'000)));  // `b` is not read, so this soon waits
    EXPECT_EQ(sent.error().kind(), ErrorKind::closed);
    ++count;
  };
  if (a != b) loop.spawn(reader(this, woken));
  loop.spawn(writer(this, woken));
  std::jthread closer([this] { a->close(); });
  const int all = a != b ? 2 : 1;
  loop.run_until([&] { return woken == all; });
  EXPECT_TRUE(a->closed());
}

TEST(WriteStallTest, SendFailsWithTimeoutWhenRemotePeerNeverReads) {
  Loop loop;
  const test::TempDir dir;
  StreamConnectOptions options;
  options.limits.write_stall = 50ms;
  std::shared_ptr<Connection> unread;
  const Result<Uri> uri = Uri::parse("unix:" + dir / "socket");
  auto listener =
      Listener::listen(loop, *uri, options, [&](std::shared_ptr<Connection> c) { unread = std::move(c); });
  ASSERT_TRUE(listener);
  ConnectResult connected = loop.block_on(connect_stream(loop, *uri, options));
  ASSERT_TRUE(connected);
  auto body = [](std::shared_ptr<Connection> c) -> Task<Error> {
    Result<void> sent = co_await c->send(rope(message(0, 100'000)));
    while (sent) sent = co_await c->send(rope(message(0, 100'000)));
    co_return sent.error();
  };
  const Error error = loop.block_on(body(*connected));
  EXPECT_EQ(error.kind(), ErrorKind::timeout);
  EXPECT_NE(error.message().find("write_stall"), std::string::npos) << error.message();
}

// The end of a child process is tested in child_test.cpp.
class ConnectionPairTest : public ConnectionContractTest {};

TEST_P(ConnectionPairTest, ReceiveFailsWithTheSameErrorAfterRemotePeerCloses) {
  b->close();
  const std::string why = receive(a);
  EXPECT_TRUE(why.starts_with("connection closed: ")) << why;
  EXPECT_EQ(receive(a), why);
}

// Sends up to `total` bytes to a remote peer that never reads. Adds the bytes of completed sends to
// `accepted`.
Task<void> send_many(std::shared_ptr<Connection> c, std::size_t total, std::size_t& accepted) {
  const std::string text = message(0, 1u << 20);
  while (accepted < total) {
    const Result<void> sent = co_await c->send(rope(text));
    if (!sent) co_return;
    accepted += text.size();
  }
}

TEST_P(ConnectionContractTest, SendWaitsAndMemoryStaysBoundedWhenRemotePeerNeverReads) {  // R3.4
  const std::size_t before = test::allocated_bytes();
  std::size_t accepted = 0;
  loop.spawn(send_many(a, 1u << 30, accepted));
  // Runs until no byte has been accepted for 250 ms.
  std::size_t last = 1;
  while (last != accepted) {
    last = accepted;
    bool elapsed = false;
    Timer timer(loop);
    timer.arm_after(250ms, [&] { elapsed = true; });
    loop.run_until([&] { return elapsed; });
  }
  EXPECT_LT(accepted, 64u << 20);
  EXPECT_LT(test::allocated_bytes(), before + (64u << 20));
  EXPECT_LE(a->backlog(), 2u << 20);
}

std::string kind_name(const ::testing::TestParamInfo<ConnectionKind>& kind) {
  return kind.param.name;
}

const ConnectionKind kPairs[] = {
    {"channel", "channel", rpc::Framing::line},    {"unix_line", "unix", rpc::Framing::line},
    {"unix_length", "unix", rpc::Framing::length}, {"unix_header", "unix", rpc::Framing::header},
    {"tcp_line", "tcp", rpc::Framing::line},       {"tcp_length", "tcp", rpc::Framing::length},
    {"tcp_header", "tcp", rpc::Framing::header}};
const ConnectionKind kChildren[] = {{"child_line", "child", rpc::Framing::line},
                                    {"child_length", "child", rpc::Framing::length},
                                    {"child_header", "child", rpc::Framing::header}};

INSTANTIATE_TEST_SUITE_P(Pairs, ConnectionContractTest, ::testing::ValuesIn(kPairs), kind_name);
INSTANTIATE_TEST_SUITE_P(Children, ConnectionContractTest, ::testing::ValuesIn(kChildren), kind_name);
INSTANTIATE_TEST_SUITE_P(Pairs, ConnectionPairTest, ::testing::ValuesIn(kPairs), kind_name);

}  // namespace
}  // namespace fairlead
