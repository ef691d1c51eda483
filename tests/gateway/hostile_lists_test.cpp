// Servers that list what is costly to process, and clients that use it. No input may hold the loop.
#include "gateway/harness.hpp"
#include "support/hostile_json.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

// A server that lists what is written here.
class ListingBackend final : public mcp::Backend {
 public:
  std::map<std::string, json::Raw, std::less<>> results;             // by method
  std::map<std::string, std::vector<json::Raw>, std::less<>> pages;  // by method; the cursor is the number

  bool has_capability(std::string_view capability) const override {
    const std::string method = std::string(capability) + "/list";
    return results.contains(method) || pages.contains(method);
  }
  Task<Answer> serve(mcp::BackendRequest request) override {
    if (const auto paged = pages.find(request.message.method()); paged != pages.end()) {
      const json::View cursor = json::View(request.message.params_text())["cursor"];
      co_return paged->second.at(std::stoul(cursor.as_string().value_or("0")));
    }
    const auto result = results.find(request.message.method());
    if (result == results.end()) co_return Error::rpc(rpc::kMethodNotFound, "not listed");
    co_return result->second;
  }
  mcp::HeaderParams header_params(std::string_view, const Principal&) const override { return nullptr; }
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription) override {
    co_return Error::rpc(rpc::kInternalError, "no subscriptions");
  }
  void session_began(std::string_view, Reach) override {}
  void log_level_set(std::string_view, mcp::LoggingLevel) override {}
  void session_ended(std::string_view) override {}
};

class HostileListTest : public GatewayTest {
 protected:
  std::shared_ptr<ListingBackend> backend = std::make_shared<ListingBackend>();
  std::shared_ptr<Client> client;

  std::vector<std::string> logged;

  void SetUp() override {
    config.list_wait = 1h;
    gateway_log =
        Log(LogLevel::warning, LogFormat::text, [this](std::string_view line) { logged.emplace_back(line); });
    furnish = [this](Instance& instance) { instance.server.backend(backend); };
  }
  // Servers list this, in pages that fit into a frame.
  void put(const std::string& method, const std::string& member, const std::vector<std::string>& entries) {
    constexpr std::size_t kPageBytes = 9u << 20;
    std::vector<json::Raw>& pages = backend->pages[method];
    std::string text;
    for (const std::string& entry : entries) {
      if (text.size() + entry.size() > kPageBytes) {
        const std::string next = std::to_string(pages.size() + 1);
        pages.push_back(raw(R"({"nextCursor":")" + next + R"(",")" + member + R"(":[)" + text + "]}"));
        text.clear();
      }
      text += (text.empty() ? "" : ",") + entry;
    }
    pages.push_back(raw(R"({")" + member + R"(":[)" + text + "]}"));
  }
  // However long it takes: builds with sanitizers are slow.
  void wait_until_listed() {
    mcp::ToolCallOptions options;
    options.timeout = 1h;
    EXPECT_TRUE(loop.block_on(client->client->request("tools/list", json::Raw(), options)));
  }
  // Starts a gateway in front of one server that lists this, and waits until it is listed.
  void list(const std::string& method, const std::string& member, const std::vector<std::string>& entries,
            mcp::Revision revision = mcp::kNewestLegacy) {
    put(method, member, entries);
    add("s", Sharing::shared, revision);
    loop.turns().reset();
    client = enter(revision);
    wait_until_listed();
  }
  bool was_logged(std::string_view what) const {
    return std::ranges::any_of(logged,
                               [&](const std::string& line) { return line.find(what) != std::string::npos; });
  }
  std::string read(const std::string& uri) {
    json::Writer params;
    params.begin_object().key("uri").string(uri).end_object();
    const Result<json::Raw> answer =
        loop.block_on(client->client->request("resources/read", params.finish()));
    if (answer) return std::string(answer->text());
    return std::to_string(answer.error().detail().rpc_code.value_or(0)) + " " + answer.error().message();
  }
};

std::string template_entry(const std::string& uri_template) {
  json::Writer out;
  out.begin_object().key("uriTemplate").string(uri_template).key("name").string("n").end_object();
  return std::string(out.text());
}

