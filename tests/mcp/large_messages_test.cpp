// The largest messages there may be, sent to a client and to a server: none of them holds the loop.
#include "fairlead/mcp/typed_decode.hpp"
#include "mcp/features.hpp"
#include "mcp/harness.hpp"
#include "mcp/subscriptions.hpp"
#include "support/hostile_json.hpp"
#include "support/turns.hpp"

namespace fairlead::mcp {
namespace {

// As many members as fit into a frame.
std::string many_members() {
  return test::shuffled("{", {R"("":1,)", R"("a":1,)"}, R"("b":1)", "}", test::kLargestFrame);
}
std::string many_elements(std::string_view element) {
  return test::shuffled("[", {element}, "1", "]", test::kLargestFrame);
}

class LargeMessagesTest : public ::testing::TestWithParam<Revision> {
 protected:
  Loop loop;
  std::map<std::string, json::Raw, std::less<>> results;  // by method
  std::shared_ptr<Peer> server;
  std::shared_ptr<Client> client;
  ClientOptions options;
  std::vector<std::string> notified;
  std::string raw_answer;  // to answered/by/hand, behind its id

  void SetUp() override {
    results["initialize"] = test::raw(
        R"({"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}},)"
        R"("serverInfo":{"name":"s","version":"1"}})");
    results["server/discover"] =
        test::raw(R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}})");
    results["test/ok"] = test::raw("{}");
    results["tools/list"] = test::raw(R"({"resultType":"complete","tools":[]})");
    options.pinned = GetParam();
    options.cache = false;
    options.handlers.notified = [this](std::string_view method, const json::Raw&) {
      notified.emplace_back(method);
    };
  }
  Result<std::shared_ptr<Client>> connect() {
    auto [near_end, far_end] = make_channel(loop, loop);
    auto methods = std::make_shared<Methods>();
    methods->on("answered/by/hand", [this, far_end](const fairlead::Request& request) -> Answer {
      const std::string answer = R"({"jsonrpc":"2.0","id":)" + std::string(request.id()) + "," + raw_answer;
      EXPECT_TRUE(far_end->post(rpc::Rope(Bytes::copy_of(answer))));
      return json::Raw::null();  // late, and dropped
    });
    methods->otherwise([this](fairlead::Request request) -> Answer {
      const auto found = results.find(request.method());
      if (found == results.end()) return rpc::method_not_found(request.method());
      return found->second;
    });
    PeerOptions server_options;
    server_options.dialect.cancel_method.clear();
    server = Peer::start(far_end, methods, server_options);
    return loop.block_on(Client::on(near_end, options));
  }
  void start() {
    const Result<std::shared_ptr<Client>> made = connect();
    ASSERT_TRUE(made) << made.error().to_string();
    client = *made;
  }
  void TearDown() override {
    if (client) loop.block_on(client->close());
    server->close();
    loop.run_until([&] { return server->finished().is_set(); });
  }
  std::string call(const std::string& method) {
    const Result<json::Raw> answer = loop.block_on(client->request(method));
    return answer ? std::string(answer->text().substr(0, 100)) : answer.error().message();
  }
  std::string complete(const std::string& members) { return R"({"resultType":"complete",)" + members + "}"; }
};
INSTANTIATE_TEST_SUITE_P(Eras, LargeMessagesTest, ::testing::Values(kNewestLegacy, kNewest),
                         [](const auto& made) { return is_modern(made.param) ? "modern" : "legacy"; });

TEST_P(LargeMessagesTest, LargestResultsDoNotHoldTheLoop) {
  start();
  for (const std::string& value : test::hostile_values(test::kLargestFrame)) {
    SCOPED_TRACE(value.substr(0, 40));
    const json::Raw result = test::raw(complete(R"("content":[],"structuredContent":{"a":)" + value + "}"));
    results["tools/call"] = result;
    loop.turns().reset();
    const Result<ToolResult> answer = loop.block_on(client->call_tool("t", test::raw("{}")));
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->structured.text().size(), value.size() + 6);
    test::expect_short_turns(loop);
  }
}

TEST_P(LargeMessagesTest, LargestParamsDoNotHoldTheLoop) {
  start();
  results["tools/call"] = test::raw(complete(R"("content":[])"));
  std::vector<std::string> all = {many_members()};
  for (const std::string& value : test::hostile_values(test::kLargestFrame)) {
    all.push_back(R"({"name":"t","arguments":{"a":)" + value + "}}");
    all.push_back(R"({"_meta":{"a":)" + value + R"(},"name":"t"})");
  }
  for (const std::string& params : all) {
    SCOPED_TRACE(params.substr(0, 60));
    const json::Raw message = test::raw(params);
    ToolCallOptions watched;
    watched.on_progress = [](double, std::optional<double>, const std::string&) {};
    loop.turns().reset();
    const Result<json::Raw> answer = loop.block_on(client->request("tools/call", message, watched));
    EXPECT_TRUE(answer) << answer.error().to_string();
    test::expect_short_turns(loop);
  }
}

