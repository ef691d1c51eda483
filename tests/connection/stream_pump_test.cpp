// StreamPump and StreamWriter on a socket pair, a pipe or a file.
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
    ++step_count;
    return on_step();
  }
  void on_turn_end() override {
    ++turn_count;
    max_step_count = std::max(max_step_count, std::exchange(step_count, 0));
    if (!input_ended) pump.wait_for_input();
  }
  void on_out_of_memory() override { ++out_of_memory_count; }
  void on_written() override { ++write_count; }
  void on_output_failed(Error reason) override { failure = std::move(reason); }
  void on_flushed() override { ++flush_count; }

  bool read_at_most(std::size_t bytes) {
    std::string buffer(bytes, '\0');
    const ByteStream::IoResult io = pump.read(buffer);
    received += buffer.substr(0, io.bytes);
    input_ended = io.status == ByteStream::IoStatus::ended;
    return io.status == ByteStream::IoStatus::ok;
  }

  rpc::ByteQueue queue;
  std::function<bool()> on_step = [this] { return read_at_most(64u << 10); };
  std::string received;
  std::optional<Error> failure;
  bool input_ended = false;
  int step_count = 0;  // steps of the current turn
  int max_step_count = 0;
  int turn_count = 0;
  int out_of_memory_count = 0;
  int write_count = 0;
  int flush_count = 0;
  StreamPump pump;
};

class StreamPumpTest : public ::testing::Test {
 protected:
  StreamPumpTest() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    pump_fd_ = pair[0];
    peer_ = UniqueFd(pair[1]);
    EXPECT_EQ(::fcntl(peer_.get(), F_SETFL, O_NONBLOCK), 0);
  }
  ~StreamPumpTest() override {
    if (owner_) owner_->pump.close();
  }

  PumpedOwner& make_owner(std::chrono::milliseconds write_stall = 0ms,
                          std::size_t bytes_per_turn = StreamPump::kBytesPerTurn) {
    owner_ = std::make_shared<PumpedOwner>(loop_, pump_fd_, write_stall, bytes_per_turn);
    return *owner_;
  }

  // Reads and returns all bytes that are available to the peer now.
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
  // Runs the callbacks that are posted now.
  void run_posted() {
    bool done = false;
    loop_.post([&] { done = true; });
    loop_.run_until([&] { return done; });
  }

  Loop loop_;
  std::shared_ptr<PumpedOwner> owner_;
  int pump_fd_ = -1;
  UniqueFd peer_;
};

TEST_F(StreamPumpTest, FlushWritesQueuedBytesInOrder) {
  PumpedOwner& owner = make_owner();
  const std::string large(8000, 'x');  // the queue shares it; the pieces before and after are copied
  owner.queue.put(std::string_view("first "));
  owner.queue.put(Bytes::copy_of(large));
  owner.queue.put(std::string_view(" last"));
  owner.pump.flush();
  EXPECT_EQ(peer_reads(), "first " + large + " last");
  EXPECT_EQ(owner.write_count, 1);
  EXPECT_EQ(owner.flush_count, 0);  // on_flushed() is called for posted flushes only
}

TEST_F(StreamPumpTest, FlushSoonWritesOnceForAllQueuedBytes) {
  PumpedOwner& owner = make_owner();
  owner.queue.put(std::string_view("a"));
  owner.pump.flush_soon();
  owner.queue.put(std::string_view("b"));
  owner.pump.flush_soon();
  EXPECT_EQ(peer_reads(), "");
  run_posted();
  EXPECT_EQ(peer_reads(), "ab");
  EXPECT_EQ(owner.write_count, 1);
  EXPECT_EQ(owner.flush_count, 1);
}

TEST_F(StreamPumpTest, WritingResumesWhenPeerReadsAgain) {
  PumpedOwner& owner = make_owner(60s);
  const std::string all(8 * kMebibyte, 'y');
  owner.queue.put(Bytes::copy_of(all));
  owner.pump.flush();
  EXPECT_TRUE(owner.pump.output_blocked());
  EXPECT_FALSE(owner.queue.empty());
  std::string got;
  loop_.run_until([&] {
    got += peer_reads();
    return got.size() == all.size();
  });
  EXPECT_EQ(got, all);
  EXPECT_FALSE(owner.pump.output_blocked());
  EXPECT_FALSE(owner.failure);
  EXPECT_GT(owner.flush_count, 0);
}

