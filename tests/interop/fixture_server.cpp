// fixture_server [--http]: an MCP server with tools, resources and prompts of every kind, for tests of
// clients of other projects. Serves stdin and stdout, and with --http also a free port, whose URL it writes
// to stderr. Exits at the end of stdin.
#include <fairlead/connection/connect.hpp>
#include <fairlead/http/server.hpp>
#include <fairlead/loop/event.hpp>
#include <fairlead/mcp/serve.hpp>
#include <fairlead/mcp/typed.hpp>

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string_view>

using namespace fairlead;

namespace {

struct NoArguments {};
BOOST_DESCRIBE_STRUCT(NoArguments, (), ())
struct EchoArgs {
  std::string message;
};
BOOST_DESCRIBE_STRUCT(EchoArgs, (), (message))
struct AddArgs {
  double a;
  double b;
};
BOOST_DESCRIBE_STRUCT(AddArgs, (), (a, b))
struct Sum {
  double sum;
};
BOOST_DESCRIBE_STRUCT(Sum, (), (sum))
struct CountArgs {
  int to;
};
BOOST_DESCRIBE_STRUCT(CountArgs, (), (to))
struct LargeArgs {
  std::size_t bytes;
};
BOOST_DESCRIBE_STRUCT(LargeArgs, (), (bytes))

constexpr std::string_view kPixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

Loop* main_loop = nullptr;
int cancel_count = 0;   // cancelled calls of the tool `wait`
Event cancelled_event;  // such a call was cancelled
Event release_event;    // the tool `release` was called

mcp::ToolResult media(const NoArguments&) {
  mcp::ToolResult result;
  result.content.push_back(mcp::Content::image(kPixel, "image/png"));
  result.content.push_back(mcp::Content::audio("AAAA", "audio/wav"));
  result.content.push_back(mcp::Content::embedded_text("memo://one", "text/plain", "the first memo"));
  result.content.push_back(mcp::Content::resource_link("memo://one", "one", "text/plain"));
  return result;
}

// Responds only after the tool `release` was called: the clients of the SDK drop progress notifications that
// they read together with the response.
Task<Result<std::string>> count(mcp::Context context, CountArgs args) {
  for (int i = 1; i <= args.to; ++i) {
    context.report_progress(i, args.to, "step " + std::to_string(i));
    context.log(mcp::LoggingLevel::info, json::string("counted " + std::to_string(i)), "counter");
  }
  context.log(mcp::LoggingLevel::debug, json::string("done"), "counter");
  const bool released = co_await release_event.wait(*main_loop, std::chrono::seconds(30));
  co_return released ? "counted to " + std::to_string(args.to) : "not released";
}

// Like count(), but does not wait for `release`.
Task<Result<std::string>> steps(mcp::Context context, CountArgs args) {
  for (int i = 1; i <= args.to; ++i) {
    context.report_progress(i, args.to, "step " + std::to_string(i));
    context.log(mcp::LoggingLevel::info, json::string("at step " + std::to_string(i)), "steps");
  }
  context.log(mcp::LoggingLevel::debug, json::string("done"), "steps");
  co_return std::to_string(args.to) + " steps";
}

std::string fail(const NoArguments&) {
  throw mcp::ToolError("it does not work");
}

// Elicits twice, one after the other. For modern clients these are two rounds.
Task<Result<std::string>> confirm(mcp::Context context, NoArguments) {
  const json::Raw who = json::Raw::trusted(
      Bytes::constant(R"({"type":"object","properties":{"name":{"type":"string"}},"required":["name"]})"));
  Task<Result<mcp::ElicitResult>> elicitation = context.elicit("Who are you?", who);
  const Result<mcp::ElicitResult> name = co_await elicitation;
  if (!name) co_return name.error();
  if (name->action != mcp::ElicitResult::Action::accept) co_return std::string("declined");
  const json::Raw sure = json::Raw::trusted(
      Bytes::constant(R"({"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]})"));
  Task<Result<mcp::ElicitResult>> second_elicitation = context.elicit("Are you sure?", sure);
  const Result<mcp::ElicitResult> answer = co_await second_elicitation;
  if (!answer) co_return answer.error();
  const bool is_sure = json::View(answer->content)["sure"].as_bool().value_or(false);
  co_return json::View(name->content)["name"].as_string().value_or("") +
      (is_sure ? " is sure" : " is not sure");
}