TEST_P(LargeMessagesTest, ResultsOfTooManyMembersOrEntriesAreErrors) {
  start();
  results["tools/call"] = test::raw(many_members());
  results["resources/read"] = test::raw(complete(R"("contents":)" + many_elements("{},")));
  results["prompts/get"] = test::raw(complete(R"("messages":)" + many_elements("{},")));
  loop.turns().reset();
  const Result<ToolResult> called = loop.block_on(client->call_tool("t", test::raw("{}")));
  ASSERT_FALSE(called);
  EXPECT_EQ(called.error().message(), "tools/call was answered with more than max_message_members (1000)");
  const Result<std::vector<ResourceContents>> read = loop.block_on(client->read_resource("x://"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message(), "resources/read has more than max_list_entries (100000)");
  const Result<PromptResult> prompt = loop.block_on(client->get_prompt("p"));
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().message(), "prompts/get has more than max_list_entries (100000)");
  test::expect_short_turns(loop);
}

TEST_P(LargeMessagesTest, ErrorsOfManyMembersDoNotHoldTheLoop) {
  start();
  raw_answer = R"("error":)" + many_members() + "}";
  loop.turns().reset();
  EXPECT_EQ(call("answered/by/hand"),
            "the other side answered with an error of more than max_error_bytes (262144)");
  test::expect_short_turns(loop);
}

TEST_P(LargeMessagesTest, TaskOfManyMembersIsNone) {
  start();
  const bool modern = is_modern(GetParam());
  const std::string members = many_members().substr(1);
  results["tools/call"] =
      test::raw(modern ? R"({"resultType":"task","taskId":"1","status":"working","a":)" + many_members() + "}"
                       : R"({"task":{"taskId":"1","status":"working",)" + members + "}");
  results["tasks/get"] =
      test::raw(complete(R"("taskId":"1","status":"completed","error":{},"result":)" + many_members()));
  loop.turns().reset();
  const Result<ToolResult> called = loop.block_on(client->call_tool("t", test::raw("{}")));
  if (modern) {
    ASSERT_FALSE(called);
    EXPECT_EQ(called.error().message(), "the task ended with more than max_message_members (1000)");
  } else {
    EXPECT_TRUE(called) << called.error().to_string();  // the result is no task
  }
  test::expect_short_turns(loop);
}

TEST_P(LargeMessagesTest, NotificationsOfTooManyMembersAreDropped) {
  start();
  const json::Raw many = test::raw(many_members());
  loop.turns().reset();
  for (const char* method : {"notifications/resources/updated", "notifications/progress",
                             "notifications/subscriptions/acknowledged", "notifications/cancelled",
                             "notifications/elicitation/complete", "notifications/message"}) {
    ASSERT_TRUE(server->post_notification(method, many));
    EXPECT_EQ(call("test/ok"), "{}");
  }
  EXPECT_TRUE(notified.empty());
  test::expect_short_turns(loop);
}

TEST_P(LargeMessagesTest, LargestNotificationsDoNotHoldTheLoop) {
  start();
  std::size_t expected = 0;
  for (const std::string& value : test::hostile_values(test::kLargestFrame)) {
    SCOPED_TRACE(value.substr(0, 40));
    const json::Raw params = test::raw(R"({"_meta":{"a":)" + value + R"(},"uri":"x://a"})");
    loop.turns().reset();
    ASSERT_TRUE(server->post_notification("notifications/resources/updated", params));
    EXPECT_EQ(call("test/ok"), "{}");
    EXPECT_EQ(notified.size(), ++expected);
    test::expect_short_turns(loop);
  }
}

TEST_P(LargeMessagesTest, HandshakeOverItsLimitFails) {
  const std::string method = is_modern(GetParam()) ? "server/discover" : "initialize";
  const std::string text(results[method].text());
  results[method] =
      test::raw(text.substr(0, text.size() - 1) + R"(,"instructions":")" + std::string(600'000, 'x') + "\"}");
  const Result<std::shared_ptr<Client>> made = connect();
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("max_handshake_bytes (524288)"), std::string::npos)
      << made.error().to_string();
}

// A legacy server's questions are requests of their own.
using ModernLargeMessagesTest = LargeMessagesTest;
INSTANTIATE_TEST_SUITE_P(Eras, ModernLargeMessagesTest, ::testing::Values(kNewest),
                         [](const auto&) { return "modern"; });

