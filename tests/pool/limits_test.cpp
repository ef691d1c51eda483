// The limits of the pool. R10.3.
#include <algorithm>

#include "fairlead/process/failure.hpp"
#include "pool/harness.hpp"

namespace fairlead::pool {
namespace {

TEST_F(PoolTest, FullPoolEvictsLeastRecentlyUsedServer) {
  options.limits.max_stdio_processes = 2;
  options.limits.evict_after = 0ms;
  add(spec("a"));
  add(spec("b"));
  add(spec("c"));
  pid_of("a");
  pid_of("b");
  pid_of("a");
  EXPECT_GT(pid_of("c"), 0);
  EXPECT_EQ(pool->process_count(), 2u);
  EXPECT_EQ(surviving_process_count(), 2u);
  EXPECT_EQ(status("a").state, UpstreamState::ready);
  EXPECT_EQ(status("b").state, UpstreamState::idle);
}

TEST_F(PoolTest, StartWaitsUntilIdleServerCanBeEvicted) {
  options.limits.max_stdio_processes = 1;
  options.limits.evict_after = 30ms;
  add(spec("a"));
  add(spec("b"));
  pid_of("a");
  EXPECT_GT(pid_of("b"), 0);
  EXPECT_EQ(pool->process_count(), 1u);
}

TEST_F(PoolTest, MoreServersThanProcessesAreServedInTurn) {
  options.limits.max_stdio_processes = 2;
  options.limits.evict_after = 0ms;
  std::vector<std::shared_ptr<BackgroundCall>> calls;
  for (int i = 0; i < 8; ++i) add(spec("s" + std::to_string(i)));
  for (int i = 0; i < 8; ++i) calls.push_back(begin_call("s" + std::to_string(i), "pid"));
  std::set<std::string> pids;
  for (const auto& call : calls) pids.insert(finish_call(call));
  EXPECT_EQ(pids.size(), 8u);
  for (const std::string& pid : pids) EXPECT_FALSE(pid.starts_with("<")) << pid;
  EXPECT_LE(surviving_process_count(), 2u);
}

TEST_F(PoolTest, CallFailsWithLimitWhenAllProcessesAreBusy) {
  options.limits.max_stdio_processes = 1;
  options.limits.evict_after = 0ms;
  add(spec("a"));
  ServerSpec late = spec("b");
  late.clocks.queue = 50ms;
  add(late);
  const auto busy = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  const Result<rpc::Message> answer = call("b", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_stdio_processes (1)"), std::string::npos);
  EXPECT_EQ(answer.error().detail().failure_code, failure::resource_exhausted);
  EXPECT_EQ(answer.error().detail().remedy, remedy_for(failure::resource_exhausted));
  EXPECT_GT(answer.error().detail().retry_after.value_or(0ms), 0ms);
  EXPECT_EQ(start_count("b"), 0u);
  open_gate();
  finish_call(busy);
  EXPECT_GT(pid_of("b"), 0) << "a later call succeeds";
}

TEST_F(PoolTest, RaisedLimitStartsWaitingServer) {
  options.limits.max_stdio_processes = 1;
  options.limits.evict_after = 0ms;
  add(spec("a"));
  add(spec("b"));
  const auto busy = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  const auto waiting = begin_call("b", "pid");
  PoolLimits raised = options.limits;
  raised.max_stdio_processes = 2;
  pool->set_limits(raised);
  EXPECT_FALSE(finish_call(waiting).starts_with("<"));
  EXPECT_EQ(pool->process_count(), 2u);
  open_gate();
  finish_call(busy);
}

TEST_F(PoolTest, LoweredLimitAppliesToTheNextStart) {
  options.limits.max_stdio_processes = 3;
  options.limits.evict_after = 0ms;
  for (const char* const name : {"a", "b", "c", "d"}) add(spec(name));
  for (const char* const name : {"a", "b", "c"}) pid_of(name);
  PoolLimits lowered = options.limits;
  lowered.max_stdio_processes = 1;
  pool->set_limits(lowered);
  EXPECT_EQ(pool->process_count(), 3u) << "running servers continue";
  EXPECT_GT(pid_of("d"), 0);
  EXPECT_EQ(pool->process_count(), 1u);
}

TEST_F(PoolTest, KeepRunningServerRetriesStartWhenAllProcessesAreBusy) {
  options.limits.max_stdio_processes = 1;
  options.limits.evict_after = 0ms;
  add(spec("busy"));
  const auto call = begin_call("busy", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("busy", "got \"tools/call\"") == 1; }));
  ServerSpec kept = spec("kept");
  kept.keep_running = true;
  kept.clocks.queue = 20ms;
  add(kept);
  ASSERT_TRUE(wait_until([&] { return status("kept").last_error.has_value(); }));
  EXPECT_EQ(status("kept").last_error->kind(), ErrorKind::resource_exhausted);
  open_gate();
  finish_call(call);
  EXPECT_TRUE(reaches("kept", UpstreamState::ready));
}

TEST_F(PoolTest, CallFailsWhenStartQueueIsFull) {
  options.limits.max_stdio_processes = 1;
  options.limits.max_start_queue = 0;
  add(spec("a"));
  add(spec("b"));
  const auto busy = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  const Result<rpc::Message> answer = call("b", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_start_queue (0)"), std::string::npos);
  open_gate();
  finish_call(busy);
}

// A background start that no call waits for, as made by the gateway to list tools.
Task<void> start_in_background(std::shared_ptr<Pool> pool, std::string server) {
  static_cast<void>(
      co_await pool->acquire(Target(std::move(server)), std::stop_token(), StartPriority::background));
}

TEST_F(PoolTest, StartsThatCallsWaitForComeBeforeBackgroundStarts) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  for (const char* name : {"b", "c", "d"}) add(spec(name));
  for (const char* name : {"a", "b", "c"}) loop.spawn(start_in_background(pool, name));
  ASSERT_TRUE(wait_until([&] {
    return status("c").waiting_caller_count == 1 && status("a").state == UpstreamState::handshaking;
  }));
  const auto fresh = begin_call("d", "pid");
  const auto promoted = begin_call("c", "pid");
  ASSERT_TRUE(wait_until(
      [&] { return status("d").waiting_caller_count == 1 && status("c").waiting_caller_count == 2; }));
  EXPECT_EQ(start_count("b") + start_count("c") + start_count("d"), 0u);
  open_gate();
  EXPECT_FALSE(finish_call(fresh).starts_with("<")) << finish_call(fresh);
  EXPECT_FALSE(finish_call(promoted).starts_with("<")) << finish_call(promoted);
  ASSERT_TRUE(reaches("b", UpstreamState::ready));
  std::vector<std::string> order;
  for (const std::string& change : changes) {
    if (change.ends_with(" idle>starting")) order.push_back(change.substr(0, 1));
  }
  EXPECT_EQ(order, (std::vector<std::string>{"a", "d", "c", "b"}));
}

TEST_F(PoolTest, StartsThatCallsWaitForGetProcessFirst) {
  options.limits.max_stdio_processes = 1;
  options.limits.evict_after = 0ms;
  add(spec("a"));
  add(spec("b"));
  add(spec("c"));
  const auto busy = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  loop.spawn(start_in_background(pool, "b"));
  ASSERT_TRUE(wait_until([&] { return status("b").waiting_caller_count == 1; }));
  const auto urgent = begin_call("c", "pid");
  ASSERT_TRUE(wait_until([&] { return status("c").waiting_caller_count == 1; }));
  open_gate();
  EXPECT_FALSE(finish_call(urgent).starts_with("<")) << finish_call(urgent);
  ASSERT_TRUE(wait_until([&] { return start_count("b") == 1; }));
  EXPECT_LT(std::ranges::find(changes, "c idle>starting"), std::ranges::find(changes, "b idle>starting"));
}

TEST_F(PoolTest, TimeInStartQueueDoesNotCountTowardsStartTimeouts) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  ServerSpec brief = spec("b");
  brief.clocks.handshake = brief.clocks.spawn = 2s;
  add(brief);
  const auto first = begin_call("a", "pid");
  const auto second = begin_call("b", "pid");
  // The test needs real time to pass: longer than the timeouts of the start.
  const Clock::time_point later = Clock::now() + 2500ms;
  ASSERT_TRUE(wait_until([&] { return Clock::now() >= later; }));
  EXPECT_FALSE(second->answer);
  open_gate();
  EXPECT_FALSE(finish_call(second).starts_with("<")) << finish_call(second);
}

