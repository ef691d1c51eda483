// Requests for configured servers whose lists have not been fetched. They wait for the server, with the
// server's timeouts, or fail with the server's error. A name is unknown only if no configured server can have
// it.
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

const std::string kToolList = R"({"tools":[{"name":"t","inputSchema":{"type":"object"}}]})";

class UnlistedServerTest : public GatewayTest {
 protected:
  struct Outcome {
    bool ended = false;
    std::int64_t code = 0;
    std::string text;  // of the result or the error
  };
  static Task<void> request_beside(std::shared_ptr<mcp::Client> client, std::string method, json::Raw params,
                                   std::shared_ptr<Outcome> outcome) {
    const Result<json::Raw> answer = co_await client->request(std::move(method), std::move(params));
    outcome->code = answer ? 0 : answer.error().detail().rpc_code.value_or(-1);
    outcome->text = answer ? std::string(answer->text()) : answer.error().message();
    outcome->ended = true;
  }
  std::shared_ptr<Outcome> begin(const std::shared_ptr<Client>& client, const std::string& method,
                                 const std::string& params) {
    auto outcome = std::make_shared<Outcome>();
    loop.spawn(request_beside(client->client, method, raw(params), outcome));
    return outcome;
  }
  Outcome request(const std::shared_ptr<Client>& client, const std::string& method,
                  const std::string& params) {
    const auto outcome = begin(client, method, params);
    EXPECT_TRUE(wait_until([&] { return outcome->ended; })) << method;
    return *outcome;
  }
  Outcome call_tool(const std::shared_ptr<Client>& client, const std::string& tool) {
    return request(client, "tools/call", R"({"name":")" + tool + R"(","arguments":{}})");
  }
  static bool mentions(const Outcome& outcome, std::string_view text) {
    return outcome.text.find(text) != std::string::npos;
  }
  // Makes servers respond with the results of the returned script only.
  std::shared_ptr<ScriptedServer> script() {
    auto scripted = std::make_shared<ScriptedServer>(loop);
    customize = [scripted](Instance& instance) { instance.server.backend(scripted); };
    return scripted;
  }
};

TEST_F(UnlistedServerTest, RequestsWaitForStartingServerLongerThanListWait) {
  auto scripted = script();
  scripted->results["tools/list"] = kToolList;
  scripted->results["tools/call"] = R"({"content":[{"type":"text","text":"called"}]})";
  scripted->results["prompts/list"] = R"({"prompts":[{"name":"p"}]})";
  scripted->results["prompts/get"] = R"({"messages":[]})";
  add("slow", Sharing::shared);
  start_events["slow"];
  config.list_wait = 1ms;
  const auto one = connect_client();
  EXPECT_EQ(tools(one).size(), 0u) << "list_wait has passed";
  const auto called = begin(one, "tools/call", R"({"name":"slow__t","arguments":{}})");
  const auto prompted = begin(one, "prompts/get", R"({"name":"slow__p"})");
  const auto completed =
      begin(one, "completion/complete",
            R"({"ref":{"type":"ref/prompt","name":"slow__p"},"argument":{"name":"a","value":""}})");
  EXPECT_EQ(call_tool(one, "nobody__t").code, rpc::kInvalidParams);
  EXPECT_FALSE(called->ended || prompted->ended || completed->ended) << called->text << prompted->text;
  start_events["slow"].set();
  EXPECT_TRUE(wait_until([&] { return called->ended && prompted->ended && completed->ended; }));
  EXPECT_TRUE(mentions(*called, "called")) << called->text;
  EXPECT_TRUE(mentions(*prompted, "messages")) << prompted->text;
  EXPECT_EQ(completed->code, rpc::kMethodNotFound) << "the server's own answer: " << completed->text;
  EXPECT_EQ(call_tool(one, "slow__nothing").code, rpc::kInvalidParams) << "the server has listed";
}

TEST_F(UnlistedServerTest, CallFailsWithReasonWhenServerDoesNotStart) {
  add("broken", Sharing::shared);
  failing_starts["broken"] = 1000;
  config.list_wait = 1ms;
  const auto one = connect_client();
  const Outcome outcome = call_tool(one, "broken__which");
  EXPECT_EQ(outcome.code, rpc::kInternalError);
  EXPECT_TRUE(mentions(outcome, "broken")) << outcome.text;
  EXPECT_TRUE(mentions(outcome, "not yet")) << outcome.text;
}

TEST_F(UnlistedServerTest, CallRestartsServerThatFailedToList) {
  add("late", Sharing::shared);
  failing_starts["late"] = 1;
  config.list_retry = 1h;
  config.list_wait = 1ms;
  const auto one = connect_client();
  ASSERT_TRUE(wait_until([&] { return failing_starts["late"] == 0; }));
  EXPECT_EQ(tools(one).size(), 0u);
  EXPECT_EQ(call(one, "late__which"), "0");
  EXPECT_TRUE(has_tool(one, "late__which"));
}

