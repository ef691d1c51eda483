// Collection of request members, and rejection of requests that two JSON readers could read differently.
#include "fairlead/protocol/call_facts.hpp"

#include <gtest/gtest.h>

namespace fairlead::mcp {
namespace {

rpc::Message request(const std::string& method, const std::string& params) {
  const std::string text = R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}";
  return rpc::Message::parse(Bytes::copy_of(text));
}

std::string problem_with(const std::string& params, const std::string& method = "tools/call") {
  const auto facts = CallFacts::of(request(method, params));
  if (!facts->problem()) return "none";
  EXPECT_EQ(facts->problem()->detail().rpc_code, -32602);
  return facts->problem()->message();
}

TEST(CallFactsTest, CollectsMembersForRoutingAndRewriting) {
  const auto facts = CallFacts::of(request(
      "tools/call",
      R"({"name":"s__t","arguments":{"name":"x","_meta":{}},"task":{"ttl":1},"inputResponses":{"q":{}},"requestState":"r",
          "_meta":{"progressToken":7,"traceparent":"00-a","tracestate":"b","baggage":"c",
            "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c"},
            "io.modelcontextprotocol/clientCapabilities":{"roots":{},"extensions":{"e/f":{}}},
            "io.modelcontextprotocol/logLevel":"info"}})"));
  ASSERT_FALSE(facts->problem());
  EXPECT_EQ(facts->method, "tools/call");
  EXPECT_EQ(facts->name.text(), R"("s__t")");
  EXPECT_EQ(facts->target_text(), "s__t");
  EXPECT_EQ(facts->arguments.text(), R"({"name":"x","_meta":{}})");
  EXPECT_EQ(facts->task.text(), R"({"ttl":1})");
  EXPECT_EQ(facts->input_responses.text(), R"({"q":{}})");
  EXPECT_EQ(facts->request_state.text(), R"("r")");
  EXPECT_EQ(facts->progress_token.text(), "7");
  EXPECT_EQ(facts->traceparent.text(), R"("00-a")");
  EXPECT_EQ(facts->tracestate.text(), R"("b")");
  EXPECT_EQ(facts->baggage.text(), R"("c")");
  EXPECT_EQ(facts->protocol_version.text(), R"("2026-07-28")");
  EXPECT_EQ(facts->client_info.text(), R"({"name":"c"})");
  EXPECT_EQ(facts->extensions.text(), R"({"e/f":{}})");
  EXPECT_EQ(facts->log_level.text(), R"("info")");
  EXPECT_TRUE(facts->cursor.absent());
}

TEST(CallFactsTest, TargetDependsOnMethod) {
  EXPECT_EQ(CallFacts::of(request("resources/read", R"({"name":"n","uri":"a:b"})"))->target_text(), "a:b");
  EXPECT_TRUE(CallFacts::of(request("resources/read", R"({"uri":"a:b"})"))->targets_resource());
  EXPECT_EQ(CallFacts::of(request("tasks/get", R"({"taskId":"t"})"))->target_text(), "t");
  EXPECT_EQ(CallFacts::of(request("tools/list", R"({"name":"n","cursor":"c"})"))->target_text(),
            std::nullopt);
  const auto prompt =
      CallFacts::of(request("completion/complete", R"({"name":"x","ref":{"type":"ref/prompt","name":"p"}})"));
  EXPECT_EQ(prompt->target_text(), "p");
  EXPECT_FALSE(prompt->targets_resource());
  const auto resource =
      CallFacts::of(request("completion/complete", R"({"ref":{"uri":"a:{b}","type":"ref/resource"}})"));
  EXPECT_EQ(resource->target_text(), "a:{b}");
  EXPECT_TRUE(resource->targets_resource());
}

TEST(CallFactsTest, EscapesInKeysAndNamesAreDecoded) {
  const auto facts = CallFacts::of(
      request("tools/call", R"({"n\u0061me":"s__\u0074","\u005fmeta":{"progress\u0054oken":1}})"));
  EXPECT_EQ(facts->target_text(), "s__t");
  EXPECT_EQ(facts->progress_token.text(), "1");
}

