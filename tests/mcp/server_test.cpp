// R7.1, R7.2, R7.4: the messages of a server on the wire, in both eras.
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

// ---- negotiation ----------------------------------------------------------------------------------------

TEST_F(ServerTest, LegacyRevisionIsNegotiatedAsRequested) {
  start();
  for (const std::string revision : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    EXPECT_NE(initialize(revision).find(R"("protocolVersion":")" + revision + "\""), std::string::npos)
        << revision;
  }
}

TEST_F(ServerTest, UnknownAndModernVersionsNegotiateNewestLegacyRevision) {
  start();
  for (const std::string revision : {"2026-07-28", "2030-01-01", "nonsense"}) {
    EXPECT_NE(initialize(revision).find(R"("protocolVersion":"2025-11-25")"), std::string::npos) << revision;
  }
  EXPECT_EQ(legacy("initialize", R"({"protocolVersion":7,"capabilities":{}})"),
            error(-32602, R"("message":"protocolVersion is not a string")"));
}

TEST_F(ServerTest, InitializeReturnsCapabilitiesAndServerInfo) {
  server.instructions("Be kind.");
  start();
  EXPECT_EQ(
      initialize("2025-06-18"),
      result(
          R"({"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{},"completions":{}},)"
          R"("serverInfo":{"name":"test","version":"1"},"instructions":"Be kind."})"));
}

TEST_F(ServerTest, PingIsAnsweredBeforeAndAfterInitialize) {
  start();
  EXPECT_EQ(legacy("ping"), result("{}"));
  initialize("2025-11-25");
  EXPECT_EQ(legacy("ping"), result("{}"));
}

TEST_F(ServerTest, LegacyRequestsBeforeInitializeAreRejected) {
  start();
  EXPECT_EQ(legacy("tools/list"),
            error(-32600, R"("message":"Invalid Request: initialize must be the first request")"));
}

TEST_F(ServerTest, DiscoverReturnsVersionsAndCapabilities) {
  start();
  EXPECT_EQ(
      modern("server/discover"),
      result(
          R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},)"
          R"("logging":{},"completions":{}},"ttlMs":0,"cacheScope":"private",)" +
          kServerMeta + "}"));
}

TEST_F(ServerTest, BothErasAreServedOnOneConnection) {
  start();
  initialize("2025-11-25");
  EXPECT_NE(modern("tools/list").find(R"("resultType":"complete")"), std::string::npos);
  EXPECT_EQ(legacy("tools/list").find("resultType"), std::string::npos);
}

TEST_F(ServerTest, InvalidEnvelopeIsRejected) {
  start();
  const std::string version = R"("io.modelcontextprotocol/protocolVersion":)";
  EXPECT_EQ(
      legacy("tools/list", "{\"_meta\":{" + version + "\"2026-07-28\"}}"),
      error(-32602,
            R"("message":"_meta: io.modelcontextprotocol/clientCapabilities is missing or not an object")"));
  EXPECT_EQ(
      legacy("tools/list", "{\"_meta\":{" + version + "1}}"),
      error(-32602,
            R"("message":"_meta: io.modelcontextprotocol/protocolVersion is missing or not a string")"));
  EXPECT_EQ(
      legacy("tools/list",
             "{\"_meta\":{" + version + R"("2027-01-01","io.modelcontextprotocol/clientCapabilities":{}}})"),
      error(
          -32022,
          R"("message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2027-01-01"})"));
}

TEST_F(ServerTest, MethodsOfOtherRevisionAreNotFound) {
  start();
  for (const std::string gone : {"initialize", "ping", "logging/setLevel", "resources/subscribe"}) {
    EXPECT_EQ(modern(gone), error(-32601, R"("message":"Method not found: )" + gone + "\"")) << gone;
  }
  initialize("2025-11-25");
  for (const std::string later : {"server/discover", "subscriptions/listen"}) {
    EXPECT_EQ(legacy(later), error(-32601, R"("message":"Method not found: )" + later + "\"")) << later;
  }
  EXPECT_EQ(legacy("resources/list"),
            error(-32601, R"("message":"Method not found: resources/list")"));  // the server has no resources
}

// ---- tools ----------------------------------------------------------------------------------------------

