// How many of everything there may be. R10.3.
#include <algorithm>

#include "fairlead/process/failure.hpp"
#include "pool/harness.hpp"

namespace fairlead::pool {
namespace {

// The least recently used idle server gives its process to the next.
TEST_F(PoolTest, a_full_pool_evicts_the_server_whose_last_call_is_longest_ago) {
  options.limits.max_stdio_processes = 2;
  options.limits.evict_after = 0ms;
  add(spec("a"));
  add(spec("b"));
  add(spec("c"));
  pid_of("a");
  pid_of("b");
  pid_of("a");
  EXPECT_GT(pid_of("c"), 0);
  EXPECT_EQ(pool->processes(), 2u);
  EXPECT_EQ(survivors(), 2u);
  EXPECT_EQ(status("a").state, State::ready);
  EXPECT_EQ(status("b").state, State::idle);
}

TEST_F(PoolTest, a_start_waits_until_a_server_has_been_idle_for_long_enough) {
  options.limits.max_stdio_processes = 1;
  options.limits.evict_after = 30ms;
  add(spec("a"));
  add(spec("b"));
  pid_of("a");
  EXPECT_GT(pid_of("b"), 0);
  EXPECT_EQ(pool->processes(), 1u);
}

TEST_F(PoolTest, many_more_servers_than_processes_are_served_in_turn) {
  options.limits.max_stdio_processes = 2;
  options.limits.evict_after = 0ms;
  std::vector<std::shared_ptr<Beside>> calls;
  for (int i = 0; i < 8; ++i) add(spec("s" + std::to_string(i)));
  for (int i = 0; i < 8; ++i) calls.push_back(begin("s" + std::to_string(i), "pid"));
  std::set<std::string> pids;
  for (const auto& one : calls) pids.insert(finish(one));
  EXPECT_EQ(pids.size(), 8u);
  for (const std::string& pid : pids) EXPECT_FALSE(pid.starts_with("<")) << pid;
  EXPECT_LE(survivors(), 2u);
}

TEST_F(PoolTest, a_full_pool_of_busy_servers_refuses_in_time_and_names_its_limit) {
  options.limits.max_stdio_processes = 1;
  options.limits.evict_after = 0ms;
  add(spec("a"));
  ServerSpec late = spec("b");
  late.clocks.queue = 50ms;
  add(late);
  const auto busy = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
  const Result<rpc::Message> answer = call("b", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_stdio_processes (1)"), std::string::npos);
  EXPECT_EQ(answer.error().detail().code, failure::resource_exhausted);
  EXPECT_EQ(answer.error().detail().remedy, remedy_for(failure::resource_exhausted));
  EXPECT_GT(answer.error().detail().retry_after.value_or(0ms), 0ms);
  EXPECT_EQ(starts("b"), 0u);
  open_gate();
  finish(busy);
  EXPECT_GT(pid_of("b"), 0) << "and is not kept out for good";
}

TEST_F(PoolTest, a_server_to_be_kept_running_that_finds_no_place_says_so_and_tries_again) {
  options.limits.max_stdio_processes = 1;
  options.limits.evict_after = 0ms;
  add(spec("busy"));
  const auto call = begin("busy", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("busy", "got \"tools/call\"") == 1; }));
  ServerSpec kept = spec("kept");
  kept.keep_running = true;
  kept.clocks.queue = 20ms;
  add(kept);
  ASSERT_TRUE(comes_true([&] { return status("kept").last_error.has_value(); }));
  EXPECT_EQ(status("kept").last_error->kind(), ErrorKind::resource_exhausted);
  open_gate();
  finish(call);
  EXPECT_TRUE(reaches("kept", State::ready));
}

TEST_F(PoolTest, the_queue_for_processes_has_an_end) {
  options.limits.max_stdio_processes = 1;
  options.limits.max_start_queue = 0;
  add(spec("a"));
  add(spec("b"));
  const auto busy = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
  const Result<rpc::Message> answer = call("b", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_start_queue (0)"), std::string::npos);
  open_gate();
  finish(busy);
}

// A start that nobody but the test waits for, as the gateway has it for its lists.
Task<void> start_in_background(std::shared_ptr<Pool> pool, std::string server) {
  Task<Result<Lease>> acquiring =
      pool->acquire(Target(std::move(server)), std::stop_token(), StartPriority::background);
  const Result<Lease> lease = co_await acquiring;
  static_cast<void>(lease);
}

TEST_F(PoolTest, StartsThatCallsWaitForComeBeforeBackgroundStarts) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  for (const char* name : {"b", "c", "d"}) add(spec(name));
  for (const char* name : {"a", "b", "c"}) loop.spawn(start_in_background(pool, name));
  ASSERT_TRUE(
      comes_true([&] { return status("c").waiting == 1 && status("a").state == State::handshaking; }));
  const auto fresh = begin("d", "pid");
  const auto promoted = begin("c", "pid");
  ASSERT_TRUE(comes_true([&] { return status("d").waiting == 1 && status("c").waiting == 2; }));
  EXPECT_EQ(starts("b") + starts("c") + starts("d"), 0u);
  open_gate();
  EXPECT_FALSE(finish(fresh).starts_with("<")) << finish(fresh);
  EXPECT_FALSE(finish(promoted).starts_with("<")) << finish(promoted);
  ASSERT_TRUE(reaches("b", State::ready));
  std::vector<std::string> order;
  for (const std::string& change : changes) {
    if (change.ends_with(" idle>starting")) order.push_back(change.substr(0, 1));
  }
  EXPECT_EQ(order, (std::vector<std::string>{"a", "d", "c", "b"}));
}

TEST_F(PoolTest, StartsThatCallsWaitForAreTheFirstToGetAProcess) {
  options.limits.max_stdio_processes = 1;
  options.limits.evict_after = 0ms;
  add(spec("a"));
  add(spec("b"));
  add(spec("c"));
  const auto busy = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
  loop.spawn(start_in_background(pool, "b"));
  ASSERT_TRUE(comes_true([&] { return status("b").waiting == 1; }));
  const auto urgent = begin("c", "pid");
  ASSERT_TRUE(comes_true([&] { return status("c").waiting == 1; }));
  open_gate();
  EXPECT_FALSE(finish(urgent).starts_with("<")) << finish(urgent);
  ASSERT_TRUE(comes_true([&] { return starts("b") == 1; }));
  EXPECT_LT(std::ranges::find(changes, "c idle>starting"), std::ranges::find(changes, "b idle>starting"));
}

TEST_F(PoolTest, WaitingToBeStartedDoesNotUseUpTheClocksOfTheStart) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  ServerSpec brief = spec("b");
  brief.clocks.handshake = brief.clocks.spawn = 2s;
  add(brief);
  const auto first = begin("a", "pid");
  const auto second = begin("b", "pid");
  // The time itself is what is tested.
  const Clock::time_point later = Clock::now() + 2500ms;
  ASSERT_TRUE(comes_true([&] { return Clock::now() >= later; }));
  EXPECT_FALSE(second->answer);
  open_gate();
  EXPECT_FALSE(finish(second).starts_with("<")) << finish(second);
}