TEST_F(HostileListTest, TemplateWithManyVariablesIsLeftOut) {
  std::string variables;
  for (int i = 0; i < 60'000; ++i) variables += "{a}";
  backend->results["resources/list"] = raw(R"({"resources":[]})");
  list("resources/templates/list", "resourceTemplates",
       {template_entry("x://" + variables), template_entry("y://{a}")});
  const Result<std::vector<json::Raw>> listed =
      loop.block_on(client->client->list("resources/templates/list", "resourceTemplates"));
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->size(), 1u);
  read("x://" + std::string(4000, 'a'));
  test::expect_short_turns(loop);
}

TEST_F(HostileListTest, UriOverItsLimitIsRefused) {
  backend->results["resources/list"] = raw(R"({"resources":[]})");
  list("resources/templates/list", "resourceTemplates", {template_entry("x://{a}/{b}/{c}")});
  loop.turns().reset();
  const std::string answer = read("x://" + std::string(100'000, 'a'));
  EXPECT_EQ(answer, "-32602 uri is over the limit max_uri_bytes (8192)");
  test::expect_short_turns(loop);
}

TEST_F(HostileListTest, ManyTemplatesAndALongUriDoNotHoldTheLoop) {
  backend->results["resources/list"] = raw(R"({"resources":[]})");
  std::vector<std::string> entries;
  for (int i = 0; i < 99'990; ++i)
    entries.push_back(template_entry("x://{+a}b{+b}b{+c}b{+d}" + std::to_string(i) + "{+e}"));
  list("resources/templates/list", "resourceTemplates", entries);
  test::expect_short_turns(loop, [&] { read("x://" + std::string(8000, 'b')); });
}

// ---- tools -----------------------------------------------------------------------------------------------

std::string tool_entry(const std::string& name, const std::string& schema, const std::string& more = "") {
  return R"({"name":")" + name + R"(","inputSchema":)" + schema + more + "}";
}
const std::string kAnySchema = R"({"type":"object"})";

// A schema of this many levels, with a valid annotation in the innermost one.
std::string deep_schema(int levels, const std::string& filling = "") {
  std::string schema;
  for (int i = 0; i < levels; ++i) schema += R"({"type":"object","properties":{"a":)";
  schema += R"({"type":"string","x-mcp-header":"H"})" + filling;
  for (int i = 0; i < levels; ++i) schema += "}}";
  return schema;
}

class HostileToolsTest : public HostileListTest, public ::testing::WithParamInterface<mcp::Revision> {
 protected:
  void list_tools(const std::vector<std::string>& tools) { list("tools/list", "tools", tools, GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Eras, HostileToolsTest, ::testing::Values(mcp::kNewestLegacy, mcp::kNewest),
                         [](const auto& made) { return mcp::is_modern(made.param) ? "modern" : "legacy"; });

TEST_P(HostileToolsTest, ToolWithADeepSchemaIsLeftOut) {
  std::string filling;
  for (int i = 0; i < 100'000; ++i) filling += R"(,"b":{"type":"string","description":"………………"})";
  list_tools({tool_entry("large", deep_schema(200, filling)), tool_entry("deep", deep_schema(100)),
              tool_entry("good", deep_schema(20))});
  EXPECT_EQ(tools(client), std::vector<std::string>{"s__good"});
  EXPECT_TRUE(was_logged("max_entry_bytes (524288)"));
  EXPECT_TRUE(was_logged("max_schema_depth (64)"));
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, ToolWithALargeSchemaIsLeftOut) {
  std::string members;
  for (int i = 0; i < 30'000; ++i) members += R"(,"a":["b"])";
  list_tools({tool_entry("in", R"({"type":"object")" + members + "}"),
              tool_entry("out", kAnySchema, R"(,"outputSchema":{"type":"object")" + members + "}"),
              tool_entry("good", kAnySchema)});
  EXPECT_EQ(tools(client), std::vector<std::string>{"s__good"});
  EXPECT_TRUE(was_logged("max_schema_bytes (262144)"));
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, ServerThatListsTooManyToolsListsNone) {
  std::vector<std::string> many;
  for (int i = 0; i < 110'000; ++i) many.push_back(tool_entry("t" + std::to_string(i), kAnySchema));
  list_tools(many);
  EXPECT_TRUE(tools(client).empty());
  EXPECT_TRUE(was_logged("max_list_entries (100000)"));
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, ServerThatListsTooManyBytesListsNone) {
  list_tools(std::vector<std::string>(
      9, tool_entry("t", kAnySchema, R"(,"_meta":{"a":")" + std::string(4'500'000, 'x') + "\"}")));
  EXPECT_TRUE(tools(client).empty());
  EXPECT_TRUE(was_logged("max_list_bytes (33554432)"));
  test::expect_short_turns(loop);
}

// As much as is allowed, each with a schema that costs as much as is allowed.
TEST_P(HostileToolsTest, LargestListDoesNotHoldTheLoop) {
  std::string members;
  for (int i = 0; i < 20; ++i) members += R"(,"a\n":1)";
  const std::string schema = R"({"type":"object","x":"x-mcp-h")" + members + "}";
  std::vector<std::string> many;
  for (int i = 0; i < 99'990; ++i) many.push_back(tool_entry("t" + std::to_string(i), schema));
  list_tools(many);
  EXPECT_EQ(tools(client).size(), 99'990u);
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, LargestToolsDoNotHoldTheLoop) {
  std::string members;
  for (int i = 0; i < 32'000; ++i) members += R"(,"a\n":1)";
  const std::string schema = R"({"type":"object","x":"x-mcp-h")" + members.substr(0, 8 * 32'000) + "}";
  std::vector<std::string> many;
  for (int i = 0; i < 16; ++i)
    many.push_back(tool_entry("t" + std::to_string(i), schema, R"(,"outputSchema":)" + schema));
  list_tools(many);
  EXPECT_EQ(tools(client).size(), 16u);
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, ManyInvalidToolsAreLoggedAsOneNumber) {
  std::vector<std::string> many;
  for (int i = 0; i < 10'000; ++i) many.push_back(tool_entry("t" + std::to_string(i), "null"));
  list_tools(many);
  EXPECT_TRUE(tools(client).empty());
  EXPECT_LT(logged.size(), 200u);
  EXPECT_TRUE(was_logged("9900 more entries are left out"));
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, ServerThatPagesForEverListsNone) {
  backend->results["tools/list"] =
      raw(R"({"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"more"})");
  add("s", Sharing::shared, GetParam());
  client = enter(GetParam());
  EXPECT_TRUE(tools(client).empty());
  EXPECT_TRUE(was_logged("max_list_pages (1000)"));
  test::expect_short_turns(loop);
}

TEST_F(HostileListTest, ListThatExceedsTheLimitOfAllListsOfItsServerIsLeftOut) {
  const std::string large = R"(,"_meta":{"a":")" + std::string(500'000, 'x') + "\"}";
  std::vector<std::string> tools_of_it;
  std::vector<std::string> prompts_of_it;
  for (int i = 0; i < 40; ++i) {
    tools_of_it.push_back(tool_entry("t" + std::to_string(i), kAnySchema, large));
    prompts_of_it.push_back(R"({"name":"p)" + std::to_string(i) + "\"" + large + "}");
  }
  put("prompts/list", "prompts", prompts_of_it);
  list("tools/list", "tools", tools_of_it);
  EXPECT_EQ(tools(client).size(), 40u);
  const Result<std::vector<json::Raw>> prompts = loop.block_on(client->client->prompts());
  ASSERT_TRUE(prompts);
  EXPECT_TRUE(prompts->empty());
  EXPECT_TRUE(was_logged("max_server_list_bytes (33554432)"));
  test::expect_short_turns(loop);
}

// ---- many servers ----------------------------------------------------------------------------------------

class ManyServersTest : public HostileListTest {
 protected:
  static constexpr int kServers = 10;
  // Nearly as many as a list may have. Fewer where the build is slower, and times say little.
  static constexpr int kTools = test::kTurnFactor == 1 ? 9'990 : 990;

  static json::Raw tools_result(int count) {
    const std::string schema = R"({"type":"object","description":")" + std::string(500, 'd') + R"("})";
    std::string text = R"({"tools":[)";
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + tool_entry("t" + std::to_string(i), schema);
    return raw(text + "]}");
  }
  // All pages of tools/list, as a client that keeps no list of its own.
  std::size_t count_tools() {
    std::size_t count = 0;
    json::Raw params;
    while (true) {
      const Result<json::Raw> page = loop.block_on(client->client->request("tools/list", params));
      if (!page) return 0;
      json::View(*page)["tools"].each_element([&](json::View) { return ++count > 0; });
      const json::View next = json::View(*page)["nextCursor"];
      if (next.absent()) return count;
      params = raw(R"({"cursor":)" + std::string(next.text()) + "}");
    }
  }
};

TEST_F(ManyServersTest, ChangeOfOneOfTenLargestListsDoesNotHoldTheLoop) {
  backend->results["tools/list"] = tools_result(kTools);
  for (int i = 0; i < kServers; ++i) add("s" + std::to_string(i), Sharing::shared);
  loop.turns().reset();
  client = enter();
  wait_until_listed();
  EXPECT_EQ(count_tools(), static_cast<std::size_t>(kServers * kTools));
  test::expect_short_turns(loop);
  loop.turns().reset();
  backend->results["tools/list"] = tools_result(kTools + 1);
  ASSERT_TRUE(instance("s3", 0).peer->post_notification("notifications/tools/list_changed", json::Raw()));
  EXPECT_TRUE(comes_true([&] { return client->count(kToolsChanged) == 1; }));
  EXPECT_EQ(count_tools(), static_cast<std::size_t>(kServers * kTools + 1));
  test::expect_short_turns(loop);
}

TEST_F(ManyServersTest, SameUrisOfManyServersDoNotHoldTheLoop) {
  std::vector<std::string> resources;
  for (int i = 0; i < kTools; ++i)
    resources.push_back(R"({"uri":"x://)" + std::string(200, 'u') + std::to_string(i) + R"(","name":"n"})");
  put("resources/list", "resources", resources);
  for (int i = 0; i < kServers; ++i) add("s" + std::to_string(i), Sharing::shared);
  loop.turns().reset();
  client = enter();
  wait_until_listed();
  const Result<std::vector<json::Raw>> listed = loop.block_on(client->client->resources());
  ASSERT_TRUE(listed) << listed.error().to_string();
  EXPECT_EQ(listed->size(), static_cast<std::size_t>(kTools));
  EXPECT_TRUE(comes_true([&] { return was_logged("is taken by `s0`"); }));
  test::expect_short_turns(loop);
}

TEST_F(ManyServersTest, GatewayBehindAGatewayOffersAllItsTools) {
  constexpr std::size_t kInner = 2;
  constexpr int kInnerTools = 6'000;
  backend->results["tools/list"] = tools_result(kInnerTools);
  backend->results["tools/call"] = raw(R"({"content":[],"resultType":"complete"})");
  for (std::size_t i = 0; i < kInner; ++i) add("s" + std::to_string(i), Sharing::shared);
  const Result<std::shared_ptr<Gateway>> inner = Gateway::create(loop, config, gateway_log);
  ASSERT_TRUE(inner) << inner.error().to_string();
  EXPECT_TRUE(comes_true([&] {
    return std::ranges::all_of(servers, [](const auto& server) { return !server.second->empty(); });
  }));
  config.servers.clear();
  furnish = [&](Instance& instance) { instance.server = (*inner)->front(); };
  add("inner", Sharing::shared);
  client = enter();
  wait_until_listed();
  EXPECT_EQ(tools(client).size(), kInner * kInnerTools);
  const std::string last = "inner__s1__t" + std::to_string(kInnerTools - 1);
  EXPECT_TRUE(loop.block_on(client->client->call_tool(last, raw("{}"))));
  loop.block_on((*inner)->shutdown(0ms));
}

// ---- calls -----------------------------------------------------------------------------------------------

// `text` repeated up to so many bytes, nearly as many as a frame may have, and the last comma left out.
std::string filled(std::string_view text, std::size_t bytes = test::kLargestFrame) {
  std::string all;
  while (all.size() < bytes) all += text;
  all.pop_back();
  return all;
}

TEST_P(HostileToolsTest, LargestCallDoesNotHoldTheLoop) {
  backend->results["tools/call"] = raw(R"({"content":[],"resultType":"complete"})");
  list_tools({tool_entry("t", kAnySchema)});
  // More members than an index of the usual size holds.
  std::string others;
  for (int i = 0; i < 100; ++i) others += R"("m)" + std::to_string(i) + R"(":0,)";
  for (const std::string& value : test::hostile_values(test::kLargestFrame)) {
    SCOPED_TRACE(value.substr(0, 40));
    const std::string arguments = R"("arguments":{"a":)" + value + "}";
    for (const std::string& params :
         {R"({"name":"s__t",)" + arguments + "}", "{" + others + arguments + R"(,"name":"s__t"})"}) {
      const json::Raw message = raw(params);
      test::expect_short_turns(loop, [&] {
        const Result<json::Raw> answer = loop.block_on(client->client->request("tools/call", message));
        EXPECT_TRUE(answer) << answer.error().to_string();
      });
    }
  }
}

TEST_P(HostileToolsTest, CallWithTooManyMembersIsRefused) {
  list_tools({tool_entry("t", kAnySchema)});
  for (const char* member : {R"("a":1,)", R"("a\n":1,)"}) {
    const json::Raw message = raw(R"({"name":"s__t",)" + filled(member) + "}");
    test::expect_short_turns(loop, [&] {
      const Result<json::Raw> answer = loop.block_on(client->client->request("tools/call", message));
      ASSERT_FALSE(answer);
      EXPECT_EQ(answer.error().detail().rpc_code, rpc::kInvalidParams);
      EXPECT_EQ(answer.error().message(), "params has more than max_message_members (1000)");
    });
  }
}

TEST_P(HostileToolsTest, LargestResultDoesNotHoldTheLoop) {
  list_tools({tool_entry("t", kAnySchema)});
  std::vector<std::string> results = {
      R"({"resultType":"complete","content":[)" + filled("1,") + "]}",
      R"({"resultType":"complete","content":[],)" + filled(R"("a\n":1,)") + "}"};
  for (const std::string& value : test::hostile_values(test::kLargestFrame))
    results.push_back(R"({"resultType":"complete","content":[],"structuredContent":{"a":)" + value + "}}");
  for (const std::string& result : results) {
    backend->results["tools/call"] = raw(result);
    SCOPED_TRACE(result.substr(0, 80));
    test::expect_short_turns(loop, [&] {
      const auto answer = loop.block_on(client->client->call_tool("s__t", raw("{}")));
      static_cast<void>(answer);  // a result, or what is wrong with it
    });
  }
}

TEST_P(HostileToolsTest, OutputSchemasAndResultsDoNotHoldTheLoop) {
  std::string patterns;
  // As many as max_schema_pattern_states allows.
  for (int i = 0; i < 1400; ++i) patterns += R"({"pattern":"[a-z]+)" + std::to_string(i) + "\"},";
  patterns.pop_back();
  const std::vector<std::string> properties = {R"("a":{"uniqueItems":true})",
                                               R"("a":{"items":{"anyOf":[)" + patterns + "]}}",
                                               R"("a":{"items":{"pattern":"(x|xx|xxx){1,100}y"}})"};
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < properties.size(); ++i)
    entries.push_back(
        tool_entry("t" + std::to_string(i), kAnySchema,
                   R"(,"outputSchema":{"type":"object","properties":{)" + properties[i] + "}}"));
  list_tools(entries);
  ASSERT_EQ(tools(client).size(), properties.size());
  std::string numbers = R"({"resultType":"complete","content":[],"structuredContent":{"a":[0)";
  for (int i = 1; i < 1'300'000; ++i) numbers += "," + std::to_string(i);
  const std::string strings = R"({"resultType":"complete","content":[],"structuredContent":{"a":[")" +
                              std::string(9'000'000, 'x') + "\"]}}";
  for (const std::string& result : {numbers + "]}}", strings}) {
    backend->results["tools/call"] = raw(result);
    for (std::size_t i = 0; i < properties.size(); ++i) {
      SCOPED_TRACE(properties[i].substr(0, 40));
      test::expect_short_turns(loop, [&] {
        const auto answer = loop.block_on(client->client->call_tool("s__t" + std::to_string(i), raw("{}")));
        static_cast<void>(answer);  // a result, or why it is not valid
      });
    }
  }
}

// As large as max_schema_bytes and max_schema_pattern_states allow.
TEST_P(HostileToolsTest, LargestOutputSchemaIsCompiledInAShortTurn) {
  std::string required;
  for (int i = 0; required.size() < 200'000; ++i) required += ",\"m" + std::to_string(i) + '"';
  list_tools({tool_entry("t", kAnySchema,
                         R"(,"outputSchema":{"type":"object","properties":{"a":{"pattern":"(a|b){1,4000}"}},)"
                         R"("required":["a")" +
                             required + "]}")});
  ASSERT_EQ(tools(client).size(), 1u);
  backend->results["tools/call"] =
      raw(R"({"resultType":"complete","content":[],"structuredContent":{"a":"ab"}})");
  loop.turns().reset();
  const auto answer = loop.block_on(client->client->call_tool("s__t", raw("{}")));
  test::expect_short_turns(loop);
  ASSERT_FALSE(answer) << "the schema is not in use";
  EXPECT_NE(answer.error().message().find("m0"), std::string::npos) << answer.error().message();
}

}  // namespace
}  // namespace fairlead::gateway
