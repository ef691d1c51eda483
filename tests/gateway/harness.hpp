// GatewayTest: a fixture with a gateway between clients and servers. All run in this process and are
// connected by in-memory channels. Each connection to a server creates a new Instance of the server, as a new
// process would be.
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

struct NoArguments {};
BOOST_DESCRIBE_STRUCT(NoArguments, (), ())

inline constexpr const char* kMemo = "memo://one";
inline const std::string kUpdated = "notifications/resources/updated " + std::string(kMemo);
inline const std::string kToolsChanged = "notifications/tools/list_changed ";

// The instance of a server that serves one connection.
struct Instance {
  explicit Instance(std::size_t index) : number(index) {}
  const std::size_t number;  // among the instances of this server, from 0
  mcp::Server server{"behind", "1"};
  std::shared_ptr<Peer> peer;
  std::shared_ptr<Connection> connection;
  bool waiting = false;    // the tool `wait` was called
  bool cancelled = false;  // the call of `wait` was cancelled
};
using Instances = std::vector<std::shared_ptr<Instance>>;

// A server that returns scripted results, valid or invalid.
class ScriptedServer final : public mcp::Backend {
 public:
  explicit ScriptedServer(Loop& loop) : loop_(loop) {}
  std::map<std::string, std::string, std::less<>> results;  // by method; empty text: it never responds
  bool received_request = false;
  std::function<void(std::string_view method)> on_request = [](std::string_view) {};
  std::function<json::Raw(const mcp::BackendRequest&)> call_result;  // for tools/call, instead of `results`

  bool has_capability(std::string_view capability) const override {
    return capability == "tools" || capability == "prompts";
  }
  Task<Answer> serve(mcp::BackendRequest request) override {
    received_request = true;
    on_request(request.message.method());
    if (call_result && request.message.method() == "tools/call") co_return call_result(request);
    const auto result = results.find(request.message.method());
    if (result == results.end()) co_return Error::rpc(rpc::kInternalError, "not in the script");
    if (!result->second.empty()) co_return raw(result->second);
    co_await ended_.wait(loop_);
    co_return Error::rpc(rpc::kInternalError, "too late");
  }
  mcp::HeaderParams header_params(std::string_view, const Principal&) const override { return nullptr; }
  Task<Result<std::shared_ptr<void>>> subscribe(mcp::BackendSubscription) override {
    co_return Error::rpc(rpc::kInternalError, "not in the script");
  }
  void on_session_began(std::string_view, ContextSource) override {}
  void on_log_level_set(std::string_view, mcp::LoggingLevel) override {}
  void on_session_ended(std::string_view) override { ended_.set(); }

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
  std::map<std::string, Event> start_events;                    // by server: it starts when the event is set
  std::map<std::string, int> failing_starts;                    // by server: how many of its starts fail
  std::function<void(Instance&)> customize = [](Instance&) {};  // called with each new instance

