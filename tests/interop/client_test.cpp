// The Fairlead client with servers of other projects: servers/*.mjs on the official TypeScript SDK, 1.x and
// 2.x, in every revision that they support, on stdio and over HTTP, and two of the reference servers.
#include <fairlead/base/base64.hpp>

#include "interop_test.hpp"

namespace fairlead::mcp {
namespace {

// The tests of SdkServerResponseTest need only responses. Those of SdkServerTest also need notifications and
// requests of the server, which the transport `json` does not have.
class SdkServerResponseTest : public SdkServerTest {};
INSTANTIATE_TEST_SUITE_P(Stdio, SdkServerResponseTest, ::testing::ValuesIn(stdio_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Http, SdkServerResponseTest, ::testing::ValuesIn(http_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Json, SdkServerResponseTest, ::testing::ValuesIn(json_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Sse, SdkServerResponseTest, ::testing::ValuesIn(sse_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Stdio, SdkServerTest, ::testing::ValuesIn(stdio_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Http, SdkServerTest, ::testing::ValuesIn(http_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Sse, SdkServerTest, ::testing::ValuesIn(sse_cases()), case_name);

TEST_P(SdkServerResponseTest, RevisionAndServerAreKnown) {
  EXPECT_EQ(revision,
            GetParam().pinned.value_or(GetParam().server == "v1" ? kNewestLegacyRevision : kNewestRevision));
  EXPECT_EQ(client->server_info()["name"].as_string(), GetParam().server);
  EXPECT_EQ(client->instructions(), "Use it for tests.");
  EXPECT_FALSE(client->server_capabilities()["tools"].absent());
}

TEST_P(SdkServerResponseTest, ListsAreComplete) {
  const std::vector<std::string> tools{"add",   "cancelled", "confirm", "count", "echo", "fail", "grow",
                                       "media", "sample",    "touch",   "visit", "wait", "where"};
  EXPECT_EQ(sorted_names(loop.block_on(client->tools())), tools);
  EXPECT_EQ(sorted_names(loop.block_on(client->resources())), (std::vector<std::string>{"one", "pixel"}));
  EXPECT_EQ(sorted_names(loop.block_on(client->resource_templates())), std::vector<std::string>{"memos"});
  EXPECT_EQ(sorted_names(loop.block_on(client->prompts())), std::vector<std::string>{"greet"});
}

TEST_P(SdkServerResponseTest, ToolsAreCalled) {
  EXPECT_EQ(call("echo", R"({"message":"h\u00e9llo"})"), "héllo");
  EXPECT_EQ(call("fail"), "error: it does not work");
  // Structured content is checked once the schema is known.
  ASSERT_TRUE(loop.block_on(client->tools()));
  const Result<ToolResult> sum = loop.block_on(client->call_tool("add", raw(R"({"a":2,"b":3.5})")));
  ASSERT_TRUE(sum) << sum.error().to_string();
  EXPECT_EQ(sum->structured.text(), R"({"sum":5.5})");
}

TEST_P(SdkServerResponseTest, ResourcesAndPromptsAreRead) {
  const auto memo = loop.block_on(client->read_resource("memo://one"));
  ASSERT_TRUE(memo) << memo.error().to_string();
  EXPECT_EQ(memo->at(0).text, "the first memo");
  const auto from_template = loop.block_on(client->read_resource("memos://two"));
  ASSERT_TRUE(from_template) << from_template.error().to_string();
  EXPECT_EQ(from_template->at(0).text, "memo two");
  EXPECT_FALSE(loop.block_on(client->read_resource("nothing://here")));
  const auto prompt = loop.block_on(client->get_prompt("greet", {{"name", "Ada"}}));
  ASSERT_TRUE(prompt) << prompt.error().to_string();
  EXPECT_EQ(prompt->messages.at(0).content.text(), "Say hello to Ada");
}

TEST_P(SdkServerResponseTest, EveryKindOfContentIsRead) {
  const auto blob = loop.block_on(client->read_resource("pixel://red"));
  ASSERT_TRUE(blob) << blob.error().to_string();
  EXPECT_FALSE(blob->at(0).text);
  const std::optional<std::string> pixel = base64_decode(blob->at(0).blob.value_or(""));
  ASSERT_TRUE(pixel);
  EXPECT_EQ(pixel->substr(0, 4), "\x89PNG");
  const Result<ToolResult> media = loop.block_on(client->call_tool("media"));
  ASSERT_TRUE(media) << media.error().to_string();
  std::vector<std::string> kinds;
  for (const Content& content : media->content) kinds.push_back(content.type());
  ASSERT_EQ(kinds, (std::vector<std::string>{"image", "audio", "resource", "resource", "resource_link"}));
  EXPECT_EQ(base64_decode(media->content[0].data()), pixel);
  EXPECT_EQ(media->content[1].mime_type(), "audio/wav");
  EXPECT_EQ(base64_decode(media->content[1].data()), std::string("\0\1\2\3", 4));
  EXPECT_EQ(media->content[2].view()["resource"]["text"].as_string(), "the first memo");
  EXPECT_EQ(media->content[3].view()["resource"]["blob"].as_string(), blob->at(0).blob);
  EXPECT_EQ(media->content[4].view()["uri"].as_string(), "memo://one");
}

TEST_P(SdkServerResponseTest, CompletionsAreReturned) {
  EXPECT_EQ(
      completions(R"({"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"al"}})"),
      R"(["alice","albert"])");
  EXPECT_EQ(
      completions(
          R"({"ref":{"type":"ref/resource","uri":"memos://{name}"},"argument":{"name":"name","value":"b"}})"),
      R"(["bob"])");
}

TEST_P(SdkServerTest, ProgressAndLogMessagesAreReceived) {
  ASSERT_TRUE(loop.block_on(client->set_log_level(LoggingLevel::info)));
  std::vector<std::string> steps;
  ClientCallOptions options;
  options.on_progress = [&](double progress, std::optional<double> total, const std::string& message) {
    steps.push_back(std::to_string(static_cast<int>(progress)) + "/" +
                    std::to_string(static_cast<int>(total.value_or(0))) + " " + message);
  };
  EXPECT_EQ(call("count", R"({"to":3})", options), "counted to 3");
  EXPECT_EQ(steps, (std::vector<std::string>{"1/3 step 1", "2/3 step 2", "3/3 step 3"}));
  // Over HTTP log messages may arrive on another stream than the response.
  EXPECT_TRUE(wait_until([&] { return count("notifications/message") >= 3; }));
  EXPECT_EQ(count("notifications/message"), 3U);
  EXPECT_EQ(json::View(notifications.at(0).params)["data"].as_string(), "counted 1");
}

TEST_P(SdkServerTest, SamplingAndRootsAreAnswered) {
  EXPECT_EQ(call("sample", R"({"message":"hello"})"), "parrot: hello");
  EXPECT_EQ(call("where"), "file:///one file:///two");
}

TEST_P(SdkServerTest, ElicitationIsAnswered) {
  if (revision < Revision::r2025_06_18) {
    // The client does not declare elicitation in these revisions, so the tool fails.
    EXPECT_TRUE(call("confirm").starts_with("error: ")) << call("confirm");
    return;
  }
  EXPECT_EQ(call("confirm"), "Ada is sure");
  EXPECT_EQ(elicitations, (std::vector<std::string>{"Who are you?", "Are you sure?"}));
  action = ElicitResult::Action::decline;
  EXPECT_EQ(call("confirm"), "decline");
  if (revision < Revision::r2025_11_25) return;
  EXPECT_EQ(call("visit"), "decline");
  EXPECT_EQ(elicitations.back(), "Please sign in https://example.com/sign-in");
}

TEST_P(SdkServerTest, CancellationReachesTheTool) {
  std::stop_source stop;
  ClientCallOptions options;
  options.stop = stop.get_token();
  options.on_progress = [&](double, std::optional<double>, const std::string&) { stop.request_stop(); };
  const Result<ToolResult> waited = loop.block_on(client->call_tool("wait", raw("{}"), options));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().kind(), ErrorKind::cancelled);
  EXPECT_EQ(call("cancelled"), "yes");
}

TEST_P(SdkServerTest, ListChangesAndResourceUpdatesAreNotified) {
  std::shared_ptr<PendingRequest> listening;
  if (is_modern(revision)) {
    listening =
        start("subscriptions/listen",
              R"({"notifications":{"toolsListChanged":true,"resourceSubscriptions":["memo://one"]}})");
    ASSERT_TRUE(wait_until([&] { return count("notifications/subscriptions/acknowledged") == 1; }));
  } else {
    ASSERT_TRUE(request("resources/subscribe", R"({"uri":"memo://one"})"));
  }
  EXPECT_EQ(call("touch"), "touched");
  EXPECT_TRUE(wait_until([&] { return count("notifications/resources/updated") == 1; }));
  EXPECT_EQ(call("grow"), "grown");
  EXPECT_TRUE(wait_until([&] { return count("notifications/tools/list_changed") == 1; }));
  EXPECT_EQ(call("grown"), "grown");
  if (is_modern(revision)) {
    EXPECT_FALSE(listening->response);
    listening->stop.request_stop();
    EXPECT_TRUE(wait_until([&] { return listening->response.has_value(); }));
  } else {
    ASSERT_TRUE(request("resources/unsubscribe", R"({"uri":"memo://one"})"));
    EXPECT_TRUE(request("ping", "{}"));
  }
  EXPECT_EQ(call("touch"), "touched");
  EXPECT_EQ(count("notifications/resources/updated"), 1U);
}

// The SDK does not support batches. This server sends its messages as batches, and splits those that it
// receives into messages for the SDK.
TEST_F(InteropTest, BatchesAreRead) {
  open(node_address(kInteropDir + "/servers/v1.mjs", "batches"), Revision::r2025_03_26);
  ASSERT_TRUE(client);
  ASSERT_TRUE(loop.block_on(client->set_log_level(LoggingLevel::info)));
  int steps = 0;
  ClientCallOptions options;
  options.on_progress = [&](double, std::optional<double>, const std::string&) { ++steps; };
  EXPECT_EQ(call("count", R"({"to":3})", options), "counted to 3");
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(count("notifications/message"), 3U);
  const auto one = start("tools/call", R"({"name":"echo","arguments":{"message":"one"}})");
  const auto two = start("prompts/get", R"({"name":"nope"})");
  const auto three = start("tools/list", "{}");
  EXPECT_TRUE(wait_until([&] { return one->response && two->response && three->response; }));
  EXPECT_TRUE(*one->response);
  EXPECT_FALSE(*two->response);
  EXPECT_TRUE(*three->response);
  EXPECT_EQ(call("sample", R"({"message":"hello"})"), "parrot: hello");  // a request in a batch
}

// ---- the reference servers -------------------------------------------------------------------------------

class EverythingServerTest : public InteropTest, public ::testing::WithParamInterface<ServerCase> {
 public:
  void SetUp() override {
    open(node_address(kPackageDir + "server-everything/dist/index.js", "stdio"), GetParam().pinned);
    ASSERT_TRUE(client);
  }
};

std::vector<ServerCase> everything_cases() {
  std::vector<ServerCase> all{{"everything", "stdio", std::nullopt}};
  for (const Revision revision : kRevisions) {
    if (!is_modern(revision)) all.push_back({"everything", "stdio", revision});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Servers, EverythingServerTest, ::testing::ValuesIn(everything_cases()), case_name);

// Returns the tools that the server lists for a client without tasks. It lists tools that use elicitation
// only if the client supports elicitation.
std::vector<std::string> everything_tools(Revision revision) {
  std::vector<std::string> names{"echo",
                                 "get-annotated-message",
                                 "get-env",
                                 "get-resource-links",
                                 "get-resource-reference",
                                 "get-roots-list",
                                 "get-structured-content",
                                 "get-sum",
                                 "get-tiny-image",
                                 "gzip-file-as-resource",
                                 "simulate-research-query",
                                 "toggle-simulated-logging",
                                 "toggle-subscriber-updates",
                                 "trigger-long-running-operation",
                                 "trigger-sampling-request"};
  if (revision >= Revision::r2025_06_18) names.emplace_back("trigger-elicitation-request");
  if (revision >= Revision::r2025_11_25) names.emplace_back("trigger-url-elicitation");
  std::ranges::sort(names);
  return names;
}

TEST_P(EverythingServerTest, ListsAreCompleteAndEntriesOfEachKindAreRead) {
  EXPECT_EQ(sorted_names(loop.block_on(client->tools())), everything_tools(client->revision()));
  EXPECT_EQ(loop.block_on(client->resources())->size(), 7U);
  EXPECT_EQ(loop.block_on(client->resource_templates())->size(), 2U);
  EXPECT_EQ(
      sorted_names(loop.block_on(client->prompts())),
      (std::vector<std::string>{"args-prompt", "completable-prompt", "resource-prompt", "simple-prompt"}));

  EXPECT_EQ(call("echo", R"({"message":"hi"})"), "Echo: hi");
  EXPECT_EQ(call("get-sum", R"({"a":2,"b":3})"), "The sum of 2 and 3 is 5.");
  const Result<ToolResult> weather =
      loop.block_on(client->call_tool("get-structured-content", raw(R"({"location":"Chicago"})")));
  ASSERT_TRUE(weather) << weather.error().to_string();
  EXPECT_FALSE(json::View(weather->structured)["temperature"].absent());
  const Result<ToolResult> image = loop.block_on(client->call_tool("get-tiny-image", raw("{}")));
  ASSERT_TRUE(image) << image.error().to_string();
  EXPECT_TRUE(std::ranges::any_of(image->content,
                                  [](const Content& content) { return content.mime_type() == "image/png"; }));

  const Result<ToolResult> links =
      loop.block_on(client->call_tool("get-resource-links", raw(R"({"count":2})")));
  ASSERT_TRUE(links) << links.error().to_string();
  EXPECT_EQ(std::ranges::count(links->content, "resource_link", &Content::type), 2);
  EXPECT_TRUE(call("get-annotated-message", R"({"messageType":"error"})").starts_with("Error"));

  const auto resources = loop.block_on(client->resources());
  const auto document =
      loop.block_on(client->read_resource(json::View(resources->front())["uri"].as_string().value_or("")));
  ASSERT_TRUE(document) << document.error().to_string();
  EXPECT_FALSE(document->at(0).text->empty());
  const auto blob = loop.block_on(client->read_resource("demo://resource/dynamic/blob/1"));
  ASSERT_TRUE(blob) << blob.error().to_string();
  EXPECT_TRUE(base64_decode(blob->at(0).blob.value_or("?")));
  const Result<ToolResult> embedded = loop.block_on(
      client->call_tool("get-resource-reference", raw(R"({"resourceType":"Blob","resourceId":1})")));
  ASSERT_TRUE(embedded) << embedded.error().to_string();
  EXPECT_EQ(std::ranges::count(embedded->content, "resource", &Content::type), 1);
  const auto dynamic = loop.block_on(client->read_resource("demo://resource/dynamic/text/1"));
  ASSERT_TRUE(dynamic) << dynamic.error().to_string();
  const auto prompt = loop.block_on(client->get_prompt("args-prompt", {{"city", "Bern"}}));
  ASSERT_TRUE(prompt) << prompt.error().to_string();
  EXPECT_NE(prompt->messages.at(0).content.text().find("Bern"), std::string::npos);
  EXPECT_EQ(
      completions(
          R"({"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"name","value":"A"},)"
          R"("context":{"arguments":{"department":"Engineering"}}})"),
      R"(["Alice"])");
}

TEST_P(EverythingServerTest, ProgressLogMessagesAndUpdatesAreReceived) {
  int steps = 0;
  ClientCallOptions options;
  options.on_progress = [&](double, std::optional<double>, const std::string&) { ++steps; };
  EXPECT_TRUE(call("trigger-long-running-operation", R"({"duration":0.1,"steps":4})", options)
                  .starts_with("Long running operation completed"));
  EXPECT_EQ(steps, 4);
  ASSERT_TRUE(loop.block_on(client->set_log_level(LoggingLevel::debug)));
  EXPECT_TRUE(call("toggle-simulated-logging").starts_with("Started"));
  EXPECT_TRUE(wait_until([&] { return count("notifications/message") > 0; }));
  ASSERT_TRUE(request("resources/subscribe", R"({"uri":"demo://resource/dynamic/text/1"})"));
  EXPECT_TRUE(call("toggle-subscriber-updates").starts_with("Started"));
  EXPECT_TRUE(wait_until([&] { return count("notifications/resources/updated") > 0; }));
}

TEST_P(EverythingServerTest, SamplingRootsAndElicitationAreAnswered) {
  EXPECT_NE(call("trigger-sampling-request", R"({"prompt":"hello"})").find("parrot"), std::string::npos);
  EXPECT_NE(call("get-roots-list").find("file:///two"), std::string::npos);
  if (client->revision() < Revision::r2025_06_18) return;
  const std::string form_result = call("trigger-elicitation-request");
  EXPECT_NE(form_result.find("Ada"), std::string::npos) << form_result;
  EXPECT_NE(form_result.find("It was a dark and stormy night."), std::string::npos)
      << "a default: " << form_result;
  if (client->revision() < Revision::r2025_11_25) return;
  EXPECT_NE(call("trigger-url-elicitation", R"({"url":"https://example.com/"})").find("accept"),
            std::string::npos);
  EXPECT_EQ(elicitations.back(), "Please open the link to complete this action. https://example.com/");
}

TEST_F(InteropTest, FilesystemServerGivesAccessOnlyToRootsOfClient) {
  const test::TempDir dir;
  std::ofstream(dir / "memo.txt") << "the first memo";
  const std::string root = std::filesystem::canonical(dir / "");
  roots = {{"file://" + root, "root"}};
  // The server is started with another directory, which the roots of the client replace.
  const test::TempDir other;
  open(node_address(kPackageDir + "server-filesystem/dist/index.js", other / ""), std::nullopt);
  ASSERT_TRUE(client);
  // The server requests the roots asynchronously and does not notify when it has applied them, so poll.
  const Clock::time_point limit = Clock::now() + 30s;
  std::string allowed;
  while (allowed.find(root) == std::string::npos && Clock::now() < limit)
    allowed = call("list_allowed_directories");
  ASSERT_NE(allowed.find(root), std::string::npos) << allowed;
  EXPECT_EQ(allowed.find(std::filesystem::canonical(other / "").string()), std::string::npos) << allowed;
  const auto tools = loop.block_on(client->tools());
  ASSERT_TRUE(tools) << tools.error().to_string();
  EXPECT_GE(tools->size(), 10U);
  const std::string path(json::string(root).text());
  EXPECT_NE(call("list_directory", R"({"path":)" + path + "}").find("memo.txt"), std::string::npos);
  EXPECT_EQ(
      call("read_text_file", R"({"path":)" + std::string(json::string(root + "/memo.txt").text()) + "}"),
      "the first memo");
  EXPECT_TRUE(call("read_text_file", R"({"path":"/etc/hostname"})").starts_with("error: "));
}

}  // namespace
}  // namespace fairlead::mcp
