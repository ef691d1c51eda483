// The transition table of the Supervisor, entry by entry, and its restart policy. Uses neither clock nor
// process. R10.4, R10.6.
#include "fairlead/pool/supervisor.hpp"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <vector>

namespace fairlead::pool {
namespace {

using namespace std::chrono_literals;
using Event = Supervisor::Event;
using Action = Supervisor::Action;
using Time = Supervisor::Time;

constexpr std::size_t kEventCount = 12;

RestartPolicy policy_without_jitter() {
  RestartPolicy policy;
  policy.jitter = 0;
  return policy;
}

std::string_view name(Action action) {
  static constexpr std::string_view kNames[] = {"none", "start", "wait", "refuse", "close"};
  return kNames[static_cast<std::size_t>(action)];
}

struct TestSupervisor : Supervisor {
  explicit TestSupervisor(RestartPolicy policy = policy_without_jitter()) : Supervisor(policy) {}
  Time now{1h};

  Action dispatch(Event event, std::size_t active_call_count = 0) {
    return handle_event(event, now, active_call_count);
  }
  void become_ready() {
    dispatch(Event::start_requested);
    dispatch(Event::connected);
    dispatch(Event::handshake_done);
  }
  void fail_start() {
    now = std::max(now, retry_at());
    EXPECT_EQ(dispatch(Event::start_requested), Action::start);
    dispatch(Event::start_failed);
  }
};

// Returns a supervisor that has reached `state` by the shortest sequence of events.
TestSupervisor supervisor_in(UpstreamState state) {
  TestSupervisor supervisor;
  switch (state) {
    case UpstreamState::idle: break;
    case UpstreamState::starting: supervisor.dispatch(Event::start_requested); break;
    case UpstreamState::handshaking:
      supervisor.dispatch(Event::start_requested);
      supervisor.dispatch(Event::connected);
      break;
    case UpstreamState::ready: supervisor.become_ready(); break;
    case UpstreamState::draining:
      supervisor.become_ready();
      supervisor.dispatch(Event::connection_lost);
      break;
    case UpstreamState::backing_off:
      supervisor.fail_start();
      supervisor.fail_start();
      break;
    case UpstreamState::crash_loop:
      for (int i = 0; i < 5; ++i) supervisor.fail_start();
      break;
    case UpstreamState::stopped: supervisor.dispatch(Event::retire); break;
  }
  EXPECT_EQ(supervisor.state(), state);
  return supervisor;
}

// Maps "state event" to "action state". All other entries of the table have no effect.
TEST(SupervisorTest, FollowsTransitionTable) {
  const std::map<std::string, std::string> expected = {
      {"idle start_requested", "start starting"},
      {"idle retire", "none stopped"},
      {"starting start_requested", "wait starting"},
      {"starting connected", "none handshaking"},
      {"starting handshake_done", "none ready"},
      {"starting start_failed", "none backing_off"},
      {"starting retire", "close draining"},
      {"handshaking start_requested", "wait handshaking"},
      {"handshaking handshake_done", "none ready"},
      {"handshaking start_failed", "none backing_off"},
      {"handshaking retire", "close draining"},
      {"ready connection_lost", "close draining"},
      {"ready exited", "close draining"},
      {"ready idle_stop", "close draining"},
      {"ready retire", "close draining"},
      {"draining start_requested", "wait draining"},
      {"draining start_failed", "none backing_off"},
      {"draining closed", "none backing_off"},
      {"backing_off start_requested", "wait backing_off"},
      {"backing_off retire", "none stopped"},
      {"backing_off retry_due", "none idle"},
      {"crash_loop start_requested", "refuse crash_loop"},
      {"crash_loop retire", "none stopped"},
      {"stopped start_requested", "refuse stopped"},
      {"stopped enabled", "none idle"},
  };
  for (std::size_t s = 0; s < 8; ++s) {
    for (std::size_t e = 0; e < kEventCount; ++e) {
      const auto state = static_cast<UpstreamState>(s);
      const auto event = static_cast<Event>(e);
      TestSupervisor supervisor = supervisor_in(state);
      const std::uint64_t generation = supervisor.generation();
      const std::string entry = std::string(to_string(state)) + " " + std::string(to_string(event));
      const Action action = supervisor.dispatch(event);
      const std::string actual = std::string(name(action)) + " " + std::string(to_string(supervisor.state()));
      const auto found = expected.find(entry);
      EXPECT_EQ(actual, found == expected.end() ? "none " + std::string(to_string(state)) : found->second)
          << entry;
      EXPECT_EQ(supervisor.generation(), generation + (action == Action::start)) << entry;
    }
  }
}

TEST(SupervisorTest, ActionIfStartRequestedMatchesStartRequested) {
  for (std::size_t s = 0; s < 8; ++s) {
    TestSupervisor supervisor = supervisor_in(static_cast<UpstreamState>(s));
    const Action expected = supervisor.action_if_start_requested(supervisor.now);
    EXPECT_EQ(supervisor.dispatch(Event::start_requested), expected)
        << to_string(static_cast<UpstreamState>(s));
  }
}

TEST(SupervisorTest, IdleStopIsIgnoredWithActiveCalls) {
  TestSupervisor supervisor = supervisor_in(UpstreamState::ready);
  EXPECT_EQ(supervisor.dispatch(Event::idle_stop, 1), Action::none);
  EXPECT_EQ(supervisor.state(), UpstreamState::ready);
}

// R10.6
TEST(SupervisorTest, RetireWaitsForActiveCallsBeforeClosing) {
  TestSupervisor supervisor = supervisor_in(UpstreamState::ready);
  EXPECT_EQ(supervisor.dispatch(Event::retire, 2), Action::none);
  EXPECT_EQ(supervisor.state(), UpstreamState::draining);
  EXPECT_EQ(supervisor.dispatch(Event::start_requested), Action::refuse);
  EXPECT_EQ(supervisor.dispatch(Event::drained), Action::close);
  EXPECT_EQ(supervisor.dispatch(Event::drained), Action::none) << "closed once";
  EXPECT_EQ(supervisor.dispatch(Event::connection_lost), Action::none) << "closed once";
  supervisor.dispatch(Event::closed);
  EXPECT_EQ(supervisor.state(), UpstreamState::stopped);
}

TEST(SupervisorTest, BecomesIdleWhenEnabledWhileDraining) {
  TestSupervisor supervisor = supervisor_in(UpstreamState::ready);
  supervisor.dispatch(Event::retire, 1);
  supervisor.dispatch(Event::enabled);
  EXPECT_EQ(supervisor.dispatch(Event::start_requested), Action::wait);
  supervisor.dispatch(Event::drained);
  supervisor.dispatch(Event::closed);
  EXPECT_EQ(supervisor.state(), UpstreamState::idle);
}

TEST(SupervisorTest, AnsweredCallResetsFailureCount) {
  TestSupervisor supervisor;
  for (int i = 0; i < 10; ++i) {
    supervisor.now = std::max(supervisor.now, supervisor.retry_at());
    supervisor.become_ready();
    supervisor.on_call_answered();
    EXPECT_EQ(supervisor.consecutive_failures(), 0u);
    supervisor.dispatch(Event::connection_lost);
    supervisor.dispatch(Event::closed);
    EXPECT_EQ(supervisor.state(), UpstreamState::backing_off);
    EXPECT_EQ(supervisor.consecutive_failures(), 1u);
    EXPECT_EQ(supervisor.retry_at(), supervisor.now) << "the first failure in a row costs no delay";
  }
}

TEST(SupervisorTest, StopsWhenRetiredDuringIdleStop) {
  TestSupervisor supervisor = supervisor_in(UpstreamState::ready);
  supervisor.dispatch(Event::idle_stop);
  supervisor.dispatch(Event::retire);
  supervisor.dispatch(Event::closed);
  EXPECT_EQ(supervisor.state(), UpstreamState::stopped);
}

TEST(SupervisorTest, CleanExitIsNoFailure) {
  TestSupervisor supervisor;
  for (int i = 0; i < 20; ++i) {
    supervisor.become_ready();
    EXPECT_EQ(supervisor.dispatch(Event::exited), Action::close);
    supervisor.dispatch(Event::closed);
    ASSERT_EQ(supervisor.state(), UpstreamState::idle);
  }
  EXPECT_EQ(supervisor.consecutive_failures(), 0u);
}

TEST(SupervisorTest, FirstFailureHasNoDelayAndFurtherDelaysGrow) {
  TestSupervisor supervisor;
  std::vector<long> delays;
  for (int i = 0; i < 4; ++i) {
    supervisor.now = std::max(supervisor.now, supervisor.retry_at());
    supervisor.become_ready();
    supervisor.dispatch(Event::connection_lost);
    supervisor.dispatch(Event::closed);
    delays.push_back(
        std::chrono::duration_cast<std::chrono::milliseconds>(supervisor.retry_at() - supervisor.now)
            .count());
  }
  EXPECT_EQ(delays, (std::vector<long>{0, 200, 400, 800}));
}

TEST(SupervisorTest, DelayIsCappedAtMax) {
  RestartPolicy policy = policy_without_jitter();
  policy.crash_loop_after = 1000;
  TestSupervisor supervisor(policy);
  for (int i = 0; i < 100; ++i) supervisor.fail_start();
  EXPECT_EQ(supervisor.retry_at() - supervisor.now, policy.max);
}

TEST(SupervisorTest, DelaysVaryWithinJitter) {
  RestartPolicy policy;
  policy.jitter = 0.5;
  bool differ = false;
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    Supervisor supervisor(policy, seed);
    Time now{1h};
    for (int i = 0; i < 2; ++i) {
      supervisor.handle_event(Event::start_requested, now);
      supervisor.handle_event(Event::start_failed, now);
    }
    const auto delay = supervisor.retry_at() - now;
    EXPECT_GE(delay, 100ms);
    EXPECT_LE(delay, 300ms);
    differ = differ || delay != 200ms;
  }
  EXPECT_TRUE(differ);
}

TEST(SupervisorTest, FailedStartAfterCrashLoopPauseRenewsCrashLoop) {
  TestSupervisor supervisor = supervisor_in(UpstreamState::crash_loop);
  EXPECT_EQ(supervisor.retry_at() - supervisor.now, 60s);
  supervisor.now += 60s;
  EXPECT_EQ(supervisor.dispatch(Event::start_requested), Action::start);
  supervisor.dispatch(Event::start_failed);
  EXPECT_EQ(supervisor.state(), UpstreamState::crash_loop);
}

TEST(SupervisorTest, UptimeOfForgiveAfterResetsFailureCount) {
  TestSupervisor supervisor = supervisor_in(UpstreamState::crash_loop);
  supervisor.now = supervisor.retry_at();
  supervisor.become_ready();
  supervisor.now += 60s;
  supervisor.dispatch(Event::connection_lost);
  supervisor.dispatch(Event::closed);
  EXPECT_EQ(supervisor.state(), UpstreamState::backing_off);
  EXPECT_EQ(supervisor.consecutive_failures(), 1u);
  EXPECT_EQ(supervisor.retry_at(), supervisor.now);
}

TEST(SupervisorTest, ShorterUptimeKeepsFailureCount) {
  TestSupervisor supervisor = supervisor_in(UpstreamState::crash_loop);
  supervisor.now = supervisor.retry_at();
  supervisor.become_ready();
  supervisor.now += 59s;
  supervisor.dispatch(Event::connection_lost);
  supervisor.dispatch(Event::closed);
  EXPECT_EQ(supervisor.state(), UpstreamState::crash_loop);
}

TEST(SupervisorTest, ObserverGetsEveryTransitionWithReasonGenerationAndTime) {
  TestSupervisor supervisor;
  std::ostringstream transitions;
  supervisor.set_observer([&](const Transition& t) {
    transitions << to_string(t.from) << ">" << to_string(t.to) << " " << to_string(t.event) << " "
                << t.generation << " " << t.reason << "\n";
    EXPECT_EQ(t.time, supervisor.now);
  });
  supervisor.become_ready();
  supervisor.handle_event(Event::connection_lost, supervisor.now, 0, "killed by signal 9");
  supervisor.dispatch(Event::closed);
  supervisor.dispatch(Event::start_requested);
  EXPECT_EQ(transitions.str(),
            "idle>starting start_requested 1 \n"
            "starting>handshaking connected 1 \n"
            "handshaking>ready handshake_done 1 \n"
            "ready>draining connection_lost 1 killed by signal 9\n"
            "draining>backing_off closed 1 \n"
            "backing_off>starting start_requested 2 \n");
  EXPECT_EQ(supervisor.history().size(), 6u);
}

TEST(SupervisorTest, HistoryKeepsOnlyLastTransitions) {
  TestSupervisor supervisor;
  for (int i = 0; i < 100; ++i) {
    supervisor.dispatch(Event::retire);
    supervisor.dispatch(Event::enabled);
  }
  EXPECT_EQ(supervisor.history().size(), Supervisor::kMaxHistory);
  EXPECT_EQ(supervisor.history().back().to, UpstreamState::idle);
}

}  // namespace
}  // namespace fairlead::pool
