// Messages of the maximum size, sent to a client and to a server: none of them blocks the loop.
#include <sys/resource.h>

#include "fairlead/mcp/typed_decode.hpp"
#include "mcp/features.hpp"
#include "mcp/harness.hpp"
#include "mcp/subscriptions.hpp"
#include "support/hostile_json.hpp"
#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::mcp {
namespace {

// Returns an object of as many members as fit into a frame.
std::string many_members() {
  return test::shuffled("{", {R"("":1,)", R"("a":1,)"}, R"("b":1)", "}", test::kLargeFrameBytes);
}
std::string many_elements(std::string_view element) {
  return test::shuffled("[", {element}, "1", "]", test::kLargeFrameBytes);
}

class LargeMessagesTest : public ::testing::TestWithParam<Revision> {
 protected:
  Loop loop;
  std::map<std::string, json::Raw, std::less<>> results;  // by method
  std::shared_ptr<Peer> server;
  std::shared_ptr<Client> client;
  ClientOptions options;
  std::vector<std::string> notifications;
  std::string raw_answer;  // the members after `id` in the response to answered/by/hand

  void SetUp() override {
    results["initialize"] = test::raw(
        R"({"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}},)"
        R"("serverInfo":{"name":"s","version":"1"}})");
    results["server/discover"] =
        test::raw(R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}})");
    results["test/ok"] = test::raw("{}");
    results["tools/list"] = test::raw(R"({"resultType":"complete","tools":[]})");
    options.pinned_revision = GetParam();
    options.cache_results = false;
    options.handlers.on_notification = [this](std::string_view method, const json::Raw&) {
      notifications.emplace_back(method);
    };
  }
  Result<std::shared_ptr<Client>> connect() {
    auto [near_end, far_end] = make_channel(loop, loop);
    auto methods = std::make_shared<Methods>();
    methods->on("answered/by/hand", [this, far_end](const fairlead::Request& request) -> Answer {
      const std::string answer = R"({"jsonrpc":"2.0","id":)" + std::string(request.id()) + "," + raw_answer;
      EXPECT_TRUE(far_end->post(rpc::Rope(Bytes::copy_of(answer))));
      return json::Raw::null();  // the response is too late and is dropped
    });
    methods->fallback([this](fairlead::Request request) -> Answer {
      const auto found = results.find(request.method());
      if (found == results.end()) return rpc::method_not_found(request.method());
      return found->second;
    });
    PeerOptions server_options;
    server_options.dialect.cancel_method.clear();
    server = Peer::start(far_end, methods, server_options);
    return loop.block_on(Client::connect_over(near_end, options));
  }
  void start() {
    const Result<std::shared_ptr<Client>> connected = connect();
    ASSERT_TRUE(connected) << connected.error().to_string();
    client = *connected;
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
INSTANTIATE_TEST_SUITE_P(Eras, LargeMessagesTest, ::testing::Values(kNewestLegacyRevision, kNewestRevision),
                         [](const auto& test) { return is_modern(test.param) ? "modern" : "legacy"; });

TEST_P(LargeMessagesTest, LargestResultsDoNotBlockTheLoop) {
  start();
  for (const std::string& value : test::hostile_values(test::kLargeFrameBytes)) {
    SCOPED_TRACE(value.substr(0, 40));
    const json::Raw result = test::raw(complete(R"("content":[],"structuredContent":{"a":)" + value + "}"));
    results["tools/call"] = result;
    loop.turn_meter().reset();
    const Result<ToolResult> answer = loop.block_on(client->call_tool("t", test::raw("{}")));
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->structured.text().size(), value.size() + 6);
    test::expect_short_turns(loop);
  }
}