TEST_F(ServerTest, TypedToolListsItsSchemas) {  // R7.4
  start();
  initialize("2025-11-25");
  const std::string list = legacy("tools/list");
  EXPECT_NE(
      list.find(
          R"({"name":"add","description":"Adds","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},)"
          R"("required":["a","b"]},"outputSchema":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}})"),
      std::string::npos)
      << list;
  // A result that is not an object is wrapped into an object for revisions that allow only objects.
  EXPECT_NE(
      list.find(
          R"("outputSchema":{"type":"object","properties":{"result":{"type":"number"}},"required":["result"]})"),
      std::string::npos)
      << list;
  EXPECT_NE(modern("tools/list").find(R"("outputSchema":{"type":"number"})"), std::string::npos);
}

TEST_F(ServerTest, OldRevisionReceivesNoOutputSchemaOrStructuredContent) {
  start();
  initialize("2024-11-05");
  EXPECT_EQ(legacy("tools/list").find("outputSchema"), std::string::npos);
  EXPECT_EQ(legacy("tools/call", R"({"name":"add","arguments":{"a":1,"b":2}})"),
            result(R"({"content":[{"type":"text","text":"{\"sum\":3}"}]})"));
}

TEST_F(ServerTest, TypedToolReturnsContentAndStructuredContent) {
  start();
  initialize("2025-06-18");
  EXPECT_EQ(legacy("tools/call", R"({"name":"echo","arguments":{"message":"héllo"}})"),
            result(R"({"content":[{"type":"text","text":"héllo"}]})"));
  EXPECT_EQ(legacy("tools/call", R"({"name":"add","arguments":{"a":1,"b":2}})"),
            result(R"({"content":[{"type":"text","text":"{\"sum\":3}"}],"structuredContent":{"sum":3}})"));
  EXPECT_EQ(legacy("tools/call", R"({"name":"half","arguments":{"a":1,"b":2}})"),
            result(R"({"content":[{"type":"text","text":"0.5"}],"structuredContent":{"result":0.5}})"));
  EXPECT_EQ(
      modern("tools/call", R"("name":"half","arguments":{"a":1,"b":2})"),
      result(R"({"resultType":"complete","content":[{"type":"text","text":"0.5"}],"structuredContent":0.5,)" +
             kServerMeta + "}"));
}

TEST_F(ServerTest, ArgumentsAreValidatedBeforeTheToolRuns) {
  bool ran = false;
  tool(server, "watch", "", [&](const EchoArgs&) {
    ran = true;
    return std::string();
  });
  start();
  initialize("2025-06-18");
  EXPECT_NE(legacy("tools/call", R"({"name":"watch","arguments":{"message":5}})").find(R"("code":-32602)"),
            std::string::npos);
  initialize("2025-11-25");
  const std::string refused = legacy("tools/call", R"({"name":"watch","arguments":{"message":5}})");
  EXPECT_NE(refused.find(R"("isError":true)"), std::string::npos) << refused;
  EXPECT_NE(refused.find("/message"), std::string::npos) << refused;
  for (const char* bad :
       {R"({"name":"watch"})", R"({"name":"watch","arguments":{"message":"x","times":1.5}})",
        R"({"name":"watch","arguments":{"message":"x","times":3000000000}})"}) {
    EXPECT_NE(legacy("tools/call", bad).find(R"("isError":true)"), std::string::npos) << bad;
  }
  EXPECT_FALSE(ran);
}

TEST_F(ServerTest, NullArgumentsAreTreatedAsAbsent) {
  start();
  initialize("2025-11-25");
  const std::string absent = legacy("tools/call", R"({"name":"echo"})");
  EXPECT_EQ(legacy("tools/call", R"({"name":"echo","arguments":null})"), absent);
  EXPECT_EQ(absent.find("is not an object"), std::string::npos) << absent;
}

TEST_F(ServerTest, UnknownToolsAndInvalidCallsAreRejected) {
  start();
  initialize("2025-11-25");
  EXPECT_EQ(legacy("tools/call", R"({"name":"nope"})"), error(-32602, R"("message":"Unknown tool: nope")"));
  EXPECT_EQ(legacy("tools/call", R"({"name":7})"), error(-32602, R"("message":"name is not a string")"));
  EXPECT_EQ(legacy("tools/call", R"({})"), error(-32602, R"("message":"name is not a string")"));
  EXPECT_EQ(legacy("tools/call", R"({"name":"echo","arguments":[]})"),
            error(-32602, R"("message":"arguments is not an object")"));
  EXPECT_EQ(
      round_trip(R"({"jsonrpc":"2.0","id":null,"method":"tools/list"})"),
      R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: a null id is not allowed"}})");
}