TEST_F(PoolTest, StartLeavesQueueWhenItsLastCallIsCancelled) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  add(spec("b"));
  add(spec("c"));
  const auto first = begin_call("a", "pid");
  ASSERT_TRUE(reaches("a", UpstreamState::handshaking));
  std::stop_source stop;
  ForwardOptions call_options;
  call_options.stop = stop.get_token();
  const auto cancelled = begin_call("b", "pid", call_options);
  ASSERT_TRUE(wait_until([&] { return status("b").waiting_caller_count == 1; }));
  stop.request_stop();
  EXPECT_TRUE(finish_call(cancelled).starts_with("<cancelled")) << finish_call(cancelled);
  const auto last = begin_call("c", "pid");
  open_gate();
  EXPECT_FALSE(finish_call(last).starts_with("<")) << finish_call(last);
  EXPECT_EQ(start_count("b"), 0u);
  EXPECT_EQ(pool->process_count(), 2u);
  EXPECT_GT(pid_of("b"), 0) << "it can be started later";
}

TEST_F(PoolTest, CallFailsWithLimitWhenStartQueueTimesOut) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  ServerSpec late = spec("b");
  late.clocks.queue = 50ms;
  add(late);
  const auto first = begin_call("a", "pid");
  ASSERT_TRUE(reaches("a", UpstreamState::handshaking));
  const Result<rpc::Message> answer = call("b", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_concurrent_starts (1)"), std::string::npos);
  EXPECT_EQ(answer.error().detail().failure_code, failure::resource_exhausted);
  EXPECT_GT(answer.error().detail().retry_after.value_or(0ms), 0ms);
  open_gate();
  finish_call(first);
}

