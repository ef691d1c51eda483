// Fairlead's client against its server: tasks in both forms (2025-11-25 and the extension), and URL
// elicitation.
#include "fairlead/loop/all.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

const char* const kForm = R"({"type":"object","properties":{"name":{"type":"string"}}})";

Task<Result<std::string>> elicit_two(Context context, EchoArgs in) {
  context.set_status_message("asking");
  auto both = all(context.elicit("One?", test::raw(kForm)), context.elicit("Two?", test::raw(kForm)));
  auto [first, second] = co_await both;
  if (!first) co_return first.error();
  if (!second) co_return second.error();
  co_return in.message + std::string(first->content.text()) + std::string(second->content.text());
}
Task<Result<std::string>> fail_with_code(Context, EchoArgs) {
  co_return Error::rpc(-32050, "broken");
}
Task<Result<std::string>> sleep_long(Context context, EchoArgs in) {
  const bool slept = co_await context.sleep(std::chrono::hours(1));
  co_return in.message + (slept ? " slept" : " stopped");
}
Task<Result<std::string>> elicit_one(Context context, EchoArgs) {
  Task<Result<ElicitResult>> elicitation = context.elicit("One?", test::raw(kForm));
  const Result<ElicitResult> first = co_await elicitation;
  if (!first) co_return first.error();
  co_return std::string(first->content.text());
}
Task<Result<ElicitResult>> accept(std::string message, json::Raw) {
  ElicitResult result;
  result.action = ElicitResult::Action::accept;
  result.content = test::raw(R"({"name":")" + message + "\"}");
  co_return result;
}

class ClientTasksTest : public ServerTest, public ::testing::WithParamInterface<const char*> {
 public:
  std::shared_ptr<Client> client;
  std::vector<std::string> notifications;

  void SetUp() override {
    ServerTest::SetUp();
    const ToolAnnotations none;
    tool(server, "ask_two", "", &elicit_two, none, TaskSupport::required);
    tool(server, "broken", "", &fail_with_code, none, TaskSupport::required);
    tool(server, "sleep", "", &sleep_long, none, TaskSupport::required);
    tool(server, "ask_one", "", &elicit_one);
    TaskOptions options;
    options.poll_interval = 1ms;
    server.tasks(options);
  }
  bool is_core() const { return std::string(GetParam()) == "2025-11-25"; }

  void connect(ClientOptions options = ClientOptions()) {
    auto [near_end, far_end] = make_channel(loop, loop);
    peer = serve(server, near_end);
    options.pinned_revision = revision_named(GetParam());
    if (!options.handlers.elicit) options.handlers.elicit = accept;
    options.handlers.on_notification = [this](std::string_view method, const json::Raw&) {
      notifications.emplace_back(method);
    };
    const Result<std::shared_ptr<Client>> connected = loop.block_on(Client::connect_over(far_end, options));
    ASSERT_TRUE(connected) << connected.error().to_string();
    client = *connected;
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
    ServerTest::TearDown();
  }
  static json::Raw args() { return test::raw(R"({"message":"x"})"); }
  static std::string text(const Result<ToolResult>& result) {
    return result ? result->content.front().text() : result.error().to_string();
  }
};

TEST_P(ClientTasksTest, CallReturnsResultOfTask) {
  connect();
  std::vector<TaskStatus> seen;
  ClientCallOptions options;
  options.on_task = [&](const TaskInfo& task) { seen.push_back(task.status); };
  EXPECT_EQ(text(loop.block_on(client->call_tool("ask_two", args(), options))),
            R"(x{"name":"One?"}{"name":"Two?"})");
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front(), TaskStatus::working);
  if (!is_core()) {
    EXPECT_EQ(seen.back(), TaskStatus::completed);
  }
  // request() awaits the task as well.
  const Result<json::Raw> raw = loop.block_on(
      client->request("tools/call", test::raw(R"({"name":"ask_two","arguments":{"message":"y"}})")));
  ASSERT_TRUE(raw);
  EXPECT_NE(raw->text().find("y{"), std::string_view::npos);
}