TEST_F(PoolTest, StartThatNobodyWaitsForAnyMoreLeavesTheQueue) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  add(spec("b"));
  add(spec("c"));
  const auto first = begin("a", "pid");
  ASSERT_TRUE(reaches("a", State::handshaking));
  std::stop_source stop;
  ForwardOptions how;
  how.stop = stop.get_token();
  const auto given_up = begin("b", "pid", how);
  ASSERT_TRUE(comes_true([&] { return status("b").waiting == 1; }));
  stop.request_stop();
  EXPECT_TRUE(finish(given_up).starts_with("<cancelled")) << finish(given_up);
  const auto last = begin("c", "pid");
  open_gate();
  EXPECT_FALSE(finish(last).starts_with("<")) << finish(last);
  EXPECT_EQ(starts("b"), 0u);
  EXPECT_EQ(pool->processes(), 2u);
  EXPECT_GT(pid_of("b"), 0) << "and can be started later";
}

TEST_F(PoolTest, CallThatWaitsTooLongForAStartIsToldWhichLimitItMet) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  ServerSpec late = spec("b");
  late.clocks.queue = 50ms;
  add(late);
  const auto first = begin("a", "pid");
  ASSERT_TRUE(reaches("a", State::handshaking));
  const Result<rpc::Message> answer = call("b", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_concurrent_starts (1)"), std::string::npos);
  EXPECT_EQ(answer.error().detail().code, failure::resource_exhausted);
  EXPECT_GT(answer.error().detail().retry_after.value_or(0ms), 0ms);
  open_gate();
  finish(first);
}

