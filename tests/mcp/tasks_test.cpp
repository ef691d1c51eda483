// The messages about tasks on the wire, in both forms of tasks (see TaskForm).
#include "fairlead/loop/all.hpp"
#include "mcp/harness.hpp"
#include "mcp/recording_link.hpp"
#include "mcp/server_modern.hpp"

namespace fairlead::mcp {
namespace {

const char* const kNameForm = R"({"type":"object","properties":{"name":{"type":"string"}}})";

Task<Result<std::string>> greet_later(Context context, EchoArgs in) {
  const bool task = co_await context.become_task();
  context.set_status_message("greeting");
  context.report_progress(1, 2);
  co_return (task ? "later " : "now ") + in.message;
}
// Like test_tool_with_task of the conformance suite: one round of input requests, then a task.
Task<Result<std::string>> elicit_then_become_task(Context context, EchoArgs) {
  Task<Result<ElicitResult>> input_request = context.elicit("Who?", test::raw(kNameForm), "user_name");
  const Result<ElicitResult> who = co_await input_request;
  if (!who) co_return who.error();
  const bool task = co_await context.become_task();
  co_return (task ? "task " : "") + std::string(who->content.text());
}
Task<Result<std::string>> wait_for_stop(Context context, EchoArgs) {
  co_await context.become_task();
  const bool slept = co_await context.sleep(std::chrono::hours(1));
  co_return std::string(slept ? "slept" : "stopped");
}
Task<Result<std::string>> elicit_three(Context context, EchoArgs) {
  auto both = all(context.elicit("One?", test::raw(kNameForm), "one"),
                  context.elicit("Two?", test::raw(kNameForm), "two"));
  auto [one, two] = co_await both;
  if (!one) co_return one.error();
  if (!two) co_return two.error();
  Task<Result<ElicitResult>> again = context.elicit("Again?", test::raw(kNameForm), "one");
  const Result<ElicitResult> three = co_await again;
  if (!three) co_return three.error();
  co_return std::string(one->content.text()) + std::string(two->content.text());
}
Task<Result<std::string>> fail_with_data(Context, EchoArgs) {
  co_return Error::rpc(-32050, "broken", R"({"why":1})");
}

class TasksTest : public ServerTest {
 public:
  void SetUp() override {
    ServerTest::SetUp();
    const ToolAnnotations none;
    tool(server, "later", "", &greet_later, none, TaskSupport::optional);
    tool(server, "ask_then_task", "", &elicit_then_become_task, none, TaskSupport::optional);
    tool(server, "wait", "", &wait_for_stop, none, TaskSupport::optional);
    tool(server, "ask_two", "", &elicit_three, none, TaskSupport::required);
    tool(server, "broken", "", &fail_with_data, none, TaskSupport::required);
    tool(
        server, "tool_error", "", [](const EchoArgs&) -> std::string { throw ToolError("no"); }, none,
        TaskSupport::required);
  }

  static constexpr const char* kCapabilities =
      R"({"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}})";
  std::string modern_request(const std::string& method, const std::string& members,
                             const std::string& capabilities = kCapabilities) {
    return round_trip(
        R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":{)" + members +
        R"(,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":)" +
        capabilities + "}}}");
  }
  std::string call(const std::string& name, const std::string& extra = "",
                   const std::string& capabilities = kCapabilities) {
    return modern_request("tools/call", R"("name":")" + name + R"(","arguments":{"message":"x"})" + extra,
                          capabilities);
  }
  static std::string member(const std::string& text, const std::string& key) {
    const std::size_t at = text.find("\"" + key + "\":\"");
    if (at == std::string::npos) return "";
    const std::size_t from = at + key.size() + 4;
    return text.substr(from, text.find('"', from) - from);
  }
  std::string get(const std::string& id) { return modern_request("tasks/get", R"("taskId":")" + id + "\""); }
  // Polls until the status differs from `status`; each poll runs the loop.
  std::string get_past(const std::string& id, const std::string& status) {
    std::string now = get(id);
    while (member(now, "status") == status) now = get(id);
    return now;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

const char* const kNeedsTasks =
    R"("message":"Client capability required","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}})";

// ---- the extension --------------------------------------------------------------------------------------

