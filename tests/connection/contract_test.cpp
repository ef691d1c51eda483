// R3: what every kind of connection promises, proven on every kind: channel, Unix socket, TCP, child process
// (a `cat`, so that what is sent comes back), in every framing that applies.
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

struct Kind {
  std::string name;
  std::string transport;
  rpc::Framing framing;
};

void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

class Contract : public ::testing::TestWithParam<Kind> {
 public:
  test::TempDir dir;
  Loop loop;
  std::shared_ptr<Listener> listener;
  std::shared_ptr<Connection> a;
  std::shared_ptr<Connection> b;  // a child echoes: then a and b are the same

  void SetUp() override {
    const std::string& transport = GetParam().transport;
    if (transport == "channel") {
      std::tie(a, b) = make_channel(loop, loop);
    } else if (transport == "child") {
      ProcessSpec spec;
      spec.command = "cat";
      ConnectResult made = loop.block_on(connect_child(loop, spec, options()));
      ASSERT_TRUE(made) << made.error().to_string();
      a = b = *made;
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
    ConnectResult made =
        loop.block_on(connect_stream(loop, Uri::parse(listener->address()).value(), options()));
    ASSERT_TRUE(made) << made.error().to_string();
    a = *made;
    loop.run_until([this] { return b != nullptr; });
  }

  ConnectOptions options() const {
    ConnectOptions made;
    made.framing = GetParam().framing;
    return made;
  }

  void TearDown() override {
    for (const auto& connection : {a, b}) {
      if (connection) connection->close();
    }
    if (a) loop.block_on(a->settled());
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
    Result<rpc::Message> got = co_await c->receive();
    co_return got;
  }
  std::string receive(const std::shared_ptr<Connection>& at) {
    const Result<rpc::Message> got = loop.block_on(receive_message(at));
    return got ? std::string(got->frame().view()) : got.error().to_string();
  }
};

std::string message(int n, std::size_t size = 0) {
  return R"({"jsonrpc":"2.0","method":"m","params":[)" + std::to_string(n) + ",\"" + std::string(size, 'x') +
         "\"]}";
}

TEST_P(Contract, MessagesArriveWholeAndInOrder) {  // R3.1
  for (const std::size_t size : {0uz, 1uz, 1000uz, 70'000uz, 3'000'000uz}) {
    auto body = [](Contract* self, std::size_t n) -> Task<void> {
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

Task<void> receive_many(std::shared_ptr<Connection> c, int count, std::vector<int>& got) {
  for (int i = 0; i < count; ++i) {
    const Result<rpc::Message> message = co_await c->receive();
    if (!message || message->is(rpc::Kind::malformed)) {
      ADD_FAILURE() << (message ? message->problem().to_string() : message.error().to_string());
      co_return;
    }
    got.push_back(static_cast<int>(*json::View(message->params_text())[std::size_t{0}].as_int()));
  }
}

// A connection carries any JSON value; a peer on it would refuse what is no JSON-RPC message.
TEST_P(Contract, AnyJsonValueTravels) {
  for (const std::string value : {"\"ping\"", "7", "null", "[]", "{\"a\":1}"}) {
    EXPECT_EQ(send(a, value), "");
    const Result<rpc::Message> got = loop.block_on(receive_message(b));
    ASSERT_TRUE(got) << got.error().to_string();
    EXPECT_EQ(got->value().text(), value);
  }
}

Task<void> send_text(std::shared_ptr<Connection> c, std::string text) {
  const Result<void> sent = co_await c->send(rope(text));
  EXPECT_TRUE(sent);
}

// The largest frames there may be, of everything that is costly to scan.
TEST_P(Contract, LargestFramesDoNotHoldTheLoop) {
  for (const std::string& value : test::hostile_values(test::kLargestFrame)) {
    SCOPED_TRACE(value.substr(0, 40));
    const std::string text = R"({"jsonrpc":"2.0","method":"m","params":{"a":)" + value + "}}";
    test::expect_short_turns(loop, [&] {
      loop.spawn(send_text(a, text));
      const Result<rpc::Message> got = loop.block_on(receive_message(b));
      ASSERT_TRUE(got) << got.error().to_string();
      EXPECT_EQ(got->kind(), rpc::Kind::notification);
      EXPECT_TRUE(got->frame().view() == text);
    });
  }
}

TEST_P(Contract, LargeFrameIsReceivedBeforeWhatFollowsIt) {
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

TEST_P(Contract, LargeFrameBeforeTheEndIsReceived) {
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

TEST_P(Contract, ClosingWhileALargeFrameIsParsedEndsTheReceiver) {
  const std::string large = R"({"jsonrpc":"2.0","method":"m","params":)" +
                            test::shuffled("[", {"[],", "1,"}, "1", "]", 8u << 20) + "}";
  bool sent = false;
  auto body = [](std::shared_ptr<Connection> c, std::string text, bool& done) -> Task<void> {
    const Result<void> outcome = co_await c->send(rope(text));
    static_cast<void>(outcome);
    done = true;
  };
  loop.spawn(body(a, large, sent));
  bool received = false;
  auto receiver = [](std::shared_ptr<Connection> c, bool& done) -> Task<void> {
    const Result<rpc::Message> got = co_await c->receive();
    EXPECT_FALSE(got);
    done = true;
  };
  loop.spawn(receiver(b, received));
  loop.run_until([&] { return sent; });
  b->close();
  loop.run_until([&] { return received; });
}

TEST_P(Contract, ConcurrentSendersNeverInterleave) {  // R3.4
  int done = 0;
  std::vector<int> got;
  for (int sender = 0; sender < 10; ++sender) loop.spawn(send_many(a, sender * 1000, 100, 3000, done));
  loop.block_on(receive_many(b, 1000, got));
  loop.run_until([&] { return done == 10; });
  // Every message is there once, and those of each sender are in order.
  std::vector<int> next(10, 0);
  for (const int n : got) EXPECT_EQ(n % 1000, next[static_cast<std::size_t>(n / 1000)]++);
  for (const int count : next) EXPECT_EQ(count, 100);
}

TEST_P(Contract, CloseIsIdempotentAndEverythingLaterFailsTheSame) {  // R3.5
  a->close();
  a->close();
  EXPECT_TRUE(a->closed());
  const std::string why = "connection closed: the connection was closed by this side";
  EXPECT_EQ(receive(a), why);
  EXPECT_EQ(send(a, message(1)), why);
  EXPECT_EQ(receive(a), why);
}

TEST_P(Contract, CloseFromAnotherThreadWakesReaderAndWriter) {
  std::atomic<int> woken = 0;
  auto reader = [](Contract* self, std::atomic<int>& count) -> Task<void> {
    Result<rpc::Message> got = co_await self->a->receive();
    while (got) got = co_await self->a->receive();
    EXPECT_EQ(got.error().kind(), ErrorKind::closed);
    ++count;
  };
  auto writer = [](Contract* self, std::atomic<int>& count) -> Task<void> {
    Result<void> sent = co_await self->a->send(rope(message(0, 100'000)));
    while (sent)
      sent = co_await self->a->send(rope(message(0, 100'000)));  // nobody reads at b: soon it waits
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

TEST(WriteStall, OtherSideThatReadsNothingAtAllIsGivenUpByName) {
  Loop loop;
  const test::TempDir dir;
  ConnectOptions options;
  options.limits.write_stall = 50ms;
  std::shared_ptr<Connection> deaf;
  const Result<Uri> uri = Uri::parse("unix:" + dir / "socket");
  auto listener =
      Listener::listen(loop, *uri, options, [&](std::shared_ptr<Connection> c) { deaf = std::move(c); });
  ASSERT_TRUE(listener);
  ConnectResult made = loop.block_on(connect_stream(loop, *uri, options));
  ASSERT_TRUE(made);
  auto body = [](std::shared_ptr<Connection> c) -> Task<Error> {
    Result<void> sent = co_await c->send(rope(message(0, 100'000)));
    while (sent) sent = co_await c->send(rope(message(0, 100'000)));
    co_return sent.error();
  };
  const Error error = loop.block_on(body(*made));
  EXPECT_EQ(error.kind(), ErrorKind::timeout);
  EXPECT_NE(error.message().find("write_stall"), std::string::npos) << error.message();
}

// A child's end has tests of its own (child_test.cpp).
class PairContract : public Contract {};

TEST_P(PairContract, OtherSideGoneIsToldAndStaysSo) {
  b->close();
  const std::string why = receive(a);
  EXPECT_TRUE(why.starts_with("connection closed: ")) << why;
  EXPECT_EQ(receive(a), why);
}

// Offers a gibibyte to a reader that never reads: send() waits, memory stays where it was.
Task<void> offer(std::shared_ptr<Connection> c, std::size_t total, std::size_t& accepted) {
  const std::string one = message(0, 1u << 20);
  while (accepted < total) {
    const Result<void> sent = co_await c->send(rope(one));
    if (!sent) co_return;
    accepted += one.size();
  }
}

TEST_P(Contract, StalledReaderMakesSendWaitAndMemoryStayBounded) {  // R3.4
  const std::size_t before = test::allocated_bytes();
  std::size_t accepted = 0;
  loop.spawn(offer(a, 1u << 30, accepted));
  // Until nothing moves any more: a quarter of a second without a byte accepted.
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

std::string name_of(const ::testing::TestParamInfo<Kind>& kind) {
  return kind.param.name;
}

const Kind kPairs[] = {
    {"channel", "channel", rpc::Framing::line},    {"unix_line", "unix", rpc::Framing::line},
    {"unix_length", "unix", rpc::Framing::length}, {"unix_header", "unix", rpc::Framing::header},
    {"tcp_line", "tcp", rpc::Framing::line},       {"tcp_length", "tcp", rpc::Framing::length},
    {"tcp_header", "tcp", rpc::Framing::header}};
const Kind kChildren[] = {{"child_line", "child", rpc::Framing::line},
                          {"child_length", "child", rpc::Framing::length},
                          {"child_header", "child", rpc::Framing::header}};

INSTANTIATE_TEST_SUITE_P(Pairs, Contract, ::testing::ValuesIn(kPairs), name_of);
INSTANTIATE_TEST_SUITE_P(Children, Contract, ::testing::ValuesIn(kChildren), name_of);
INSTANTIATE_TEST_SUITE_P(Pairs, PairContract, ::testing::ValuesIn(kPairs), name_of);

}  // namespace
}  // namespace fairlead
