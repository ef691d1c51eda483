// Upstreams on another loop, which runs in another thread.
#include <atomic>
#include <latch>
#include <mutex>

#include "fairlead/loop/event.hpp"
#include "pool/harness.hpp"
#include "support/background_loop.hpp"

namespace fairlead::pool {
namespace {

// Records the operations on the other loop, in order. Thread-safe.
class OperationLog {
 public:
  explicit OperationLog(Loop& loop) : loop_(loop) {}
  void record(const std::string& operation) {
    const std::lock_guard lock(mutex_);
    operations_.push_back(loop_.in_loop_thread() ? operation : operation + " on the wrong thread");
  }
  std::vector<std::string> operations() const {
    const std::lock_guard lock(mutex_);
    return operations_;
  }

 private:
  Loop& loop_;
  mutable std::mutex mutex_;
  std::vector<std::string> operations_;
};

// An in-memory upstream. Its tool `large` returns 1 MiB; `report` sends a notification, progress and another
// notification before it returns; `hang` returns when it is cancelled; `die` ends the first connection;
// `flood` sends more notifications than may be queued.
class MemoryConnection final : public UpstreamConnection,
                               public std::enable_shared_from_this<MemoryConnection> {
 public:
  MemoryConnection(Loop& loop, mcp::ClientHandlers handlers, std::shared_ptr<OperationLog> operation_log,
                   int number)
      : loop_(loop), handlers_(std::move(handlers)), log_(std::move(operation_log)), number_(number) {
    server_.revision = mcp::kNewestLegacyRevision;
    server_.capabilities = test::raw(R"({"tools":{}})");
    server_.connection_description = "memory";
  }
  ~MemoryConnection() override { log_->record("destroyed"); }

  const ServerDescription& server() const noexcept override { return server_; }
  UpstreamCall call(const std::shared_ptr<const mcp::ForwardedRequest>& request,
                    CallOptions options) override {
    log_->record("call " + std::string(request->tool()));
    return UpstreamCall(serve(shared_from_this(), std::string(request->tool()), std::move(options)));
  }
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string) override {
    log_->record(method);
    co_return std::vector<json::Raw>(2, test::raw(R"({"name":"report"})"));
  }
  Task<Result<std::uint64_t>> subscribe(mcp::SubscriptionFilter filter) override {
    log_->record("subscribe " + filter.uris.at(0));
    co_return std::uint64_t{7};
  }
  Task<Result<void>> unsubscribe(std::uint64_t subscription) override {
    log_->record("unsubscribe " + std::to_string(subscription));
    co_return Result<void>();
  }
  Task<Result<void>> set_log_level(mcp::LoggingLevel) override {
    log_->record("set_log_level");
    co_return Result<void>();
  }
  Result<void> notify(std::string_view method, const json::Raw&) override {
    log_->record("notify " + std::string(method));
    return {};
  }
  Task<Result<void>> ping() override {
    log_->record("ping");
    co_return Result<void>();
  }
  std::optional<Error> end_reason() const override { return end_reason_; }
  Error with_error_context(Error error, std::string_view) const override { return error; }
  void abort() noexcept override { end(Error(ErrorKind::closed, "aborted")); }
  Task<void> close() override {
    log_->record("close");
    co_return;
  }

 private:
  static Task<Result<rpc::Message>> serve(std::shared_ptr<MemoryConnection> self, std::string tool,
                                          CallOptions options) {
    const mcp::ClientHandlers& handlers = self->handlers_;
    if (tool == "report") {
      handlers.on_notification("notifications/message", test::raw(R"("before")"));
      options.on_progress(test::raw(R"({"progressToken":"t","progress":1})"));
      handlers.on_notification("notifications/message", test::raw(R"("after")"));
    } else if (tool == "die" && self->number_ == 1) {
      // As with an mcp::Client, calls fail before the end of the connection is reported.
      self->end_reason_ = Error(ErrorKind::closed, "died");
      self->loop_.post([self] { self->handlers_.on_ended(*self->end_reason_); });
      co_return *self->end_reason_;
    } else if (tool == "large") {
      co_return message(R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":")" +
                        std::string(1u << 20, 'x') + R"("}]}})");
    } else if (tool == "flood") {
      const json::Raw large = test::raw('"' + std::string(1u << 20, 'x') + '"');
      for (int i = 0; i < 64; ++i) handlers.on_notification("notifications/message", large);
    } else if (tool == "hang") {
      Event stopped;
      Loop& loop = self->loop_;
      const std::stop_callback on_stop(
          options.stop, [&loop, stopped] { loop.post([stopped]() mutable { stopped.set(); }); });
      const bool set = co_await stopped.wait(loop, kTestTimeout);
      self->log_->record(set ? "cancelled" : "never cancelled");
      co_return Error(ErrorKind::cancelled, "stopped");
    }
    co_return message(R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}})");
  }
  void end(const Error& reason) {
    if (end_reason_) return;
    end_reason_ = reason;
    handlers_.on_ended(reason);
  }

  Loop& loop_;
  mcp::ClientHandlers handlers_;
  std::shared_ptr<OperationLog> log_;
  int number_;
  ServerDescription server_;
  std::optional<Error> end_reason_;
};