TEST_F(StreamPumpTest, OutputFailsWithTimeoutThatNamesWriteStallWhenPeerReadsNothing) {
  PumpedOwner& owner = make_owner(20ms);
  owner.queue.put(Bytes::copy_of(std::string(8 * kMebibyte, 'z')));
  owner.pump.flush();
  loop_.run_until([&] { return owner.failure.has_value(); });
  EXPECT_EQ(owner.failure->kind(), ErrorKind::timeout);
  EXPECT_NE(owner.failure->message().find("the peer stopped reading: write_stall (20 ms) exceeded"),
            std::string::npos)
      << owner.failure->message();
  const std::size_t left = owner.queue.unwritten_bytes();
  peer_reads();
  owner.pump.flush();
  EXPECT_EQ(owner.queue.unwritten_bytes(), left);  // nothing more is written
}

TEST_F(StreamPumpTest, WriteStallOfZeroMeansNoLimit) {
  PumpedOwner& owner = make_owner(0ms);
  owner.queue.put(Bytes::copy_of(std::string(8 * kMebibyte, 'z')));
  owner.pump.flush();
  bool elapsed = false;
  Timer timer(loop_);
  timer.arm_after(50ms, [&] { elapsed = true; });
  loop_.run_until([&] { return elapsed; });
  EXPECT_FALSE(owner.failure);
  EXPECT_TRUE(owner.pump.output_blocked());
}

TEST_F(StreamPumpTest, OutputFailsWithClosedWhenPeerHasClosed) {
  PumpedOwner& owner = make_owner();
  peer_.reset();
  owner.queue.put(std::string_view("the peer has stopped reading"));
  owner.pump.flush_soon();  // a running loop blocks SIGPIPE
  loop_.run_until([&] { return owner.failure.has_value(); });
  EXPECT_EQ(owner.failure->kind(), ErrorKind::closed);
  EXPECT_EQ(owner.failure->message(), "the peer closed its end of the stream");
  EXPECT_EQ(owner.write_count, 1);
}

