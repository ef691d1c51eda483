// Upstreams that live on another loop, in another thread.
#include <atomic>
#include <latch>
#include <mutex>

#include "fairlead/loop/event.hpp"
#include "pool/harness.hpp"
#include "support/other_loop.hpp"

namespace fairlead::pool {
namespace {

// What was done on the other loop, in order.
class Journal {
 public:
  explicit Journal(Loop& loop) : loop_(loop) {}
  void note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(loop_.here() ? what : what + " on the wrong thread");
  }
  std::vector<std::string> notes() const {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

 private:
  Loop& loop_;
  mutable std::mutex mutex_;
  std::vector<std::string> notes_;
};

// An upstream in memory. Its tool `large` answers with 1 MiB, `report` sends a notification, progress and
// another notification before it answers, `hang` answers when it is cancelled, `die` ends the first
// connection, and `flood` sends more notifications than may wait.
class MemoryConnection final : public UpstreamConnection,
                               public std::enable_shared_from_this<MemoryConnection> {
 public:
  MemoryConnection(Loop& loop, mcp::ClientHandlers handlers, std::shared_ptr<Journal> journal, int number)
      : loop_(loop), handlers_(std::move(handlers)), journal_(std::move(journal)), number_(number) {
    server_.revision = mcp::kNewestLegacy;
    server_.capabilities = test::raw(R"({"tools":{}})");
    server_.connection = "memory";
  }
  ~MemoryConnection() override { journal_->note("destroyed"); }

  const ServerDescription& server() const noexcept override { return server_; }
  UpstreamCall call(const std::shared_ptr<const mcp::OutgoingRequest>& request,
                    CallOptions options) override {
    journal_->note("call " + std::string(request->tool()));
    return UpstreamCall(serve(shared_from_this(), std::string(request->tool()), std::move(options)));
  }
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string) override {
    journal_->note(method);
    co_return std::vector<json::Raw>(2, test::raw(R"({"name":"report"})"));
  }
  Task<Result<std::uint64_t>> subscribe(mcp::ListenFilter filter) override {
    journal_->note("subscribe " + filter.uris.at(0));
    co_return std::uint64_t{7};
  }
  Task<Result<void>> unsubscribe(std::uint64_t subscription) override {
    journal_->note("unsubscribe " + std::to_string(subscription));
    co_return Result<void>();
  }
  Task<Result<void>> set_log_level(mcp::LoggingLevel) override {
    journal_->note("set_log_level");
    co_return Result<void>();
  }
  Result<void> notify(std::string_view method, const json::Raw&) override {
    journal_->note("notify " + std::string(method));
    return {};
  }
  Task<Result<void>> ping() override {
    journal_->note("ping");
    co_return Result<void>();
  }
  std::optional<Error> end_reason() const override { return end_reason_; }
  Error explained(Error error, std::string_view) const override { return error; }
  void abort() noexcept override { end(Error(ErrorKind::closed, "aborted")); }
  Task<void> close() override {
    journal_->note("close");
    co_return;
  }

 private:
  static Task<Result<rpc::Message>> serve(std::shared_ptr<MemoryConnection> self, std::string tool,
                                          CallOptions options) {
    const mcp::ClientHandlers& handlers = self->handlers_;
    if (tool == "report") {
      handlers.notified("notifications/message", test::raw(R"("before")"));
      options.on_progress(test::raw(R"({"progressToken":"t","progress":1})"));
      handlers.notified("notifications/message", test::raw(R"("after")"));
    } else if (tool == "die" && self->number_ == 1) {
      // As with an mcp::Client, calls fail before the end of the connection is told.
      self->end_reason_ = Error(ErrorKind::closed, "died");
      self->loop_.post([self] { self->handlers_.ended(*self->end_reason_); });
      co_return *self->end_reason_;
    } else if (tool == "large") {
      co_return message(R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":")" +
                        std::string(1u << 20, 'x') + R"("}]}})");
    } else if (tool == "flood") {
      const json::Raw large = test::raw('"' + std::string(1u << 20, 'x') + '"');
      for (int i = 0; i < 64; ++i) handlers.notified("notifications/message", large);
    } else if (tool == "hang") {
      Event stopped;
      Loop& loop = self->loop_;
      const std::stop_callback on_stop(
          options.stop, [&loop, stopped] { loop.post([stopped]() mutable { stopped.set(); }); });
      const bool set = co_await stopped.wait(loop, kPatience);
      self->journal_->note(set ? "cancelled" : "never cancelled");
      co_return Error(ErrorKind::cancelled, "given up");
    }
    co_return message(R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}})");
  }
  void end(const Error& reason) {
    if (end_reason_) return;
    end_reason_ = reason;
    handlers_.ended(reason);
  }

  Loop& loop_;
  mcp::ClientHandlers handlers_;
  std::shared_ptr<Journal> journal_;
  int number_;
  ServerDescription server_;
  std::optional<Error> end_reason_;
};

