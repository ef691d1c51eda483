// A gateway between clients and servers that are all in this process, each on a channel of its own. A server
// is made anew for each connection to it, as a process would be.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/connection/channel.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/mcp/backend.hpp"
#include "fairlead/mcp/client.hpp"
#include "fairlead/mcp/serve.hpp"
#include "fairlead/mcp/typed.hpp"
#include "fairlead/rpc/codes.hpp"
#include "support/support.hpp"

namespace fairlead::gateway {

using namespace std::chrono_literals;
using pool::Sharing;
using test::raw;

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

inline constexpr const char* kMemo = "memo://one";
inline const std::string kUpdated = "notifications/resources/updated " + std::string(kMemo);
inline const std::string kToolsChanged = "notifications/tools/list_changed ";

// A server as one connection sees it.
struct Instance {
  explicit Instance(std::size_t which) : number(which) {}
  const std::size_t number;  // of all instances of this server, from 0
  mcp::Server server{"behind", "1"};
  std::shared_ptr<Peer> peer;
  std::shared_ptr<Connection> connection;
  bool waiting = false;
  bool cancelled = false;
};
using Instances = std::vector<std::shared_ptr<Instance>>;

// A server that says what is written here, right or wrong.
class Scripted final : public mcp::Backend {
 public:
  explicit Scripted(Loop& loop) : loop_(loop) {}
  std::map<std::string, std::string, std::less<>> results;  // by method; empty: there never is one
  bool asked = false;
  std::function<void(std::string_view method)> on_asked = [](std::string_view) {};
  std::function<json::Raw(const mcp::BackendRequest&)> call_result;  // of tools/call, instead of `results`

  bool has_capability(std::string_view capability) const override {
    return capability == "tools" || capability == "prompts";
  }
  Task<Answer> serve(mcp::BackendRequest request) override {
    asked = true;
    on_asked(request.message.method());
    if (call_result && request.message.method() == "tools/call") co_return call_result(request);
    const auto result = results.find(request.message.method());
    if (result == results.end()) co_return Error::rpc(rpc::kInternalError, "not in the script");
    if (!result->second.empty()) co_return raw(result->second);
    const bool ended = co_await ended_.wait(loop_, Clock::duration::max());
    static_cast<void>(ended);
    co_return Error::rpc(rpc::kInternalError, "too late");
  }
  mcp::HeaderParams header_params(std::string_view, const Principal&) const override { return nullptr; }
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription) override {
    co_return Error::rpc(rpc::kInternalError, "not in the script");
  }
  void session_began(std::string_view, Reach) override {}
  void log_level_set(std::string_view, mcp::LoggingLevel) override {}
  void session_ended(std::string_view) override { ended_.set(); }

 private:
  Loop& loop_;
  Event ended_;
};

class GatewayTest : public ::testing::Test {
 protected:
  Loop loop;
  Config config;
  Log gateway_log;
  std::shared_ptr<Gateway> gateway;
  std::map<std::string, std::shared_ptr<Instances>> servers;
  std::map<std::string, Event> held;                          // servers that do not start before it is set
  std::map<std::string, int> failures;                        // starts of a server that come to nothing first
  std::function<void(Instance&)> furnish = [](Instance&) {};  // what else a server has

