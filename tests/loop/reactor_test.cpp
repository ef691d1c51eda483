#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fairlead/base/buffer_cache.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "fairlead/loop/timer.hpp"
#include "loop/run_iterations.hpp"
#include "support/support.hpp"

namespace fairlead {
namespace {

using test::run_iterations;

using namespace std::chrono_literals;

// A descriptor and the other end of its socket pair.
struct Connected {
  explicit Connected(Loop& loop) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    other = UniqueFd(ends[1]);
    Result<Descriptor> adopted = Descriptor::adopt(loop, UniqueFd(ends[0]));
    if (!adopted) std::abort();
    descriptor.emplace(std::move(*adopted));
  }

  void send(std::string_view text) const {
    ASSERT_EQ(::write(other.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // Reads once and tells the descriptor what it has to know.
  ssize_t read() {
    std::array<char, 64> buffer{};
    const ssize_t n = ::read(descriptor->fd(), buffer.data(), buffer.size());
    if (n < static_cast<ssize_t>(buffer.size())) descriptor->input_drained();
    return n;
  }

  std::optional<Descriptor> descriptor;
  UniqueFd other;
};

TEST(ReactorTest, InputThatArrivesAfterInputDrainedIsReported) {
  Loop loop;
  Connected connected(loop);
  int reads = 0;
  const std::function<void()> wait = [&] {
    connected.descriptor->when_readable([&] {
      EXPECT_EQ(connected.read(), 1);
      ++reads;
      wait();
    });
  };
  wait();
  for (int i = 1; i <= 3; ++i) {
    connected.send("x");
    run_iterations(loop);
    EXPECT_EQ(reads, i);
  }
  run_iterations(loop);
  EXPECT_EQ(reads, 3) << "the callback ran without input";
}

TEST(ReactorTest, InputThatArrivesBetweenReadAndWaitIsReported) {
  Loop loop;
  Connected connected(loop);
  connected.send("a");
  EXPECT_EQ(connected.read(), 1);
  connected.send("b");
  bool readable = false;
  connected.descriptor->when_readable([&] { readable = true; });
  run_iterations(loop);
  EXPECT_TRUE(readable);
}

TEST(ReactorTest, InputThatArrivesWhileNothingWaitsIsReportedLater) {
  Loop loop;
  Connected connected(loop);
  EXPECT_EQ(connected.read(), -1);
  connected.send("a");
  run_iterations(loop);
  bool readable = false;
  connected.descriptor->when_readable([&] { readable = true; });
  run_iterations(loop);
  EXPECT_TRUE(readable);
}

TEST(ReactorTest, EndOfInputBehindAShortReadIsReported) {
  Loop loop;
  Connected connected(loop);
  connected.send("last");
  connected.other.reset();
  std::vector<ssize_t> reads;
  const std::function<void()> wait = [&] {
    connected.descriptor->when_readable([&] {
      reads.push_back(connected.read());
      if (reads.back() > 0) wait();
    });
  };
  wait();
  run_iterations(loop);
  EXPECT_EQ(reads, (std::vector<ssize_t>{4, 0}));
}

TEST(ReactorTest, UnreadInputIsReportedAgain) {
  Loop loop;
  Connected connected(loop);
  connected.send("ab");
  int calls = 0;
  const std::function<void()> wait = [&] {
    connected.descriptor->when_readable([&] {
      char byte = 0;
      EXPECT_EQ(::read(connected.descriptor->fd(), &byte, 1), 1);
      if (++calls < 2) wait();
    });
  };
  wait();
  run_iterations(loop);
  EXPECT_EQ(calls, 2);
}

TEST(ReactorTest, WritableIsReportedOnceTheOtherEndReads) {
  Loop loop;
  Connected connected(loop);
  const std::string block(1 << 16, 'x');
  std::size_t written = 0;
  while (true) {
    const ssize_t n = ::write(connected.descriptor->fd(), block.data(), block.size());
    if (n < 0) break;
    written += static_cast<std::size_t>(n);
  }
  bool writable = false;
  connected.descriptor->when_writable([&] { writable = true; });
  run_iterations(loop);
  EXPECT_FALSE(writable);
  std::string sink(written, '\0');
  for (std::size_t n = 0; n < written;) {
    const ssize_t part = ::read(connected.other.get(), sink.data(), sink.size());
    ASSERT_GT(part, 0);
    n += static_cast<std::size_t>(part);
  }
  run_iterations(loop);
  EXPECT_TRUE(writable);
}

TEST(ReactorTest, DescriptorThatIsAlwaysReadyDoesNotStarvePostedCallbacksAndTimers) {
  Loop loop;
  const test::TempDir dir;
  const std::string path = dir / "file";
  Result<Descriptor> file =
      Descriptor::adopt(loop, UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
  ASSERT_TRUE(file);
  int calls = 0;
  const std::function<void()> wait = [&] {
    file->when_readable([&] {
      ++calls;
      wait();
    });
  };
  wait();
  bool posted = false;
  bool expired = false;
  Timer timer(loop);
  timer.arm_after(1ms, [&] { expired = true; });
  loop.post([&] { loop.post([&] { posted = true; }); });
  loop.run_until([&] { return posted && expired; });
  EXPECT_GT(calls, 0);
}

TEST(ReactorTest, CallbackThatPostsItselfDoesNotStarveInputAndTimers) {
  Loop loop;
  Connected connected(loop);
  const std::function<void()> again = [&] { loop.post(again); };
  loop.post(again);
  bool readable = false;
  bool expired = false;
  connected.descriptor->when_readable([&] { readable = true; });
  connected.send("x");
  Timer timer(loop);
  timer.arm_after(1ms, [&] { expired = true; });
  loop.run_until([&] { return readable && expired; });
}

TEST(ReactorTest, CallbackOfADescriptorMayDestroyIt) {
  Loop loop;
  auto connected = std::make_unique<Connected>(loop);
  connected->send("x");
  bool called = false;
  connected->descriptor->when_readable([&] {
    connected.reset();
    called = true;
  });
  run_iterations(loop);
  EXPECT_TRUE(called);
}

TEST(ReactorTest, CallbackOfADescriptorMayDestroyAnotherOneThatIsReady) {
  Loop loop;
  auto a = std::make_unique<Connected>(loop);
  auto b = std::make_unique<Connected>(loop);
  a->send("x");
  b->send("x");
  int calls = 0;
  a->descriptor->when_readable([&] {
    ++calls;
    b.reset();
  });
  b->descriptor->when_readable([&] {
    ++calls;
    a.reset();
  });
  run_iterations(loop);
  EXPECT_EQ(calls, 1);
}

TEST(ReactorTest, ManyTimersFireInOrderAlsoWhenSomeAreCancelled) {
  Loop loop;
  std::vector<std::unique_ptr<Timer>> timers;
  std::vector<int> fired;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < 300; ++i) {
    const int rank = (i * 37) % 100;  // three timers of each rank
    timers.push_back(std::make_unique<Timer>(loop));
    timers.back()->arm(start + rank * 50us, [&fired, rank] { fired.push_back(rank); });
  }
  for (std::size_t i = 0; i < timers.size(); i += 3) timers[i]->cancel();
  bool done = false;
  Timer last(loop);
  last.arm(start + 10ms, [&] { done = true; });
  loop.run_until([&] { return done; });
  EXPECT_EQ(fired.size(), 200U);
  EXPECT_TRUE(std::ranges::is_sorted(fired));
}

TEST(ReactorTest, TimerThatIsDueMayBeCancelledByAnEarlierOne) {
  Loop loop;
  Timer first(loop);
  Timer second(loop);
  bool called = false;
  first.arm_after(0ms, [&] { second.cancel(); });
  second.arm_after(0ms, [&] { called = true; });
  run_iterations(loop);
  EXPECT_FALSE(called);
}

TEST(ReactorTest, PostsOfManyThreadsAllRunInTheOrderOfEachThread) {
  Loop loop;
  constexpr int kThreads = 4;
  constexpr int kPosts = 2000;
  std::array<int, kThreads> next{};
  int total = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kPosts; ++i) {
        loop.post([&, thread, i] {
          EXPECT_EQ(next[static_cast<std::size_t>(thread)]++, i);
          ++total;
        });
      }
    });
  }
  loop.run_until([&] { return total == kThreads * kPosts; });
}