class OtherLoopTest : public PoolTest {
 protected:
  test::BackgroundLoop other;
  std::shared_ptr<OperationLog> operation_log = std::make_shared<OperationLog>(other.loop);
  std::atomic<int> opened = 0;
  std::vector<std::string> received;  // params of the notifications received on the pool's loop, in order

  static Task<UpstreamOpenResult> open_memory(OtherLoopTest* self, Loop& on, UpstreamOpenOptions opening) {
    self->operation_log->record("open");
    co_return std::shared_ptr<UpstreamConnection>(
        std::make_shared<MemoryConnection>(on, opening.client.handlers, self->operation_log, ++self->opened));
  }
  static Task<UpstreamOpenResult> open_never(OtherLoopTest* self, Loop& on, UpstreamOpenOptions opening) {
    self->operation_log->record("open");
    Event stopped;
    const std::stop_callback on_stop(opening.stop,
                                     [&on, stopped] { on.post([stopped]() mutable { stopped.set(); }); });
    const bool set = co_await stopped.wait(on, kTestTimeout);
    self->operation_log->record(set ? "stopped" : "never stopped");
    co_return Error(ErrorKind::cancelled, "stopped");
  }
  void add_with_opener(const UpstreamOpener& opener) {
    options.openers["memory"] = opener_on_loop(other.loop, opener);
    options.handlers.on_notification = [this](const std::shared_ptr<Upstream>&, std::string_view,
                                              const json::Raw& params) {
      received.push_back(loop.in_loop_thread() ? std::string(params.text()) : "on the wrong thread");
    };
    ServerSpec server;
    server.name = "memory";
    server.transport = ConnectorName{"memory"};
    server.restart.initial = 1ms;
    server.clocks = clocks;
    add(server);
  }
  void add_memory() {
    add_with_opener(
        [this](Loop& on, UpstreamOpenOptions opening) { return open_memory(this, on, std::move(opening)); });
  }
  // Returns the recorded operations after all callbacks that were posted to the other loop so far have run.
  std::vector<std::string> recorded_operations() {
    other.wait();
    return operation_log->operations();
  }
  Clocks clocks;
};

TEST_F(OtherLoopTest, EveryOperationRunsOnLoopOfConnection) {
  add_memory();
  EXPECT_EQ(text_of(call("memory", "report")), "done");
  {
    const Result<Lease> lease = loop.block_on(pool->acquire(Target("memory"), {}));
    ASSERT_TRUE(lease) << lease.error().to_string();
    UpstreamConnection& connection = *lease->connection();
    EXPECT_EQ(json::View(connection.server().capabilities)["tools"].text(), "{}");
    const Result<std::vector<json::Raw>> tools = loop.block_on(connection.list("tools/list", "tools"));
    ASSERT_TRUE(tools);
    EXPECT_EQ(tools->size(), 2u);
    mcp::SubscriptionFilter filter;
    filter.uris.emplace_back("memo://one");
    const Result<std::uint64_t> number = loop.block_on(connection.subscribe(filter));
    EXPECT_EQ(number.value_or(0), 7u);
    EXPECT_TRUE(loop.block_on(connection.unsubscribe(7)));
    EXPECT_TRUE(loop.block_on(connection.set_log_level(mcp::LoggingLevel::info)));
    EXPECT_TRUE(loop.block_on(connection.ping()));
  }
  EXPECT_TRUE(pool->notify(Target("memory"), "notifications/roots/list_changed", json::Raw()));
  loop.block_on(pool->shutdown(1s));
  pool.reset();
  EXPECT_EQ(recorded_operations(),
            (std::vector<std::string>{"open", "call report", "tools/list", "subscribe memo://one",
                                      "unsubscribe 7", "set_log_level", "ping",
                                      "notify notifications/roots/list_changed", "close", "destroyed"}));
}

