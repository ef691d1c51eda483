// interop_client PLAN: tests the Fairlead client with a server that has the fixture's tools, resources and
// prompts. PLAN is a JSON object. Writes a report to stdout, one JSON object per line. README.md describes
// both.
#include <fairlead/json/view.hpp>
#include <fairlead/json/writer.hpp>
#include <fairlead/mcp/client.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <stdexcept>

using namespace fairlead;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kLarge = 1 << 20;
constexpr std::string_view kUnicode = "h\u00e9llo\n\U0001f600 \u6f22\u5b57 \u2028 \"\\ \u0001";
constexpr std::array<std::string_view, 11> kTools{"add",    "cancelled", "confirm", "echo", "fail", "large",
                                                  "sample", "steps",     "touch",   "wait", "where"};

void expect(bool condition, const std::string& message) {
  if (!condition) throw std::runtime_error(message.substr(0, 300));
}
void expect_equal(std::string_view got, std::string_view wanted) {
  expect(got == wanted, "got \"" + std::string(got) + "\", wanted \"" + std::string(wanted) + "\"");
}
// Return the value, or throw the error.
template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(*result);
}

void value_of(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().to_string());
}

void report(std::string_view feature, std::string_view status, std::string_view reason) {
  json::Writer line;
  line.begin_object().key("feature").string(feature).key("status").string(status).key("reason").string(
      reason);
  std::printf("%s\n", std::string(line.end_object().finish().text()).c_str());
  std::fflush(stdout);
}

Task<Result<json::Raw>> answer_sampling(json::Raw params) {
  json::Writer out;
  out.begin_object().key("model").string("parrot").key("role").string("assistant").key("content");
  out.raw(json::View(params)["messages"][0]["content"].text()).end_object();
  co_return out.finish();
}

Task<Result<mcp::ElicitResult>> accept_form(std::string, json::Raw schema) {
  mcp::ElicitResult result;
  result.action = mcp::ElicitResult::Action::accept;
  const bool name = !json::View(schema)["properties"]["name"].absent();
  result.content = value_of(json::Raw::parse(name ? R"({"name":"Ada"})" : R"({"sure":true})"));
  co_return result;
}

std::vector<mcp::Root> roots() {
  return {{"file:///one", "one"}, {"file:///two", ""}};
}

// Calls the tool, and appends the outcome to `echoed`: "echoed", "failed" or "mixed up". Several such calls
// run at the same time.
Task<void> echo_into(std::shared_ptr<mcp::Client> client, std::string tool, std::string message,
                     std::shared_ptr<std::vector<std::string>> echoed) {
  json::Writer arguments;
  arguments.begin_object().key("message").string(message).end_object();
  const Result<mcp::ToolResult> result = co_await client->call_tool(tool, arguments.finish());
  echoed->push_back(!result || result->content.empty()     ? "failed"
                    : result->content[0].text() == message ? "echoed"
                                                           : "mixed up");
}

class Checks {
 public:
  explicit Checks(json::View plan) : plan_(plan), prefix_(plan["prefix"].as_string().value_or("")) {}

  int run() {
    if (!connect()) return 1;
    for (const auto& [feature, check] : kChecks) {
      if (is_skipped(feature)) continue;
      try {
        (this->*check)();
        report(feature, "pass", "");
      } catch (const std::exception& problem) {
        report(feature, "fail", problem.what());
      }
    }
    loop_.block_on(client_->close());
    return 0;
  }

 private:
  struct Check {
    std::string_view feature;
    void (Checks::*run)();
  };
  static const std::array<Check, 19> kChecks;

  bool connect() {
    mcp::ClientOptions options;
    options.handlers.sample = answer_sampling;
    options.handlers.elicit = accept_form;
    options.handlers.roots = roots;
    options.handlers.on_notification = [this](std::string_view method, const json::Raw& params) {
      if (method == "notifications/message") {
        // fastmcp wraps the text of a log message in an object.
        const json::View data = json::View(params)["data"];
        logs_.push_back(data.as_string().value_or(data["msg"].as_string().value_or("")));
      }
      if (method == "notifications/resources/updated")
        updates_.push_back(json::View(params)["uri"].as_string().value_or(""));
    };
    if (plan_["mode"].as_string() == "legacy") options.pinned_revision = mcp::kNewestLegacyRevision;
    Result<std::shared_ptr<mcp::Client>> connected = loop_.block_on(
        mcp::Client::connect(loop_, plan_["uri"].as_string().value_or(""), std::move(options)));
    if (!connected) {
      report("connect", "fail", connected.error().to_string());
      return false;
    }
    client_ = *connected;
    report("connect", "pass", mcp::to_string(client_->revision()));
    return true;
  }

  bool is_skipped(std::string_view feature) const {
    for (std::size_t i = 0; i < plan_["skip"].size(); ++i) {
      if (plan_["skip"][i].as_string() == feature) return true;
    }
    return false;
  }

