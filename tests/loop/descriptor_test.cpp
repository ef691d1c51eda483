#include "fairlead/loop/descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "fairlead/loop/signals.hpp"
#include "loop/run_iterations.hpp"
#include "support/support.hpp"

namespace fairlead {
namespace {

using test::run_iterations;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
  }
};

TEST(DescriptorTest, CallsBackWhenReadable) {
  Loop loop;
  Pipe pipe;
  Result<Descriptor> in = Descriptor::adopt(loop, std::move(pipe.read));
  ASSERT_TRUE(in);
  bool readable = false;
  in->when_readable([&] {
    readable = true;
    loop.stop();
  });
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  loop.run();
  EXPECT_TRUE(readable);
}

TEST(DescriptorTest, EndOfFileCountsAsReadable) {
  Loop loop;
  Pipe pipe;
  Result<Descriptor> in = Descriptor::adopt(loop, std::move(pipe.read));
  ASSERT_TRUE(in);
  in->when_readable([&] { loop.stop(); });
  pipe.write.reset();
  loop.run();
}

TEST(DescriptorTest, NoCallbackRunsAfterClose) {
  Loop loop;
  Pipe pipe;
  Result<Descriptor> in = Descriptor::adopt(loop, std::move(pipe.read));
  ASSERT_TRUE(in);
  bool called = false;
  in->when_readable([&] { called = true; });
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  in->close();
  EXPECT_FALSE(in->is_open());
  loop.post([&] { loop.post([&] { loop.stop(); }); });
  loop.run();
  EXPECT_FALSE(called);
}

TEST(DescriptorTest, ReplacedCallbackIsNotCalled) {
  Loop loop;
  Pipe pipe;
  Result<Descriptor> in = Descriptor::adopt(loop, std::move(pipe.read));
  ASSERT_TRUE(in);
  int replaced = 0;
  int called = 0;
  for (int i = 0; i < 1000; ++i) in->when_readable([&] { ++replaced; });
  in->when_readable([&] { ++called; });
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  run_iterations(loop);
  EXPECT_EQ(replaced, 0);
  EXPECT_EQ(called, 1);
  EXPECT_FALSE(in->waiting_to_read());
}

TEST(DescriptorTest, CallbackThatWaitsAgainRunsForEachByte) {
  Loop loop;
  Pipe pipe;
  Result<Descriptor> in = Descriptor::adopt(loop, std::move(pipe.read));
  ASSERT_TRUE(in);
  int calls = 0;
  const std::function<void()> wait = [&] {
    in->when_readable([&] {
      char byte = 0;
      ASSERT_EQ(::read(in->fd(), &byte, 1), 1);
      if (++calls == 100) return loop.stop();
      ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
      wait();
      wait();  // replaces the first callback
    });
  };
  wait();
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  loop.run();
  EXPECT_EQ(calls, 100);
}

TEST(DescriptorTest, RegularFileCallsBackOnceWhenCallbackIsReplaced) {
  Loop loop;
  const test::TempDir dir;
  const std::string path = dir / "file";
  Result<Descriptor> file =
      Descriptor::adopt(loop, UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
  ASSERT_TRUE(file);
  int called = 0;
  for (int i = 0; i < 100; ++i) file->when_readable([&] { ++called; });
  run_iterations(loop);
  EXPECT_EQ(called, 1);
}

TEST(DescriptorTest, RegularFileIsAlwaysReady) {
  Loop loop;
  const test::TempDir dir;
  const std::string path = dir / "file";
  Result<Descriptor> file =
      Descriptor::adopt(loop, UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
  ASSERT_TRUE(file);
  file->when_readable([&] { file->when_writable([&] { loop.stop(); }); });
  loop.run();
}

TEST(DescriptorTest, AdoptFailsForInvalidDescriptor) {
  Loop loop;
  const Result<Descriptor> none = Descriptor::adopt(loop, UniqueFd());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), ErrorKind::io);
}

TEST(SignalsTest, SignalRunsCallbackOnLoop) {
  Loop loop;
  int got = 0;
  Result<Signals> signals = Signals::watch(loop, {SIGUSR1}, [&](int signal) {
    got = signal;
    loop.stop();
  });
  ASSERT_TRUE(signals);
  ::kill(::getpid(), SIGUSR1);
  loop.run();
  EXPECT_EQ(got, SIGUSR1);
}

TEST(SignalsTest, DestructionConsumesPendingSignal) {
  Loop loop;
  {
    Result<Signals> signals = Signals::watch(loop, {SIGUSR1}, [](int) {});
    ASSERT_TRUE(signals);
    ::kill(::getpid(), SIGUSR1);
  }
  SUCCEED();  // otherwise SIGUSR1 would have terminated the process
}

}  // namespace
}  // namespace fairlead