  // ---- behind ----
  static Task<std::string> ask(mcp::Context context, Nothing) {
    Task<Result<json::Raw>> asking = context.sample(
        raw(R"({"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":1})"));
    const Result<json::Raw> answer = co_await asking;
    co_return answer ? json::View(*answer)["model"].as_string().value_or("") : answer.error().message();
  }
  static Task<Result<std::string>> sign_in(mcp::Context context, Nothing) {
    Task<Result<void>> requiring = context.require_url("Sign in", "https://example.org/in", "sign-in");
    const Result<void> signed_in = co_await requiring;
    if (!signed_in) co_return signed_in.error();
    co_return std::string("signed in");
  }
  static Task<std::string> wait(Instance* instance, mcp::Context context) {
    instance->waiting = true;
    Task<bool> sleeping = context.sleep(1h);
    const bool slept = co_await sleeping;
    instance->cancelled = !slept;
    co_return std::string("waited");
  }
  static Task<Result<std::vector<mcp::ResourceContents>>> read(mcp::Context, std::string uri,
                                                               mcp::Server::Variables) {
    co_return std::vector<mcp::ResourceContents>(1, mcp::ResourceContents{uri, "text/plain", "memo", {}});
  }
  static void fill(Instance& instance) {
    mcp::Server& server = instance.server;
    mcp::tool(server, "which", "", [&](const Nothing&) { return std::to_string(instance.number); });
    mcp::tool(server, "touch", "", [&](const Nothing&) {
      server.resource_updated(kMemo);
      return "touched";
    });
    mcp::tool(server, "grow", "", [&](const Nothing&) {
      mcp::tool(server, "grown", "", [](const Nothing&) { return "grown"; });
      return "grown";
    });
    mcp::tool(server, "ask", "", &ask);
    mcp::tool(server, "say", "", [](mcp::Context context, const Nothing&) {
      context.log(mcp::LoggingLevel::info, raw(R"("said")"));
      context.log(mcp::LoggingLevel::debug, raw(R"("whispered")"));
      return "said";
    });
    mcp::tool(server, "level", "", [](mcp::Context context, const Nothing&) {
      return std::string(to_string(context.log_level().value_or(mcp::LoggingLevel::emergency)));
    });
    mcp::tool(server, "sign_in", "", &sign_in);
    mcp::tool(server, "wait", "",
              [&instance](mcp::Context context, Nothing) { return wait(&instance, std::move(context)); });
    mcp::ResourceSpec memo;
    memo.uri = kMemo;
    memo.name = "one";
    ASSERT_TRUE(server.add_resource(memo, &read));
  }
  static Task<ConnectResult> open(GatewayTest* self, std::string name, std::shared_ptr<Instances> instances,
                                  Loop* on) {
    if (const auto held = self->held.find(name); held != self->held.end()) {
      const bool let_go = co_await held->second.wait(*on, Clock::duration::max());
      static_cast<void>(let_go);
    }
    if (self->failures[name] > 0) {
      --self->failures[name];
      co_return Error(ErrorKind::connection_failed, "not yet");
    }
    auto instance = std::make_shared<Instance>(instances->size());
    fill(*instance);
    self->furnish(*instance);
    auto [near_end, far_end] = make_channel(*on, *on);
    instance->connection = far_end;
    instance->peer = mcp::serve(instance->server, far_end);
    instances->push_back(instance);
    co_return near_end;
  }
  void add(const std::string& name, Sharing sharing, mcp::Revision revision = mcp::kNewestLegacy) {
    auto instances = servers[name] = std::make_shared<Instances>();
    pool::ServerSpec spec;
    spec.name = name;
    spec.sharing = sharing;
    spec.pinned = revision;
    spec.restart.initial = 1ms;
    spec.reach = pool::NamedConnector{name};
    config.connectors[name] = [this, name, instances](Loop& on, ConnectOptions) {
      return open(this, name, instances, &on);
    };
    config.servers.push_back(spec);
  }
  Instance& instance(const std::string& server, std::size_t number) { return *servers[server]->at(number); }

  // ---- before ----
  struct Client {
    std::shared_ptr<mcp::Client> client;
    std::vector<std::string> heard;  // "method uri", or of a log message its data
    long count(const std::string& what) const { return std::ranges::count(heard, what); }
  };
  std::shared_ptr<transport::Application> front;
  std::vector<std::shared_ptr<Client>> clients;
  std::function<Task<Answer>(Request)> answers;  // what clients say to what servers ask, instead of a model