  // ---- tools of the servers ----
  // The tool `ask` requests sampling and returns the name of the client's model, or the error.
  static Task<std::string> ask(mcp::Context context, NoArguments) {
    Task<Result<json::Raw>> sampling = context.sample(
        raw(R"({"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":1})"));
    const Result<json::Raw> answer = co_await sampling;
    co_return answer ? json::View(*answer)["model"].as_string().value_or("") : answer.error().message();
  }
  // The tool `sign_in` fails until the user has visited a URL.
  static Task<Result<std::string>> sign_in(mcp::Context context, NoArguments) {
    const Result<void> signed_in =
        co_await context.require_url("Sign in", "https://example.org/in", "sign-in");
    if (!signed_in) co_return signed_in.error();
    co_return std::string("signed in");
  }
  // The tool `wait` lasts until it is cancelled.
  static Task<std::string> wait(Instance* instance, mcp::Context context) {
    instance->waiting = true;
    const bool slept = co_await context.sleep(1h);
    instance->cancelled = !slept;
    co_return std::string("waited");
  }
  static Task<Result<std::vector<mcp::ResourceContents>>> read(mcp::Context, std::string uri,
                                                               mcp::Server::Variables) {
    co_return std::vector<mcp::ResourceContents>(1, mcp::ResourceContents{uri, "text/plain", "memo", {}});
  }
  static void add_features(Instance& instance) {
    mcp::Server& server = instance.server;
    mcp::tool(server, "which", "", [&](const NoArguments&) { return std::to_string(instance.number); });
    mcp::tool(server, "touch", "", [&](const NoArguments&) {
      server.notify_resource_updated(kMemo);
      return "touched";
    });
    mcp::tool(server, "grow", "", [&](const NoArguments&) {
      mcp::tool(server, "grown", "", [](const NoArguments&) { return "grown"; });
      return "grown";
    });
    mcp::tool(server, "ask", "", &ask);
    mcp::tool(server, "say", "", [](mcp::Context context, const NoArguments&) {
      context.log(mcp::LoggingLevel::info, raw(R"("said")"));
      context.log(mcp::LoggingLevel::debug, raw(R"("whispered")"));
      return "said";
    });
    mcp::tool(server, "level", "", [](mcp::Context context, const NoArguments&) {
      return std::string(to_string(context.log_level().value_or(mcp::LoggingLevel::emergency)));
    });
    mcp::tool(server, "sign_in", "", &sign_in);
    mcp::tool(server, "wait", "",
              [&instance](mcp::Context context, NoArguments) { return wait(&instance, std::move(context)); });
    mcp::ResourceSpec memo;
    memo.uri = kMemo;
    memo.name = "one";
    ASSERT_TRUE(server.add_resource(memo, &read));
  }
  // ---- servers ----
  // Starts an instance of the server `name`, and returns the gateway's side of the connection to it.
  static Task<ConnectResult> open(GatewayTest* self, std::string name, std::shared_ptr<Instances> instances,
                                  Loop* on) {
    if (const auto start = self->start_events.find(name); start != self->start_events.end()) {
      co_await start->second.wait(*on);
    }
    if (self->failing_starts[name] > 0) {
      --self->failing_starts[name];
      co_return Error(ErrorKind::connection_failed, "not yet");
    }
    auto instance = std::make_shared<Instance>(instances->size());
    add_features(*instance);
    self->customize(*instance);
    auto [gateway_side, server_side] = make_channel(*on, *on);
    instance->connection = server_side;
    instance->peer = mcp::serve(instance->server, server_side);
    instances->push_back(instance);
    co_return gateway_side;
  }
  // Adds a server to the configuration of the gateway, which is created by the first connect_client().
  void add(const std::string& name, Sharing sharing, mcp::Revision revision = mcp::kNewestLegacyRevision) {
    auto instances = servers[name] = std::make_shared<Instances>();
    pool::ServerSpec spec;
    spec.name = name;
    spec.sharing = sharing;
    spec.pinned_revision = revision;
    spec.restart.initial = 1ms;
    spec.transport = pool::ConnectorName{name};
    config.connectors[name] = [this, name, instances](Loop& on, StreamConnectOptions) {
      return open(this, name, instances, &on);
    };
    config.servers.push_back(spec);
  }
  Instance& instance(const std::string& server, std::size_t number) { return *servers[server]->at(number); }

  // ---- clients ----
  struct Client {
    std::shared_ptr<mcp::Client> client;
    std::vector<std::string> received;  // notifications: "method uri"; log messages: "method data"
    long count(const std::string& notification) const { return std::ranges::count(received, notification); }
  };
  std::shared_ptr<transport::Application> front;
  std::vector<std::shared_ptr<Client>> clients;
  std::string issuer;  // of the principals of clients that are connected later
  std::function<Task<Answer>(Request)> client_handler;  // handles all requests to clients, if set