TEST_P(LargeMessagesTest, LargestParamsDoNotBlockTheLoop) {
  start();
  results["tools/call"] = test::raw(complete(R"("content":[])"));
  std::vector<std::string> all = {many_members()};
  for (const std::string& value : test::hostile_values(test::kLargeFrameBytes)) {
    all.push_back(R"({"name":"t","arguments":{"a":)" + value + "}}");
    all.push_back(R"({"_meta":{"a":)" + value + R"(},"name":"t"})");
  }
  for (const std::string& params : all) {
    SCOPED_TRACE(params.substr(0, 60));
    const json::Raw message = test::raw(params);
    ClientCallOptions watched;
    watched.on_progress = [](double, std::optional<double>, const std::string&) {};
    loop.turn_meter().reset();
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
  loop.turn_meter().reset();
  const Result<ToolResult> called = loop.block_on(client->call_tool("t", test::raw("{}")));
  ASSERT_FALSE(called);
  EXPECT_EQ(called.error().message(), "the result of tools/call has more than max_message_members (1000)");
  const Result<std::vector<ResourceContents>> read = loop.block_on(client->read_resource("x://"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message(), "resources/read has more than max_list_entries (100000)");
  const Result<PromptResult> prompt = loop.block_on(client->get_prompt("p"));
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().message(), "prompts/get has more than max_list_entries (100000)");
  test::expect_short_turns(loop);
}

TEST_P(LargeMessagesTest, ErrorsOfManyMembersDoNotBlockTheLoop) {
  start();
  raw_answer = R"("error":)" + many_members() + "}";
  loop.turn_meter().reset();
  EXPECT_EQ(call("answered/by/hand"),
            "the remote peer responded with an error larger than max_error_bytes (262144)");
  test::expect_short_turns(loop);
}

TEST_P(LargeMessagesTest, TaskWithTooManyMembersIsRejected) {
  start();
  const bool modern = is_modern(GetParam());
  const std::string members = many_members().substr(1);
  results["tools/call"] =
      test::raw(modern ? R"({"resultType":"task","taskId":"1","status":"working","a":)" + many_members() + "}"
                       : R"({"task":{"taskId":"1","status":"working",)" + members + "}");
  results["tasks/get"] =
      test::raw(complete(R"("taskId":"1","status":"completed","error":{},"result":)" + many_members()));
  loop.turn_meter().reset();
  const Result<ToolResult> called = loop.block_on(client->call_tool("t", test::raw("{}")));
  if (modern) {
    ASSERT_FALSE(called);
    EXPECT_EQ(called.error().message(), "the result of the task has more than max_message_members (1000)");
  } else {
    EXPECT_TRUE(called) << called.error().to_string();  // the result is not a task
  }
  test::expect_short_turns(loop);
}

TEST_P(LargeMessagesTest, NotificationsOfTooManyMembersAreDropped) {
  start();
  const json::Raw many = test::raw(many_members());
  loop.turn_meter().reset();
  for (const char* method : {"notifications/resources/updated", "notifications/progress",
                             "notifications/subscriptions/acknowledged", "notifications/cancelled",
                             "notifications/elicitation/complete", "notifications/message"}) {
    ASSERT_TRUE(server->post_notification(method, many));
    EXPECT_EQ(call("test/ok"), "{}");
  }
  EXPECT_TRUE(notifications.empty());
  test::expect_short_turns(loop);
}

TEST_P(LargeMessagesTest, LargestNotificationsDoNotBlockTheLoop) {
  start();
  std::size_t expected = 0;
  for (const std::string& value : test::hostile_values(test::kLargeFrameBytes)) {
    SCOPED_TRACE(value.substr(0, 40));
    const json::Raw params = test::raw(R"({"_meta":{"a":)" + value + R"(},"uri":"x://a"})");
    loop.turn_meter().reset();
    ASSERT_TRUE(server->post_notification("notifications/resources/updated", params));
    EXPECT_EQ(call("test/ok"), "{}");
    EXPECT_EQ(notifications.size(), ++expected);
    test::expect_short_turns(loop);
  }
}

TEST_P(LargeMessagesTest, HandshakeOverItsLimitFails) {
  const std::string method = is_modern(GetParam()) ? "server/discover" : "initialize";
  const std::string text(results[method].text());
  results[method] =
      test::raw(text.substr(0, text.size() - 1) + R"(,"instructions":")" + std::string(600'000, 'x') + "\"}");
  const Result<std::shared_ptr<Client>> connected = connect();
  ASSERT_FALSE(connected);
  EXPECT_NE(connected.error().message().find("max_handshake_bytes (524288)"), std::string::npos)
      << connected.error().to_string();
}

// Modern era only: a legacy server sends input requests as JSON-RPC requests.
using ModernLargeMessagesTest = LargeMessagesTest;
INSTANTIATE_TEST_SUITE_P(Eras, ModernLargeMessagesTest, ::testing::Values(kNewestRevision),
                         [](const auto&) { return "modern"; });

TEST_P(ModernLargeMessagesTest, InputRequestsOfTooManyMembersAreRejected) {
  start();
  results["tools/call"] =
      test::raw(R"({"resultType":"input_required","inputRequests":)" + many_members() + "}");
  loop.turn_meter().reset();
  const Result<ToolResult> called = loop.block_on(client->call_tool("t", test::raw("{}")));
  ASSERT_FALSE(called);
  EXPECT_EQ(called.error().message(),
            "the server sent more input requests than max_message_members (1000) at once");
  test::expect_short_turns(loop);
}

// ---- server ----------------------------------------------------------------------------------------------

// Returns the members of the params of tools/call.
std::string large_call(const std::string& value) {
  return R"("name":"add","arguments":{"a":1,"b":2,"c":)" + value + "}";
}

// Arguments that exceed max_validation_steps are rejected.
bool served_or_rejected(const std::string& answer) {
  return answer.find(R"("sum":3)") != std::string::npos ||
         answer.find("max_validation_steps (1000000)") != std::string::npos;
}

TEST_F(ServerTest, LargestLegacyArgumentsDoNotBlockTheLoop) {
  start();
  initialize("2025-11-25");
  for (const std::string& value : test::hostile_values(test::kLargeBodyBytes)) {
    SCOPED_TRACE(value.substr(0, 40));
    loop.turn_meter().reset();
    const std::string answer = legacy("tools/call", "{" + large_call(value) + "}");
    EXPECT_TRUE(served_or_rejected(answer)) << answer.substr(0, 200);
    test::expect_short_turns(loop);
  }
}

TEST_F(ServerTest, LargestModernArgumentsDoNotBlockTheLoop) {
  start();
  for (const std::string& value : test::hostile_values(test::kLargeBodyBytes)) {
    SCOPED_TRACE(value.substr(0, 40));
    loop.turn_meter().reset();
    const std::string answer = modern("tools/call", large_call(value));
    EXPECT_TRUE(served_or_rejected(answer)) << answer.substr(0, 200);
    test::expect_short_turns(loop);
  }
}

long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Calls `echo` with a text of 1 MiB, and returns the page faults of one call after a few others.
Task<long> page_faults_of_large_call(std::shared_ptr<Client> client) {
  constexpr int kCalls = 10;
  const std::string text(1u << 20, 'x');
  const json::Raw arguments = test::raw(R"({"message":")" + text + "\"}");
  long before = 0;
  for (int i = 0; i < 2 * kCalls; ++i) {
    if (i == kCalls) before = page_faults();
    const Result<ToolResult> result = co_await client->call_tool("echo", arguments);
    EXPECT_TRUE(result && result->content.at(0).view()["text"].text().size() == text.size() + 2);
  }
  co_return (page_faults() - before) / kCalls;
}