TEST_F(PoolTest, ServerRemovedInStartQueueIsErased) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  add(spec("b"));
  loop.spawn(start_in_background(pool, "a"));
  const auto waiting = begin_call("b", "pid");
  ASSERT_TRUE(wait_until([&] {
    return status("b").waiting_caller_count == 1 && status("a").state == UpstreamState::handshaking;
  }));
  ASSERT_TRUE(pool->remove("b"));
  EXPECT_NE(finish_call(waiting).find("server b"), std::string::npos) << finish_call(waiting);
  EXPECT_TRUE(wait_until([&] { return pool->status().size() == 1; }));
  EXPECT_EQ(pool->process_count(), 1u);
}

TEST_F(PoolTest, ShutdownDoesNotWaitForQueuedStarts) {
  options.limits.max_concurrent_starts = 1;
  add(spec("a", "gated"));
  add(spec("b"));
  loop.spawn(start_in_background(pool, "a"));
  loop.spawn(start_in_background(pool, "b"));
  ASSERT_TRUE(wait_until([&] { return status("b").waiting_caller_count == 1; }));
  loop.block_on(pool->shutdown(0ms));
  EXPECT_EQ(pool->process_count(), 0u);
  EXPECT_EQ(start_count("b"), 0u);
}

TEST_F(PoolTest, CallsOverMaxCallsOfServerWait) {
  ServerSpec narrow = spec("a");
  narrow.max_calls = 1;
  add(narrow);
  const auto first = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  const auto second = begin_call("a", "pid");
  const auto third = begin_call("a", "pid");
  EXPECT_EQ(status("a").active_call_count, 1u);
  open_gate();
  EXPECT_FALSE(finish_call(second).starts_with("<")) << finish_call(second);
  EXPECT_FALSE(finish_call(third).starts_with("<")) << finish_call(third);
}

TEST_F(PoolTest, WaitingCallFailsWithLimitWhenQueueTimesOut) {
  ServerSpec narrow = spec("a");
  narrow.max_calls = 1;
  narrow.clocks.queue = 50ms;
  add(narrow);
  const auto first = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_calls"), std::string::npos);
  EXPECT_TRUE(answer.error().detail().retry_after);
  open_gate();
  finish_call(first);
}

TEST_F(PoolTest, CallsOverMaxCallsOfPoolWait) {
  options.limits.max_calls = 1;
  add(spec("a"));
  ServerSpec other = spec("b");
  other.clocks.queue = 50ms;
  add(other);
  const auto first = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  const Result<rpc::Message> answer = call("b", "pid");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message().find("max_calls (1) calls of all servers"), std::string::npos);
  open_gate();
  finish_call(first);
}

