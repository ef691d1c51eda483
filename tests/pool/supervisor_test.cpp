// The supervisor's table, cell by cell, and its policy. No clock, no process. R10.4, R10.6.
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

constexpr std::size_t kEvents = 12;

RestartPolicy steady() {
  RestartPolicy policy;
  policy.jitter = 0;
  return policy;
}

std::string_view name(Action action) {
  static constexpr std::string_view kNames[] = {"none", "start", "wait", "refuse", "close"};
  return kNames[static_cast<std::size_t>(action)];
}

struct Life : Supervisor {
  explicit Life(RestartPolicy policy = steady()) : Supervisor(policy) {}
  Time now{1h};

  Action tell(Event event, std::size_t calls = 0) { return on(event, now, calls); }
  void be_ready() {
    tell(Event::wanted);
    tell(Event::connected);
    tell(Event::answered);
  }
  void fail_start() {
    now = std::max(now, retry_at());
    EXPECT_EQ(tell(Event::wanted), Action::start);
    tell(Event::failed);
  }
};

// A supervisor that has got into `state` by the shortest way.
Life in(State state) {
  Life life;
  switch (state) {
    case State::idle: break;
    case State::starting: life.tell(Event::wanted); break;
    case State::handshaking:
      life.tell(Event::wanted);
      life.tell(Event::connected);
      break;
    case State::ready: life.be_ready(); break;
    case State::draining:
      life.be_ready();
      life.tell(Event::lost);
      break;
    case State::backing_off:
      life.fail_start();
      life.fail_start();
      break;
    case State::crash_loop:
      for (int i = 0; i < 5; ++i) life.fail_start();
      break;
    case State::stopped: life.tell(Event::retire); break;
  }
  EXPECT_EQ(life.state(), state);
  return life;
}

// "state event → action, state" of everything that changes or asks for something; all other cells do neither.
TEST(Supervisor, does_what_the_table_says_and_nothing_else) {
  const std::map<std::string, std::string> expected = {
      {"idle wanted", "start starting"},          {"idle retire", "none stopped"},
      {"starting wanted", "wait starting"},       {"starting connected", "none handshaking"},
      {"starting answered", "none ready"},        {"starting failed", "none backing_off"},
      {"starting retire", "close draining"},      {"handshaking wanted", "wait handshaking"},
      {"handshaking answered", "none ready"},     {"handshaking failed", "none backing_off"},
      {"handshaking retire", "close draining"},   {"ready lost", "close draining"},
      {"ready left", "close draining"},           {"ready rest", "close draining"},
      {"ready retire", "close draining"},         {"draining wanted", "wait draining"},
      {"draining failed", "none backing_off"},    {"draining gone", "none backing_off"},
      {"backing_off wanted", "wait backing_off"}, {"backing_off retire", "none stopped"},
      {"backing_off due", "none idle"},           {"crash_loop wanted", "refuse crash_loop"},
      {"crash_loop retire", "none stopped"},      {"stopped wanted", "refuse stopped"},
      {"stopped restored", "none idle"},
  };
  for (std::size_t s = 0; s < 8; ++s) {
    for (std::size_t e = 0; e < kEvents; ++e) {
      const auto state = static_cast<State>(s);
      const auto event = static_cast<Event>(e);
      Life life = in(state);
      const std::uint64_t generation = life.generation();
      const std::string cell = std::string(to_string(state)) + " " + std::string(to_string(event));
      const Action action = life.tell(event);
      const std::string got = std::string(name(action)) + " " + std::string(to_string(life.state()));
      const auto found = expected.find(cell);
      EXPECT_EQ(got, found == expected.end() ? "none " + std::string(to_string(state)) : found->second)
          << cell;
      EXPECT_EQ(life.generation(), generation + (action == Action::start)) << cell;
    }
  }
}

TEST(Supervisor, the_outlook_is_what_being_wanted_brings) {
  for (std::size_t s = 0; s < 8; ++s) {
    Life life = in(static_cast<State>(s));
    const Action foretold = life.outlook(life.now);
    EXPECT_EQ(life.tell(Event::wanted), foretold) << to_string(static_cast<State>(s));
  }
}

TEST(Supervisor, is_not_stopped_for_being_idle_while_it_is_busy) {
  Life life = in(State::ready);
  EXPECT_EQ(life.tell(Event::rest, 1), Action::none);
  EXPECT_EQ(life.state(), State::ready);
}

// R10.6
TEST(Supervisor, lets_calls_finish_before_it_closes) {
  Life life = in(State::ready);
  EXPECT_EQ(life.tell(Event::retire, 2), Action::none);
  EXPECT_EQ(life.state(), State::draining);
  EXPECT_EQ(life.tell(Event::wanted), Action::refuse);
  EXPECT_EQ(life.tell(Event::drained), Action::close);
  EXPECT_EQ(life.tell(Event::drained), Action::none) << "closed once";
  EXPECT_EQ(life.tell(Event::lost), Action::none) << "closed once";
  life.tell(Event::gone);
  EXPECT_EQ(life.state(), State::stopped);
}

TEST(Supervisor, that_is_enabled_while_it_drains_comes_back) {
  Life life = in(State::ready);
  life.tell(Event::retire, 1);
  life.tell(Event::restored);
  EXPECT_EQ(life.tell(Event::wanted), Action::wait);
  life.tell(Event::drained);
  life.tell(Event::gone);
  EXPECT_EQ(life.state(), State::idle);
}