  static Task<Result<json::Raw>> answer_model(std::string model) {
    co_return raw(R"({"role":"assistant","content":{"type":"text","text":"!"},"model":")" + model + R"("})");
  }
  // `model` is what it answers when it is asked; empty: it cannot be asked.
  std::shared_ptr<Client> enter(mcp::Revision revision = mcp::kNewestLegacy, const std::string& user = "",
                                const std::string& model = "") {
    if (!gateway) {
      Result<std::shared_ptr<Gateway>> made = Gateway::create(loop, config, gateway_log);
      EXPECT_TRUE(made) << made.error().to_string();
      gateway = *made;
      front = mcp::http_application(gateway->front());
    }
    auto entered = std::make_shared<Client>();
    mcp::ClientOptions options;
    options.pinned = revision;
    options.log_level = mcp::LoggingLevel::info;
    options.cache = false;
    if (!model.empty()) options.handlers.sample = [model](json::Raw) { return answer_model(model); };
    if (answers) {
      options.handlers.capabilities = raw(R"({"sampling":{},"roots":{},"elicitation":{"form":{},"url":{}}})");
      options.handlers.request = answers;
    }
    options.handlers.notified = [weak = std::weak_ptr(entered)](std::string_view method,
                                                                const json::Raw& params) {
      const json::View view(params);
      const bool log = method == "notifications/message";
      if (const auto self = weak.lock())
        self->heard.push_back(std::string(method) + " " +
                              view[log ? "data" : "uri"].as_string().value_or(""));
    };
    auto [near_end, far_end] = make_channel(loop, loop);
    auto principal = std::make_shared<Principal>();
    principal->user = user;
    front->serve(far_end, principal);
    Result<std::shared_ptr<mcp::Client>> opened =
        loop.block_on(mcp::Client::on(near_end, std::move(options)));
    EXPECT_TRUE(opened) << opened.error().to_string();
    entered->client = *opened;
    clients.push_back(entered);
    return entered;
  }
  void leave(const std::shared_ptr<Client>& client) { loop.block_on(client->client->close()); }
  void TearDown() override {
    for (const auto& client : clients) leave(client);
    if (gateway) loop.block_on(gateway->shutdown(0ms));
  }

  // ---- doing ----
  std::string call(const std::shared_ptr<Client>& client, const std::string& tool) {
    const Result<mcp::ToolResult> result = loop.block_on(client->client->call_tool(tool, raw("{}")));
    if (!result) return "<" + result.error().message() + ">";
    return json::View(result->content.at(0).raw())["text"].as_string().value_or("");
  }
  std::vector<std::string> tools(const std::shared_ptr<Client>& client) {
    const Result<std::vector<json::Raw>> listed = loop.block_on(client->client->tools());
    std::vector<std::string> names;
    if (listed) {
      for (const json::Raw& one : *listed) names.push_back(json::View(one)["name"].as_string().value_or(""));
    }
    return names;
  }
  bool has(const std::shared_ptr<Client>& client, const std::string& tool) {
    return std::ranges::count(tools(client), tool) == 1;
  }
  // The number of the subscription.
  std::uint64_t subscribe(const std::shared_ptr<Client>& client, const std::string& uri = kMemo) {
    const Result<std::uint64_t> number = loop.block_on(client->client->subscribe(uri));
    EXPECT_TRUE(number) << number.error().to_string();
    return number.value_or(0);
  }
  static Task<void> wait_for(std::shared_ptr<mcp::Client> client, std::string tool,
                             mcp::ToolCallOptions options, bool* over) {
    Task<Result<mcp::ToolResult>> calling = client->call_tool(std::move(tool), raw("{}"), std::move(options));
    const Result<mcp::ToolResult> result = co_await calling;
    *over = !result;
  }
  static Task<void> call_beside(std::shared_ptr<mcp::Client> client, std::string tool, std::string* text) {
    Task<Result<mcp::ToolResult>> calling = client->call_tool(std::move(tool), raw("{}"));
    const Result<mcp::ToolResult> result = co_await calling;
    *text = result ? json::View(result->content.at(0).raw())["text"].as_string().value_or("") : "failed";
  }
  // What modern clients do to hear of lists.
  void listen(const std::shared_ptr<Client>& client) {
    mcp::ListenFilter filter;
    filter.tools = true;
    EXPECT_TRUE(loop.block_on(client->client->listen(filter)));
  }
  template <class Condition>
  bool comes_true(Condition condition) {
    return loop.block_on(test::eventually(loop, std::move(condition), 20s));
  }
  // Whatever was on its way to anybody has arrived when this ends: it takes the same ways.
  void settle(const std::string& server) {
    for (int round = 0; round < 3; ++round) {
      for (const auto& client : clients) call(client, server + "__which");
    }
  }
};

}  // namespace fairlead::gateway