TEST_F(ServerTest, ExceptionOfToolIsToolErrorWithoutItsMessage) {
  tool(server, "throws", "", [](const EchoArgs&) -> std::string { throw std::runtime_error("/etc/secret"); });
  tool(server, "says", "", [](const EchoArgs&) -> std::string { throw ToolError("no such city"); });
  tool(server, "returns", "",
       [](const EchoArgs&) -> Result<std::string> { return Error(ErrorKind::io, "the disk is full"); });
  start();
  initialize("2025-11-25");
  const auto failed = [&](const std::string& name) {
    return legacy("tools/call", R"({"name":")" + name + R"(","arguments":{"message":""}})");
  };
  EXPECT_EQ(failed("throws"),
            result(R"({"content":[{"type":"text","text":"The tool failed."}],"isError":true})"));
  EXPECT_EQ(failed("says"), result(R"({"content":[{"type":"text","text":"no such city"}],"isError":true})"));
  EXPECT_EQ(failed("returns"),
            result(R"({"content":[{"type":"text","text":"the disk is full"}],"isError":true})"));
}

TEST_F(ServerTest, InvalidRegistrationsFail) {
  ToolSpec spec;
  spec.name = "echo";
  EXPECT_FALSE(server.add_tool(spec, Server::PlainTool()));
  spec.name = "with space";
  EXPECT_FALSE(server.add_tool(spec, Server::PlainTool()));
  spec.name = "bad_schema";
  spec.input_schema = test::raw(R"({"type":"no such type"})");
  const Result<void> refused = server.add_tool(spec, Server::PlainTool());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("input schema of tool `bad_schema`"), std::string::npos);
}

// ---- lists ----------------------------------------------------------------------------------------------

TEST_F(ServerTest, ListsArePaginatedAndInvalidCursorsRejected) {
  server.page_size(2);
  start();
  initialize("2025-11-25");
  const std::string first = legacy("tools/list");
  EXPECT_NE(first.find(R"("name":"add")"), std::string::npos);
  EXPECT_EQ(first.find(R"("name":"half")"), std::string::npos);
  const std::size_t at = first.find(R"("nextCursor":")") + 14;
  const std::string cursor = first.substr(at, first.find('"', at) - at);
  const std::string second = legacy("tools/list", R"({"cursor":")" + cursor + R"("})");
  EXPECT_NE(second.find(R"("name":"half")"), std::string::npos) << second;
  EXPECT_EQ(second.find("nextCursor"), std::string::npos);
  for (const std::string bad : {R"("x")", R"("")", "7", R"("OTk5LzM")"}) {
    EXPECT_EQ(legacy("tools/list", R"({"cursor":)" + bad + "}"),
              error(-32602, R"("message":"the cursor is not valid")"))
        << bad;
  }
}

