// Our client against our server: tasks in both forms, and URLs.
#include "fairlead/loop/all.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

const char* const kForm = R"({"type":"object","properties":{"name":{"type":"string"}}})";

Task<Result<std::string>> ask_two(Context context, EchoArgs in) {
  context.status("asking");
  auto both = all(context.elicit("One?", test::raw(kForm)), context.elicit("Two?", test::raw(kForm)));
  auto [one, two] = co_await both;
  if (!one) co_return one.error();
  if (!two) co_return two.error();
  co_return in.message + std::string(one->content.text()) + std::string(two->content.text());
}
Task<Result<std::string>> fail_with_code(Context, EchoArgs) {
  co_return Error::rpc(-32050, "broken");
}
Task<Result<std::string>> sleep_long(Context context, EchoArgs in) {
  Task<bool> sleeping = context.sleep(std::chrono::hours(1));
  const bool slept = co_await sleeping;
  co_return in.message + (slept ? " slept" : " stopped");
}
Task<Result<std::string>> ask_one(Context context, EchoArgs) {
  Task<Result<ElicitResult>> asking = context.elicit("One?", test::raw(kForm));
  const Result<ElicitResult> one = co_await asking;
  if (!one) co_return one.error();
  co_return std::string(one->content.text());
}
Task<Result<ElicitResult>> accept(std::string message, json::Raw) {
  ElicitResult made;
  made.action = ElicitResult::Action::accept;
  made.content = test::raw(R"({"name":")" + message + "\"}");
  co_return made;
}

class ClientTasksTest : public ServerTest, public ::testing::WithParamInterface<const char*> {
 public:
  std::shared_ptr<Client> client;
  std::vector<std::string> notified;

  void SetUp() override {
    ServerTest::SetUp();
    const ToolAnnotations none;
    tool(server, "ask_two", "", &ask_two, none, TaskSupport::required);
    tool(server, "broken", "", &fail_with_code, none, TaskSupport::required);
    tool(server, "sleep", "", &sleep_long, none, TaskSupport::required);
    tool(server, "ask_one", "", &ask_one);
    TaskOptions options;
    options.poll_interval = 1ms;
    server.tasks(options);
  }
  bool is_core() const { return std::string(GetParam()) == "2025-11-25"; }

  void connect(ClientOptions options = ClientOptions()) {
    auto [near_end, far_end] = make_channel(loop, loop);
    peer = serve(server, near_end);
    options.pinned = revision_named(GetParam());
    if (!options.handlers.elicit) options.handlers.elicit = accept;
    options.handlers.notified = [this](std::string_view method, const json::Raw&) {
      notified.emplace_back(method);
    };
    const Result<std::shared_ptr<Client>> made = loop.block_on(Client::on(far_end, options));
    ASSERT_TRUE(made) << made.error().to_string();
    client = *made;
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

TEST_P(ClientTasksTest, CallIsFollowedToItsEnd) {
  connect();
  std::vector<TaskStatus> seen;
  ToolCallOptions options;
  options.on_task = [&](const TaskInfo& task) { seen.push_back(task.status); };
  EXPECT_EQ(text(loop.block_on(client->call_tool("ask_two", args(), options))),
            R"(x{"name":"One?"}{"name":"Two?"})");
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front(), TaskStatus::working);
  if (!is_core()) {
    EXPECT_EQ(seen.back(), TaskStatus::completed);
  }
  // The raw way is followed as well.
  const Result<json::Raw> raw = loop.block_on(
      client->request("tools/call", test::raw(R"({"name":"ask_two","arguments":{"message":"y"}})")));
  ASSERT_TRUE(raw);
  EXPECT_NE(raw->text().find("y{"), std::string_view::npos);
}

TEST_P(ClientTasksTest, FailuresAreTheServersOwn) {
  connect();
  const Result<ToolResult> failed = loop.block_on(client->call_tool("broken", args()));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind(), ErrorKind::remote);
  EXPECT_EQ(failed.error().detail().rpc_code, -32050);
}

TEST_P(ClientTasksTest, GivingUpCancelsTheTask) {
  connect();
  std::string id;
  std::stop_source stop;
  ToolCallOptions options;
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

  ToolCallOptions hurry;
  hurry.max_total = 50ms;
  hurry.on_task = [&](const TaskInfo& task) { id = task.id; };
  const Result<ToolResult> late = loop.block_on(client->call_tool("sleep", args(), hurry));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind(), ErrorKind::timeout);
  const Result<TaskInfo> then = loop.block_on(client->task_get(id));
  ASSERT_TRUE(then);
  EXPECT_EQ(then->status, TaskStatus::cancelled);
}