class OtherLoopTest : public PoolTest {
 protected:
  test::OtherLoop other;
  std::shared_ptr<Journal> journal = std::make_shared<Journal>(other.loop);
  std::atomic<int> opened = 0;
  std::vector<std::string> heard;  // on the pool's loop, in order

  static Task<OpenedUpstream> open_memory(OtherLoopTest* self, Loop& on, UpstreamOpening opening) {
    self->journal->note("open");
    co_return std::shared_ptr<UpstreamConnection>(
        std::make_shared<MemoryConnection>(on, opening.client.handlers, self->journal, ++self->opened));
  }
  static Task<OpenedUpstream> open_never(OtherLoopTest* self, Loop& on, UpstreamOpening opening) {
    self->journal->note("open");
    Event stopped;
    const std::stop_callback on_stop(opening.stop,
                                     [&on, stopped] { on.post([stopped]() mutable { stopped.set(); }); });
    const bool set = co_await stopped.wait(on, kPatience);
    self->journal->note(set ? "given up" : "never given up");
    co_return Error(ErrorKind::cancelled, "given up");
  }
  void add_far(const UpstreamOpener& opener) {
    options.openers["far"] = on_loop(other.loop, opener);
    options.handlers.notified = [this](const std::shared_ptr<Upstream>&, std::string_view,
                                       const json::Raw& params) {
      heard.push_back(loop.here() ? std::string(params.text()) : "on the wrong thread");
    };
    ServerSpec far;
    far.name = "far";
    far.reach = NamedConnector{"far"};
    far.restart.initial = 1ms;
    far.clocks = clocks;
    add(far);
  }
  void add_memory() {
    add_far([this](Loop& on, UpstreamOpening opening) { return open_memory(this, on, std::move(opening)); });
  }
  // What is on its way to the other loop by then has happened there.
  std::vector<std::string> noted() {
    other.wait();
    return journal->notes();
  }
  Clocks clocks;
};

TEST_F(OtherLoopTest, EveryOperationRunsOnTheLoopOfTheConnection) {
  add_memory();
  EXPECT_EQ(text_of(call("far", "report")), "done");
  {
    const Result<Lease> lease = loop.block_on(pool->acquire(Target("far"), {}));
    ASSERT_TRUE(lease) << lease.error().to_string();
    UpstreamConnection& connection = *lease->connection();
    EXPECT_EQ(json::View(connection.server().capabilities)["tools"].text(), "{}");
    const Result<std::vector<json::Raw>> tools = loop.block_on(connection.list("tools/list", "tools"));
    ASSERT_TRUE(tools);
    EXPECT_EQ(tools->size(), 2u);
    mcp::ListenFilter filter;
    filter.uris.emplace_back("memo://one");
    const Result<std::uint64_t> number = loop.block_on(connection.subscribe(filter));
    EXPECT_EQ(number.value_or(0), 7u);
    EXPECT_TRUE(loop.block_on(connection.unsubscribe(7)));
    EXPECT_TRUE(loop.block_on(connection.set_log_level(mcp::LoggingLevel::info)));
    EXPECT_TRUE(loop.block_on(connection.ping()));
  }
  EXPECT_TRUE(pool->notify(Target("far"), "notifications/roots/list_changed", json::Raw()));
  loop.block_on(pool->shutdown(1s));
  pool.reset();
  EXPECT_EQ(noted(),
            (std::vector<std::string>{"open", "call report", "tools/list", "subscribe memo://one",
                                      "unsubscribe 7", "set_log_level", "ping",
                                      "notify notifications/roots/list_changed", "close", "destroyed"}));
}

TEST_F(OtherLoopTest, NotificationsAndProgressArriveInOrderAndAheadOfTheAnswer) {
  add_memory();
  ForwardOptions how;
  how.on_progress = [this](const json::Raw&) { heard.emplace_back("progress"); };
  const Result<rpc::Message> answer = loop.block_on(
      pool->call(Target("far"), tool_call("report", R"({"progressToken":"mine"})"), std::move(how)));
  EXPECT_EQ(text_of(answer), "done");
  EXPECT_EQ(heard, (std::vector<std::string>{R"("before")", "progress", R"("after")"}));
}