TEST_F(PoolTest, ServerRemovedWhileItWaitsToBeStartedIsForgotten) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  add(spec("b"));
  loop.spawn(start_in_background(pool, "a"));
  const auto waiting = begin("b", "pid");
  ASSERT_TRUE(
      comes_true([&] { return status("b").waiting == 1 && status("a").state == State::handshaking; }));
  ASSERT_TRUE(pool->remove("b"));
  EXPECT_NE(finish(waiting).find("server b"), std::string::npos) << finish(waiting);
  EXPECT_TRUE(comes_true([&] { return pool->status().size() == 1; }));
  EXPECT_EQ(pool->processes(), 1u);
}

TEST_F(PoolTest, ShutdownDoesNotWaitForStartsInTheQueue) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  add(spec("b"));
  loop.spawn(start_in_background(pool, "a"));
  loop.spawn(start_in_background(pool, "b"));
  ASSERT_TRUE(comes_true([&] { return status("b").waiting == 1; }));
  loop.block_on(pool->shutdown(0ms));
  EXPECT_EQ(pool->processes(), 0u);
  EXPECT_EQ(starts("b"), 0u);
}

TEST_F(PoolTest, calls_over_the_servers_bound_wait_for_their_turn) {
  ServerSpec narrow = spec("a");
  narrow.max_calls = 1;
  add(narrow);
  const auto first = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
  const auto second = begin("a", "pid");
  const auto third = begin("a", "pid");
  EXPECT_EQ(status("a").calls, 1u);
  open_gate();
  EXPECT_FALSE(finish(second).starts_with("<")) << finish(second);
  EXPECT_FALSE(finish(third).starts_with("<")) << finish(third);
}

TEST_F(PoolTest, a_call_whose_turn_does_not_come_in_time_is_told_which_bound_it_met) {
  ServerSpec narrow = spec("a");
  narrow.max_calls = 1;
  narrow.clocks.queue = 50ms;
  add(narrow);
  const auto first = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_calls"), std::string::npos);
  EXPECT_TRUE(answer.error().detail().retry_after);
  open_gate();
  finish(first);
}

TEST_F(PoolTest, calls_over_the_bound_of_all_servers_wait_too) {
  options.limits.max_calls = 1;
  add(spec("a"));
  ServerSpec other = spec("b");
  other.clocks.queue = 50ms;
  add(other);
  const auto first = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
  const Result<rpc::Message> answer = call("b", "pid");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message().find("max_calls (1) calls of all servers"), std::string::npos);
  open_gate();
  finish(first);
}

TEST_F(PoolTest, those_who_wait_are_bounded) {
  options.limits.max_waiting_calls = 2;
  add(spec("a", "gated"));
  const auto first = begin("a", "pid");
  const auto second = begin("a", "pid");
  ASSERT_TRUE(comes_true([&] { return status("a").waiting == 2; }));
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_waiting_calls (2)"), std::string::npos);
  open_gate();
  EXPECT_FALSE(finish(first).starts_with("<"));
  EXPECT_FALSE(finish(second).starts_with("<"));
}