struct CountedTool {
  std::shared_ptr<int> counter;
  std::string operator()(const EchoArgs& in) const { return in.message; }
};

// A request that does not become a task, or that needs input first, must not keep its own state alive.
TEST_F(TasksTest, RequestThatDidNotBecomeTaskIsReleasedWithItsServer) {
  const auto counter = std::make_shared<int>(1);
  tool(server, "not_now", "", CountedTool{counter}, ToolAnnotations(), TaskSupport::optional);
  start();
  EXPECT_TRUE(has(call("not_now"), R"("text":"x")"));
  EXPECT_TRUE(has(call("ask_then_task"), "input_required"));
  TearDown();
  test_end.reset();
  peer.reset();
  server = Server("another", "1");
  // The session was released outside of its loop, so the release of its state was posted to the loop.
  bool released = false;
  loop.post([&] { released = true; });
  loop.run_until([&] { return released; });
  EXPECT_EQ(counter.use_count(), 1);
}

TEST_F(TasksTest, ServerCreatesTaskAndClientPollsForItsResult) {
  start();
  EXPECT_TRUE(has(modern("server/discover"), R"("extensions":{"io.modelcontextprotocol/tasks":{}})"));
  const std::string made = call("later", R"(,"task":{"ttl":5})");
  EXPECT_EQ(made.find(R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":")"), 0u) << made;
  for (const char* part : {R"("status":"working")", R"("createdAt":"20)", R"("lastUpdatedAt":"20)",
                           R"("ttlMs":3600000)", R"("pollIntervalMs":500)"})
    EXPECT_TRUE(has(made, part)) << made;
  for (const char* part : {"\"task\":", "\"result\":{\"content", "requestState", "inputRequests", "\"ttl\":"})
    EXPECT_FALSE(has(made, part)) << made;
  const std::string done = get_past(member(made, "taskId"), "working");
  EXPECT_TRUE(has(done, R"("resultType":"complete","taskId":)")) << done;
  EXPECT_TRUE(has(done, R"("status":"completed","statusMessage":"greeting")")) << done;
  EXPECT_TRUE(has(done, R"("result":{"resultType":"complete","content":[{"type":"text","text":"later x"}])"))
      << done;
  EXPECT_FALSE(has(done, "related-task")) << done;
}

TEST_F(TasksTest, ClientWithoutTheExtensionNeverReceivesTask) {
  start();
  EXPECT_TRUE(has(call("later", "", "{}"), R"("text":"now x")"));
  EXPECT_EQ(call("ask_two", "", "{}"), error(-32021, kNeedsTasks));
  for (const char* method : {"tasks/get", "tasks/update", "tasks/cancel"})
    EXPECT_EQ(modern_request(method, R"("taskId":7)", "{}"), error(-32021, kNeedsTasks)) << method;
  for (const char* method : {"tasks/result", "tasks/list"})
    EXPECT_EQ(modern_request(method, R"("taskId":"x")"),
              error(-32601, R"("message":"Method not found: )" + std::string(method) + "\""));
  EXPECT_EQ(modern_request("subscriptions/listen", R"("notifications":{"taskIds":[]})", "{}"),
            error(-32021, kNeedsTasks));
}

TEST_F(TasksTest, InputRoundsPrecedeTheTask) {
  start();
  const std::string first = call("ask_then_task");
  EXPECT_TRUE(has(first, R"("resultType":"input_required","inputRequests":{"user_name":{)")) << first;
  EXPECT_FALSE(has(first, "taskId")) << first;
  const std::string made = call(
      "ask_then_task", R"(,"inputResponses":{"user_name":{"action":"accept","content":{"name":"Ada"}}})");
  EXPECT_EQ(member(made, "resultType"), "task") << made;
  EXPECT_TRUE(has(get_past(member(made, "taskId"), "working"), R"(task {\"name\":\"Ada\"})"));
}