TEST_F(PoolTest, CallFailsOverMaxWaitingCalls) {
  options.limits.max_waiting_calls = 2;
  add(spec("a", "gated"));
  const auto first = begin_call("a", "pid");
  const auto second = begin_call("a", "pid");
  ASSERT_TRUE(wait_until([&] { return status("a").waiting_caller_count == 2; }));
  const Result<rpc::Message> answer = call("a", "pid");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_waiting_calls (2)"), std::string::npos);
  open_gate();
  EXPECT_FALSE(finish_call(first).starts_with("<"));
  EXPECT_FALSE(finish_call(second).starts_with("<"));
}

TEST_F(PoolTest, ClientOverMaxClientWaitingCallsIsRejectedAndOthersWait) {
  options.limits.max_client_waiting_calls = 2;
  add(spec("a", "gated"));
  const PrincipalPtr greedy = Principal::anonymous("192.0.2.1:1");
  const PrincipalPtr other = Principal::anonymous("192.0.2.2:1");
  ForwardOptions of_greedy;
  of_greedy.client = greedy.get();
  ForwardOptions of_other;
  of_other.client = other.get();
  const auto first = begin_call("a", "pid", of_greedy);
  const auto second = begin_call("a", "pid", of_greedy);
  ASSERT_TRUE(wait_until([&] { return status("a").waiting_caller_count == 2; }));
  const Result<rpc::Message> answer = call("a", "pid", of_greedy);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::resource_exhausted);
  EXPECT_NE(answer.error().message().find("max_client_waiting_calls (2) calls of this client"),
            std::string::npos);
  const auto third = begin_call("a", "pid", of_other);
  ASSERT_TRUE(wait_until([&] { return status("a").waiting_caller_count == 3; }));
  open_gate();
  for (const auto& waiting : {first, second, third}) EXPECT_FALSE(finish_call(waiting).starts_with("<"));
  // Calls that have ended no longer count.
  EXPECT_FALSE(finish_call(begin_call("a", "pid", of_greedy)).starts_with("<"));
}

Task<void> record_answer(std::shared_ptr<Pool> pool, Target target, ForwardOptions call_options,
                         std::string name, std::vector<std::string>* answered) {
  const Result<rpc::Message> answer =
      co_await pool->call(std::move(target), tool_call("pid"), std::move(call_options));
  answered->push_back(answer ? name : answer.error().message());
}

// Only one call is active at a time, so the responses arrive in the order in which the calls were sent.
TEST_F(PoolTest, WaitingCallsAreSentRoundRobinByClientAndSession) {
  ServerSpec server = spec("a");
  server.max_calls = 1;
  add(server);
  const auto first = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  const PrincipalPtr many = Principal::anonymous("192.0.2.1:1");
  const PrincipalPtr quiet = Principal::anonymous("192.0.2.2:1");
  std::vector<std::string> answered;
  const auto wait = [&](const PrincipalPtr& client, const std::string& session, const std::string& name) {
    ForwardOptions call_options;
    call_options.client = client.get();
    loop.spawn(record_answer(pool, Target("a", session), std::move(call_options), name, &answered));
  };
  for (const char* name : {"many 1", "many 2", "many 3"}) wait(many, "s1", name);
  wait(many, "s2", "second session");
  wait(quiet, "s3", "quiet");
  open_gate();
  finish_call(first);
  ASSERT_TRUE(wait_until([&] { return answered.size() == 5; }));
  EXPECT_EQ(answered, (std::vector<std::string>{"many 1", "quiet", "second session", "many 2", "many 3"}));
}

TEST_F(PoolTest, CancelledWaitingCallDoesNotBlockOthers) {
  ServerSpec server = spec("a");
  server.max_calls = 1;
  add(server);
  const auto first = begin_call("a", "gate");
  ASSERT_TRUE(wait_until([&] { return journal_lines("a", "got \"tools/call\"") == 1; }));
  const PrincipalPtr gone = Principal::anonymous("192.0.2.1:1");
  std::stop_source stop;
  ForwardOptions cancellable;
  cancellable.client = gone.get();
  cancellable.stop = stop.get_token();
  const auto second = begin_call("a", "pid", cancellable);
  const auto third = begin_call("a", "pid");
  stop.request_stop();
  EXPECT_TRUE(finish_call(second).starts_with("<"));
  open_gate();
  finish_call(first);
  EXPECT_FALSE(finish_call(third).starts_with("<"));
}

}  // namespace
}  // namespace fairlead::pool