TEST_F(UnlistedServerTest, CallFailsWithReasonWhenToolListFails) {
  script()->results["prompts/list"] = R"({"prompts":[{"name":"p"}]})";
  add("a", Sharing::shared);
  const auto one = connect_client();
  const Outcome outcome = call_tool(one, "a__t");
  EXPECT_EQ(outcome.code, rpc::kInternalError);
  EXPECT_TRUE(mentions(outcome, "not in the script")) << outcome.text;
  EXPECT_EQ(request(one, "prompts/get", R"({"name":"a__unknown"})").code, rpc::kInvalidParams)
      << "its prompts are known";
}

TEST_F(UnlistedServerTest, CallSucceedsWhenToolListSucceedsOnRetry) {
  auto scripted = script();
  scripted->results["prompts/list"] = R"({"prompts":[]})";
  scripted->results["tools/call"] = R"({"content":[{"type":"text","text":"called"}]})";
  config.list_retry = 1h;
  add("a", Sharing::shared);
  const auto one = connect_client();
  EXPECT_EQ(tools(one).size(), 0u);
  scripted->results["tools/list"] = kToolList;
  EXPECT_TRUE(mentions(call_tool(one, "a__t"), "called"));
}

TEST_F(UnlistedServerTest, ResourceReadWaitsForServerThatStartsLate) {
  add("slow", Sharing::shared);
  add("other", Sharing::shared);
  start_events["slow"];
  start_events["other"];
  config.list_wait = 1ms;
  const auto one = connect_client();
  EXPECT_EQ(tools(one).size(), 0u) << "list_wait has passed";
  const auto read = begin(one, "resources/read", R"({"uri":"memo://one"})");
  EXPECT_EQ(call_tool(one, "nobody__t").code, rpc::kInvalidParams);
  EXPECT_FALSE(read->ended) << read->text;
  start_events["slow"].set();
  EXPECT_TRUE(wait_until([&] { return read->ended; }));
  EXPECT_TRUE(mentions(*read, "memo")) << read->text;
  EXPECT_EQ(read->code, 0) << read->text;
  start_events["other"].set();
}

// Two servers have a template that matches the URI. The server that lists the URI itself starts late.
TEST_F(UnlistedServerTest, AmbiguousUriWaitsForServersWithoutLists) {
  int started = 0;
  customize = [&started](Instance& instance) {
    mcp::ResourceSpec spec;
    spec.name = "note";
    spec.uri = ++started < 3 ? "note://{id}" : "note://7";
    ASSERT_TRUE(started < 3 ? instance.server.add_resource_template(spec, &read)
                            : instance.server.add_resource(spec, &read));
  };
  for (const char* name : {"a", "b", "late"}) add(name, Sharing::shared);
  start_events["late"];
  config.list_wait = 1ms;
  const auto one = connect_client();
  while (!has_tool(one, "a__which") || !has_tool(one, "b__which")) {
  }  // list requests do not wait for them
  const auto read = begin(one, "resources/read", R"({"uri":"note://7"})");
  const auto subscribed = begin(one, "resources/subscribe", R"({"uri":"note://7"})");
  EXPECT_EQ(call_tool(one, "nobody__t").code, rpc::kInvalidParams);
  EXPECT_FALSE(read->ended) << read->text;
  EXPECT_FALSE(subscribed->ended) << subscribed->text;
  start_events["late"].set();
  EXPECT_TRUE(wait_until([&] { return read->ended && subscribed->ended; }));
  EXPECT_EQ(read->code, 0) << read->text;
  EXPECT_EQ(subscribed->code, 0) << subscribed->text;
  const Outcome ambiguous = request(one, "resources/subscribe", R"({"uri":"note://8"})");
  EXPECT_EQ(ambiguous.code, rpc::kInvalidParams);
  EXPECT_TRUE(mentions(ambiguous, "ambiguous")) << ambiguous.text;
}

TEST_F(UnlistedServerTest, UnknownResourceFailsWithReasonOfFailedServer) {
  customize = [](Instance& instance) {
    mcp::ResourceSpec spec;
    spec.uri = "memo://" + std::to_string(reinterpret_cast<std::uintptr_t>(&instance));
    spec.name = "two";
    ASSERT_TRUE(instance.server.add_resource(spec, &read));
  };
  add("good", Sharing::shared);
  add("better", Sharing::shared);
  add("broken", Sharing::shared);
  failing_starts["broken"] = 1000;
  const auto one = connect_client();
  ASSERT_TRUE(wait_until([&] { return failing_starts["broken"] < 1000; }));
  EXPECT_EQ(request(one, "resources/read", R"({"uri":"memo://one"})").code, 0);
  const Outcome outcome = request(one, "resources/read", R"({"uri":"other://two"})");
  EXPECT_EQ(outcome.code, rpc::kInternalError);
  EXPECT_TRUE(mentions(outcome, "broken")) << outcome.text;
  EXPECT_TRUE(mentions(outcome, "not yet")) << outcome.text;
}

TEST_F(UnlistedServerTest, CallDoesNotWaitWhileServerKeepsNotifyingOfChanges) {
  auto scripted = script();
  scripted->results["tools/list"] = kToolList;
  scripted->results["prompts/list"] = R"({"prompts":[]})";
  scripted->results["tools/call"] = R"({"content":[{"type":"text","text":"called"}]})";
  scripted->on_request = [this](std::string_view method) {
    if (method == "tools/list") {
      EXPECT_TRUE(instance("a", 0).peer->post_notification("notifications/tools/list_changed", json::Raw()));
    }
  };
  add("a", Sharing::shared);
  const auto one = connect_client();
  EXPECT_EQ(call_tool(one, "a__nothing").code, rpc::kInvalidParams);
  EXPECT_TRUE(mentions(call_tool(one, "a__t"), "called"));
}

TEST_F(UnlistedServerTest, CallFailsWithDisabledUntilServerIsEnabled) {
  add("a", Sharing::shared);
  add("b", Sharing::shared);
  const auto one = connect_client();
  EXPECT_TRUE(has_tool(one, "a__which"));
  ASSERT_TRUE(gateway->disable_server("a"));
  EXPECT_FALSE(has_tool(one, "a__which"));
  EXPECT_TRUE(wait_until([&] { return one->count(kToolsChanged) == 1; }));
  const Outcome outcome = call_tool(one, "a__which");
  EXPECT_EQ(outcome.code, rpc::kInternalError);
  EXPECT_TRUE(mentions(outcome, "disabled")) << outcome.text;
  EXPECT_EQ(call(one, "b__which"), "0");
  ASSERT_TRUE(gateway->enable_server("a"));
  EXPECT_EQ(call(one, "a__which"), "1");
  EXPECT_TRUE(has_tool(one, "a__which"));
}

TEST_F(UnlistedServerTest, UpdateToDisabledSpecRemovesEntriesFromCatalogue) {
  add("a", Sharing::shared);
  const auto one = connect_client();
  EXPECT_TRUE(has_tool(one, "a__which"));
  pool::ServerSpec spec = config.servers.front();
  spec.enabled = false;
  ASSERT_TRUE(gateway->update_server(spec));
  EXPECT_FALSE(has_tool(one, "a__which"));
  EXPECT_TRUE(mentions(call_tool(one, "a__which"), "disabled"));
  spec.enabled = true;
  ASSERT_TRUE(gateway->update_server(spec));
  EXPECT_EQ(call(one, "a__which"), "1");
}

TEST_F(UnlistedServerTest, WaitingCallEndsWhenServerIsRemovedOrDisabled) {
  add("a", Sharing::shared);
  add("b", Sharing::shared);
  start_events["a"];
  start_events["b"];
  const auto one = connect_client();
  const auto removed = begin(one, "tools/call", R"({"name":"a__which","arguments":{}})");
  const auto disabled = begin(one, "tools/call", R"({"name":"b__which","arguments":{}})");
  ASSERT_TRUE(wait_until([&] { return gateway->pool().status().at(0).waiting_caller_count > 0; }));
  ASSERT_TRUE(gateway->remove_server("a"));
  ASSERT_TRUE(gateway->disable_server("b"));
  EXPECT_TRUE(wait_until([&] { return removed->ended && disabled->ended; }));
  EXPECT_EQ(removed->code, rpc::kInvalidParams) << removed->text;
  EXPECT_EQ(disabled->code, rpc::kInternalError) << disabled->text;
  EXPECT_TRUE(mentions(*disabled, "disabled")) << disabled->text;
  start_events["a"].set();
  start_events["b"].set();
}

TEST_F(UnlistedServerTest, CancelledCallDoesNotWaitForServer) {
  add("slow", Sharing::shared);
  start_events["slow"];
  const auto one = connect_client();
  std::stop_source stop;
  mcp::ClientCallOptions options;
  options.stop = stop.get_token();
  bool over = false;
  loop.spawn(call_until_failure(one->client, "slow__which", options, &over));
  // Two callers wait for the server: this call, and the ListFetcher.
  ASSERT_TRUE(wait_until([&] { return gateway->pool().status().at(0).waiting_caller_count == 2; }));
  stop.request_stop();
  EXPECT_TRUE(wait_until([&] { return over && gateway->pool().status().at(0).waiting_caller_count == 1; }));
  start_events["slow"].set();
}

TEST_F(UnlistedServerTest, CallWaitingForListCountsAsWaitingCallOfClient) {
  add("slow", Sharing::shared);
  start_events["slow"];
  config.limits.max_client_waiting_calls = 0;
  const Outcome refused = call_tool(connect_client(), "slow__which");
  EXPECT_TRUE(mentions(refused, "max_client_waiting_calls (0)")) << refused.text;
  start_events["slow"].set();
}

}  // namespace
}  // namespace fairlead::gateway
