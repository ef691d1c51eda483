// The tools of an endpoint of mode `discover`, with servers in memory behind the gateway.
#include <set>

#include "gateway/harness.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

const std::vector<std::string> kMetaToolNames = {"discover_tools", "get_tool_schema", "execute_tool",
                                                 "list_tool_domains", "browse_tool_domain"};

class MetaToolsTest : public GatewayTest {
 protected:
  // The server of the tests: its tools, as elements of a list, and the result of each call.
  void add_scripted(const std::string& name, const std::string& tools,
                    std::function<json::Raw(const mcp::BackendRequest&)> call_result = &echo) {
    scripts_[name] = {R"({"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[)" + tools + "]}",
                      std::move(call_result)};
    add(name, Sharing::shared, mcp::kNewestRevision);
    auto open_plain = config.connectors[name];
    config.connectors[name] = [this, name, open_plain](Loop& on, StreamConnectOptions options) {
      starting_ = name;
      return open_plain(on, options);
    };
    customize = [this](Instance& instance) {
      const auto script = scripts_.find(starting_);
      if (script == scripts_.end()) return;
      auto backend = std::make_shared<ScriptedServer>(loop);
      backend->results["tools/list"] = script->second.tools;
      backend->call_result = script->second.call_result;
      instance.server.backend(backend);
    };
  }
  // Returns the arguments and the name of the call as the server received them.
  static json::Raw echo(const mcp::BackendRequest& request) {
    json::Writer out;
    out.begin_object().key("resultType").string("complete").key("content").begin_array();
    out.raw(mcp::Content::text(request.facts->arguments.text()).raw());
    out.raw(mcp::Content::text(request.facts->name.text()).raw()).end_array();
    out.key("_meta").begin_object().key("x").raw("1.50").end_object().end_object();
    return out.finish();
  }

  // Creates the gateway with the endpoint `discover`. Clients that are connected later use this endpoint.
  void use_discover(registry::Endpoint endpoint = registry::Endpoint()) {
    if (!direct_) direct_ = connect_client(mcp::kNewestRevision);
    endpoint.name = registry::kDiscoverEndpoint;
    endpoint.mode = registry::EndpointMode::discover;
    ASSERT_TRUE(gateway->endpoints().put(endpoint));
    const auto found = gateway->endpoints().find("/e/discover", Principal());
    ASSERT_TRUE(found) << found.error().message();
    front = *found;
  }
  Result<mcp::ToolResult> call_meta(const std::shared_ptr<Client>& client, const std::string& tool,
                                    const std::string& arguments) {
    return loop.block_on(client->client->call_tool(tool, raw(arguments)));
  }
  // Returns the structured content; fails the test if the text is different.
  json::Raw structured(const std::shared_ptr<Client>& client, const std::string& tool,
                       const std::string& arguments) {
    const Result<mcp::ToolResult> result = call_meta(client, tool, arguments);
    if (!result || result->is_error) {
      ADD_FAILURE() << (result ? result->content.at(0).text() : result.error().message());
      return raw("{}");
    }
    EXPECT_EQ(result->content.at(0).text(), result->structured.text());
    return result->structured;
  }
  // Returns the text of the tool error.
  std::string error(const std::shared_ptr<Client>& client, const std::string& tool,
                    const std::string& arguments) {
    const Result<mcp::ToolResult> result = call_meta(client, tool, arguments);
    if (!result) return "<" + result.error().message() + ">";
    EXPECT_TRUE(result->is_error);
    return result->content.at(0).text();
  }
  static std::vector<std::string> ids(const json::Raw& content) {
    std::vector<std::string> found;
    json::View(content)["items"].each_element([&found](json::View item) {
      found.push_back(item["tool_id"].as_string().value_or(""));
      return true;
    });
    return found;
  }
  std::vector<std::string> discover(const std::shared_ptr<Client>& client, const std::string& query) {
    return ids(structured(client, "discover_tools", R"({"query":")" + query + R"(","limit":50})"));
  }
  static bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::count(names, name) == 1;
  }
  // Repeats the condition, which makes calls, until it is true.
  template <class Condition>
  bool soon(Condition condition) {
    const Clock::time_point deadline = Clock::now() + 20s;
    while (!condition()) {
      if (Clock::now() > deadline) return false;
    }
    return true;
  }
  // Returns the result object of tools/call, as text.
  std::string result_text(const std::shared_ptr<Client>& client, const std::string& tool,
                          const std::string& arguments) {
    const std::string params = R"({"name":")" + tool + R"(","arguments":)" + arguments + "}";
    const Result<json::Raw> result = loop.block_on(client->client->request("tools/call", raw(params)));
    return std::string(result ? result->text() : "<" + result.error().message() + ">");
  }

  struct Script {
    std::string tools;
    std::function<json::Raw(const mcp::BackendRequest&)> call_result;
  };
  std::map<std::string, Script> scripts_;
  std::string starting_;
  std::shared_ptr<Client> direct_;
};

