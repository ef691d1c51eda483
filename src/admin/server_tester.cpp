#include "admin/server_tester.hpp"

#include "admin/problem.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/protocol/revision.hpp"

namespace fairlead::admin {

json::Raw TestStep::to_json() const {
  json::Writer writer;
  writer.begin_object().key("name").string(name).key("ok").boolean(ok);
  writer.key("ms").number(static_cast<double>(duration.count()) / 1000);
  writer.end_object();
  return writer.finish();
}

void write_failure(json::Writer& writer, const Error& error) {
  const Error complete = with_failure_code(error);
  const ErrorDetail& detail = complete.detail();
  writer.begin_object().key("code").string(detail.failure_code);
  writer.key("message").string(complete.message()).key("remedy");
  writer.string(detail.remedy.empty() ? remedy_for(detail.failure_code) : std::string_view(detail.remedy));
  writer.end_object();
}

namespace {

void write_lines(json::Writer& writer, std::string_view key, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  writer.key(key).begin_array();
  for (const std::string& line : lines) writer.string(line);
  writer.end_array();
}

}  // namespace

json::Raw TestOutcome::to_json() const {
  json::Writer writer;
  writer.begin_object().key("ok").boolean(ok);
  if (!revision.empty()) writer.key("revision").string(revision);
  if (ok) writer.key("tools").unsigned_integer(tools);
  writer.key("steps").begin_array();
  for (const TestStep& step : steps) writer.raw(step.to_json());
  writer.end_array();
  if (error) {
    writer.key("error");
    write_failure(writer, *error);
  }
  write_lines(writer, "stdout", stdout_lines);
  write_lines(writer, "stderr", stderr_lines);
  writer.end_object();
  return writer.finish();
}

// One test in progress.
class ServerTester::Test {
 public:
  Test(ServerTester& owner, pool::ServerSpec spec, std::string user, TestObserver observer)
      : spec_(std::move(spec)),
        user_(std::move(user)),
        observer_(std::move(observer)),
        deadline_(owner.loop_),
        timeout_(owner.timeout_) {
    spec_.enabled = true;
    spec_.keep_running = false;
    spec_.sharing = pool::Sharing::per_user;  // the user's own secrets win
    pool::PoolOptions options = owner.options_;
    options.limits = pool::PoolLimits();
    options.limits.max_stdio_processes = 1;
    options.handlers = pool::UpstreamHandlers();
    // The last transitions can follow the end of the shutdown, and thereby of this test.
    options.handlers.on_state_changed = [self = std::weak_ptr<Test*>(self_)](
                                            const std::shared_ptr<pool::Upstream>&,
                                            const pool::Transition& transition) {
      if (const auto test = self.lock()) (*test)->on_transition(transition);
    };
    first_step_ = spec_.is_process() ? "spawn" : "connect";
    pool_ = pool::Pool::create(owner.loop_, std::move(options));
    if (observer_.on_stderr_line)
      lines_ = pool_->monitor()->on_line(
          [this](const pool::StderrLine& line) { observer_.on_stderr_line(line.text); });
  }

  static Task<TestOutcome> run(Test& test, std::stop_token stop);

 private:
  void on_transition(const pool::Transition& transition);
  void begin_step(std::string_view name) {
    step_ = name;
    began_ = Clock::now();
  }
  void end_step(bool ok);
  void fail(const Error& error);
  Error timeout_error() const;
  static Task<void> use(Test& test, std::stop_token stop);
  static Task<void> list_tools(Test& test, const pool::Lease& lease);

  pool::ServerSpec spec_;
  const std::string user_;
  TestObserver observer_;
  std::string_view first_step_;
  std::shared_ptr<pool::Pool> pool_;
  std::shared_ptr<void> lines_;  // the subscription of observer_
  Timer deadline_;
  std::chrono::milliseconds timeout_;
  std::stop_source stop_;
  std::weak_ptr<pool::UpstreamConnection> connection_;
  bool timed_out_ = false;
  std::string_view step_;  // in progress; empty: none
  Clock::time_point began_{};
  TestOutcome outcome_;
  std::shared_ptr<Test*> self_ = std::make_shared<Test*>(this);  // expires before the other members
};

void ServerTester::Test::end_step(bool ok) {
  if (step_.empty()) return;
  TestStep step;
  step.name = std::exchange(step_, {});
  step.ok = ok;
  step.duration = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began_);
  outcome_.steps.push_back(step);
  if (observer_.on_step) observer_.on_step(step);
}