TEST_F(TasksTest, SeveralInputRequestsAreOpenAtOnceAndAnsweredSeparately) {
  start();
  const std::string id = member(call("ask_two"), "taskId");
  const std::string asked = get_past(id, "working");
  EXPECT_TRUE(has(asked, R"("status":"input_required")")) << asked;
  EXPECT_TRUE(has(asked, R"("inputRequests":{"one":{"method":"elicitation/create","params":{"mode":"form")"))
      << asked;
  EXPECT_TRUE(has(asked, R"("two":{"method")")) << asked;
  EXPECT_FALSE(has(asked, "requestState")) << asked;
  const auto answer = [&](const std::string& responses) {
    return modern_request("tasks/update", R"("taskId":")" + id + R"(","inputResponses":)" + responses);
  };
  const std::string acknowledged = result(R"({"resultType":"complete",)" + kServerMeta + "}");
  EXPECT_EQ(answer(R"({"one":{"action":"accept","content":{"name":"A"}},"nobody":{}})"), acknowledged);
  const std::string half = get(id);
  EXPECT_TRUE(has(half, R"("inputRequests":{"two")")) << half;
  EXPECT_FALSE(has(half, R"("one":)")) << half;
  // A response to an input request that is not open is ignored.
  EXPECT_EQ(answer(R"({"one":{"action":"cancel"},"two":{"action":"accept","content":{"name":"B"}}})"),
            acknowledged);
  // A key is never reused.
  const std::string again = get_past(id, "working");
  EXPECT_TRUE(has(again, R"("inputRequests":{"one-2":{)")) << again;
  EXPECT_EQ(answer(R"({"one-2":{"action":"decline"}})"), acknowledged);
  const std::string done = get_past(id, "working");
  EXPECT_TRUE(has(done, R"({\"name\":\"A\"}{\"name\":\"B\"})")) << done;
  EXPECT_EQ(answer(R"({"one":{"action":"cancel"}})"), acknowledged);
}

TEST_F(TasksTest, ToolErrorCompletesTaskAndRpcErrorFailsIt) {
  start();
  const std::string failed = get_past(member(call("broken"), "taskId"), "working");
  EXPECT_TRUE(has(failed, R"("status":"failed")")) << failed;
  EXPECT_TRUE(has(failed, R"("error":{"code":-32050,"message":"broken","data":{"why":1}})")) << failed;
  EXPECT_FALSE(has(failed, R"("result":{"content)")) << failed;
  const std::string completed = get_past(member(call("tool_error"), "taskId"), "working");
  EXPECT_TRUE(has(completed, R"("status":"completed")")) << completed;
  EXPECT_TRUE(has(completed, R"("isError":true)")) << completed;
}

TEST_F(TasksTest, CancelStopsHandlerAndIsAcknowledgedEveryTime) {
  start();
  const std::string id = member(call("wait"), "taskId");
  const std::string acknowledged = result(R"({"resultType":"complete",)" + kServerMeta + "}");
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(modern_request("tasks/cancel", R"("taskId":")" + id + "\""), acknowledged);
  const std::string now = get(id);
  EXPECT_TRUE(has(now, R"("status":"cancelled")")) << now;
  EXPECT_FALSE(has(now, "\"result\":{\"content") || has(now, "\"error\"")) << now;
}

TEST_F(TasksTest, CancelledTaskHasNoOpenInputRequests) {
  start();
  const std::string id = member(call("ask_two"), "taskId");
  get_past(id, "working");
  modern_request("tasks/cancel", R"("taskId":")" + id + "\"");
  const std::string now = get(id);
  EXPECT_TRUE(has(now, R"("status":"cancelled")")) << now;
  EXPECT_FALSE(has(now, "inputRequests")) << now;
}

TEST_F(TasksTest, SubscriptionIsNotifiedOfTask) {
  start();
  const std::string id = member(call("ask_two"), "taskId");
  get_past(id, "working");
  const std::string ack =
      modern_request("subscriptions/listen", R"("notifications":{"taskIds":[")" + id + R"(","unknown"]})");
  EXPECT_TRUE(has(ack, R"("params":{"notifications":{"taskIds":[")" + id + R"("]},"_meta":{)")) << ack;
  const std::string subscribed = R"("_meta":{"io.modelcontextprotocol/subscriptionId":1}}})";
  const std::string now = receive();
  EXPECT_EQ(now.find(R"({"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":")" + id), 0u)
      << now;
  EXPECT_TRUE(has(now, R"("status":"input_required")") && has(now, R"("inputRequests")")) << now;
  EXPECT_TRUE(now.ends_with(subscribed)) << now;
  send(
      R"({"jsonrpc":"2.0","id":2,"method":"tasks/cancel","params":{"taskId":")" + id +
      R"(","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":)" +
      kCapabilities + "}}}");
  const std::string first = receive();
  const std::string second = receive();
  const std::string notification = has(first, "notifications/tasks") ? first : second;
  EXPECT_TRUE(has(notification, R"("status":"cancelled")") && notification.ends_with(subscribed))
      << notification;
}