TEST_F(ServerTest, ClientIsNotifiedOfListChanges) {
  start();
  initialize("2025-11-25");
  tool(server, "new", "", [](const EchoArgs& in) { return in.message; });
  EXPECT_EQ(receive(), R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  EXPECT_NE(legacy("tools/list").find(R"("name":"new")"), std::string::npos);
  EXPECT_TRUE(server.remove_tool("new"));
  EXPECT_EQ(receive(), R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  EXPECT_FALSE(server.remove_tool("new"));
}

// ---- resources, prompts, completion ---------------------------------------------------------------------

TEST_F(FullServerTest, ReadsResourcesAndTemplates) {
  start();
  initialize("2025-11-25");
  EXPECT_EQ(legacy("resources/list"), result(R"({"resources":[{"uri":"test://fixed","name":"fixed"}]})"));
  EXPECT_EQ(legacy("resources/templates/list"),
            result(R"({"resourceTemplates":[{"uriTemplate":"test://{city}/now","name":"now"}]})"));
  EXPECT_EQ(legacy("resources/read", R"({"uri":"test://fixed"})"),
            result(R"({"contents":[{"uri":"test://fixed","mimeType":"text/plain","text":"city="}]})"));
  EXPECT_EQ(
      legacy("resources/read", R"({"uri":"test://z%C3%BCrich/now"})"),
      result(
          R"({"contents":[{"uri":"test://z%C3%BCrich/now","mimeType":"text/plain","text":"city=zürich"}]})"));
  EXPECT_EQ(
      modern("resources/read", R"("uri":"test://fixed")"),
      result(
          R"({"resultType":"complete","contents":[{"uri":"test://fixed","mimeType":"text/plain","text":"city="}],"ttlMs":0,"cacheScope":"private",)" +
          kServerMeta + "}"));
}

TEST_F(FullServerTest, MissingResourceHasTheCodeOfItsEra) {
  start();
  initialize("2025-11-25");
  EXPECT_EQ(legacy("resources/read", R"({"uri":"test://no"})"),
            error(-32002, R"("message":"Resource not found: test://no","data":{"uri":"test://no"})"));
  EXPECT_EQ(modern("resources/read", R"("uri":"test://no")"),
            error(-32602, R"("message":"Resource not found: test://no","data":{"uri":"test://no"})"));
}

TEST_F(FullServerTest, ClientIsNotifiedOfUpdatesUntilItUnsubscribes) {
  start();
  initialize("2025-11-25");
  EXPECT_EQ(legacy("resources/subscribe", R"({"uri":"test://fixed"})"), result("{}"));
  server.notify_resource_updated("test://other");
  server.notify_resource_updated("test://fixed");
  EXPECT_EQ(
      receive(),
      R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://fixed"}})");
  EXPECT_EQ(legacy("resources/unsubscribe", R"({"uri":"test://fixed"})"), result("{}"));
  server.notify_resource_updated("test://fixed");
  EXPECT_EQ(legacy("ping"), result("{}"));
}

TEST_F(FullServerTest, PromptContainsItsArguments) {
  PromptSpec strict;
  strict.name = "strict";
  strict.arguments = {{"who", "", "", true}};
  ASSERT_TRUE(server.add_prompt(strict, greet));
  start();
  initialize("2025-11-25");
  EXPECT_EQ(legacy("prompts/list"),
            result(R"({"prompts":[{"name":"hello","arguments":[{"name":"who"}]},)"
                   R"({"name":"strict","arguments":[{"name":"who","required":true}]}]})"));
  EXPECT_EQ(legacy("prompts/get", R"({"name":"hello","arguments":{"who":"you"}})"),
            result(R"({"messages":[{"role":"user","content":{"type":"text","text":"Hello you"}}]})"));
  EXPECT_EQ(legacy("prompts/get", R"({"name":"strict"})"),
            error(-32602, R"("message":"prompt strict requires the argument who")"));
  EXPECT_EQ(legacy("prompts/get", R"({"name":"nope"})"),
            error(-32602, R"("message":"Unknown prompt: nope")"));
}

TEST_F(FullServerTest, CompletionIsTruncatedToHundredValues) {
  start();
  initialize("2025-11-25");
  const std::string got =
      legacy("completion/complete",
             R"({"ref":{"type":"ref/prompt","name":"hello"},"argument":{"name":"who","value":"x"}})");
  EXPECT_NE(got.find(R"("whox99"],"hasMore":true})"), std::string::npos) << got;
  EXPECT_EQ(got.find("whox100"), std::string::npos);
  EXPECT_NE(
      legacy(
          "completion/complete",
          R"({"ref":{"type":"ref/resource","uri":"test://{city}/now"},"argument":{"name":"city","value":""}})")
          .find("city0"),
      std::string::npos);
  for (const std::string bad :
       {R"({"ref":{"type":"ref/prompt","name":"no"},"argument":{"name":"a","value":""}})",
        R"({"ref":{"type":"x"},"argument":{"name":"a","value":""}})", R"({})"}) {
    EXPECT_NE(legacy("completion/complete", bad).find("-32602"), std::string::npos) << bad;
  }
}

// ---- listening (modern) ---------------------------------------------------------------------------------

TEST_F(FullServerTest, ListenAcknowledgesThenSendsOnlyRequestedNotifications) {
  start();
  const std::string id = R"("_meta":{"io.modelcontextprotocol/subscriptionId":"sub"})";
  EXPECT_EQ(
      round_trip(
          R"({"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://fixed"]},)" +
          kEnvelope + "}}"),
      R"({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://fixed"]},)" +
          id + "}}");
  server.remove_prompt("hello");
  server.notify_resource_updated("test://fixed");
  EXPECT_EQ(receive(),
            R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://fixed",)" +
                id + "}}");
  server.remove_tool("add");
  EXPECT_EQ(receive(),
            R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{)" + id + "}}");
  send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"sub"}})");
  // The cancelled listen request gets no response, and no more notifications are sent for it.
  EXPECT_NE(modern("tools/list").find(R"("id":1)"), std::string::npos);
  server.remove_tool("half");
  EXPECT_NE(modern("tools/list").find(R"("id":1)"), std::string::npos);
}

TEST_F(FullServerTest, ListenWithEmptyFilterEndsAtOnce) {
  start();
  send(R"({"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{},)" +
       kEnvelope + "}}");
  EXPECT_NE(receive().find("acknowledged"), std::string::npos);
  EXPECT_EQ(
      receive(),
      R"({"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/subscriptionId":5}}})");
  EXPECT_NE(modern("subscriptions/listen").find("-32602"), std::string::npos);
}

// ---- logging and progress -------------------------------------------------------------------------------

TEST_F(ServerTest, LogsAndProgressAreSentOnlyWhenRequested) {
  tool(server, "work", "", [](const Context& context, const EchoArgs&) {
    context.log(LoggingLevel::info, test::raw("\"working\""), "w");
    context.report_progress(1, 2, "half");
    return std::string("done");
  });
  start();
  initialize("2025-11-25");
  const std::string call = R"({"name":"work","arguments":{"message":""})";
  EXPECT_EQ(legacy("logging/setLevel", R"({"level":"loud"})"),
            error(-32602, R"("message":"level is not a logging level")"));
  EXPECT_EQ(legacy("logging/setLevel", R"({"level":"error"})"), result("{}"));
  EXPECT_EQ(legacy("tools/call", call + "}"), result(R"({"content":[{"type":"text","text":"done"}]})"));
  EXPECT_EQ(legacy("logging/setLevel", R"({"level":"debug"})"), result("{}"));
  EXPECT_EQ(
      legacy("tools/call", call + R"(,"_meta":{"progressToken":"t"}})"),
      R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"w","data":"working"}})");
  EXPECT_EQ(
      receive(),
      R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"total":2,"message":"half"}})");
  EXPECT_EQ(receive(), result(R"({"content":[{"type":"text","text":"done"}]})"));
  // Modern era: a request without a log level receives no log messages.
  EXPECT_NE(modern("tools/call", R"("name":"work","arguments":{"message":""})").find("done"),
            std::string::npos);
}

TEST_F(ServerTest, TypedFunctionMayTakeItsArgumentsByValueAndAfterAContext) {
  tool(server, "moves", "Takes its arguments by value", [](EchoArgs in) { return std::move(in.message); });
  tool(server, "context", "Takes a Context", [](const Context&, EchoArgs in) { return in.message + "!"; });
  start();
  initialize("2025-11-25");
  EXPECT_NE(
      legacy("tools/call", R"({"name":"moves","arguments":{"message":"a\"b"}})").find(R"("text":"a\"b")"),
      std::string::npos);
  EXPECT_NE(legacy("tools/call", R"({"name":"context","arguments":{"message":"c"}})").find(R"("text":"c!")"),
            std::string::npos);
}

TEST_F(ServerTest, UnencodedTextFollowsTheOtherContent) {
  ToolSpec spec;
  spec.name = "both";
  ASSERT_TRUE(server.add_tool(spec, Server::PlainTool([](const Context&, json::View) -> Result<ToolResult> {
                                ToolResult result = ToolResult::text("first");
                                result.unencoded_text = "second\n";
                                return result;
                              })));
  start();
  initialize("2025-11-25");
  EXPECT_NE(legacy("tools/call", R"({"name":"both"})")
                .find(R"("content":[{"type":"text","text":"first"},{"type":"text","text":"second\n"}])"),
            std::string::npos);
}

}  // namespace
}  // namespace fairlead::mcp