TEST_F(OtherLoopTest, NotificationsAndProgressArriveInOrderBeforeResponse) {
  add_memory();
  ForwardOptions call_options;
  call_options.on_progress = [this](const json::Raw&) { received.emplace_back("progress"); };
  const Result<rpc::Message> answer = loop.block_on(pool->call(
      Target("memory"), tool_call("report", R"({"progressToken":"mine"})"), std::move(call_options)));
  EXPECT_EQ(text_of(answer), "done");
  EXPECT_EQ(received, (std::vector<std::string>{R"("before")", "progress", R"("after")"}));
}

TEST_F(OtherLoopTest, CallIsCancelledOnOtherLoopWhenCallerStops) {
  add_memory();
  std::stop_source stop;
  ForwardOptions call_options;
  call_options.stop = stop.get_token();
  const auto hanging = begin_call("memory", "hang", call_options);
  EXPECT_TRUE(wait_until([&] { return operation_log->operations().size() == 2; }));
  stop.request_stop();
  EXPECT_NE(finish_call(hanging).find("stopped"), std::string::npos) << finish_call(hanging);
  EXPECT_EQ(recorded_operations(), (std::vector<std::string>{"open", "call hang", "cancelled"}));
}

TEST_F(OtherLoopTest, RepeatableCallIsRetriedWhenConnectionEnds) {
  add_memory();
  EXPECT_EQ(text_of(call("memory", "die", repeatable_call())), "done");
  EXPECT_EQ(opened.load(), 2);
  EXPECT_EQ(status("memory").generation, 2u);
}

TEST_F(OtherLoopTest, StartFailsAndOpenerIsStoppedWhenConnectionDoesNotOpenInTime) {
  clocks.spawn = 20ms;
  clocks.handshake = 30ms;
  add_with_opener(
      [this](Loop& on, UpstreamOpenOptions opening) { return open_never(this, on, std::move(opening)); });
  const std::string answer = text_of(call("memory", "report"));
  EXPECT_NE(answer.find("starting server memory got no answer within 50 ms"), std::string::npos) << answer;
  EXPECT_TRUE(wait_until([&] { return operation_log->operations().size() == 2; }));
  EXPECT_EQ(recorded_operations(), (std::vector<std::string>{"open", "stopped"}));
}

TEST_F(OtherLoopTest, CallsAndNotificationsOverMaxBacklogBytesAreRejected) {
  options.client.connect.limits.max_backlog_bytes = 64u << 10;
  add_memory();
  EXPECT_EQ(text_of(call("memory", "report")), "done");
  const std::string large(40u << 10, 'x');
  const std::string meta = R"({"padding":")" + large + "\"}";
  std::latch release(1);
  other.loop.post([&] { release.wait(); });
  const auto waiting = std::make_shared<BackgroundCall>();
  const auto refused = std::make_shared<BackgroundCall>();
  loop.spawn(run_in_background(pool, Target("memory"), tool_call("report", meta), {}, waiting));
  loop.spawn(run_in_background(pool, Target("memory"), tool_call("report", meta), {}, refused));
  const std::string refusal = finish_call(refused);
  const Result<void> notified =
      pool->notify(Target("memory"), "notifications/progress", test::raw('"' + large + '"'));
  const bool waits = !waiting->answer.has_value();
  release.count_down();
  EXPECT_NE(refusal.find("resource exhausted: max_backlog_bytes (65536)"), std::string::npos) << refusal;
  ASSERT_FALSE(notified);
  EXPECT_EQ(notified.error().kind(), ErrorKind::resource_exhausted) << notified.error().to_string();
  EXPECT_TRUE(waits);
  EXPECT_EQ(finish_call(waiting), "done");
  EXPECT_EQ(text_of(loop.block_on(pool->call(Target("memory"), tool_call("report", meta), {}))), "done");
  EXPECT_EQ(status("memory").generation, 1u);
}

TEST_F(OtherLoopTest, CallFailsWhenResponseExceedsMaxBacklogBytes) {
  options.client.connect.limits.max_backlog_bytes = 1u << 20;
  add_memory();
  const Result<rpc::Message> refused = call("memory", "large");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::resource_exhausted) << refused.error().to_string();
  EXPECT_EQ(text_of(call("memory", "report")), "done");
  EXPECT_EQ(status("memory").generation, 1u);
}

TEST_F(OtherLoopTest, ConnectionIsLostWhenNotificationsExceedMaxBacklogBytes) {
  options.client.connect.limits.max_backlog_bytes = 1u << 20;
  add_memory();
  static_cast<void>(call("memory", "flood"));
  EXPECT_TRUE(wait_until([&] { return status("memory").last_error.has_value(); }));
  const std::string lost = status("memory").last_error->to_string();
  EXPECT_NE(lost.find("max_backlog_bytes (1048576)"), std::string::npos) << lost;
}

}  // namespace
}  // namespace fairlead::pool