void ServerTester::Test::on_transition(const pool::Transition& transition) {
  if (outcome_.error || step_ == "stop") return;
  if (transition.to == pool::UpstreamState::handshaking && step_ == first_step_) {
    end_step(true);
    begin_step("handshake");
  }
}

void ServerTester::Test::fail(const Error& error) {
  end_step(false);
  outcome_.error = timed_out_ ? timeout_error() : error;
  outcome_.stderr_lines = error.detail().stderr_lines;
  outcome_.stdout_lines = error.detail().stdout_lines;
}

Error ServerTester::Test::timeout_error() const {
  return with_failure_code(Error::timeout("testing server " + spec_.name, timeout_));
}

Task<TestOutcome> ServerTester::Test::run(Test& test, std::stop_token stop) {
  test.deadline_.arm_after(test.timeout_, [&test] {
    test.timed_out_ = true;
    test.stop_.request_stop();
  });
  const std::stop_callback forward(stop, [&test] { test.stop_.request_stop(); });
  const std::stop_callback cut(test.stop_.get_token(), [&test] {
    if (const auto connection = test.connection_.lock()) connection->abort();
  });
  const Result<void> added = test.pool_->add(test.spec_);
  if (added) co_await use(test, test.stop_.get_token());
  if (!added) test.fail(added.error());
  test.deadline_.cancel();
  test.begin_step("stop");
  co_await test.pool_->shutdown(std::chrono::milliseconds(0));
  test.end_step(true);
  test.outcome_.ok = !test.outcome_.error;
  co_return std::move(test.outcome_);
}

Task<void> ServerTester::Test::use(Test& test, std::stop_token stop) {
  test.begin_step(test.first_step_);
  pool::Target target(test.spec_.name, std::string(), test.user_);
  const Result<pool::Lease> lease = co_await test.pool_->acquire(std::move(target), stop);
  if (!lease) co_return test.fail(lease.error());
  if (test.step_ == test.first_step_) {
    test.end_step(true);
    test.begin_step("handshake");
  }
  test.end_step(true);
  test.outcome_.revision = mcp::to_string(lease->connection()->server().revision);
  test.connection_ = lease->connection();
  co_await list_tools(test, *lease);
}

Task<void> ServerTester::Test::list_tools(Test& test, const pool::Lease& lease) {
  test.begin_step("list");
  pool::UpstreamConnection& connection = *lease.connection();
  if (!json::View(connection.server().capabilities)["tools"].absent()) {
    const Result<std::vector<json::Raw>> tools = co_await connection.list("tools/list", "tools");
    if (!tools) co_return test.fail(connection.with_error_context(tools.error(), {}));
    test.outcome_.tools = tools->size();
  }
  test.end_step(true);
  // The error carries the last lines of stderr of the running process.
  const Error context = connection.with_error_context(Error(ErrorKind::closed, "the test has ended"), {});
  test.outcome_.stderr_lines = context.detail().stderr_lines;
  test.outcome_.stdout_lines = context.detail().stdout_lines;
}

Task<Result<TestOutcome>> ServerTester::run(std::shared_ptr<ServerTester> self, pool::ServerSpec spec,
                                            std::string user, TestObserver observer, std::stop_token stop) {
  if (self->closed_.stop_requested()) co_return Error(ErrorKind::closed, "the gateway is shutting down");
  if (self->running_ >= self->max_tests_)
    co_return problem(codes::kTooManyRequests,
                      "max_server_tests (" + std::to_string(self->max_tests_) + ") tests are in progress");
  ++self->running_;
  std::stop_source either;
  const std::stop_callback on_client(stop, [&either] { either.request_stop(); });
  const std::stop_callback on_close(self->closed_.get_token(), [&either] { either.request_stop(); });
  Test test(*self, std::move(spec), std::move(user), std::move(observer));
  TestOutcome outcome = co_await Test::run(test, either.get_token());
  --self->running_;
  co_return outcome;
}

void ServerTester::close() {
  closed_.request_stop();
}

}  // namespace fairlead::admin