const std::string kFileTools =
    R"({"name":"read_file","title":"Read","description":"Returns the contents of a file.","inputSchema":)"
    R"({"type":"object","properties":{"path":{"type":"string","description":"Where the file is"}},"required":["path"]},)"
    R"("annotations":{"readOnlyHint":true}},)"
    R"({"name":"delete_file","description":"Removes a file.","inputSchema":{"type":"object"}})";
const std::string kMailTools =
    R"({"name":"sendMail","description":"Sends a message to recipients.","inputSchema":{"type":"object"}})";

TEST_F(MetaToolsTest, OnlyMetaToolsAndPinnedToolsAreListedInEveryRevision) {
  add_scripted("files", kFileTools);
  registry::Endpoint endpoint;
  endpoint.pinned = {"files__read_*"};
  use_discover(endpoint);
  std::vector<std::string> expected = kMetaToolNames;
  expected.emplace_back("files__read_file");
  for (const mcp::Revision revision :
       {mcp::Revision::r2024_11_05, mcp::Revision::r2025_03_26, mcp::Revision::r2025_06_18,
        mcp::Revision::r2025_11_25, mcp::kNewestRevision}) {
    EXPECT_EQ(tools(connect_client(revision)), expected) << static_cast<int>(revision);
  }
}

TEST_F(MetaToolsTest, SearchFindsToolsOfAllServersAndTheirSchema) {
  add_scripted("files", kFileTools);
  add_scripted("mail", kMailTools);
  use_discover();
  for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
    const auto client = connect_client(revision);
    EXPECT_EQ(discover(client, "show what a document file contains").at(0), "files__read_file");
    EXPECT_EQ(discover(client, "write an email").at(0), "mail__sendMail");
    const json::Raw schema = structured(client, "get_tool_schema", R"({"tool_id":"files__read_file"})");
    const json::View view(schema);
    EXPECT_EQ(view["server"].as_string(), "files");
    EXPECT_EQ(view["tool"].as_string(), "read_file");
    EXPECT_EQ(view["inputSchema"]["properties"]["path"]["description"].as_string(), "Where the file is");
    EXPECT_EQ(view["annotations"]["readOnlyHint"].as_bool(), true);
  }
}

TEST_F(MetaToolsTest, ResultAndArgumentsAreByteIdenticalToTheDirectCall) {
  add_scripted("files", kFileTools);
  for (const mcp::Revision revision : {mcp::kNewestRevision, mcp::kNewestLegacyRevision}) {
    direct_ = nullptr;
    if (gateway) front = *gateway->endpoints().find("", Principal());
    const auto direct = connect_client(revision);
    use_discover();
    const auto client = connect_client(revision);
    for (const std::string arguments :
         {R"({})", R"({"b": 1.50, "a":[1e2, "\u00e9é\/"],  "b2":{"tool_id":"x"}})"}) {
      const std::string wanted = result_text(direct, "files__read_file", arguments);
      EXPECT_NE(wanted.find("1.50"), std::string::npos) << wanted;
      EXPECT_EQ(result_text(client, "execute_tool",
                            std::string(R"({"tool_id":"files__read_file","params":)") + arguments + "}"),
                wanted);
      EXPECT_EQ(
          result_text(client, "execute_tool",
                      std::string(R"({"params":)") + arguments + R"(,"tool_\u0069d":"files__read_file"})"),
          wanted);
    }
    EXPECT_EQ(result_text(client, "execute_tool", R"({"tool_id":"files__read_file"})"),
              result_text(direct, "files__read_file", "{}"));
    EXPECT_EQ(result_text(client, "execute_tool",
                          R"({"tool_id":"files__read_file","params_json":"{\"a\": 1.0,\n \"b\":[]}"})"),
              result_text(direct, "files__read_file", "{\"a\": 1.0,\n \"b\":[]}"));
    EXPECT_EQ(result_text(client, "execute_tool", R"({"tool_id":"files__read_file","params":"{\"a\":2}"})"),
              result_text(direct, "files__read_file", R"({"a":2})"));
  }
}

