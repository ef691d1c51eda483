// MemoryServersTest: a fixture with a real pool and servers in memory, without a gateway. Each server records
// its requests and responds as configured by the test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "fairlead/pool/pool.hpp"
#include "gateway/session_table.hpp"
#include "mcp/recording_link.hpp"
#include "support/support.hpp"

namespace fairlead::gateway {

using namespace std::chrono_literals;

class MemoryUpstream;

struct MemoryServer {
  json::Raw capabilities = test::raw(R"({"tools":{},"resources":{},"logging":{}})");
  std::optional<Error> connect_error;     // connecting to the server fails with this error
  std::optional<Error> refusal_error;     // response to every subscription and log level
  std::deque<Error> next_refusal_errors;  // one response to each of the next subscriptions
  std::optional<Event> unblock;           // starts, calls, subscriptions and log levels wait for this event
  std::optional<Event> unblock_unsubscribe;  // unsubscribe() waits for this event
  std::vector<std::string> requests;         // in order, of all connections
  std::uint64_t last_subscription = 0;       // number of the last subscription
  std::shared_ptr<MemoryUpstream> newest_connection;

  long count(const std::string& request) const { return std::ranges::count(requests, request); }
};

// A connection to a MemoryServer.
class MemoryUpstream final : public pool::UpstreamConnection,
                             public std::enable_shared_from_this<MemoryUpstream> {
 public:
  MemoryUpstream(Loop& loop, MemoryServer& server, mcp::ClientHandlers client_handlers)
      : handlers(std::move(client_handlers)), loop_(loop), server_(server) {
    description_.capabilities = server.capabilities;
    description_.connection_description = "memory";
  }

  const pool::ServerDescription& server() const noexcept override { return description_; }
  pool::UpstreamCall call(const std::shared_ptr<const mcp::ForwardedRequest>& request, CallOptions) override {
    server_.requests.push_back("call " + std::string(request->tool()));
    return pool::UpstreamCall(respond(shared_from_this()));
  }
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string) override {
    server_.requests.push_back(method);
    co_return std::vector<json::Raw>();
  }
  Task<Result<std::uint64_t>> subscribe(mcp::SubscriptionFilter filter) override {
    const auto self = shared_from_this();
    server_.requests.push_back("subscribe " + (filter.uris.empty() ? "lists" : filter.uris.front()));
    co_await wait_until_unblocked(self);
    if (server_.refusal_error) co_return *server_.refusal_error;
    if (!server_.next_refusal_errors.empty()) {
      const Error refused = server_.next_refusal_errors.front();
      server_.next_refusal_errors.pop_front();
      co_return refused;
    }
    co_return ++server_.last_subscription;
  }
  Task<Result<void>> unsubscribe(std::uint64_t number) override {
    const auto self = shared_from_this();
    server_.requests.push_back("unsubscribe " + std::to_string(number));
    if (server_.unblock_unsubscribe) {
      Event event = *server_.unblock_unsubscribe;
      co_await event.wait(loop_);
    }
    co_return Result<void>();
  }
  Task<Result<void>> set_log_level(mcp::LoggingLevel level) override {
    const auto self = shared_from_this();
    server_.requests.push_back("level " + std::string(to_string(level)));
    co_await wait_until_unblocked(self);
    if (server_.refusal_error) co_return *server_.refusal_error;
    co_return Result<void>();
  }
  Result<void> notify(std::string_view, const json::Raw&) override { return {}; }
  Task<Result<void>> ping() override { co_return Result<void>(); }
  std::optional<Error> end_reason() const override { return end_reason_; }
  Error with_error_context(Error error, std::string_view) const override { return error; }
  void abort() noexcept override { end(); }
  Task<void> close() override {
    end();
    co_return;
  }

  // Ends the connection as if the server had exited.
  void end() {
    if (end_reason_) return;
    end_reason_ = Error(ErrorKind::closed, "gone");
    handlers.on_ended(*end_reason_);
  }