  static Task<Result<json::Raw>> answer_model(std::string model) {
    co_return raw(R"({"role":"assistant","content":{"type":"text","text":"!"},"model":")" + model + R"("})");
  }
  // Connects a client; the first call creates the gateway. `model` is the model name in the client's
  // responses to sampling requests; if it is empty, the client does not support sampling.
  std::shared_ptr<Client> connect_client(mcp::Revision revision = mcp::kNewestLegacyRevision,
                                         const std::string& user = "", const std::string& model = "") {
    if (!gateway) {
      Result<std::shared_ptr<Gateway>> created = Gateway::create(loop, config, gateway_log);
      EXPECT_TRUE(created) << created.error().to_string();
      gateway = *created;
      front = mcp::http_application(gateway->front());
    }
    auto client = std::make_shared<Client>();
    mcp::ClientOptions options;
    options.pinned_revision = revision;
    options.log_level = mcp::LoggingLevel::info;
    options.cache_results = false;
    if (!model.empty()) options.handlers.sample = [model](json::Raw) { return answer_model(model); };
    if (client_handler) {
      options.handlers.capabilities = raw(R"({"sampling":{},"roots":{},"elicitation":{"form":{},"url":{}}})");
      options.handlers.on_request = client_handler;
    }
    options.handlers.on_notification = [weak = std::weak_ptr(client)](std::string_view method,
                                                                      const json::Raw& params) {
      const json::View view(params);
      const bool is_log = method == "notifications/message";
      if (const auto self = weak.lock())
        self->received.push_back(std::string(method) + " " +
                                 view[is_log ? "data" : "uri"].as_string().value_or(""));
    };
    auto [client_side, gateway_side] = make_channel(loop, loop);
    auto principal = std::make_shared<Principal>();
    principal->user = user;
    principal->issuer = issuer;
    front->serve(gateway_side, principal);
    Result<std::shared_ptr<mcp::Client>> opened =
        loop.block_on(mcp::Client::connect_over(client_side, std::move(options)));
    EXPECT_TRUE(opened) << opened.error().to_string();
    client->client = *opened;
    clients.push_back(client);
    return client;
  }
  void disconnect(const std::shared_ptr<Client>& client) { loop.block_on(client->client->close()); }
  void TearDown() override {
    for (const auto& client : clients) disconnect(client);
    if (gateway) loop.block_on(gateway->shutdown(0ms));
  }

  // ---- actions ----
  std::string call(const std::shared_ptr<Client>& client, const std::string& tool) {
    const Result<mcp::ToolResult> result = loop.block_on(client->client->call_tool(tool, raw("{}")));
    if (!result) return "<" + result.error().message() + ">";
    return json::View(result->content.at(0).raw())["text"].as_string().value_or("");
  }
  std::vector<std::string> tools(const std::shared_ptr<Client>& client) {
    const Result<std::vector<json::Raw>> listed = loop.block_on(client->client->tools());
    std::vector<std::string> names;
    if (listed) {
      for (const json::Raw& tool : *listed)
        names.push_back(json::View(tool)["name"].as_string().value_or(""));
    }
    return names;
  }
  bool has_tool(const std::shared_ptr<Client>& client, const std::string& tool) {
    return std::ranges::count(tools(client), tool) == 1;
  }
  // Returns the number of the subscription.
  std::uint64_t subscribe(const std::shared_ptr<Client>& client, const std::string& uri = kMemo) {
    const Result<std::uint64_t> number = loop.block_on(client->client->subscribe(uri));
    EXPECT_TRUE(number) << number.error().to_string();
    return number.value_or(0);
  }
  // Sets `failed` when the call has failed.
  static Task<void> call_until_failure(std::shared_ptr<mcp::Client> client, std::string tool,
                                       mcp::ClientCallOptions options, bool* failed) {
    Task<Result<mcp::ToolResult>> calling = client->call_tool(std::move(tool), raw("{}"), std::move(options));
    const Result<mcp::ToolResult> result = co_await calling;
    *failed = !result;
  }
  // Sets `text` when the call has ended.
  static Task<void> call_for_text(std::shared_ptr<mcp::Client> client, std::string tool, std::string* text) {
    Task<Result<mcp::ToolResult>> calling = client->call_tool(std::move(tool), raw("{}"));
    const Result<mcp::ToolResult> result = co_await calling;
    *text = result ? json::View(result->content.at(0).raw())["text"].as_string().value_or("") : "failed";
  }
  // Subscribes to changes of the tool list, as modern clients do.
  void subscribe_to_tool_list(const std::shared_ptr<Client>& client) {
    mcp::SubscriptionFilter filter;
    filter.tools = true;
    EXPECT_TRUE(loop.block_on(client->client->subscribe(filter)));
  }
  template <class Condition>
  bool wait_until(Condition condition) {
    return loop.block_on(test::eventually(loop, std::move(condition), 20s));
  }
  // Waits until all messages that have been sent so far are delivered, by calls over the same channels.
  void flush_messages(const std::string& server) {
    for (int round = 0; round < 3; ++round) {
      for (const auto& client : clients) call(client, server + "__which");
    }
  }
};

}  // namespace fairlead::gateway