TEST_P(ClientTasksTest, FailedTaskReturnsErrorOfServer) {
  connect();
  const Result<ToolResult> failed = loop.block_on(client->call_tool("broken", args()));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind(), ErrorKind::remote);
  EXPECT_EQ(failed.error().detail().rpc_code, -32050);
}

TEST_P(ClientTasksTest, StopAndTimeoutCancelTask) {
  connect();
  std::string id;
  std::stop_source stop;
  ClientCallOptions options;
  options.stop = stop.get_token();
  options.on_task = [&](const TaskInfo& task) {
    id = task.id;
    loop.post([stop]() mutable { stop.request_stop(); });
  };
  const Result<ToolResult> stopped = loop.block_on(client->call_tool("sleep", args(), options));
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind(), ErrorKind::cancelled);
  const Result<TaskInfo> after = loop.block_on(client->task_get(id));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->status, TaskStatus::cancelled);

  ClientCallOptions short_options;
  short_options.max_total_time = 50ms;
  short_options.on_task = [&](const TaskInfo& task) { id = task.id; };
  const Result<ToolResult> late = loop.block_on(client->call_tool("sleep", args(), short_options));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind(), ErrorKind::timeout);
  const Result<TaskInfo> then = loop.block_on(client->task_get(id));
  ASSERT_TRUE(then);
  EXPECT_EQ(then->status, TaskStatus::cancelled);
}

TEST_P(ClientTasksTest, TaskCanBeListedAwaitedAndCancelledExplicitly) {
  connect();
  const Result<TaskInfo> created = loop.block_on(
      client->call_tool_as_task("ask_two", args(), ClientCallOptions(), std::chrono::minutes(1)));
  ASSERT_TRUE(created) << created.error().to_string();
  EXPECT_EQ(created->status, TaskStatus::working);
  EXPECT_EQ(created->ttl_ms, is_core() ? 60'000u : 3'600'000u);
  const Result<std::vector<TaskInfo>> listed = loop.block_on(client->task_list());
  ASSERT_EQ(listed.has_value(), is_core());
  if (listed) {
    ASSERT_EQ(listed->size(), 1u);
    EXPECT_EQ(listed->front().id, created->id);
  }
  EXPECT_EQ(text(loop.block_on(client->task_result(*created))), R"(x{"name":"One?"}{"name":"Two?"})");
  const Result<TaskInfo> done = loop.block_on(client->task_get(created->id));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, TaskStatus::completed);
  EXPECT_EQ(done->message, "asking");
  EXPECT_EQ(loop.block_on(client->task_cancel(created->id)).has_value(), !is_core());
  EXPECT_FALSE(loop.block_on(client->task_get("unknown")));
  // A tool that never becomes a task.
  const Result<TaskInfo> at_once = loop.block_on(client->call_tool_as_task("echo", args()));
  ASSERT_EQ(at_once.has_value(), !is_core());
  if (at_once) {
    EXPECT_EQ(text(loop.block_on(client->task_result(*at_once))), "x");
  }
}

TEST_P(ClientTasksTest, CallOfTaskToolFailsWhenClientLacksTasks) {
  ClientOptions options;
  options.accept_tasks = false;
  connect(options);
  const Result<ToolResult> rejected = loop.block_on(client->call_tool("ask_two", args()));
  ASSERT_FALSE(rejected);
  EXPECT_EQ(rejected.error().detail().rpc_code, is_core() ? -32601 : -32021);
}

TEST_P(ClientTasksTest, ClientRunsServerRequestsAsTasks) {
  ClientOptions options;
  options.serve_tasks = true;
  connect(options);
  EXPECT_EQ(text(loop.block_on(client->call_tool("ask_one", args()))), R"({"name":"One?"})");
  EXPECT_EQ(text(loop.block_on(client->call_tool("ask_two", args()))), R"(x{"name":"One?"}{"name":"Two?"})");
}

