// StreamPump and StreamWriter, between a real pair of sockets, a pipe or a file.
#include "connection/stream_pump.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "connection/descriptor_stream.hpp"
#include "support/support.hpp"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMebibyte = 1u << 20;

std::unique_ptr<ByteStream> stream_over(Loop& loop, int fd) {
  Result<Descriptor> descriptor = Descriptor::adopt(loop, UniqueFd(fd));
  EXPECT_TRUE(descriptor);
  return std::make_unique<DescriptorStream>(std::move(*descriptor), std::nullopt, "the peer");
}

class PumpedOwner : public std::enable_shared_from_this<PumpedOwner>, public StreamPump::Owner {
 public:
  PumpedOwner(Loop& loop, int fd, std::chrono::milliseconds write_stall = 0ms,
              std::size_t bytes_per_turn = StreamPump::kBytesPerTurn)
      : pump(loop, *this, queue, stream_over(loop, fd), "the peer", write_stall, bytes_per_turn) {}

  std::shared_ptr<void> lifetime() override { return shared_from_this(); }
  bool read_once() override {
    ++steps;
    return on_step();
  }
  void on_turn_end() override {
    ++turns;
    most_steps = std::max(most_steps, std::exchange(steps, 0));
    if (!input_ended) pump.wait_for_input();
  }
  void on_out_of_memory() override { ++out_of_memory; }
  void on_written() override { ++written; }
  void on_output_failed(Error reason) override { failure = std::move(reason); }
  void on_flushed() override { ++flushed; }

  bool read_at_most(std::size_t bytes) {
    std::string buffer(bytes, '\0');
    const ByteStream::Io io = pump.read(buffer);
    received += buffer.substr(0, io.bytes);
    input_ended = io.state == ByteStream::State::ended;
    return io.state == ByteStream::State::ok;
  }

  rpc::ByteQueue queue;
  std::function<bool()> on_step = [this] { return read_at_most(64u << 10); };
  std::string received;
  std::optional<Error> failure;
  bool input_ended = false;
  int steps = 0;  // of the turn under way
  int most_steps = 0;
  int turns = 0;
  int out_of_memory = 0;
  int written = 0;
  int flushed = 0;
  StreamPump pump;
};