TEST_F(StreamPumpTest, FlushYieldsToTheLoopAfterFourMebibytes) {
  const test::TempDir dir;
  ::close(pump_fd_);
  pump_fd_ = ::open((dir / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);  // never blocks
  PumpedOwner& owner = make_owner();
  for (int i = 0; i < 12; ++i) owner.queue.put(Bytes::copy_of(std::string(kMebibyte, 'f')));
  for (int i = 0; i < 100; ++i) owner.queue.put(Bytes::copy_of(std::string(64u << 10, 'g')));
  const std::size_t all = owner.queue.unwritten_bytes();
  owner.pump.flush();
  EXPECT_GE(owner.queue.written_position(), 4 * kMebibyte);
  EXPECT_LT(owner.queue.written_position(), all);
  loop_.run_until([&] { return owner.queue.empty(); });
  EXPECT_EQ(::lseek(pump_fd_, 0, SEEK_END), static_cast<off_t>(all));
}

TEST_F(StreamPumpTest, TurnEndsAfterMaxReadsAlthoughThereIsMoreInput) {
  PumpedOwner& owner = make_owner();
  owner.on_step = [&] { return owner.read_at_most(1); };
  const std::string sent(100, 's');
  peer_writes(sent);
  owner.pump.wait_for_input();
  loop_.run_until([&] { return owner.received.size() == sent.size() && owner.step_count == 0; });
  EXPECT_EQ(owner.received, sent);
  EXPECT_EQ(owner.max_step_count, StreamPump::kReadsPerTurn);
}

TEST_F(StreamPumpTest, TurnEndsAfterMaxBytesAlthoughThereIsMoreInput) {
  PumpedOwner& owner = make_owner(0ms, 1000);
  owner.on_step = [&] { return owner.read_at_most(400); };
  const std::string sent(10'000, 's');
  peer_writes(sent);
  owner.pump.wait_for_input();
  loop_.run_until([&] { return owner.received.size() == sent.size() && owner.step_count == 0; });
  EXPECT_EQ(owner.received, sent);
  EXPECT_EQ(owner.max_step_count, 3);
}

TEST_F(StreamPumpTest, OutputOfATurnIsWrittenAtItsEnd) {
  PumpedOwner& owner = make_owner();
  owner.on_step = [&] {
    owner.queue.put(std::string_view("answer"));
    owner.pump.flush_soon();
    EXPECT_TRUE(owner.pump.in_turn());
    return owner.read_at_most(100);
  };
  peer_writes("question");
  owner.pump.wait_for_input();
  loop_.run_until([&] { return owner.flush_count > 0; });
  EXPECT_TRUE(peer_reads().starts_with("answer"));
  EXPECT_EQ(owner.received, "question");
}

TEST_F(StreamPumpTest, OutOfMemoryInATurnIsReportedAndTheNextTurnRuns) {
  PumpedOwner& owner = make_owner();
  owner.on_step = [&]() -> bool {
    if (owner.out_of_memory_count == 0) throw std::bad_alloc();
    return owner.read_at_most(100);
  };
  peer_writes("late");
  owner.pump.wait_for_input();
  loop_.run_until([&] { return owner.received == "late"; });
  EXPECT_EQ(owner.out_of_memory_count, 1);
}

TEST_F(StreamPumpTest, RunSoonRunsOneTurnWithoutInput) {
  PumpedOwner& owner = make_owner();
  owner.on_step = [] { return false; };
  owner.pump.run_turn_soon();
  owner.pump.run_turn_soon();
  EXPECT_EQ(owner.turn_count, 0);
  run_posted();
  EXPECT_EQ(owner.turn_count, 1);
}

TEST_F(StreamPumpTest, CloseDuringATurnEndsItAndReleasesTheOwner) {
  PumpedOwner& owner = make_owner();
  owner.on_step = [&] {
    owner.pump.close();
    return true;
  };
  peer_writes("x");
  owner.pump.wait_for_input();
  const std::weak_ptr<PumpedOwner> weak = owner_;
  loop_.run_until([&] { return owner.turn_count == 1; });
  EXPECT_EQ(owner.max_step_count, 1);
  EXPECT_EQ(owner.pump.read(std::span<char>()).status, ByteStream::IoStatus::ended);
  owner_ = nullptr;
  run_posted();
  EXPECT_TRUE(weak.expired());  // no callback holds a reference
}

TEST_F(StreamPumpTest, PostedCallbacksDoNothingAfterClose) {
  PumpedOwner& owner = make_owner();
  owner.queue.put(std::string_view("unsent"));
  owner.pump.flush_soon();
  owner.pump.run_turn_soon();
  owner.pump.close();
  run_posted();
  EXPECT_EQ(owner.write_count, 0);
  EXPECT_EQ(owner.turn_count, 0);
  EXPECT_EQ(peer_reads(), "");
}

TEST_F(StreamPumpTest, ReleasedStreamIsUsableAndDoesNotCallTheOwner) {
  PumpedOwner& owner = make_owner();
  owner.pump.wait_for_input();
  const std::unique_ptr<ByteStream> stream = owner.pump.release();
  ASSERT_TRUE(stream);
  EXPECT_FALSE(owner.pump.is_open());
  bool readable = false;
  stream->when_readable([&] { readable = true; });
  peer_writes("for the new owner");
  loop_.run_until([&] { return readable; });
  EXPECT_EQ(owner.turn_count, 0);
}

TEST_F(StreamPumpTest, FinishOutputWritesRemainingBytesThenPeerReadsEndOfFile) {
  PumpedOwner& owner = make_owner();
  owner.queue.put(std::string_view("goodbye"));
  owner.pump.finish_output();
  EXPECT_EQ(peer_reads(), "goodbye");
  char byte = 0;
  EXPECT_EQ(::read(peer_.get(), &byte, 1), 0);
  EXPECT_EQ(owner.write_count, 0);
  peer_writes("still read");
  owner.pump.wait_for_input();
  loop_.run_until([&] { return owner.received == "still read"; });
}

TEST(DescriptorStreamTest, ShutdownOutputOfAPipePairLeavesInputOpen) {
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
  stream.shutdown_output();
  char byte = 0;
  EXPECT_EQ(::read(their_input.get(), &byte, 1), 0);
  ASSERT_EQ(::write(their_output.get(), "x", 1), 1);
  EXPECT_EQ(stream.read(std::span(&byte, 1)).bytes, 1u);
  EXPECT_EQ(stream.read(std::span(&byte, 1)).status, ByteStream::IoStatus::again);
}

}  // namespace
}  // namespace fairlead