Task<void> await_answer(Task<Answer> serving, bool& ended) {
  static_cast<void>(co_await serving);
  ended = true;
}

// Subscribes to a task and returns the messages that are sent to the client: two, or fewer if stop is
// requested before.
std::vector<std::string> sent_to_listener(ServerTest& test, const std::string& task, std::stop_source stop) {
  const auto link = std::make_shared<RecordingLink>(test.loop);
  const auto subscriptions =
      std::make_shared<SubscriptionRegistry>(std::make_shared<SubscriptionQuota>(SubscriptionLimits()));
  const auto modern = std::make_shared<const ModernServer>(test.server.state(), subscriptions, Log());
  const rpc::Message message = rpc::Message::parse(Bytes::copy_of(
      R"({"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"taskIds":[")" +
      task +
      R"("]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":)" +
      TasksTest::kCapabilities + "}}}"));
  bool ended = false;
  Request request(nullptr, message, stop.get_token());
  test.loop.spawn(await_answer(serve_modern(modern, request, CallFacts::of(message), link), ended));
  test.loop.run_until([&] { return ended || link->sent.size() == 2; });
  stop.request_stop();
  test.loop.run_until([&] { return ended; });
  return link->sent;
}

TEST_F(TasksTest, ListenCancelledBeforeItsAcknowledgementReceivesNoTask) {
  start();
  const std::string id = member(call("wait"), "taskId");
  const std::vector<std::string> all = sent_to_listener(*this, id, std::stop_source());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0].starts_with("notifications/subscriptions/acknowledged"));
  EXPECT_TRUE(all[1].starts_with("notifications/tasks"));
  std::stop_source cancelled;
  cancelled.request_stop();
  EXPECT_EQ(sent_to_listener(*this, id, cancelled), std::vector<std::string>());
}

TEST_F(TasksTest, UnknownExpiredAndForeignIdsHaveTheSameError) {
  TaskOptions options;
  options.ttl = std::chrono::milliseconds(1);
  server.tasks(options);
  start();
  const std::string unknown = error(-32602, R"("message":"Unknown task")");
  EXPECT_EQ(get("x"), unknown);
  const std::string id = member(call("wait"), "taskId");
  EXPECT_FALSE(id.empty());
  while (get(id) != unknown) {
  }
  for (const char* wrong : {"7", "null", "{}", "[]", "true"}) {
    for (const char* method : {"tasks/get", "tasks/update", "tasks/cancel"}) {
      EXPECT_EQ(modern_request(method, R"("taskId":)" + std::string(wrong)),
                error(-32602, R"("message":"taskId is not a string")"));
    }
  }
}

TEST_F(TasksTest, WrongTypesInUpdateAreRejected) {
  start();
  const std::string id = member(call("ask_two"), "taskId");
  for (const char* wrong : {"7", "null", "[]", "\"x\"", R"({"one":7})", R"({"one":null})", R"({"one":[]})"}) {
    EXPECT_EQ(modern_request("tasks/update", R"("taskId":")" + id + R"(","inputResponses":)" + wrong),
              error(-32602, R"("message":"inputResponses is not an object of objects")"))
        << wrong;
  }
  EXPECT_EQ(modern_request("tasks/update", R"("taskId":")" + id + "\""),
            error(-32602, R"("message":"inputResponses is not an object of objects")"));
  for (const char* wrong : {"7", "\"x\"", "{}", "[7]"}) {
    EXPECT_EQ(
        modern_request("subscriptions/listen", R"("notifications":{"taskIds":)" + std::string(wrong) + "}"),
        error(-32602, R"("message":"taskIds is not an array of strings")"));
  }
}