  template <class Condition>
  void wait_until(Condition condition, const std::string& what) {
    Timer limit(loop_);
    bool late = false;
    limit.arm_after(20s, [&] { late = true; });
    loop_.run_until([&] { return late || condition(); });
    expect(condition(), what + " did not arrive in 20 s");
  }

  mcp::ToolResult call(std::string_view tool, const std::string& arguments = "{}",
                       mcp::ClientCallOptions options = mcp::ClientCallOptions()) {
    options.max_total_time = 20s;
    return value_of(loop_.block_on(client_->call_tool(
        prefix_ + std::string(tool), value_of(json::Raw::parse(arguments)), std::move(options))));
  }
  std::string text(std::string_view tool, const std::string& arguments = "{}",
                   mcp::ClientCallOptions options = mcp::ClientCallOptions()) {
    const mcp::ToolResult result = call(tool, arguments, std::move(options));
    std::string all;
    for (const mcp::Content& content : result.content) all += content.text();
    expect(!result.is_error, std::string(tool) + " answered with the error " + all);
    return all;
  }
  std::string echo(std::string_view message) {
    json::Writer arguments;
    arguments.begin_object().key("message").string(message).end_object();
    return text("echo", std::string(arguments.finish().text()));
  }
  json::Raw request(const std::string& method, const std::string& params) {
    return value_of(loop_.block_on(client_->request(method, value_of(json::Raw::parse(params)))));
  }
  void expect_tools(const std::vector<json::Raw>& tools) {
    std::set<std::string, std::less<>> names;
    for (const json::Raw& tool : tools) names.insert(json::View(tool)["name"].as_string().value_or(""));
    for (const std::string_view name : kTools) {
      expect(names.contains(prefix_ + std::string(name)), "no tool " + std::string(name));
    }
  }
  static bool contains_entry(const std::vector<json::Raw>& entries, std::string_view member,
                             std::string_view value) {
    return std::ranges::any_of(
        entries, [&](const json::Raw& entry) { return json::View(entry)[member].as_string() == value; });
  }