TEST_F(MetaToolsTest, InvalidArgumentsOfExecuteToolAreToolErrors) {
  add_scripted("files", kFileTools);
  use_discover();
  const auto client = connect_client(mcp::kNewestRevision);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({})", "`tool_id` is missing"},
      {R"({"tool_id":""})", "`tool_id` is missing"},
      {R"({"tool_id":7})", "`tool_id` is not a string"},
      {R"({"tool_id":"files__read_file","params":[]})", "`params` is not an object"},
      {R"({"tool_id":"files__read_file","params":"[]"})", "`params` is not the JSON text of an object"},
      {R"({"tool_id":"files__read_file","params_json":"{"})",
       "`params_json` is not the JSON text of an object"},
      {R"({"tool_id":"files__read_file","params_json":{}})", "`params_json` is not a string"},
      {R"({"tool_id":"files__read_file","params":{},"params_json":"{}"})", "not both"},
      {R"({"tool_id":"files__read_file","path":"x"})", "put the parameters of the tool into `params`"},
      {R"({"tool_id":"files__read_file","param":{}})", "did you mean `params`?"},
      {R"({"tool_id":"files__read_file","tool_id":"files__delete_file"})", "`tool_id` is repeated"},
      {R"({"tool_id":"files__read_file","tool\u005fid":"files__delete_file"})", "`tool_id` is repeated"},
      {R"({"tool_id":"files__read_file","params":{},"p\u0061rams":{}})", "`params` is repeated"},
  };
  for (const auto& [arguments, message] : cases)
    EXPECT_NE(error(client, "execute_tool", arguments).find(message), std::string::npos)
        << arguments << ": " << error(client, "execute_tool", arguments);
}

TEST_F(MetaToolsTest, InvalidArgumentsOfTheOtherToolsAreToolErrors) {
  add_scripted("files", kFileTools);
  use_discover();
  const auto client = connect_client(mcp::kNewestRevision);
  for (const auto& [tool, arguments] : std::vector<std::pair<std::string, std::string>>{
           {"discover_tools", R"({})"},
           {"discover_tools", R"({"query":5})"},
           {"discover_tools", R"({"query":"a","limit":0})"},
           {"discover_tools", R"({"query":"a","limit":51})"},
           {"discover_tools", R"({"query":"a","limit":"5"})"},
           {"discover_tools", R"({"query":"a","domain":[]})"},
           {"discover_tools", R"({"query":"a","query":"b"})"},
           {"discover_tools", R"({"query":"a","domain":"nowhere"})"},
           {"get_tool_schema", R"({"tool_id":null})"},
           {"list_tool_domains", R"({"a":1})"},
           {"browse_tool_domain", R"({"domain_id":"nowhere"})"},
           {"browse_tool_domain", R"({"domain_id":"other","cursor":"?"})"}})
    EXPECT_NE(error(client, tool, arguments), "") << tool << arguments;
}

TEST_F(MetaToolsTest, UnknownToolIsAToolErrorThatSuggestsOthers) {
  add_scripted("files", kFileTools);
  use_discover();
  const auto client = connect_client(mcp::kNewestRevision);
  for (const char* const tool : {"execute_tool", "get_tool_schema"}) {
    const std::string text = error(client, tool, R"({"tool_id":"files__readFile"})");
    EXPECT_TRUE(text.starts_with("Unknown tool: files__readFile.")) << text;
    EXPECT_NE(text.find("files__read_file"), std::string::npos) << text;
  }
  // A meta-tool is not a tool of a server: no recursion.
  EXPECT_NE(
      error(client, "execute_tool", R"({"tool_id":"execute_tool","params":{"tool_id":"files__read_file"}})")
          .find("Unknown tool: execute_tool"),
      std::string::npos);
}