class StreamPumpTest : public ::testing::Test {
 protected:
  StreamPumpTest() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    ours_ = pair[0];
    peer_ = UniqueFd(pair[1]);
    EXPECT_EQ(::fcntl(peer_.get(), F_SETFL, O_NONBLOCK), 0);
  }
  ~StreamPumpTest() override {
    if (owner_) owner_->pump.close();
  }

  PumpedOwner& make(std::chrono::milliseconds write_stall = 0ms,
                    std::size_t bytes_per_turn = StreamPump::kBytesPerTurn) {
    owner_ = std::make_shared<PumpedOwner>(loop_, ours_, write_stall, bytes_per_turn);
    return *owner_;
  }

  // Everything that the peer can read now.
  std::string peer_reads() {
    std::string all;
    std::array<char, 64u << 10> piece;
    for (ssize_t n = 1; n > 0;) {
      n = ::read(peer_.get(), piece.data(), piece.size());
      if (n > 0) all.append(piece.data(), static_cast<std::size_t>(n));
    }
    return all;
  }
  void peer_writes(std::string_view bytes) {
    ASSERT_EQ(::write(peer_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  // Runs the loop until everything that was posted has run.
  void run_posted() {
    bool done = false;
    loop_.post([&] { done = true; });
    loop_.run_until([&] { return done; });
  }

  Loop loop_;
  std::shared_ptr<PumpedOwner> owner_;
  int ours_ = -1;
  UniqueFd peer_;
};

TEST_F(StreamPumpTest, FlushWritesWhatIsQueuedInOrder) {
  PumpedOwner& owner = make();
  const std::string large(8000, 'x');  // shared with the queue, between two pieces that are copied
  owner.queue.put(std::string_view("first "));
  owner.queue.put(Bytes::copy_of(large));
  owner.queue.put(std::string_view(" last"));
  owner.pump.flush();
  EXPECT_EQ(peer_reads(), "first " + large + " last");
  EXPECT_EQ(owner.written, 1);
  EXPECT_EQ(owner.flushed, 0);  // it was the owner who flushed
}

TEST_F(StreamPumpTest, FlushSoonWritesOnceWithAllThatIsQueuedByThen) {
  PumpedOwner& owner = make();
  owner.queue.put(std::string_view("a"));
  owner.pump.flush_soon();
  owner.queue.put(std::string_view("b"));
  owner.pump.flush_soon();
  EXPECT_EQ(peer_reads(), "");
  run_posted();
  EXPECT_EQ(peer_reads(), "ab");
  EXPECT_EQ(owner.written, 1);
  EXPECT_EQ(owner.flushed, 1);
}

TEST_F(StreamPumpTest, WritingGoesOnWhenPeerReadsAgain) {
  PumpedOwner& owner = make(60s);
  const std::string all(8 * kMebibyte, 'y');
  owner.queue.put(Bytes::copy_of(all));
  owner.pump.flush();
  EXPECT_TRUE(owner.pump.blocked());
  EXPECT_FALSE(owner.queue.empty());
  std::string got;
  loop_.run_until([&] {
    got += peer_reads();
    return got.size() == all.size();
  });
  EXPECT_EQ(got, all);
  EXPECT_FALSE(owner.pump.blocked());
  EXPECT_FALSE(owner.failure);
  EXPECT_GT(owner.flushed, 0);
}

TEST_F(StreamPumpTest, OutputFailsWithTimeoutThatNamesWriteStallWhenPeerReadsNothing) {
  PumpedOwner& owner = make(20ms);
  owner.queue.put(Bytes::copy_of(std::string(8 * kMebibyte, 'z')));
  owner.pump.flush();
  loop_.run_until([&] { return owner.failure.has_value(); });
  EXPECT_EQ(owner.failure->kind(), ErrorKind::timeout);
  EXPECT_NE(owner.failure->message().find("the peer has not read anything: write_stall"), std::string::npos)
      << owner.failure->message();
  const std::size_t left = owner.queue.bytes();
  peer_reads();
  owner.pump.flush();
  EXPECT_EQ(owner.queue.bytes(), left);  // nothing is written any more
}

TEST_F(StreamPumpTest, WriteStallOfZeroIsNoLimit) {
  PumpedOwner& owner = make(0ms);
  owner.queue.put(Bytes::copy_of(std::string(8 * kMebibyte, 'z')));
  owner.pump.flush();
  bool elapsed = false;
  Timer timer(loop_);
  timer.arm_after(50ms, [&] { elapsed = true; });
  loop_.run_until([&] { return elapsed; });
  EXPECT_FALSE(owner.failure);
  EXPECT_TRUE(owner.pump.blocked());
}

TEST_F(StreamPumpTest, OutputFailsWithClosedWhenPeerHasClosed) {
  PumpedOwner& owner = make();
  peer_.reset();
  owner.queue.put(std::string_view("the peer has stopped reading"));
  owner.pump.flush_soon();  // a running loop blocks SIGPIPE
  loop_.run_until([&] { return owner.failure.has_value(); });
  EXPECT_EQ(owner.failure->kind(), ErrorKind::closed);
  EXPECT_EQ(owner.failure->message(), "the peer no longer reads what it is sent");
  EXPECT_EQ(owner.written, 1);
}

TEST_F(StreamPumpTest, FlushLeavesTheLoopToOthersAfterFourMebibytes) {
  const test::TempDir dir;
  ::close(ours_);
  ours_ = ::open((dir / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);  // takes everything at once
  PumpedOwner& owner = make();
  for (int i = 0; i < 12; ++i) owner.queue.put(Bytes::copy_of(std::string(kMebibyte, 'f')));
  for (int i = 0; i < 100; ++i) owner.queue.put(Bytes::copy_of(std::string(64u << 10, 'g')));
  const std::size_t all = owner.queue.bytes();
  owner.pump.flush();
  EXPECT_GE(owner.queue.written(), 4 * kMebibyte);
  EXPECT_LT(owner.queue.written(), all);
  loop_.run_until([&] { return owner.queue.empty(); });
  EXPECT_EQ(::lseek(ours_, 0, SEEK_END), static_cast<off_t>(all));
}

TEST_F(StreamPumpTest, TurnEndsAfterItsReadsThoughThereIsMore) {
  PumpedOwner& owner = make();
  owner.on_step = [&] { return owner.read_at_most(1); };
  const std::string sent(100, 's');
  peer_writes(sent);
  owner.pump.wait_for_input();
  loop_.run_until([&] { return owner.received.size() == sent.size() && owner.steps == 0; });
  EXPECT_EQ(owner.received, sent);
  EXPECT_EQ(owner.most_steps, StreamPump::kReadsPerTurn);
}

TEST_F(StreamPumpTest, TurnEndsAfterItsBytesThoughThereIsMore) {
  PumpedOwner& owner = make(0ms, 1000);
  owner.on_step = [&] { return owner.read_at_most(400); };
  const std::string sent(10'000, 's');
  peer_writes(sent);
  owner.pump.wait_for_input();
  loop_.run_until([&] { return owner.received.size() == sent.size() && owner.steps == 0; });
  EXPECT_EQ(owner.received, sent);
  EXPECT_EQ(owner.most_steps, 3);
}

TEST_F(StreamPumpTest, OutputOfATurnIsWrittenAfterIt) {
  PumpedOwner& owner = make();
  owner.on_step = [&] {
    owner.queue.put(std::string_view("answer"));
    owner.pump.flush_soon();
    EXPECT_TRUE(owner.pump.in_turn());
    return owner.read_at_most(100);
  };
  peer_writes("question");
  owner.pump.wait_for_input();
  loop_.run_until([&] { return owner.flushed > 0; });
  EXPECT_TRUE(peer_reads().starts_with("answer"));
  EXPECT_EQ(owner.received, "question");
}

TEST_F(StreamPumpTest, TurnThatRunsOutOfMemoryIsReportedAndTheNextOneRuns) {
  PumpedOwner& owner = make();
  owner.on_step = [&]() -> bool {
    if (owner.out_of_memory == 0) throw std::bad_alloc();
    return owner.read_at_most(100);
  };
  peer_writes("late");
  owner.pump.wait_for_input();
  loop_.run_until([&] { return owner.received == "late"; });
  EXPECT_EQ(owner.out_of_memory, 1);
}

TEST_F(StreamPumpTest, RunSoonRunsOneTurnWithoutInput) {
  PumpedOwner& owner = make();
  owner.on_step = [] { return false; };
  owner.pump.run_soon();
  owner.pump.run_soon();
  EXPECT_EQ(owner.turns, 0);
  run_posted();
  EXPECT_EQ(owner.turns, 1);
}

TEST_F(StreamPumpTest, ClosingWithinATurnEndsItAndFreesTheOwner) {
  PumpedOwner& owner = make();
  owner.on_step = [&] {
    owner.pump.close();
    return true;
  };
  peer_writes("x");
  owner.pump.wait_for_input();
  const std::weak_ptr<PumpedOwner> weak = owner_;
  loop_.run_until([&] { return owner.turns == 1; });
  EXPECT_EQ(owner.most_steps, 1);
  EXPECT_EQ(owner.pump.read(std::span<char>()).state, ByteStream::State::ended);
  owner_ = nullptr;
  run_posted();
  EXPECT_TRUE(weak.expired());  // no callback holds it
}

TEST_F(StreamPumpTest, NothingIsCalledAfterCloseAlthoughItWasPosted) {
  PumpedOwner& owner = make();
  owner.queue.put(std::string_view("unsent"));
  owner.pump.flush_soon();
  owner.pump.run_soon();
  owner.pump.close();
  run_posted();
  EXPECT_EQ(owner.written, 0);
  EXPECT_EQ(owner.turns, 0);
  EXPECT_EQ(peer_reads(), "");
}

TEST_F(StreamPumpTest, ReleasedStreamIsUsableAndCallsTheOwnerNoMore) {
  PumpedOwner& owner = make();
  owner.pump.wait_for_input();
  const std::unique_ptr<ByteStream> stream = owner.pump.release();
  ASSERT_TRUE(stream);
  EXPECT_FALSE(owner.pump.open());
  bool readable = false;
  stream->when_readable([&] { readable = true; });
  peer_writes("for the new owner");
  loop_.run_until([&] { return readable; });
  EXPECT_EQ(owner.turns, 0);
}

TEST_F(StreamPumpTest, FinishOutputWritesTheLastBytesThenPeerSeesAnEnd) {
  PumpedOwner& owner = make();
  owner.queue.put(std::string_view("goodbye"));
  owner.pump.finish_output();
  EXPECT_EQ(peer_reads(), "goodbye");
  char byte = 0;
  EXPECT_EQ(::read(peer_.get(), &byte, 1), 0);
  EXPECT_EQ(owner.written, 0);
  peer_writes("still read");
  owner.pump.wait_for_input();
  loop_.run_until([&] { return owner.received == "still read"; });
}

TEST(DescriptorStream, ClosesTheOutputOfAPairOfPipesAndReadsOn) {
  Loop loop;
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  ASSERT_EQ(::pipe2(in.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
  const UniqueFd their_output(in[1]);
  const UniqueFd their_input(out[0]);
  Result<Descriptor> ours = Descriptor::adopt(loop, UniqueFd(in[0]));
  Result<Descriptor> ours_out = Descriptor::adopt(loop, UniqueFd(out[1]));
  DescriptorStream stream(std::move(*ours), std::move(*ours_out), "pipes");
  stream.shut_output();
  char byte = 0;
  EXPECT_EQ(::read(their_input.get(), &byte, 1), 0);
  ASSERT_EQ(::write(their_output.get(), "x", 1), 1);
  EXPECT_EQ(stream.read(std::span(&byte, 1)).bytes, 1u);
  EXPECT_EQ(stream.read(std::span(&byte, 1)).state, ByteStream::State::again);
}

}  // namespace
}  // namespace fairlead