TEST_F(TasksTest, TenThousandTasksStayWithinMaxTasks) {
  TaskOptions options;
  options.max_tasks = 100;
  server.tasks(options);
  start();
  const std::string first = member(call("wait"), "taskId");
  int refused = 0;
  for (int i = 0; i < 200; ++i)
    refused += has(call("ask_two"), "max_tasks (100) tasks are running or retained");
  EXPECT_EQ(refused, 101);
  // A tool for which a task is optional runs without one.
  EXPECT_TRUE(has(call("later"), R"("text":"now x")"));
  // Tasks whose end the client has observed are evicted.
  TaskOptions again;
  again.max_tasks = 100;
  server.tasks(again);
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = member(call("broken"), "taskId");
    ASSERT_FALSE(id.empty()) << i;
    ASSERT_TRUE(has(get_past(id, "working"), "failed"));
  }
}

// ---- 2025-11-25 -----------------------------------------------------------------------------------------

class CoreTasksTest : public TasksTest {
 public:
  void start_core(const std::string& capabilities = R"({"elicitation":{"form":{}}})") {
    start();
    const std::string hello = initialize("2025-11-25", capabilities);
    EXPECT_TRUE(has(hello, R"("tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}})")) << hello;
  }
  std::string call_task(const std::string& name, const std::string& task = R"({"ttl":60000})") {
    return legacy("tools/call",
                  R"({"name":")" + name + R"(","arguments":{"message":"x"},"task":)" + task + "}");
  }
  std::string task_request(const std::string& method, const std::string& id) {
    return legacy(method, R"({"taskId":")" + id + "\"}");
  }
  // Returns the next message that is not a status notification.
  std::string receive_answer() {
    std::string got = receive();
    while (has(got, "notifications/tasks/status")) {
      ++statuses;
      got = receive();
    }
    return got;
  }
  std::string round_trip_past_statuses(const std::string& method, const std::string& params) {
    send(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}");
    return receive_answer();
  }
  int statuses = 0;
};

TEST_F(CoreTasksTest, ClientRequestsTaskAndWaitsForItsResult) {
  start_core();
  EXPECT_TRUE(has(legacy("tools/list"), R"("name":"later","inputSchema")"));
  const std::string made = call_task("later");
  EXPECT_EQ(made.find(R"({"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":")"), 0u) << made;
  EXPECT_TRUE(has(made, R"("ttl":60000,"pollInterval":500}}})")) << made;
  const std::string id = member(made, "taskId");
  const std::string done = round_trip_past_statuses("tasks/result", R"({"taskId":")" + id + "\"}");
  EXPECT_EQ(
      done,
      result(
          R"({"content":[{"type":"text","text":"later x"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":")" +
          id + R"("}}})"));
  EXPECT_GE(statuses, 1);
  const std::string now = task_request("tasks/get", id);
  EXPECT_TRUE(has(now, R"("result":{"taskId":")" + id + R"(","status":"completed")")) << now;
  EXPECT_FALSE(has(now, "content"));
  EXPECT_EQ(task_request("tasks/cancel", id), error(-32602, R"("message":"The task has already ended")"));
  EXPECT_TRUE(has(legacy("tasks/list"), R"("tasks":[{"taskId":")" + id));
}

TEST_F(CoreTasksTest, ToolsListWhetherTheyRunAsTasks) {
  start_core();
  const std::string listed = legacy("tools/list");
  EXPECT_TRUE(has(listed, R"("execution":{"taskSupport":"optional"})")) << listed;
  EXPECT_TRUE(has(listed, R"("execution":{"taskSupport":"required"})")) << listed;
  EXPECT_EQ(call_task("echo"), error(-32601, R"("message":"Tool echo does not support tasks")"));
  EXPECT_EQ(legacy("tools/call", R"({"name":"ask_two","arguments":{"message":"x"}})"),
            error(-32601, R"("message":"Tool ask_two must be called as a task")"));
  EXPECT_TRUE(
      has(legacy("tools/call", R"({"name":"later","arguments":{"message":"x"}})"), R"("text":"now x")"));
}

TEST_F(CoreTasksTest, InputRequestsCarryTheIdOfTheirTask) {
  start_core();
  const std::string id = member(call_task("ask_then_task"), "taskId");
  const std::string question = receive_answer();
  EXPECT_TRUE(has(question, R"("method":"elicitation/create")")) << question;
  EXPECT_TRUE(has(question, R"("_meta":{"io.modelcontextprotocol/related-task":{"taskId":")" + id))
      << question;
  EXPECT_TRUE(has(round_trip_past_statuses("tasks/get", R"({"taskId":")" + id + "\"}"),
                  R"("status":"input_required")"));
  send(R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}})");
  EXPECT_TRUE(has(round_trip_past_statuses("tasks/result", R"({"taskId":")" + id + "\"}"), "Ada"));
}