  const mcp::ClientHandlers handlers;  // for notifications and requests of the server

 private:
  static Task<void> wait_until_unblocked(std::shared_ptr<MemoryUpstream> self) {
    if (!self->server_.unblock) co_return;
    Event event = *self->server_.unblock;
    co_await event.wait(self->loop_);
  }
  static Task<Result<rpc::Message>> respond(std::shared_ptr<MemoryUpstream> self) {
    co_await wait_until_unblocked(self);
    co_return rpc::Message::parse(Bytes::copy_of(R"({"jsonrpc":"2.0","id":1,"result":{"content":[]}})"));
  }

  Loop& loop_;
  MemoryServer& server_;
  pool::ServerDescription description_;
  std::optional<Error> end_reason_;
};

class MemoryServersTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (auto& [name, server] : memory_servers) {
      if (server.unblock) server.unblock->set();
      if (server.unblock_unsubscribe) server.unblock_unsubscribe->set();
    }
    run_until_idle();
    if (pool) loop.block_on(pool->shutdown(0ms));
  }

  void open_pool(pool::UpstreamHandlers handlers = {}) {
    pool::PoolOptions options;
    options.handlers = std::move(handlers);
    options.limits = limits;
    for (const std::string name : {"a", "b"}) {
      options.openers[name] = [this, name](Loop&, pool::UpstreamOpenOptions opening) {
        return open(this, name, std::move(opening.client.handlers));
      };
    }
    pool = pool::Pool::create(loop, std::move(options));
  }
  // Returns the spec of server `a` or `b`.
  static pool::ServerSpec spec(const std::string& name, pool::Sharing sharing = pool::Sharing::shared) {
    pool::ServerSpec result;
    result.name = name;
    result.sharing = sharing;
    result.restart.initial = 1ms;
    result.transport = pool::ConnectorName{name};
    return result;
  }
  std::shared_ptr<pool::Upstream> start(const std::string& server, const std::string& session = "",
                                        const std::string& user = "") {
    const auto started = loop.block_on(pool->warm(pool::Target(server, session, user)));
    EXPECT_TRUE(started) << started.error().to_string();
    return started.value_or(nullptr);
  }
  // Ends the newest connection of a server and waits until the pool has noticed it.
  void end_connection(const std::string& server, const std::shared_ptr<pool::Upstream>& upstream) {
    memory_servers[server].newest_connection->end();
    EXPECT_TRUE(wait_until([&] { return upstream->state() != pool::UpstreamState::ready; }));
  }
  // Runs the callbacks that are posted to the loop, and those that they post.
  void run_until_idle() {
    for (int turn = 0; turn < 50; ++turn) {
      bool reached = false;
      loop.post([&] { reached = true; });
      loop.run_until([&] { return reached; });
    }
  }
  template <class Condition>
  bool wait_until(Condition condition) {
    return loop.block_on(test::eventually(loop, std::move(condition)));
  }

  Loop loop;
  std::vector<std::string> logged;
  Log log{LogLevel::info, LogFormat::text, [this](std::string_view line) { logged.emplace_back(line); }};
  std::map<std::string, MemoryServer> memory_servers;  // by name
  pool::PoolLimits limits;                             // used by open_pool()
  std::shared_ptr<SessionTable> sessions = std::make_shared<SessionTable>();
  std::shared_ptr<pool::Pool> pool;

 private:
  static Task<pool::UpstreamOpenResult> open(MemoryServersTest* self, std::string name,
                                             mcp::ClientHandlers handlers) {
    MemoryServer& server = self->memory_servers[name];
    if (server.unblock) {
      Event event = *server.unblock;
      co_await event.wait(self->loop);
    }
    if (server.connect_error) co_return *server.connect_error;
    server.newest_connection = std::make_shared<MemoryUpstream>(self->loop, server, std::move(handlers));
    co_return std::shared_ptr<pool::UpstreamConnection>(server.newest_connection);
  }
};

}  // namespace fairlead::gateway