TEST_P(ClientTasksTest, StepByStep) {
  connect();
  const Result<TaskInfo> made =
      loop.block_on(client->call_tool_as_task("ask_two", args(), ToolCallOptions(), std::chrono::minutes(1)));
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ(made->status, TaskStatus::working);
  EXPECT_EQ(made->ttl_ms, is_core() ? 60'000u : 3'600'000u);
  const Result<std::vector<TaskInfo>> listed = loop.block_on(client->task_list());
  ASSERT_EQ(listed.has_value(), is_core());
  if (listed) {
    ASSERT_EQ(listed->size(), 1u);
    EXPECT_EQ(listed->front().id, made->id);
  }
  EXPECT_EQ(text(loop.block_on(client->task_result(*made))), R"(x{"name":"One?"}{"name":"Two?"})");
  const Result<TaskInfo> done = loop.block_on(client->task_get(made->id));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status, TaskStatus::completed);
  EXPECT_EQ(done->message, "asking");
  EXPECT_EQ(loop.block_on(client->task_cancel(made->id)).has_value(), !is_core());
  EXPECT_FALSE(loop.block_on(client->task_get("unknown")));
  // A tool that answers at once.
  const Result<TaskInfo> at_once = loop.block_on(client->call_tool_as_task("echo", args()));
  ASSERT_EQ(at_once.has_value(), !is_core());
  if (at_once) {
    EXPECT_EQ(text(loop.block_on(client->task_result(*at_once))), "x");
  }
}

TEST_P(ClientTasksTest, ClientWithoutTasksIsRefused) {
  ClientOptions options;
  options.tasks = false;
  connect(options);
  const Result<ToolResult> refused = loop.block_on(client->call_tool("ask_two", args()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail().rpc_code, is_core() ? -32601 : -32021);
}

TEST_P(ClientTasksTest, ClientKeepsTasksForTheServer) {
  ClientOptions options;
  options.keep_tasks = true;
  connect(options);
  EXPECT_EQ(text(loop.block_on(client->call_tool("ask_one", args()))), R"({"name":"One?"})");
  EXPECT_EQ(text(loop.block_on(client->call_tool("ask_two", args()))), R"(x{"name":"One?"}{"name":"Two?"})");
}

// ---- URLs -----------------------------------------------------------------------------------------------

class UrlTest : public ClientTasksTest {
 public:
  bool authorized = false;
  int asked = 0;
  std::string seen_url;

  // A handler is a function; what it needs is found through its argument.
  static UrlTest*& instance() {
    static UrlTest* one = nullptr;
    return one;
  }
  static Task<Result<std::string>> secret(Context context, EchoArgs) {
    if (!instance()->authorized) {
      Task<Result<void>> requiring = context.require_url("Sign in", "https://example.org/in", "sign-in");
      const Result<void> required = co_await requiring;
      if (!required) co_return required.error();
    }
    co_return std::string("secret");
  }
  static Task<Result<ElicitResult>> go(std::string, std::string url) {
    UrlTest& test = *instance();
    test.seen_url = url;
    ++test.asked;
    ElicitResult made;
    made.action = ElicitResult::Action::accept;
    // What the user does out of band.
    test.loop.post([&test] {
      test.authorized = true;
      test.server.elicitation_complete("sign-in");
    });
    co_return made;
  }
  static Task<Result<ElicitResult>> refuse(std::string, std::string) {
    ++instance()->asked;
    ElicitResult made;
    made.action = ElicitResult::Action::decline;
    co_return made;
  }
  void SetUp() override {
    ClientTasksTest::SetUp();
    instance() = this;
    tool(server, "secret", "", &secret);
  }
};

TEST_P(UrlTest, ClientGoesThereAndCallsAgain) {
  ClientOptions options;
  options.handlers.elicit_url = go;
  connect(options);
  EXPECT_EQ(text(loop.block_on(client->call_tool("secret", args()))), "secret");
  EXPECT_EQ(seen_url, "https://example.org/in");
  const bool told =
      std::find(notified.begin(), notified.end(), "notifications/elicitation/complete") != notified.end();
  EXPECT_EQ(told, is_core());
}

TEST_P(UrlTest, ClientThatDoesNotGoIsToldWhy) {
  ClientOptions options;
  options.handlers.elicit_url = refuse;
  connect(options);
  const Result<ToolResult> refused = loop.block_on(client->call_tool("secret", args()));
  EXPECT_EQ(asked, 1);
  if (is_core()) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail().rpc_code, -32042);
    EXPECT_EQ(
        refused.error().detail().rpc_data,
        R"({"elicitations":[{"mode":"url","message":"Sign in","url":"https://example.org/in","elicitationId":"sign-in"}]})");
  } else {
    ASSERT_TRUE(refused);
    EXPECT_TRUE(refused->is_error);
  }
}

TEST_P(UrlTest, ClientThatCannotIsRefused) {
  connect();
  const Result<ToolResult> refused = loop.block_on(client->call_tool("secret", args()));
  if (is_core()) {
    ASSERT_TRUE(refused);
    EXPECT_TRUE(refused->is_error);
  } else {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail().rpc_code, -32021);
  }
}

const auto both_forms = ::testing::Values("2025-11-25", "2026-07-28");
std::string year_of(const ::testing::TestParamInfo<const char*>& one) {
  return std::string(one.param).substr(0, 4);
}
INSTANTIATE_TEST_SUITE_P(Forms, ClientTasksTest, both_forms, year_of);
INSTANTIATE_TEST_SUITE_P(Forms, UrlTest, both_forms, year_of);

}  // namespace
}  // namespace fairlead::mcp