TEST_F(MetaToolsTest, ToolsOfAHiddenServerAnswerLikeUnknownOnes) {
  add_scripted("files", kFileTools);
  add_scripted("secret", kFileTools);
  use_discover();
  ServerPolicy policy;
  policy.visibility = registry::Visibility::user;
  policy.owner = "ann";
  policy.domain = "vault";
  ASSERT_TRUE(gateway->put_server(config.servers[1], policy, nullptr));
  const auto client = connect_client(mcp::kNewestRevision, "bob");
  EXPECT_EQ(discover(client, "read a file vault secret"),
            (std::vector<std::string>{"files__read_file", "files__delete_file"}));
  for (const char* const tool : {"execute_tool", "get_tool_schema"}) {
    std::string hidden = error(client, tool, R"({"tool_id":"secret__read_file"})");
    std::string unknown = error(client, tool, R"({"tool_id":"nobody__read_file"})");
    hidden.replace(hidden.find("secret"), 6, "nobody");
    EXPECT_EQ(hidden, unknown);
  }
  EXPECT_EQ(structured(client, "list_tool_domains", "{}").text().find("vault"), std::string_view::npos);
  std::string hidden = error(client, "browse_tool_domain", R"({"domain_id":"vault"})");
  EXPECT_EQ(hidden.replace(hidden.find("vault"), 5, "voult"),
            error(client, "browse_tool_domain", R"({"domain_id":"voult"})"));

  issuer = "fairlead";
  const auto owner = connect_client(mcp::kNewestRevision, "ann");
  EXPECT_TRUE(contains(discover(owner, "read a file"), "secret__read_file"));
  EXPECT_EQ(ids(structured(owner, "discover_tools", R"({"query":"file","domain":"vault"})")).size(), 2u);
}

TEST_F(MetaToolsTest, HiddenToolCanBeExecutedButNotFoundAndDeniedToolDoesNotExist) {
  add_scripted("files", kFileTools);
  add_scripted("mail", kMailTools);
  use_discover();
  const auto client = connect_client(mcp::kNewestRevision);
  ServerPolicy policy;
  policy.tools.hide = {"read_file"};
  policy.tools.deny = {"delete_*"};
  ASSERT_TRUE(gateway->put_server(config.servers[0], policy, nullptr));
  EXPECT_TRUE(soon([&] { return discover(client, "read or delete a file").empty(); }));
  EXPECT_EQ(structured(client, "list_tool_domains", "{}").text().find("files"), std::string_view::npos);
  EXPECT_NE(
      result_text(client, "execute_tool", R"({"tool_id":"files__read_file","params":{"a":1}})").find("1.50"),
      std::string::npos);
  EXPECT_TRUE(
      error(client, "execute_tool", R"({"tool_id":"files__delete_file"})").starts_with("Unknown tool"));
}

TEST_F(MetaToolsTest, IndexFollowsChangesOfLists) {
  add("s", Sharing::shared);
  use_discover();
  const auto client = connect_client(mcp::kNewestRevision);
  EXPECT_FALSE(contains(discover(client, "grown"), "s__grown"));
  EXPECT_EQ(result_text(client, "execute_tool", R"({"tool_id":"s__grow"})").find("isError"),
            std::string::npos);
  EXPECT_TRUE(soon([&] { return contains(discover(client, "grown"), "s__grown"); }));
  ASSERT_TRUE(gateway->remove_server("s"));
  EXPECT_TRUE(discover(client, "grown").empty());
}

TEST_F(MetaToolsTest, DomainIsListedAndBrowsedPageByPage) {
  std::string many;
  std::set<std::string> expected;
  for (int i = 0; i < 120; ++i) {
    many +=
        (i == 0 ? "" : ",") + (R"({"name":"t)" + std::to_string(i) + R"(","inputSchema":{"type":"object"}})");
    expected.insert("many__t" + std::to_string(i));
  }
  add_scripted("files", kFileTools);
  add_scripted("many", many);
  use_discover();
  const auto client = connect_client(mcp::kNewestRevision);
  ServerPolicy policy;
  policy.domain = "numbers";
  policy.title = "Many tools";
  ASSERT_TRUE(gateway->put_server(config.servers[1], policy, nullptr));

  const json::Raw domains = structured(client, "list_tool_domains", "{}");
  const json::View numbers = json::View(domains)["items"][0];
  EXPECT_EQ(numbers["domain_id"].as_string(), "numbers");
  EXPECT_EQ(numbers["tool_count"].as_int(), 120);
  EXPECT_EQ(numbers["servers"][0]["title"].as_string(), "Many tools");
  EXPECT_EQ(json::View(domains)["items"][1]["domain_id"].as_string(), "other");

  std::set<std::string> found;
  std::string cursor;
  for (int page = 0; page < 3; ++page) {
    const std::string arguments =
        R"({"domain_id":"numbers")" + (page == 0 ? "" : R"(,"cursor":")" + cursor + "\"") + "}";
    const json::Raw content = structured(client, "browse_tool_domain", arguments);
    for (const std::string& id : ids(content)) EXPECT_TRUE(found.insert(id).second) << id;
    cursor = json::View(content)["nextCursor"].as_string().value_or("");
    EXPECT_EQ(cursor.empty(), page == 2);
  }
  EXPECT_EQ(found, expected);
}

