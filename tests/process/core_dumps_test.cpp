#include "process/core_dumps.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fairlead {
namespace {

struct DumpState {
  rlim_t soft = 0;
  int dumpable = -1;
};

// Returns the state after disable_core_dumps() in a process with this limit, which it cannot raise.
DumpState state_after(rlim_t soft, rlim_t hard) {
  DumpState state;
  int ends[2];
  if (::pipe(ends) != 0) return state;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit before{soft, hard};
    constexpr uid_t kUnprivilegedUser = 65534;
    if (::setrlimit(RLIMIT_CORE, &before) != 0) ::_exit(1);
    // In a user namespace this may fail, and root has no right to raise limits there.
    [[maybe_unused]] const int changed =
        ::geteuid() == 0 ? ::setresuid(kUnprivilegedUser, kUnprivilegedUser, kUnprivilegedUser) : 0;
    ::prctl(PR_SET_DUMPABLE, 1);
    disable_core_dumps();
    rlimit after{};
    ::getrlimit(RLIMIT_CORE, &after);
    const DumpState found{after.rlim_cur, ::prctl(PR_GET_DUMPABLE)};
    ::_exit(::write(ends[1], &found, sizeof found) == sizeof found ? 0 : 3);
  }
  ::close(ends[1]);
  const bool complete = ::read(ends[0], &state, sizeof state) == sizeof state;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(complete) << "status " << status;
  return state;
}

TEST(CoreDumpsTest, LimitIsOneBecausePipedDumpsIgnoreZero) {
  rlimit own{};
  ASSERT_EQ(::getrlimit(RLIMIT_CORE, &own), 0);
  if (own.rlim_max == 0) GTEST_SKIP() << "the hard limit of this process is 0";
  const DumpState state = state_after(own.rlim_max, own.rlim_max);
  EXPECT_EQ(state.soft, 1u);
  EXPECT_EQ(state.dumpable, 1) << "files in /proc keep their owner";
}

TEST(CoreDumpsTest, ProcessWithHardLimitZeroIsNotDumpable) {
  const DumpState state = state_after(0, 0);
  EXPECT_EQ(state.soft, 0u);
  EXPECT_EQ(state.dumpable, 0);
}

}  // namespace
}  // namespace fairlead