TEST(ReactorTest, PostedCallbackMayOwnTheLastReferenceToADescriptorWhenTheLoopEnds) {
  auto loop = std::make_unique<Loop>();
  auto connected = std::make_shared<Connected>(*loop);
  connected->descriptor->when_readable([] {});
  loop->post([connected] {});
  const std::weak_ptr<Connected> weak = connected;
  connected.reset();
  loop.reset();
  EXPECT_TRUE(weak.expired());
}

struct CountedService {
  explicit CountedService(Loop&) { ++alive; }
  ~CountedService() { --alive; }
  static inline int alive = 0;
};

TEST(LoopServiceTest, ServiceIsMadeOnceAndEndsWithTheLoop) {
  {
    Loop loop;
    CountedService& first = loop.service<CountedService>();
    EXPECT_EQ(&first, &loop.service<CountedService>());
    EXPECT_EQ(CountedService::alive, 1);
  }
  EXPECT_EQ(CountedService::alive, 0);
}

TEST(ReactorTest, IdleLoopFreesLargeBuffers) {
  Loop loop;
  bool released = false;
  bool cached = false;
  loop.post([&] {
    std::string text(1u << 20, 'x');
    detail::release_buffer(text);
    cached = detail::cached_buffer_bytes() > 0;
    released = true;
  });
  loop.run_until([&] { return released && detail::cached_buffer_bytes() == 0; });
  if (!cached) GTEST_SKIP() << "no buffer is cached under the address sanitizer";
}

}  // namespace
}  // namespace fairlead