TEST_F(MetaToolsTest, InputRequestOfAnExecutedToolReachesTheClientInBothEras) {
  for (const mcp::Revision server : {mcp::kNewestLegacyRevision, mcp::kNewestRevision})
    add(mcp::is_modern(server) ? "modern" : "legacy", Sharing::per_session, server);
  use_discover();
  for (const mcp::Revision revision : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
    const auto client = connect_client(revision, "", "model-x");
    const Result<mcp::ToolResult> result = call_meta(client, "execute_tool", R"({"tool_id":"modern__ask"})");
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_EQ(result->content.at(0).text(), "model-x");
  }
  const auto client = connect_client(mcp::kNewestLegacyRevision, "", "model-y");
  EXPECT_EQ(call_meta(client, "execute_tool", R"({"tool_id":"legacy__ask"})")->content.at(0).text(),
            "model-y");
}

TEST_F(MetaToolsTest, ProgressOfAnExecutedToolReachesTheClient) {
  customize = [](Instance& instance) {
    mcp::tool(instance.server, "steps", "", [](mcp::Context context, const NoArguments&) {
      context.report_progress(1, 2, "half");
      return "done";
    });
  };
  add("s", Sharing::shared);
  use_discover();
  const auto client = connect_client(mcp::kNewestLegacyRevision);
  std::vector<std::string> messages;
  mcp::ClientCallOptions options;
  options.on_progress = [&messages](double, std::optional<double>, const std::string& message) {
    messages.push_back(message);
  };
  Task<Result<mcp::ToolResult>> calling =
      client->client->call_tool("execute_tool", raw(R"({"tool_id":"s__steps"})"), std::move(options));
  const Result<mcp::ToolResult> result = loop.block_on(std::move(calling));
  ASSERT_TRUE(result);
  EXPECT_EQ(messages, std::vector<std::string>{"half"});
}

TEST_F(MetaToolsTest, CancelledExecutionIsCancelledAtTheServer) {
  add("s", Sharing::shared);
  use_discover();
  const auto client = connect_client(mcp::kNewestLegacyRevision);
  std::stop_source stop;
  mcp::ClientCallOptions options;
  options.stop = stop.get_token();
  bool failed = false;
  const auto call = [](std::shared_ptr<mcp::Client> caller, mcp::ClientCallOptions with,
                       bool* ended) -> Task<void> {
    Task<Result<mcp::ToolResult>> calling =
        caller->call_tool("execute_tool", raw(R"({"tool_id":"s__wait"})"), std::move(with));
    const Result<mcp::ToolResult> result = co_await calling;
    *ended = !result;
  };
  loop.spawn(call(client->client, std::move(options), &failed));
  EXPECT_TRUE(wait_until([&] { return !servers["s"]->empty() && instance("s", 0).waiting; }));
  stop.request_stop();
  EXPECT_TRUE(wait_until([&] { return failed && instance("s", 0).cancelled; }));
}

TEST_F(MetaToolsTest, HostileQueriesAreAnswered) {
  add_scripted("files", kFileTools);
  use_discover();
  const auto client = connect_client(mcp::kNewestRevision);
  discover(client, "file");
  loop.turn_meter().reset();
  for (const std::string& query : {std::string(R"(\" OR NEAR(a, b) --)"), std::string(R"(\u0000\ud800 file)"),
                                   std::string("stems MATCH 'x'; DROP TABLE postings"),
                                   std::string(1u << 20, 'x'), std::string("文件 ファイル")})
    structured(client, "discover_tools", R"({"query":")" + query + R"("})");
  std::string words;
  while (words.size() < 1u << 20) words += "file w" + std::to_string(words.size()) + " ";
  EXPECT_EQ(discover(client, words).size(), 2u);
  test::expect_short_turns(loop);
}

TEST_F(MetaToolsTest, ThousandsOfToolsAreIndexedWithoutBlockingTheLoop) {
  std::string many;
  for (int i = 0; i < 5'000; ++i)
    many += (i == 0 ? "" : ",") +
            (R"({"name":"tool_)" + std::to_string(i) + R"(","description":"Does thing number )" +
             std::to_string(i) + R"(.","inputSchema":{"type":"object"}})");
  add_scripted("many", many);
  use_discover();
  const auto client = connect_client(mcp::kNewestRevision);
  ASSERT_TRUE(soon([&] { return tools(direct_).size() == 5'000; }));
  loop.turn_meter().reset();
  EXPECT_EQ(discover(client, "thing 4321").at(0), "many__tool_4321");
  test::expect_short_turns(loop);
}

}  // namespace
}  // namespace fairlead::gateway