TEST_F(OtherLoopTest, CallIsCancelledThereWhenItsCallerGivesUp) {
  add_memory();
  std::stop_source stop;
  ForwardOptions how;
  how.stop = stop.get_token();
  const auto hanging = begin("far", "hang", how);
  EXPECT_TRUE(comes_true([&] { return journal->notes().size() == 2; }));
  stop.request_stop();
  EXPECT_NE(finish(hanging).find("given up"), std::string::npos) << finish(hanging);
  EXPECT_EQ(noted(), (std::vector<std::string>{"open", "call hang", "cancelled"}));
}

TEST_F(OtherLoopTest, RepeatableCallIsSentAgainWhenItsConnectionEnds) {
  add_memory();
  EXPECT_EQ(text_of(call("far", "die", repeatable_call())), "done");
  EXPECT_EQ(opened.load(), 2);
  EXPECT_EQ(status("far").generation, 2u);
}

TEST_F(OtherLoopTest, StartFailsAndIsGivenUpWhenTheConnectionDoesNotOpenInTime) {
  clocks.spawn = 20ms;
  clocks.handshake = 30ms;
  add_far([this](Loop& on, UpstreamOpening opening) { return open_never(this, on, std::move(opening)); });
  const std::string answer = text_of(call("far", "report"));
  EXPECT_NE(answer.find("starting server far got no answer within 50 ms"), std::string::npos) << answer;
  EXPECT_TRUE(comes_true([&] { return journal->notes().size() == 2; }));
  EXPECT_EQ(noted(), (std::vector<std::string>{"open", "given up"}));
}

TEST_F(OtherLoopTest, CallsAndNotificationsThatWouldWaitOverMaxBacklogBytesAreRefused) {
  options.client.connect.limits.max_backlog_bytes = 64u << 10;
  add_memory();
  EXPECT_EQ(text_of(call("far", "report")), "done");
  const std::string large(40u << 10, 'x');
  const std::string meta = R"({"padding":")" + large + "\"}";
  std::latch release(1);
  other.loop.post([&] { release.wait(); });
  const auto waiting = std::make_shared<Beside>();
  const auto refused = std::make_shared<Beside>();
  loop.spawn(run_beside(pool, Target("far"), tool_call("report", meta), {}, waiting));
  loop.spawn(run_beside(pool, Target("far"), tool_call("report", meta), {}, refused));
  const std::string refusal = finish(refused);
  const Result<void> notified =
      pool->notify(Target("far"), "notifications/progress", test::raw('"' + large + '"'));
  const bool waits = !waiting->answer.has_value();
  release.count_down();
  EXPECT_NE(refusal.find("resource exhausted: more than max_backlog_bytes (65536)"), std::string::npos)
      << refusal;
  ASSERT_FALSE(notified);
  EXPECT_EQ(notified.error().kind(), ErrorKind::resource_exhausted) << notified.error().to_string();
  EXPECT_TRUE(waits);
  EXPECT_EQ(finish(waiting), "done");
  EXPECT_EQ(text_of(loop.block_on(pool->call(Target("far"), tool_call("report", meta), {}))), "done");
  EXPECT_EQ(status("far").generation, 1u);
}

TEST_F(OtherLoopTest, CallFailsWhenItsAnswerWouldWaitOverMaxBacklogBytes) {
  options.client.connect.limits.max_backlog_bytes = 1u << 20;
  add_memory();
  const Result<rpc::Message> refused = call("far", "large");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::resource_exhausted) << refused.error().to_string();
  EXPECT_EQ(text_of(call("far", "report")), "done");
  EXPECT_EQ(status("far").generation, 1u);
}

TEST_F(OtherLoopTest, ConnectionIsLostWhenMoreNotificationsWaitThanMaxBacklogBytes) {
  options.client.connect.limits.max_backlog_bytes = 1u << 20;
  add_memory();
  static_cast<void>(call("far", "flood"));
  EXPECT_TRUE(comes_true([&] { return status("far").last_error.has_value(); }));
  const std::string lost = status("far").last_error->to_string();
  EXPECT_NE(lost.find("max_backlog_bytes (1048576)"), std::string::npos) << lost;
}

}  // namespace
}  // namespace fairlead::pool