// ---- URL elicitation ------------------------------------------------------------------------------------

class UrlElicitationTest : public ClientTasksTest {
 public:
  bool authorized = false;
  int elicitations = 0;
  std::string seen_url;

  // Handlers are plain functions and reach the test through this pointer.
  static UrlElicitationTest*& instance() {
    static UrlElicitationTest* test = nullptr;
    return test;
  }
  static Task<Result<std::string>> secret(Context context, EchoArgs) {
    if (!instance()->authorized) {
      const Result<void> required =
          co_await context.require_url("Sign in", "https://example.org/in", "sign-in");
      if (!required) co_return required.error();
    }
    co_return std::string("secret");
  }
  static Task<Result<ElicitResult>> accept_url(std::string, std::string url) {
    UrlElicitationTest& test = *instance();
    test.seen_url = url;
    ++test.elicitations;
    ElicitResult result;
    result.action = ElicitResult::Action::accept;
    // The user signs in out of band.
    test.loop.post([&test] {
      test.authorized = true;
      test.server.notify_elicitation_complete("sign-in");
    });
    co_return result;
  }
  static Task<Result<ElicitResult>> decline_url(std::string, std::string) {
    ++instance()->elicitations;
    ElicitResult result;
    result.action = ElicitResult::Action::decline;
    co_return result;
  }
  void SetUp() override {
    ClientTasksTest::SetUp();
    instance() = this;
    tool(server, "secret", "", &secret);
  }
};

TEST_P(UrlElicitationTest, ClientElicitsUrlAndRepeatsCall) {
  ClientOptions options;
  options.handlers.elicit_url = accept_url;
  connect(options);
  EXPECT_EQ(text(loop.block_on(client->call_tool("secret", args()))), "secret");
  EXPECT_EQ(seen_url, "https://example.org/in");
  const bool was_notified = std::find(notifications.begin(), notifications.end(),
                                      "notifications/elicitation/complete") != notifications.end();
  EXPECT_EQ(was_notified, is_core());
}

TEST_P(UrlElicitationTest, CallFailsWhenUserDeclinesUrl) {
  ClientOptions options;
  options.handlers.elicit_url = decline_url;
  connect(options);
  const Result<ToolResult> rejected = loop.block_on(client->call_tool("secret", args()));
  EXPECT_EQ(elicitations, 1);
  if (is_core()) {
    ASSERT_FALSE(rejected);
    EXPECT_EQ(rejected.error().detail().rpc_code, -32042);
    EXPECT_EQ(
        rejected.error().detail().rpc_data,
        R"({"elicitations":[{"mode":"url","message":"Sign in","url":"https://example.org/in","elicitationId":"sign-in"}]})");
  } else {
    ASSERT_TRUE(rejected);
    EXPECT_TRUE(rejected->is_error);
  }
}

TEST_P(UrlElicitationTest, CallFailsWhenClientLacksUrlElicitation) {
  connect();
  const Result<ToolResult> rejected = loop.block_on(client->call_tool("secret", args()));
  if (is_core()) {
    ASSERT_TRUE(rejected);
    EXPECT_TRUE(rejected->is_error);
  } else {
    ASSERT_FALSE(rejected);
    EXPECT_EQ(rejected.error().detail().rpc_code, -32021);
  }
}

const auto both_forms = ::testing::Values("2025-11-25", "2026-07-28");
std::string year_of(const ::testing::TestParamInfo<const char*>& info) {
  return std::string(info.param).substr(0, 4);
}
INSTANTIATE_TEST_SUITE_P(Forms, ClientTasksTest, both_forms, year_of);
INSTANTIATE_TEST_SUITE_P(Forms, UrlElicitationTest, both_forms, year_of);

}  // namespace
}  // namespace fairlead::mcp
