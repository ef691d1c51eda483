// Our client against servers that others have written: servers/*.mjs on the official TypeScript SDK, 1.x
// and 2.x, in every revision they speak, on stdio and over HTTP, and two of the reference servers.
#include <fairlead/base/base64.hpp>

#include "session.hpp"

namespace fairlead::mcp {
namespace {

// What needs nothing but answers, and what needs to hear more.
class Answers : public Sdk {};
INSTANTIATE_TEST_SUITE_P(Stdio, Answers, ::testing::ValuesIn(stdio_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Http, Answers, ::testing::ValuesIn(http_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Json, Answers, ::testing::ValuesIn(json_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Pair, Answers, ::testing::ValuesIn(pair_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Stdio, Sdk, ::testing::ValuesIn(stdio_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Http, Sdk, ::testing::ValuesIn(http_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Pair, Sdk, ::testing::ValuesIn(pair_cases()), name_of);

TEST_P(Answers, RevisionAndServerAreKnown) {
  EXPECT_EQ(revision, GetParam().pinned.value_or(GetParam().server == "v1" ? kNewestLegacy : kNewest));
  EXPECT_EQ(client->server_info()["name"].as_string(), GetParam().server);
  EXPECT_EQ(client->instructions(), "Use it for tests.");
  EXPECT_FALSE(client->capabilities()["tools"].absent());
}

TEST_P(Answers, ListsAreComplete) {
  const std::vector<std::string> tools{"add",   "cancelled", "confirm", "count", "echo", "fail", "grow",
                                       "media", "sample",    "touch",   "visit", "wait", "where"};
  EXPECT_EQ(sorted_names(loop.block_on(client->tools())), tools);
  EXPECT_EQ(sorted_names(loop.block_on(client->resources())), (std::vector<std::string>{"one", "pixel"}));
  EXPECT_EQ(sorted_names(loop.block_on(client->resource_templates())), std::vector<std::string>{"memos"});
  EXPECT_EQ(sorted_names(loop.block_on(client->prompts())), std::vector<std::string>{"greet"});
}

TEST_P(Answers, ToolsAreCalled) {
  EXPECT_EQ(call("echo", R"({"message":"h\u00e9llo"})"), "héllo");
  EXPECT_EQ(call("fail"), "error: it does not work");
  // Structured content is checked once the schema is known.
  ASSERT_TRUE(loop.block_on(client->tools()));
  const Result<ToolResult> sum = loop.block_on(client->call_tool("add", raw(R"({"a":2,"b":3.5})")));
  ASSERT_TRUE(sum) << sum.error().to_string();
  EXPECT_EQ(sum->structured.text(), R"({"sum":5.5})");
}

TEST_P(Answers, ResourcesAndPromptsAreRead) {
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

TEST_P(Answers, EveryKindOfContentIsRead) {
  const auto blob = loop.block_on(client->read_resource("pixel://red"));
  ASSERT_TRUE(blob) << blob.error().to_string();
  EXPECT_FALSE(blob->at(0).text);
  const std::optional<std::string> pixel = base64_decode(blob->at(0).blob.value_or(""));
  ASSERT_TRUE(pixel);
  EXPECT_EQ(pixel->substr(0, 4), "\x89PNG");
  const Result<ToolResult> media = loop.block_on(client->call_tool("media"));
  ASSERT_TRUE(media) << media.error().to_string();
  std::vector<std::string> kinds;
  for (const Content& one : media->content) kinds.push_back(one.type());
  ASSERT_EQ(kinds, (std::vector<std::string>{"image", "audio", "resource", "resource", "resource_link"}));
  EXPECT_EQ(base64_decode(media->content[0].data()), pixel);
  EXPECT_EQ(media->content[1].mime_type(), "audio/wav");
  EXPECT_EQ(base64_decode(media->content[1].data()), std::string("\0\1\2\3", 4));
  EXPECT_EQ(media->content[2].view()["resource"]["text"].as_string(), "the first memo");
  EXPECT_EQ(media->content[3].view()["resource"]["blob"].as_string(), blob->at(0).blob);
  EXPECT_EQ(media->content[4].view()["uri"].as_string(), "memo://one");
}

TEST_P(Answers, CompletionIsAnswered) {
  EXPECT_EQ(
      completions(R"({"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"al"}})"),
      R"(["alice","albert"])");
  EXPECT_EQ(
      completions(
          R"({"ref":{"type":"ref/resource","uri":"memos://{name}"},"argument":{"name":"name","value":"b"}})"),
      R"(["bob"])");
}

TEST_P(Sdk, ProgressAndLoggingAreSeen) {
  ASSERT_TRUE(loop.block_on(client->set_log_level(LoggingLevel::info)));
  std::vector<std::string> steps;
  ToolCallOptions watched;
  watched.on_progress = [&](double progress, std::optional<double> total, const std::string& message) {
    steps.push_back(std::to_string(static_cast<int>(progress)) + "/" +
                    std::to_string(static_cast<int>(total.value_or(0))) + " " + message);
  };
  EXPECT_EQ(call("count", R"({"to":3})", watched), "counted to 3");
  EXPECT_EQ(steps, (std::vector<std::string>{"1/3 step 1", "2/3 step 2", "3/3 step 3"}));
  // Over HTTP these may come on another stream than the answer.
  EXPECT_TRUE(until([&] { return count("notifications/message") >= 3; }));
  EXPECT_EQ(count("notifications/message"), 3U);
  EXPECT_EQ(json::View(heard.at(0).params)["data"].as_string(), "counted 1");
}

TEST_P(Sdk, SamplingAndRootsAreAnswered) {
  EXPECT_EQ(call("sample", R"({"message":"hello"})"), "parrot: hello");
  EXPECT_EQ(call("where"), "file:///one file:///two");
}

TEST_P(Sdk, ElicitationIsAnswered) {
  if (revision < Revision::r2025_06_18) {
    // Not declared then, so that the server does not get to ask.
    EXPECT_TRUE(call("confirm").starts_with("error: ")) << call("confirm");
    return;
  }
  EXPECT_EQ(call("confirm"), "Ada is sure");
  EXPECT_EQ(asked, (std::vector<std::string>{"Who are you?", "Are you sure?"}));
  action = ElicitResult::Action::decline;
  EXPECT_EQ(call("confirm"), "decline");
  if (revision < Revision::r2025_11_25) return;
  EXPECT_EQ(call("visit"), "decline");
  EXPECT_EQ(asked.back(), "Please sign in https://example.com/sign-in");
}

TEST_P(Sdk, CancellationReachesTheTool) {
  std::stop_source stop;
  ToolCallOptions cancelled;
  cancelled.stop = stop.get_token();
  cancelled.on_progress = [&](double, std::optional<double>, const std::string&) { stop.request_stop(); };
  const Result<ToolResult> waited = loop.block_on(client->call_tool("wait", raw("{}"), cancelled));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().kind(), ErrorKind::cancelled);
  EXPECT_EQ(call("cancelled"), "yes");
}

TEST_P(Sdk, ChangesAreTold) {
  std::shared_ptr<Started> listening;
  if (is_modern(revision)) {
    listening =
        start("subscriptions/listen",
              R"({"notifications":{"toolsListChanged":true,"resourceSubscriptions":["memo://one"]}})");
    ASSERT_TRUE(until([&] { return count("notifications/subscriptions/acknowledged") == 1; }));
  } else {
    ASSERT_TRUE(request("resources/subscribe", R"({"uri":"memo://one"})"));
  }
  EXPECT_EQ(call("touch"), "touched");
  EXPECT_TRUE(until([&] { return count("notifications/resources/updated") == 1; }));
  EXPECT_EQ(call("grow"), "grown");
  EXPECT_TRUE(until([&] { return count("notifications/tools/list_changed") == 1; }));
  EXPECT_EQ(call("grown"), "grown");
  if (is_modern(revision)) {
    EXPECT_FALSE(listening->answer);
    listening->stop.request_stop();
    EXPECT_TRUE(until([&] { return listening->answer.has_value(); }));
  } else {
    ASSERT_TRUE(request("resources/unsubscribe", R"({"uri":"memo://one"})"));
    EXPECT_TRUE(request("ping", "{}"));
  }
  EXPECT_EQ(call("touch"), "touched");
  EXPECT_EQ(count("notifications/resources/updated"), 1U);
}

// The SDK has no batches; this server puts what it says into arrays before it leaves, and takes ours apart.
TEST_F(Session, BatchesAreRead) {
  open(node(kDir + "/servers/v1.mjs", "batches"), Revision::r2025_03_26);
  ASSERT_TRUE(client);
  ASSERT_TRUE(loop.block_on(client->set_log_level(LoggingLevel::info)));
  int steps = 0;
  ToolCallOptions watched;
  watched.on_progress = [&](double, std::optional<double>, const std::string&) { ++steps; };
  EXPECT_EQ(call("count", R"({"to":3})", watched), "counted to 3");
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(count("notifications/message"), 3U);
  const auto one = start("tools/call", R"({"name":"echo","arguments":{"message":"one"}})");
  const auto two = start("prompts/get", R"({"name":"nope"})");
  const auto three = start("tools/list", "{}");
  EXPECT_TRUE(until([&] { return one->answer && two->answer && three->answer; }));
  EXPECT_TRUE(*one->answer);
  EXPECT_FALSE(*two->answer);
  EXPECT_TRUE(*three->answer);
  EXPECT_EQ(call("sample", R"({"message":"hello"})"), "parrot: hello");  // a request inside an array
}

// ---- the reference servers
// -------------------------------------------------------------------------------------------

class Everything : public Session, public ::testing::WithParamInterface<Case> {
 public:
  void SetUp() override {
    open(node(kPackages + "server-everything/dist/index.js", "stdio"), GetParam().pinned);
    ASSERT_TRUE(client);
  }
};

std::vector<Case> everything_cases() {
  std::vector<Case> all{{"everything", "stdio", std::nullopt}};
  for (const Revision revision : kRevisions) {
    if (!is_modern(revision)) all.push_back({"everything", "stdio", revision});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Servers, Everything, ::testing::ValuesIn(everything_cases()), name_of);

// All it offers a client without tasks. What it asks with is there for those who can be asked.
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

TEST_P(Everything, EveryListAndOneOfEach) {
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
  EXPECT_TRUE(
      std::ranges::any_of(image->content, [](const Content& one) { return one.mime_type() == "image/png"; }));

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

TEST_P(Everything, ProgressLoggingAndUpdatesAreSeen) {
  int steps = 0;
  ToolCallOptions watched;
  watched.on_progress = [&](double, std::optional<double>, const std::string&) { ++steps; };
  EXPECT_TRUE(call("trigger-long-running-operation", R"({"duration":0.1,"steps":4})", watched)
                  .starts_with("Long running operation completed"));
  EXPECT_EQ(steps, 4);
  ASSERT_TRUE(loop.block_on(client->set_log_level(LoggingLevel::debug)));
  EXPECT_TRUE(call("toggle-simulated-logging").starts_with("Started"));
  EXPECT_TRUE(until([&] { return count("notifications/message") > 0; }));
  ASSERT_TRUE(request("resources/subscribe", R"({"uri":"demo://resource/dynamic/text/1"})"));
  EXPECT_TRUE(call("toggle-subscriber-updates").starts_with("Started"));
  EXPECT_TRUE(until([&] { return count("notifications/resources/updated") > 0; }));
}

TEST_P(Everything, ItsQuestionsAreAnswered) {
  EXPECT_NE(call("trigger-sampling-request", R"({"prompt":"hello"})").find("parrot"), std::string::npos);
  EXPECT_NE(call("get-roots-list").find("file:///two"), std::string::npos);
  if (client->revision() < Revision::r2025_06_18) return;
  const std::string filled_in = call("trigger-elicitation-request");
  EXPECT_NE(filled_in.find("Ada"), std::string::npos) << filled_in;
  EXPECT_NE(filled_in.find("It was a dark and stormy night."), std::string::npos)
      << "a default: " << filled_in;
  if (client->revision() < Revision::r2025_11_25) return;
  EXPECT_NE(call("trigger-url-elicitation", R"({"url":"https://example.com/"})").find("accept"),
            std::string::npos);
  EXPECT_EQ(asked.back(), "Please open the link to complete this action. https://example.com/");
}

TEST_F(Session, FilesystemListsAndReadsWhatTheRootsAllow) {
  const test::TempDir dir;
  std::ofstream(dir / "memo.txt") << "the first memo";
  const std::string root = std::filesystem::canonical(dir / "");
  roots = {{"file://" + root, "root"}};
  // Started with another directory: what the roots say takes its place.
  const test::TempDir other;
  open(node(kPackages + "server-filesystem/dist/index.js", other / ""), std::nullopt);
  ASSERT_TRUE(client);
  // It asks at its own pace and does not say when it has looked at the answer: one has to ask it.
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