TEST(CallFactsTest, RepeatedKeysAreRejectedAndNamed) {
  EXPECT_EQ(problem_with(R"({"name":"drop_all","name":"files__read"})"), "params: `name` is repeated");
  EXPECT_EQ(problem_with(R"({"name":"drop_all","n\u0061me":"files__read"})"), "params: `name` is repeated");
  EXPECT_EQ(problem_with(R"({"\u006eame":"drop_all","name":"files__read"})"), "params: `name` is repeated");
  EXPECT_EQ(problem_with(R"({"name":null,"name":"files__read"})"), "params: `name` is repeated");
  EXPECT_EQ(problem_with(R"({"_meta":{},"_meta":{}})"), "params: `_meta` is repeated");
  EXPECT_EQ(problem_with(R"({"uri":"a","uri":"a"})", "resources/read"), "params: `uri` is repeated");
  EXPECT_EQ(problem_with(R"({"_meta":{"progressToken":1,"progressToken":2}})"),
            "_meta: `progressToken` is repeated");
  EXPECT_EQ(problem_with(R"({"_meta":{"progressToken":1,"x":{},"\u0070rogressToken":2}})"),
            "_meta: `progressToken` is repeated");
  EXPECT_EQ(problem_with(R"({"ref":{"type":"ref/prompt","name":"a","name":"b"}})", "completion/complete"),
            "ref: `name` is repeated");
  EXPECT_EQ(
      problem_with(
          R"({"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{},"extensions":{}}}})"),
      "clientCapabilities: `extensions` is repeated");
  for (const char* key : {"arguments", "cursor", "task", "taskId", "inputResponses", "requestState", "ref"}) {
    const std::string member = "\"" + std::string(key) + "\":{}";
    EXPECT_EQ(problem_with("{" + member + "," + member + "}"),
              "params: `" + std::string(key) + "` is repeated");
  }
}

// The member index of a message stores eight members. Members after them must be found too.
TEST(CallFactsTest, KeysAfterManyOthersAreFoundAndRejectedIfRepeated) {
  std::string many;
  for (int i = 0; i < 20; ++i) many += "\"k" + std::to_string(i) + "\":[1],";
  const auto facts = CallFacts::of(request("tools/call", "{" + many + R"("name":"t"})"));
  EXPECT_EQ(facts->target_text(), "t");
  EXPECT_EQ(problem_with("{\"name\":\"t\"," + many + R"("n\u0061me":"u"})"), "params: `name` is repeated");
}

TEST(CallFactsTest, KeysThatAreNotCollectedMayBeRepeated) {
  EXPECT_EQ(problem_with(R"({"name":"t","x":1,"x":2,"arguments":{"name":1,"name":2},"_meta":{"y":1,"y":2}})"),
            "none");
}

TEST(CallFactsTest, MoreThanMaxMessageMembersAreRejected) {
  std::string many = "{\"a\":1";
  for (int i = 0; i < 1000; ++i) many += ",\"a\":1";
  many += "}";
  EXPECT_EQ(problem_with(many), "params has more than max_message_members (1000)");
  EXPECT_EQ(problem_with("{\"_meta\":" + many + "}"), "_meta has more than max_message_members (1000)");
  EXPECT_EQ(problem_with("{\"ref\":" + many + "}"), "ref has more than max_message_members (1000)");
  EXPECT_EQ(problem_with("{\"arguments\":" + many + "}"), "none");
}

TEST(CallFactsTest, NonObjectParamsHaveNoFacts) {
  for (const char* params : {"[]", R"(["name"])"}) {
    const auto facts = CallFacts::of(request("tools/call", params));
    EXPECT_FALSE(facts->problem());
    EXPECT_TRUE(facts->target().absent());
  }
  const auto none =
      CallFacts::of(rpc::Message::parse(Bytes::copy_of(R"({"jsonrpc":"2.0","id":1,"method":"ping"})")));
  EXPECT_TRUE(none->params.absent());
}

TEST(CallFactsTest, CopiesOfMessageShareAttachedFacts) {
  rpc::Message message = request("tools/call", R"({"name":"t"})");
  CallFacts::attach(message);
  const rpc::Message copy = message;
  EXPECT_EQ(CallFacts::of(copy), CallFacts::of(message));
  EXPECT_EQ(CallFacts::of(copy).get(), message.annotation().get());
}

}  // namespace
}  // namespace fairlead::mcp
