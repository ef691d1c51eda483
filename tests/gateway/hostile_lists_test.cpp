// Servers with lists that are costly to process, and clients that use them. No input may block the loop.
#include "gateway/harness.hpp"
#include "support/hostile_json.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

// A server that returns these list results.
class ListingBackend final : public mcp::Backend {
 public:
  std::map<std::string, json::Raw, std::less<>> results;  // by method
  std::map<std::string, std::vector<json::Raw>, std::less<>>
      pages;  // by method; the cursor is the page number

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
  void on_session_began(std::string_view, ContextSource) override {}
  void on_log_level_set(std::string_view, mcp::LoggingLevel) override {}
  void on_session_ended(std::string_view) override {}
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
    customize = [this](Instance& instance) { instance.server.backend(backend); };
  }
  // Sets the list of all servers, in pages that fit into a frame.
  void set_list(const std::string& method, const std::string& member,
                const std::vector<std::string>& entries) {
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
  // Has a long timeout: builds with sanitizers are slow.
  void wait_until_listed() {
    mcp::ClientCallOptions options;
    options.timeout = 1h;
    EXPECT_TRUE(loop.block_on(client->client->request("tools/list", json::Raw(), options)));
  }
  // Starts a gateway with one server that has this list, and waits until the list is fetched.
  void list(const std::string& method, const std::string& member, const std::vector<std::string>& entries,
            mcp::Revision revision = mcp::kNewestLegacyRevision) {
    set_list(method, member, entries);
    add("s", Sharing::shared, revision);
    loop.turn_meter().reset();
    client = connect_client(revision);
    wait_until_listed();
  }
  bool was_logged(std::string_view text) const {
    return std::ranges::any_of(logged,
                               [&](const std::string& line) { return line.find(text) != std::string::npos; });
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

TEST_F(HostileListTest, TemplateWithManyVariablesIsOmitted) {
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

TEST_F(HostileListTest, UriOverMaxUriBytesIsRejected) {
  backend->results["resources/list"] = raw(R"({"resources":[]})");
  list("resources/templates/list", "resourceTemplates", {template_entry("x://{a}/{b}/{c}")});
  loop.turn_meter().reset();
  const std::string answer = read("x://" + std::string(100'000, 'a'));
  EXPECT_EQ(answer, "-32602 uri is over the limit max_uri_bytes (8192)");
  test::expect_short_turns(loop);
}

TEST_F(HostileListTest, ManyTemplatesAndLongUriDoNotBlockLoop) {
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

// Returns a schema of this many levels, with a valid annotation in the innermost one.
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
INSTANTIATE_TEST_SUITE_P(Eras, HostileToolsTest,
                         ::testing::Values(mcp::kNewestLegacyRevision, mcp::kNewestRevision),
                         [](const auto& test) { return mcp::is_modern(test.param) ? "modern" : "legacy"; });

TEST_P(HostileToolsTest, ToolWithDeepSchemaIsOmitted) {
  std::string filling;
  for (int i = 0; i < 100'000; ++i) filling += R"(,"b":{"type":"string","description":"………………"})";
  list_tools({tool_entry("large", deep_schema(200, filling)), tool_entry("deep", deep_schema(100)),
              tool_entry("good", deep_schema(20))});
  EXPECT_EQ(tools(client), std::vector<std::string>{"s__good"});
  EXPECT_TRUE(was_logged("max_entry_bytes (524288)"));
  EXPECT_TRUE(was_logged("max_schema_depth (64)"));
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, ToolWithLargeSchemaIsOmitted) {
  std::string members;
  for (int i = 0; i < 30'000; ++i) members += R"(,"a":["b"])";
  list_tools({tool_entry("in", R"({"type":"object")" + members + "}"),
              tool_entry("out", kAnySchema, R"(,"outputSchema":{"type":"object")" + members + "}"),
              tool_entry("good", kAnySchema)});
  EXPECT_EQ(tools(client), std::vector<std::string>{"s__good"});
  EXPECT_TRUE(was_logged("max_schema_bytes (262144)"));
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, ListOverMaxListEntriesIsRejected) {
  std::vector<std::string> many;
  for (int i = 0; i < 110'000; ++i) many.push_back(tool_entry("t" + std::to_string(i), kAnySchema));
  list_tools(many);
  EXPECT_TRUE(tools(client).empty());
  EXPECT_TRUE(was_logged("max_list_entries (100000)"));
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, ListOverMaxListBytesIsRejected) {
  list_tools(std::vector<std::string>(
      9, tool_entry("t", kAnySchema, R"(,"_meta":{"a":")" + std::string(4'500'000, 'x') + "\"}")));
  EXPECT_TRUE(tools(client).empty());
  EXPECT_TRUE(was_logged("max_list_bytes (33554432)"));
  test::expect_short_turns(loop);
}

// As many tools as allowed, each with a schema that is as costly as allowed.
TEST_P(HostileToolsTest, LargestListDoesNotBlockLoop) {
  std::string members;
  for (int i = 0; i < 20; ++i) members += R"(,"a\n":1)";
  const std::string schema = R"({"type":"object","x":"x-mcp-h")" + members + "}";
  std::vector<std::string> many;
  for (int i = 0; i < 99'990; ++i) many.push_back(tool_entry("t" + std::to_string(i), schema));
  list_tools(many);
  EXPECT_EQ(tools(client).size(), 99'990u);
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, LargestToolsDoNotBlockLoop) {
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

TEST_P(HostileToolsTest, ManyInvalidToolsAreLoggedAsCount) {
  std::vector<std::string> many;
  for (int i = 0; i < 10'000; ++i) many.push_back(tool_entry("t" + std::to_string(i), "null"));
  list_tools(many);
  EXPECT_TRUE(tools(client).empty());
  EXPECT_LT(logged.size(), 200u);
  EXPECT_TRUE(was_logged("9900 more entries are omitted"));
  test::expect_short_turns(loop);
}

TEST_P(HostileToolsTest, ListOverMaxListPagesIsRejected) {
  backend->results["tools/list"] =
      raw(R"({"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"more"})");
  add("s", Sharing::shared, GetParam());
  client = connect_client(GetParam());
  EXPECT_TRUE(tools(client).empty());
  EXPECT_TRUE(was_logged("max_list_pages (1000)"));
  test::expect_short_turns(loop);
}

TEST_F(HostileListTest, ListOverMaxServerListBytesIsOmitted) {
  const std::string large = R"(,"_meta":{"a":")" + std::string(500'000, 'x') + "\"}";
  std::vector<std::string> tool_entries;
  std::vector<std::string> prompt_entries;
  for (int i = 0; i < 40; ++i) {
    tool_entries.push_back(tool_entry("t" + std::to_string(i), kAnySchema, large));
    prompt_entries.push_back(R"({"name":"p)" + std::to_string(i) + "\"" + large + "}");
  }
  set_list("prompts/list", "prompts", prompt_entries);
  list("tools/list", "tools", tool_entries);
  EXPECT_EQ(tools(client).size(), 40u);
  const Result<std::vector<json::Raw>> prompts = loop.block_on(client->client->prompts());
  ASSERT_TRUE(prompts);
  EXPECT_TRUE(prompts->empty());
  EXPECT_TRUE(was_logged("max_server_list_bytes (33554432)"));
  test::expect_short_turns(loop);
}

// ---- many servers ----------------------------------------------------------------------------------------

class HostileManyServersTest : public HostileListTest {
 protected:
  static constexpr int kServers = 10;
  // All servers together have nearly max_list_entries tools. Fewer in slower builds, where times are not
  // meaningful.
  static constexpr int kTools = test::kTurnFactor == 1 ? 9'990 : 990;

  static json::Raw tools_result(int count) {
    const std::string schema = R"({"type":"object","description":")" + std::string(500, 'd') + R"("})";
    std::string text = R"({"tools":[)";
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + tool_entry("t" + std::to_string(i), schema);
    return raw(text + "]}");
  }
  // Reads all pages of tools/list and returns the number of tools.
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

TEST_F(HostileManyServersTest, ChangeOfOneOfTenLargestListsDoesNotBlockLoop) {
  backend->results["tools/list"] = tools_result(kTools);
  for (int i = 0; i < kServers; ++i) add("s" + std::to_string(i), Sharing::shared);
  loop.turn_meter().reset();
  client = connect_client();
  wait_until_listed();
  EXPECT_EQ(count_tools(), static_cast<std::size_t>(kServers * kTools));
  test::expect_short_turns(loop);
  loop.turn_meter().reset();
  backend->results["tools/list"] = tools_result(kTools + 1);
  ASSERT_TRUE(instance("s3", 0).peer->post_notification("notifications/tools/list_changed", json::Raw()));
  EXPECT_TRUE(wait_until([&] { return client->count(kToolsChanged) == 1; }));
  EXPECT_EQ(count_tools(), static_cast<std::size_t>(kServers * kTools + 1));
  test::expect_short_turns(loop);
}

TEST_F(HostileManyServersTest, DuplicateUrisOfManyServersDoNotBlockLoop) {
  std::vector<std::string> resources;
  for (int i = 0; i < kTools; ++i)
    resources.push_back(R"({"uri":"x://)" + std::string(200, 'u') + std::to_string(i) + R"(","name":"n"})");
  set_list("resources/list", "resources", resources);
  for (int i = 0; i < kServers; ++i) add("s" + std::to_string(i), Sharing::shared);
  loop.turn_meter().reset();
  client = connect_client();
  wait_until_listed();
  const Result<std::vector<json::Raw>> listed = loop.block_on(client->client->resources());
  ASSERT_TRUE(listed) << listed.error().to_string();
  EXPECT_EQ(listed->size(), static_cast<std::size_t>(kTools));
  EXPECT_TRUE(wait_until([&] { return was_logged("is used by `s0`"); }));
  test::expect_short_turns(loop);
}

TEST_F(HostileManyServersTest, GatewayBehindGatewayListsAllTools) {
  constexpr std::size_t kInner = 2;
  constexpr int kInnerTools = 6'000;
  backend->results["tools/list"] = tools_result(kInnerTools);
  backend->results["tools/call"] = raw(R"({"content":[],"resultType":"complete"})");
  for (std::size_t i = 0; i < kInner; ++i) add("s" + std::to_string(i), Sharing::shared);
  const Result<std::shared_ptr<Gateway>> inner = Gateway::create(loop, config, gateway_log);
  ASSERT_TRUE(inner) << inner.error().to_string();
  EXPECT_TRUE(wait_until([&] {
    return std::ranges::all_of(servers, [](const auto& server) { return !server.second->empty(); });
  }));
  config.servers.clear();
  customize = [&](Instance& instance) { instance.server = (*inner)->front(); };
  add("inner", Sharing::shared);
  client = connect_client();
  wait_until_listed();
  EXPECT_EQ(tools(client).size(), kInner * kInnerTools);
  const std::string last = "inner__s1__t" + std::to_string(kInnerTools - 1);
  EXPECT_TRUE(loop.block_on(client->client->call_tool(last, raw("{}"))));
  loop.block_on((*inner)->shutdown(0ms));
}

// ---- calls -----------------------------------------------------------------------------------------------

// Returns `text` repeated up to `bytes`, by default nearly the size of a frame, without the last comma.
std::string filled(std::string_view text, std::size_t bytes = test::kLargeFrameBytes) {
  std::string all;
  while (all.size() < bytes) all += text;
  all.pop_back();
  return all;
}

TEST_P(HostileToolsTest, LargestCallDoesNotBlockLoop) {
  backend->results["tools/call"] = raw(R"({"content":[],"resultType":"complete"})");
  list_tools({tool_entry("t", kAnySchema)});
  // More members than fit into an index of the usual size.
  std::string others;
  for (int i = 0; i < 100; ++i) others += R"("m)" + std::to_string(i) + R"(":0,)";
  for (const std::string& value : test::hostile_values(test::kLargeFrameBytes)) {
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

TEST_P(HostileToolsTest, CallOverMaxMessageMembersIsRejected) {
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

TEST_P(HostileToolsTest, LargestResultDoesNotBlockLoop) {
  list_tools({tool_entry("t", kAnySchema)});
  std::vector<std::string> results = {
      R"({"resultType":"complete","content":[)" + filled("1,") + "]}",
      R"({"resultType":"complete","content":[],)" + filled(R"("a\n":1,)") + "}"};
  for (const std::string& value : test::hostile_values(test::kLargeFrameBytes))
    results.push_back(R"({"resultType":"complete","content":[],"structuredContent":{"a":)" + value + "}}");
  for (const std::string& result : results) {
    backend->results["tools/call"] = raw(result);
    SCOPED_TRACE(result.substr(0, 80));
    test::expect_short_turns(loop, [&] {
      const auto answer = loop.block_on(client->client->call_tool("s__t", raw("{}")));
      static_cast<void>(answer);  // a result, or a validation error
    });
  }
}

TEST_P(HostileToolsTest, OutputSchemasAndResultsDoNotBlockLoop) {
  std::string patterns;
  // As many patterns as max_schema_pattern_states allows.
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
        static_cast<void>(answer);  // a result, or a validation error
      });
    }
  }
}

// As large as max_schema_bytes and max_schema_pattern_states allow.
TEST_P(HostileToolsTest, LargestOutputSchemaIsCompiledInShortTurn) {
  std::string required;
  for (int i = 0; required.size() < 200'000; ++i) required += ",\"m" + std::to_string(i) + '"';
  list_tools({tool_entry("t", kAnySchema,
                         R"(,"outputSchema":{"type":"object","properties":{"a":{"pattern":"(a|b){1,4000}"}},)"
                         R"("required":["a")" +
                             required + "]}")});
  ASSERT_EQ(tools(client).size(), 1u);
  backend->results["tools/call"] =
      raw(R"({"resultType":"complete","content":[],"structuredContent":{"a":"ab"}})");
  loop.turn_meter().reset();
  const auto answer = loop.block_on(client->client->call_tool("s__t", raw("{}")));
  test::expect_short_turns(loop);
  ASSERT_FALSE(answer) << "the schema is not in use";
  EXPECT_NE(answer.error().message().find("m0"), std::string::npos) << answer.error().message();
}

}  // namespace
}  // namespace fairlead::gateway