TEST_F(PoolTest, ClientOverItsShareOfWaitingCallsIsRefusedAndOthersWait) {
  options.limits.max_client_waiting_calls = 2;
  add(spec("a", "gated"));
  const PrincipalPtr greedy = Principal::anonymous("192.0.2.1:1");
  const PrincipalPtr other = Principal::anonymous("192.0.2.2:1");
  ForwardOptions of_greedy;
  of_greedy.client = greedy.get();
  ForwardOptions of_other;
  of_other.client = other.get();
  const auto first = begin("a", "pid", of_greedy);
  const auto second = begin("a", "pid", of_greedy);
  ASSERT_TRUE(comes_true([&] { return status("a").waiting == 2; }));
  const Result<rpc::Message> answer = call("a", "pid", of_greedy);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_client_waiting_calls (2) calls of this client"),
            std::string::npos);
  const auto third = begin("a", "pid", of_other);
  ASSERT_TRUE(comes_true([&] { return status("a").waiting == 3; }));
  open_gate();
  for (const auto& waiting : {first, second, third}) EXPECT_FALSE(finish(waiting).starts_with("<"));
  // What has ended does not count any more.
  EXPECT_FALSE(finish(begin("a", "pid", of_greedy)).starts_with("<"));
}

Task<void> record_answer(std::shared_ptr<Pool> pool, Target target, ForwardOptions how, std::string name,
                         std::vector<std::string>* answered) {
  Task<Result<rpc::Message>> calling = pool->call(std::move(target), tool_call("pid"), std::move(how));
  const Result<rpc::Message> answer = co_await calling;
  answered->push_back(answer ? name : answer.error().message());
}

// One call runs at a time, so the answers come in the order in which the calls were sent.
TEST_F(PoolTest, WaitingCallsAreSentOfEachClientAndSessionInTurn) {
  ServerSpec server = spec("a");
  server.max_calls = 1;
  add(server);
  const auto first = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
  const PrincipalPtr many = Principal::anonymous("192.0.2.1:1");
  const PrincipalPtr quiet = Principal::anonymous("192.0.2.2:1");
  std::vector<std::string> answered;
  const auto wait = [&](const PrincipalPtr& client, const std::string& session, const std::string& name) {
    ForwardOptions how;
    how.client = client.get();
    loop.spawn(record_answer(pool, Target("a", session), std::move(how), name, &answered));
  };
  for (const char* name : {"many 1", "many 2", "many 3"}) wait(many, "s1", name);
  wait(many, "s2", "second session");
  wait(quiet, "s3", "quiet");
  open_gate();
  finish(first);
  ASSERT_TRUE(comes_true([&] { return answered.size() == 5; }));
  EXPECT_EQ(answered, (std::vector<std::string>{"many 1", "quiet", "second session", "many 2", "many 3"}));
}

TEST_F(PoolTest, WaitingCallThatIsGivenUpLeavesTheOthersTheirTurns) {
  ServerSpec server = spec("a");
  server.max_calls = 1;
  add(server);
  const auto first = begin("a", "gate");
  ASSERT_TRUE(comes_true([&] { return noted("a", "got \"tools/call\"") == 1; }));
  const PrincipalPtr gone = Principal::anonymous("192.0.2.1:1");
  std::stop_source stop;
  ForwardOptions given_up;
  given_up.client = gone.get();
  given_up.stop = stop.get_token();
  const auto second = begin("a", "pid", given_up);
  const auto third = begin("a", "pid");
  stop.request_stop();
  EXPECT_TRUE(finish(second).starts_with("<"));
  open_gate();
  finish(first);
  EXPECT_FALSE(finish(third).starts_with("<"));
}

}  // namespace
}  // namespace fairlead::pool