TEST_F(CoreTasksTest, ToolErrorAndRpcErrorFailTheTask) {
  start_core();
  for (const auto& [name, answer] :
       {std::pair<const char*, const char*>{"tool_error", R"("isError":true)"},
        {"broken", R"("error":{"code":-32050,"message":"broken","data":{"why":1}})"}}) {
    const std::string id = member(call_task(name), "taskId");
    const std::string done = round_trip_past_statuses("tasks/result", R"({"taskId":")" + id + "\"}");
    EXPECT_TRUE(has(done, answer)) << done;
    EXPECT_TRUE(has(task_request("tasks/get", id), R"("status":"failed")"));
  }
}

TEST_F(CoreTasksTest, CancelledTaskHasNoResult) {
  start_core();
  const std::string id = member(call_task("wait"), "taskId");
  send(R"({"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{"taskId":")" + id + "\"}}");
  send(R"({"jsonrpc":"2.0","id":8,"method":"tasks/cancel","params":{"taskId":")" + id + "\"}}");
  const std::string cancelled = receive_answer();
  EXPECT_TRUE(has(cancelled, R"("id":8,"result":{"taskId")") && has(cancelled, R"("status":"cancelled")"))
      << cancelled;
  const std::string waited = receive_answer();
  EXPECT_TRUE(has(waited, R"("id":7,"error":{"code":-32602)")) << waited;
}

TEST_F(CoreTasksTest, ListIsPaginated) {
  server.page_size(2);
  start_core();
  for (int i = 0; i < 5; ++i) call_task("wait");
  std::string cursor;
  int found = 0;
  int pages = 0;
  do {
    const std::string page = legacy("tasks/list", cursor.empty() ? "{}" : R"({"cursor":")" + cursor + "\"}");
    for (std::size_t at = 0; (at = page.find("taskId", at)) != std::string::npos; ++at) ++found;
    cursor = member(page, "nextCursor");
    ++pages;
  } while (!cursor.empty());
  EXPECT_EQ(found, 5);
  EXPECT_EQ(pages, 3);
  for (const char* wrong : {"7", "\"x\"", "\"\"", "{}"})
    EXPECT_EQ(legacy("tasks/list", R"({"cursor":)" + std::string(wrong) + "}"),
              error(-32602, R"("message":"the cursor is not valid")"));
}

TEST_F(CoreTasksTest, WrongTypesAreRejected) {
  start_core();
  for (const char* wrong : {"7", "null", "[]", "\"x\"", "true"})
    EXPECT_EQ(call_task("later", wrong), error(-32602, R"("message":"task is not an object")"));
  for (const char* wrong : {R"({"ttl":"1"})", R"({"ttl":-1})", R"({"ttl":[]})"})
    EXPECT_EQ(call_task("later", wrong),
              error(-32602, R"("message":"task.ttl is not a number of milliseconds")"));
  for (const char* method : {"tasks/get", "tasks/result", "tasks/cancel"}) {
    EXPECT_EQ(legacy(method, R"({"taskId":7})"), error(-32602, R"("message":"taskId is not a string")"));
    EXPECT_EQ(task_request(method, "x"), error(-32602, R"("message":"Unknown task")"));
  }
}

TEST_F(CoreTasksTest, TasksAreNotFoundByOtherSessions) {
  start_core();
  const std::string id = member(call_task("wait"), "taskId");
  const auto first = test_end;
  const auto first_peer = peer;
  start_core();
  EXPECT_EQ(task_request("tasks/get", id), error(-32602, R"("message":"Unknown task")"));
  EXPECT_EQ(legacy("tasks/list"), result(R"({"tasks":[]})"));
  // A request of the extension form does not find the tasks either.
  EXPECT_EQ(get(id), error(-32602, R"("message":"Unknown task")"));
  first->close();
  loop.run_until([&] { return first_peer->finished().is_set(); });
}

}  // namespace
}  // namespace fairlead::mcp