Task<Result<std::string>> visit(mcp::Context context, NoArguments) {
  const Result<mcp::ElicitResult> answer =
      co_await context.elicit_url("Please sign in", "https://example.com/sign-in");
  if (!answer) co_return answer.error();
  co_return std::string(answer->action == mcp::ElicitResult::Action::accept ? "visited" : "not visited");
}

Task<Result<std::string>> sample(mcp::Context context, EchoArgs args) {
  json::Writer params;
  params.begin_object()
      .key("maxTokens")
      .integer(50)
      .key("messages")
      .begin_array()
      .begin_object()
      .key("role")
      .string("user");
  params.key("content").raw(mcp::Content::text(args.message).raw()).end_object().end_array().end_object();
  const Result<json::Raw> answer = co_await context.sample(params.finish());
  if (!answer) co_return answer.error();
  co_return json::View(*answer)["model"].as_string().value_or("") + ": " +
      json::View(*answer)["content"]["text"].as_string().value_or("");
}

Task<Result<std::string>> where(mcp::Context context, NoArguments) {
  const Result<std::vector<mcp::Root>> roots = co_await context.roots();
  if (!roots) co_return roots.error();
  std::string all;
  for (const mcp::Root& root : *roots) all += root.uri + " ";
  co_return all;
}

// Sends a progress notification, so that the client knows that the call has begun, then waits until the call
// is cancelled.
Task<Result<std::string>> wait_long(mcp::Context context, NoArguments) {
  Event ended;
  const std::stop_callback on_stop(context.stop(),
                                   [ended] { main_loop->post([ended]() mutable { ended.set(); }); });
  context.report_progress(1);
  const bool stopped = co_await ended.wait(*main_loop, std::chrono::seconds(60));
  if (stopped) {
    ++cancel_count;
    cancelled_event.set();
  }
  co_return std::string(stopped ? "cancelled" : "not cancelled");
}

Task<Result<std::string>> cancelled(mcp::Context, NoArguments) {
  const bool was_cancelled = co_await cancelled_event.wait(*main_loop, std::chrono::seconds(30));
  co_return was_cancelled ? std::to_string(cancel_count) : "never";
}

Task<Result<std::vector<mcp::ResourceContents>>> read_memo(mcp::Context, std::string uri,
                                                           mcp::Server::Variables variables) {
  const std::string text = variables.contains("name") ? "memo " + variables["name"] : "the first memo";
  co_return std::vector<mcp::ResourceContents>(1, mcp::ResourceContents{uri, "text/plain", text, {}});
}

Task<Result<std::vector<mcp::ResourceContents>>> read_pixel(mcp::Context, std::string uri,
                                                            mcp::Server::Variables) {
  co_return std::vector<mcp::ResourceContents>(
      1, mcp::ResourceContents{uri, "image/png", {}, std::string(kPixel)});
}

Task<Result<mcp::PromptResult>> greet(mcp::Context, mcp::Server::Variables arguments) {
  mcp::PromptResult prompt;
  prompt.description = "A greeting";
  prompt.messages.push_back({"user", mcp::Content::text("Say hello to " + arguments["name"])});
  co_return prompt;
}

mcp::CompletionResult complete(const std::string&, const std::string& value, const mcp::Server::Variables&) {
  mcp::CompletionResult result;
  for (const char* candidate : {"alice", "albert", "bob"}) {
    if (std::string_view(candidate).starts_with(value)) result.values.emplace_back(candidate);
  }
  result.total = result.values.size();
  return result;
}