  void check_list() { expect_tools(value_of(loop_.block_on(client_->tools()))); }
  void check_call() { expect_equal(echo("hello"), "hello"); }
  void check_error() {
    const mcp::ToolResult failed = call("fail");
    expect(failed.is_error, "fail did not fail");
    expect(failed.content.at(0).text().find("it does not work") != std::string::npos,
           "the tool's message is missing");
    const Result<mcp::ToolResult> missing = loop_.block_on(client_->call_tool(prefix_ + "missing"));
    expect(!missing || missing->is_error, "a tool that does not exist was not refused");
  }
  void check_structured() {
    expect_equal(call("add", R"({"a":2,"b":3.5})").structured.text(), R"({"sum":5.5})");
  }
  void check_unicode() { expect_equal(echo(kUnicode), kUnicode); }
  void check_large() {
    const std::size_t length = text("large", "{\"bytes\":" + std::to_string(kLarge) + "}").size();
    expect(length == kLarge, std::to_string(length) + " bytes");
  }
  void check_concurrent() {
    constexpr std::size_t kCalls = 40;
    auto echoed = std::make_shared<std::vector<std::string>>();
    for (std::size_t i = 0; i < kCalls; ++i) {
      loop_.spawn(echo_into(client_, prefix_ + "echo", "message " + std::to_string(i), echoed));
    }
    wait_until([&] { return echoed->size() == kCalls; }, "an answer");
    expect(std::ranges::all_of(*echoed, [](const std::string& outcome) { return outcome == "echoed"; }),
           "some answers are wrong");
  }
  // Client::tools() follows the cursors without counting the pages, so this check sends the requests itself.
  void check_pagination() {
    std::int64_t pages = 0;
    std::vector<json::Raw> tools;
    std::string params = "{}";
    while (!params.empty()) {
      const json::Raw page = request("tools/list", params);
      const json::View list = json::View(page)["tools"];
      for (std::size_t i = 0; i < list.size(); ++i)
        tools.push_back(value_of(json::Raw::parse(std::string(list[i].text()))));
      const json::View next = json::View(page)["nextCursor"];
      params =
          next.absent() || next.is(json::Type::null) ? "" : "{\"cursor\":" + std::string(next.text()) + "}";
      ++pages;
    }
    expect_tools(tools);
    expect(pages >= plan_["least_pages"].as_int().value_or(2), std::to_string(pages) + " page(s) of tools");
  }
  void check_progress() {
    std::string steps;
    mcp::ClientCallOptions options;
    options.on_progress = [&](double progress, std::optional<double> total, const std::string& message) {
      steps += std::to_string(static_cast<int>(progress)) + "/" +
               std::to_string(static_cast<int>(total.value_or(0))) + " " + message + ";";
    };
    expect_equal(text("steps", R"({"to":3})", options), "3 steps");
    expect_equal(steps, "1/3 step 1;2/3 step 2;3/3 step 3;");
  }
  void check_log() {
    value_of(loop_.block_on(client_->set_log_level(mcp::LoggingLevel::info)));
    logs_.clear();
    expect_equal(text("steps", R"({"to":2})"), "2 steps");
    wait_until([&] { return logs_.size() >= 2; }, "a log message");
    expect(logs_ == std::vector<std::string>{"at step 1", "at step 2"}, "other log messages");
  }
  void check_cancel() {
    std::stop_source stop;
    mcp::ClientCallOptions options;
    options.stop = stop.get_token();
    options.on_progress = [&](double, std::optional<double>, const std::string&) { stop.request_stop(); };
    options.max_total_time = 20s;
    const Result<mcp::ToolResult> waited =
        loop_.block_on(client_->call_tool(prefix_ + "wait", value_of(json::Raw::parse("{}")), options));
    expect(!waited && waited.error().kind() == ErrorKind::cancelled, "wait was not cancelled");
    expect_equal(text("cancelled"), "1");
  }
  void check_resources() {
    const std::vector<json::Raw> listed = value_of(loop_.block_on(client_->resources()));
    expect(contains_entry(listed, "uri", "memo://one") && contains_entry(listed, "uri", "pixel://red"),
           "a resource is not listed");
    expect_equal(value_of(loop_.block_on(client_->read_resource("memo://one"))).at(0).text.value_or(""),
                 "the first memo");
    const mcp::ResourceContents pixel = value_of(loop_.block_on(client_->read_resource("pixel://red"))).at(0);
    expect_equal(pixel.blob.value_or("").substr(0, 8), "iVBORw0K");
    expect(!loop_.block_on(client_->read_resource("nothing://here")),
           "a resource that does not exist was not refused");
  }
  void check_templates() {
    expect(contains_entry(value_of(loop_.block_on(client_->resource_templates())), "uriTemplate",
                          "memos://{name}"),
           "the template is not listed");
    expect_equal(value_of(loop_.block_on(client_->read_resource("memos://two"))).at(0).text.value_or(""),
                 "memo two");
  }
  void check_subscribe() {
    value_of(loop_.block_on(client_->subscribe("memo://one")));
    expect_equal(text("touch"), "touched");
    wait_until([&] { return !updates_.empty(); }, "the update");
    expect_equal(updates_.at(0), "memo://one");
  }
  void check_prompts() {
    expect(contains_entry(value_of(loop_.block_on(client_->prompts())), "name", prefix_ + "greet"),
           "the prompt is not listed");
    const mcp::PromptResult prompt =
        value_of(loop_.block_on(client_->get_prompt(prefix_ + "greet", {{"name", "Ada"}})));
    expect_equal(prompt.messages.at(0).content.text(), "Say hello to Ada");
  }
  void check_completion() {
    const json::Raw answer =
        request("completion/complete", R"({"ref":{"type":"ref/prompt","name":")" + prefix_ +
                                           R"(greet"},"argument":{"name":"name","value":"al"}})");
    expect_equal(json::View(answer)["completion"]["values"].text(), R"(["alice","albert"])");
  }
  void check_elicit() { expect_equal(text("confirm"), "Ada is sure"); }
  void check_sample() { expect_equal(text("sample", R"({"message":"hi"})"), "parrot: hi"); }
  void check_roots() { expect(text("where").starts_with("file:///one file:///two"), "other roots"); }

  Loop loop_;
  json::View plan_;
  std::string prefix_;
  std::shared_ptr<mcp::Client> client_;
  std::vector<std::string> logs_;
  std::vector<std::string> updates_;
};

// The checks after which a gateway no longer shares the server with other clients are the last ones.
const std::array<Checks::Check, 19> Checks::kChecks{{{"list", &Checks::check_list},
                                                     {"call", &Checks::check_call},
                                                     {"error", &Checks::check_error},
                                                     {"structured", &Checks::check_structured},
                                                     {"unicode", &Checks::check_unicode},
                                                     {"large", &Checks::check_large},
                                                     {"concurrent", &Checks::check_concurrent},
                                                     {"pagination", &Checks::check_pagination},
                                                     {"log", &Checks::check_log},
                                                     {"progress", &Checks::check_progress},
                                                     {"cancel", &Checks::check_cancel},
                                                     {"resources", &Checks::check_resources},
                                                     {"templates", &Checks::check_templates},
                                                     {"subscribe", &Checks::check_subscribe},
                                                     {"prompts", &Checks::check_prompts},
                                                     {"completion", &Checks::check_completion},
                                                     {"elicit", &Checks::check_elicit},
                                                     {"sample", &Checks::check_sample},
                                                     {"roots", &Checks::check_roots}}};

}  // namespace

int main(int argc, char** argv) {
  const Result<json::Raw> plan = json::Raw::parse(argc > 1 ? argv[1] : "");
  if (!plan) {
    std::fprintf(stderr, "usage: interop_client PLAN\n");
    return 2;
  }
  return Checks(json::View(*plan)).run();
}
