// Calls that are forwarded without a coroutine (Pool::forward() of a DirectForward).
#include "pool/harness.hpp"

namespace fairlead::pool {
namespace {

class DirectCallTest : public PoolTest {
 protected:
  struct TestCall final : DirectForward {
    TestCall(const rpc::Message& message, ForwardOptions call_options)
        : DirectForward(Target("a")), sent_request(message) {
      options = std::move(call_options);
    }

    const mcp::ForwardedRequest& request() const noexcept override { return sent_request; }
    std::shared_ptr<const mcp::ForwardedRequest> copy_request() const override {
      return std::make_shared<mcp::VerbatimRequest>(sent_request);
    }
    void on_answer(const rpc::Message& response, mcp::Revision revision) override {
      EXPECT_FALSE(answer) << "a second outcome";
      answer = ForwardedAnswer(response, revision);
    }
    void on_failure(const Error& error) override {
      EXPECT_FALSE(answer) << "a second outcome";
      answer = error;
    }

    mcp::VerbatimRequest sent_request;
    std::optional<Result<ForwardedAnswer>> answer;
  };
  std::shared_ptr<TestCall> last_call;

  bool try_call(const std::string& tool, ForwardOptions call_options = ForwardOptions(),
                const std::string& meta = "") {
    last_call = std::make_shared<TestCall>(tool_call(tool, meta), std::move(call_options));
    bool sent = false;
    bool tried = false;
    loop.post([&] {
      sent = pool->forward(last_call);
      tried = true;
    });
    loop.run_until([&] { return tried; });
    return sent;
  }
  const Result<ForwardedAnswer>& wait_for_answer() {
    loop.run_until([&] { return last_call->answer.has_value(); });
    return *last_call->answer;
  }
};

TEST_F(DirectCallTest, CallIsNotSentWhileServerIsNotReady) {
  add(spec("a"));
  EXPECT_FALSE(try_call("echo"));
  EXPECT_EQ(start_count("a"), 0u);
  EXPECT_FALSE(last_call->answer);
}

TEST_F(DirectCallTest, CallIsNotSentWhileAllPermitsAreInUse) {
  ServerSpec one_call = spec("a");
  one_call.max_calls = 1;
  add(one_call);
  ASSERT_TRUE(call("a", "echo"));
  ASSERT_TRUE(try_call("gate"));
  const std::shared_ptr<TestCall> first = last_call;
  EXPECT_FALSE(try_call("echo"));
  open_gate();
  loop.run_until([&] { return first->answer.has_value(); });
  EXPECT_TRUE(*first->answer);
  EXPECT_TRUE(try_call("echo")) << "the permit of the first call was not released";
  EXPECT_TRUE(wait_for_answer());
}

TEST_F(DirectCallTest, ResponseIsForwardedByteForByte) {
  add(spec("a"));
  ASSERT_TRUE(call("a", "echo"));
  ASSERT_TRUE(try_call("echo"));
  EXPECT_EQ(status("a").active_call_count, 1u);
  const Result<ForwardedAnswer>& answer = wait_for_answer();
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->message.result_text(), kEcho);
  EXPECT_EQ(status("a").active_call_count, 0u);
}

TEST_F(DirectCallTest, ProgressCarriesTokenOfCaller) {
  add(spec("a"));
  ASSERT_TRUE(call("a", "echo"));
  std::vector<std::string> seen;
  ForwardOptions call_options;
  call_options.on_progress = [&](const json::Raw& params) { seen.push_back(std::string(params.text())); };
  ASSERT_TRUE(try_call("progress", call_options, R"({"progressToken":"mine"})"));
  ASSERT_TRUE(wait_for_answer());
  EXPECT_EQ(seen, (std::vector<std::string>{R"({"progressToken":"mine","progress":1})",
                                            R"({"progressToken":"mine","progress":2})"}));
}

TEST_F(DirectCallTest, RepeatableCallIsRetriedAfterCrashAndResultIsMarked) {
  add(spec("a"));
  ASSERT_TRUE(call("a", "echo"));
  ASSERT_TRUE(try_call("crash_once", repeatable_call()));
  const Result<ForwardedAnswer>& answer = wait_for_answer();
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_NE(
      answer->message.result_text().find(R"("fairlead/retried":{"attempts":2,"reason":"process exited"})"),
      std::string_view::npos);
  EXPECT_EQ(start_count("a"), 2u);
}

TEST_F(DirectCallTest, OtherCallFailsWithStderrWhenServerCrashes) {
  add(spec("a"));
  ASSERT_TRUE(call("a", "echo"));
  ASSERT_TRUE(try_call("crash"));
  const Result<ForwardedAnswer>& answer = wait_for_answer();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::process_exited) << answer.error().to_string();
  EXPECT_EQ(answer.error().detail().stderr_lines, std::vector<std::string>{"out of cheese"});
  EXPECT_EQ(start_count("a"), 1u);
}

TEST_F(DirectCallTest, StoppedCallIsCancelled) {
  add(spec("a"));
  ASSERT_TRUE(call("a", "echo"));
  std::stop_source stop;
  ForwardOptions call_options;
  call_options.stop = stop.get_token();
  ASSERT_TRUE(try_call("gate", call_options));
  stop.request_stop();
  const Result<ForwardedAnswer>& answer = wait_for_answer();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), ErrorKind::cancelled);
  open_gate();
}

TEST_F(DirectCallTest, CallInFlightFailsWhenPoolIsShutDown) {
  add(spec("a"));
  ASSERT_TRUE(call("a", "echo"));
  ASSERT_TRUE(try_call("gate"));
  loop.block_on(pool->shutdown(0ms));
  EXPECT_FALSE(wait_for_answer());
}

// The destructor of the loop releases the call, and everything that the call keeps alive.
TEST_F(DirectCallTest, CallInFlightIsReleasedWithItsLoop) {
#ifdef FAIRLEAD_SANITIZED
  GTEST_SKIP() << "the loop of a running child process is destroyed, which leaks the objects of the process";
#endif
  auto own_loop = std::make_unique<Loop>();
  std::shared_ptr<Pool> own_pool = Pool::create(*own_loop, options);
  ASSERT_TRUE(own_pool->add(spec("a")));
  ASSERT_TRUE(own_loop->block_on(own_pool->call(Target("a"), tool_call("echo"), ForwardOptions())));
  last_call = std::make_shared<TestCall>(tool_call("gate"), ForwardOptions());
  bool sent = false;
  own_loop->post([&] { sent = own_pool->forward(last_call); });
  own_loop->run_until([&] { return sent; });
  EXPECT_GT(last_call.use_count(), 1);
  own_pool = nullptr;
  own_loop = nullptr;
  EXPECT_EQ(last_call.use_count(), 1);
}

}  // namespace
}  // namespace fairlead::pool