TEST_F(ServerTest, LargeTypedCallsReuseTheirMemory) {
#ifdef FAIRLEAD_SANITIZED
  GTEST_SKIP() << "a sanitizer has page faults of its own";
#endif
  start();
  const auto client = loop.block_on(Client::connect_over(test_end));
  ASSERT_TRUE(client);
  // Fresh memory for one copy of the text would be 256 page faults.
  EXPECT_LT(loop.block_on(page_faults_of_large_call(*client)), 200);
}

struct OneField {
  std::optional<int> a;
};
BOOST_DESCRIBE_STRUCT(OneField, (), (a))

struct ManyFields {
  std::optional<int> a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
BOOST_DESCRIBE_STRUCT(ManyFields, (), (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p))

// Returns arguments with one large member for which the argument struct has no field.
std::string large_arguments() {
  return R"({"a":1,"large":)" + test::shuffled("[", {"[[]],"}, "1", "]", 1u << 20) + "}";
}

TEST(LargeArgumentsTest, ArgumentsAreReadOnceForAnyNumberOfFields) {
  const json::Raw arguments = test::raw(large_arguments());
  const json::View view(arguments);
  OneField one;
  ManyFields many;
  const auto once = test::cpu_time([&] { EXPECT_TRUE(typed::decode_struct(view, one)); });
  const auto all = test::cpu_time([&] { EXPECT_TRUE(typed::decode_struct(view, many)); });
  EXPECT_EQ(many.a, 1);
  EXPECT_LT(all, 5 * once) << "16 fields";
}

TEST(LargeArgumentsTest, ArgumentsAreNotReadToFindAnotherMemberOfParams) {
  const rpc::Message message = rpc::Message::parse(
      Bytes::copy_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":)" +
                     large_arguments() + R"(,"name":"t"}})"));
  const FeatureRequest request{nullptr, nullptr, "tools/call", message.params(), Log(), message};
  const auto reading = test::cpu_time([&] { EXPECT_FALSE(request.params_view()["name"].absent()); });
  const auto found = test::cpu_time([&] {
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(request.find_param("name").absent());
  });
  EXPECT_LT(found, reading) << "ten lookups, and one that reads all of params";
}

// Returns the params members of subscriptions/listen for these resources.
std::string listen_members(const std::string& uris) {
  return R"("notifications":{"resourceSubscriptions":[)" + uris + "]}";
}

TEST_F(ServerTest, LongestUriOfListenDoesNotBlockTheLoop) {
  start();
  std::string uri;
  while (uri.size() < test::kLargeFrameBytes) uri += "\\n";
  test::expect_short_turns(loop, [&] {
    const std::string answer = modern("subscriptions/listen", listen_members('"' + uri + '"'));
    EXPECT_NE(answer.find("max_uri_bytes (8192)"), std::string::npos) << answer.substr(0, 200);
  });
}

TEST_F(ServerTest, MaxUrisOfListenDoNotBlockTheLoop) {
  start();
  std::string escapes;
  while (escapes.size() < test::kLargeFrameBytes / kMaxSubscribedUris - 40) escapes += "\\n";
  std::string uris;
  for (std::size_t i = 0; i < kMaxSubscribedUris; ++i) {
    if (i > 0) uris += ',';
    uris += "\"x:" + std::to_string(i) + escapes + '"';
  }
  test::expect_short_turns(loop, [&] {
    const std::string answer = modern("subscriptions/listen", listen_members(uris));
    EXPECT_NE(answer.find("notifications/subscriptions/acknowledged"), std::string::npos)
        << answer.substr(0, 200);
  });
}

}  // namespace
}  // namespace fairlead::mcp