TEST(Supervisor, AnAnsweredCallEndsTheRowOfFailures) {
  Life life;
  for (int i = 0; i < 10; ++i) {
    life.now = std::max(life.now, life.retry_at());
    life.be_ready();
    life.served();
    EXPECT_EQ(life.failures(), 0u);
    life.tell(Event::lost);
    life.tell(Event::gone);
    EXPECT_EQ(life.state(), State::backing_off);
    EXPECT_EQ(life.failures(), 1u);
    EXPECT_EQ(life.retry_at(), life.now) << "the first failure in a row costs no delay";
  }
}

TEST(Supervisor, that_is_removed_while_it_rests_does_not_come_back) {
  Life life = in(State::ready);
  life.tell(Event::rest);
  life.tell(Event::retire);
  life.tell(Event::gone);
  EXPECT_EQ(life.state(), State::stopped);
}

TEST(Supervisor, a_server_that_leaves_politely_has_not_failed) {
  Life life;
  for (int i = 0; i < 20; ++i) {
    life.be_ready();
    EXPECT_EQ(life.tell(Event::left), Action::close);
    life.tell(Event::gone);
    ASSERT_EQ(life.state(), State::idle);
  }
  EXPECT_EQ(life.failures(), 0u);
}

TEST(Supervisor, the_first_crash_costs_no_delay_and_the_next_ones_ever_more) {
  Life life;
  std::vector<long> delays;
  for (int i = 0; i < 4; ++i) {
    life.now = std::max(life.now, life.retry_at());
    life.be_ready();
    life.tell(Event::lost);
    life.tell(Event::gone);
    delays.push_back(
        std::chrono::duration_cast<std::chrono::milliseconds>(life.retry_at() - life.now).count());
  }
  EXPECT_EQ(delays, (std::vector<long>{0, 200, 400, 800}));
}

TEST(Supervisor, a_delay_has_a_ceiling) {
  RestartPolicy policy = steady();
  policy.crash_loop_after = 1000;
  Life life(policy);
  for (int i = 0; i < 100; ++i) life.fail_start();
  EXPECT_EQ(life.retry_at() - life.now, policy.max);
}

TEST(Supervisor, delays_are_spread_within_the_jitter) {
  RestartPolicy policy;
  policy.jitter = 0.5;
  bool differ = false;
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    Supervisor supervisor(policy, seed);
    Time now{1h};
    for (int i = 0; i < 2; ++i) {
      supervisor.on(Event::wanted, now);
      supervisor.on(Event::failed, now);
    }
    const auto delay = supervisor.retry_at() - now;
    EXPECT_GE(delay, 100ms);
    EXPECT_LE(delay, 300ms);
    differ = differ || delay != 200ms;
  }
  EXPECT_TRUE(differ);
}

TEST(Supervisor, a_crash_loop_ends_with_a_trial_and_one_more_failure_renews_it) {
  Life life = in(State::crash_loop);
  EXPECT_EQ(life.retry_at() - life.now, 60s);
  life.now += 60s;
  EXPECT_EQ(life.tell(Event::wanted), Action::start);
  life.tell(Event::failed);
  EXPECT_EQ(life.state(), State::crash_loop);
}

TEST(Supervisor, sustained_uptime_makes_earlier_failures_forgotten) {
  Life life = in(State::crash_loop);
  life.now = life.retry_at();
  life.be_ready();
  life.now += 60s;
  life.tell(Event::lost);
  life.tell(Event::gone);
  EXPECT_EQ(life.state(), State::backing_off);
  EXPECT_EQ(life.failures(), 1u);
  EXPECT_EQ(life.retry_at(), life.now);
}

TEST(Supervisor, a_short_uptime_forgives_nothing) {
  Life life = in(State::crash_loop);
  life.now = life.retry_at();
  life.be_ready();
  life.now += 59s;
  life.tell(Event::lost);
  life.tell(Event::gone);
  EXPECT_EQ(life.state(), State::crash_loop);
}

TEST(Supervisor, tells_every_transition_with_reason_generation_and_time) {
  Life life;
  std::ostringstream told;
  life.watch([&](const Transition& t) {
    told << to_string(t.from) << ">" << to_string(t.to) << " " << to_string(t.event) << " " << t.generation
         << " " << t.reason << "\n";
    EXPECT_EQ(t.at, life.now);
  });
  life.be_ready();
  life.on(Event::lost, life.now, 0, "killed by signal 9");
  life.tell(Event::gone);
  life.tell(Event::wanted);
  EXPECT_EQ(told.str(),
            "idle>starting wanted 1 \n"
            "starting>handshaking connected 1 \n"
            "handshaking>ready answered 1 \n"
            "ready>draining lost 1 killed by signal 9\n"
            "draining>backing_off gone 1 \n"
            "backing_off>starting wanted 2 \n");
  EXPECT_EQ(life.history().size(), 6u);
}

TEST(Supervisor, remembers_only_the_last_transitions) {
  Life life;
  for (int i = 0; i < 100; ++i) {
    life.tell(Event::retire);
    life.tell(Event::restored);
  }
  EXPECT_EQ(life.history().size(), Supervisor::kHistory);
  EXPECT_EQ(life.history().back().to, State::idle);
}

}  // namespace
}  // namespace fairlead::pool