TEST_P(ModernLargeMessagesTest, QuestionsOfTooManyMembersAreRefused) {
  start();
  results["tools/call"] =
      test::raw(R"({"resultType":"input_required","inputRequests":)" + many_members() + "}");
  loop.turns().reset();
  const Result<ToolResult> called = loop.block_on(client->call_tool("t", test::raw("{}")));
  ASSERT_FALSE(called);
  EXPECT_EQ(called.error().message(), "the server asks more than max_message_members (1000) at once");
  test::expect_short_turns(loop);
}

// ---- the server's side -----------------------------------------------------------------------------------

// Members of tools/call.
std::string large_call(const std::string& value) {
  return R"("name":"add","arguments":{"a":1,"b":2,"c":)" + value + "}";
}

// Arguments that take too long to validate are refused.
bool served_or_refused(const std::string& answer) {
  return answer.find(R"("sum":3)") != std::string::npos ||
         answer.find("max_validation_steps (1000000)") != std::string::npos;
}

TEST_F(ServerTest, LargestLegacyArgumentsDoNotHoldTheLoop) {
  start();
  initialize("2025-11-25");
  for (const std::string& value : test::hostile_values(test::kLargestBody)) {
    SCOPED_TRACE(value.substr(0, 40));
    loop.turns().reset();
    const std::string answer = legacy("tools/call", "{" + large_call(value) + "}");
    EXPECT_TRUE(served_or_refused(answer)) << answer.substr(0, 200);
    test::expect_short_turns(loop);
  }
}

TEST_F(ServerTest, LargestModernArgumentsDoNotHoldTheLoop) {
  start();
  for (const std::string& value : test::hostile_values(test::kLargestBody)) {
    SCOPED_TRACE(value.substr(0, 40));
    loop.turns().reset();
    const std::string answer = modern("tools/call", large_call(value));
    EXPECT_TRUE(served_or_refused(answer)) << answer.substr(0, 200);
    test::expect_short_turns(loop);
  }
}

struct OneField {
  std::optional<int> a;
};
BOOST_DESCRIBE_STRUCT(OneField, (), (a))

struct ManyFields {
  std::optional<int> a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
BOOST_DESCRIBE_STRUCT(ManyFields, (), (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p))

// Arguments with one large member, which no field has.
std::string large_arguments() {
  return R"({"a":1,"large":)" + test::shuffled("[", {"[[]],"}, "1", "]", 1u << 20) + "}";
}

TEST(LargeArguments, AreReadOnceHoweverManyFieldsTheyAreDecodedInto) {
  const json::Raw arguments = test::raw(large_arguments());
  const json::View view(arguments);
  OneField one;
  ManyFields many;
  const auto once = test::cpu_time([&] { EXPECT_TRUE(typed::decode_struct(view, one)); });
  const auto all = test::cpu_time([&] { EXPECT_TRUE(typed::decode_struct(view, many)); });
  EXPECT_EQ(many.a, 1);
  EXPECT_LT(all, 5 * once) << "16 fields";
}

TEST(LargeArguments, AreNotReadToFindAnotherMemberOfParams) {
  const rpc::Message message = rpc::Message::parse(
      Bytes::copy_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":)" +
                     large_arguments() + R"(,"name":"t"}})"));
  const FeatureCall call{nullptr, nullptr, "tools/call", message.params(), Log(), message};
  const auto reading = test::cpu_time([&] { EXPECT_FALSE(call.args()["name"].absent()); });
  const auto found = test::cpu_time([&] {
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(call.arg("name").absent());
  });
  EXPECT_LT(found, reading) << "ten lookups, and one that reads all of params";
}

// The members that a listener has, with these resources.
std::string listening(const std::string& uris) {
  return R"("notifications":{"resourceSubscriptions":[)" + uris + "]}";
}

TEST_F(ServerTest, LongestUriOfAListenerDoesNotHoldTheLoop) {
  start();
  std::string uri;
  while (uri.size() < test::kLargestFrame) uri += "\\n";
  test::expect_short_turns(loop, [&] {
    const std::string answer = modern("subscriptions/listen", listening('"' + uri + '"'));
    EXPECT_NE(answer.find("max_uri_bytes (8192)"), std::string::npos) << answer.substr(0, 200);
  });
}

TEST_F(ServerTest, MostUrisOfAListenerDoNotHoldTheLoop) {
  start();
  std::string escapes;
  while (escapes.size() < test::kLargestFrame / kMostUris - 40) escapes += "\\n";
  std::string uris;
  for (std::size_t i = 0; i < kMostUris; ++i) {
    if (i > 0) uris += ',';
    uris += "\"x:" + std::to_string(i) + escapes + '"';
  }
  test::expect_short_turns(loop, [&] {
    const std::string answer = modern("subscriptions/listen", listening(uris));
    EXPECT_NE(answer.find("notifications/subscriptions/acknowledged"), std::string::npos)
        << answer.substr(0, 200);
  });
}

}  // namespace
}  // namespace fairlead::mcp