void add_tools(mcp::Server& server) {
  mcp::tool(server, "echo", "Returns its message", [](const EchoArgs& in) { return in.message; });
  mcp::tool(server, "add", "Adds two numbers", [](const AddArgs& in) { return Sum{in.a + in.b}; });
  mcp::tool(server, "count", "Counts, with progress and log messages", &count);
  mcp::tool(server, "steps", "Counts likewise, and does not wait for release", &steps);
  mcp::tool(server, "large", "Returns a text of so many bytes",
            [](const LargeArgs& in) { return std::string(in.bytes, 'x'); });
  mcp::tool(server, "media", "One of each kind of content", &media);
  mcp::tool(server, "fail", "Fails", &fail);
  mcp::tool(server, "confirm", "Asks two questions", &confirm);
  mcp::tool(server, "visit", "Has a page visited", &visit);
  mcp::tool(server, "sample", "Asks the client's model", &sample);
  mcp::tool(server, "where", "Lists the client's roots", &where);
  mcp::tool(server, "wait", "Waits to be cancelled", &wait_long);
  mcp::tool(server, "cancelled", "How often wait was cancelled, once it was", &cancelled);
  mcp::tool(server, "release", "Lets count end", [](const NoArguments&) {
    release_event.set();
    return "released";
  });
  mcp::tool(server, "touch", "Changes memo://one", [&server](const NoArguments&) {
    server.notify_resource_updated("memo://one");
    return "touched";
  });
  mcp::tool(server, "grow", "Adds a tool", [&server](const NoArguments&) {
    mcp::tool(server, "grown", "Was not there before", [](const NoArguments&) { return "grown"; });
    return "grown";
  });
}

bool add_resources_and_prompts(mcp::Server& server) {
  mcp::ResourceSpec memo;
  memo.uri = "memo://one";
  memo.name = "one";
  memo.mime_type = "text/plain";
  mcp::ResourceSpec pixel;
  pixel.uri = "pixel://red";
  pixel.name = "pixel";
  pixel.mime_type = "image/png";
  mcp::ResourceSpec memos;
  memos.uri = "memos://{name}";
  memos.name = "memos";
  mcp::PromptSpec greeting;
  greeting.name = "greet";
  greeting.description = "Greets";
  greeting.arguments = {{"name", "", "Whom", true}};
  return server.add_resource(memo, read_memo) && server.add_resource(pixel, read_pixel) &&
         server.add_resource_template(memos, read_memo, complete) &&
         server.add_prompt(greeting, greet, complete);
}

// Serves HTTP as mcp::serve_http() does, but on the loop of this program. The short retry delay makes clients
// reconnect soon after their connection was closed.
class HttpListener {
 public:
  HttpListener(Loop& loop, const mcp::Server& server) {
    const auto listening = http::Server::listen(loop, "127.0.0.1:0");
    if (!listening) throw std::runtime_error(listening.error().to_string());
    listener_ = *listening;
    transport::EndpointOptions options;
    options.retry = std::chrono::milliseconds(50);
    endpoint_ = transport::Endpoint::create(loop, mcp::http_application(server), options);
    listener_->route("/mcp", endpoint_->handler());
    listener_->route("/sse", endpoint_->sse_handler("/messages"));
    listener_->route("/messages", endpoint_->messages_handler());
    std::fprintf(stderr, "listening on http://%s\n", listener_->address().c_str());
  }
  HttpListener(const HttpListener&) = delete;
  ~HttpListener() {
    endpoint_->close();
    listener_->close();
  }

 private:
  std::shared_ptr<http::Server> listener_;
  std::shared_ptr<transport::Endpoint> endpoint_;
};

}  // namespace

int main(int argc, char** argv) {
  mcp::Server server("fixture", "1.0");
  server.instructions("Use it for tests.").page_size(5);
  add_tools(server);
  if (!add_resources_and_prompts(server)) return 1;
  Loop loop;
  main_loop = &loop;
  ConnectResult stdio = connect_own_stdio(loop);
  if (!stdio) return 1;
  std::optional<HttpListener> listener;
  if (argc > 1 && std::string_view(argv[1]) == "--http") listener.emplace(loop, server);
  const std::shared_ptr<Peer> peer = mcp::serve(server, *stdio);
  loop.run_until([&] { return peer->finished().is_set(); });
  return 0;
}
