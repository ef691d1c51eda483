// Servers in memory behind a real pool, without a gateway: each notes what it is asked, and answers as the
// test says.
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
  std::optional<Error> unreachable;  // why it cannot be connected to
  std::optional<Error> refusal;      // of subscriptions and log levels
  std::deque<Error> next_refusals;   // of the next subscriptions, one each
  std::optional<Event> held;         // starts, calls, subscriptions and log levels wait for it
  std::optional<Event> held_ends;    // ends of subscriptions wait for it
  std::vector<std::string> asked;    // in order, by all connections
  std::uint64_t subscriptions = 0;
  std::shared_ptr<MemoryUpstream> newest;

  long count(const std::string& what) const { return std::ranges::count(asked, what); }
};

// A connection to a MemoryServer.
class MemoryUpstream final : public pool::UpstreamConnection,
                             public std::enable_shared_from_this<MemoryUpstream> {
 public:
  MemoryUpstream(Loop& loop, MemoryServer& server, mcp::ClientHandlers given)
      : handlers(std::move(given)), loop_(loop), server_(server) {
    description_.capabilities = server.capabilities;
    description_.connection = "memory";
  }

  const pool::ServerDescription& server() const noexcept override { return description_; }
  pool::UpstreamCall call(const std::shared_ptr<const mcp::OutgoingRequest>& request, CallOptions) override {
    server_.asked.push_back("call " + std::string(request->tool()));
    return pool::UpstreamCall(answer(shared_from_this()));
  }
  Task<Result<std::vector<json::Raw>>> list(std::string method, std::string) override {
    server_.asked.push_back(method);
    co_return std::vector<json::Raw>();
  }
  Task<Result<std::uint64_t>> subscribe(mcp::ListenFilter filter) override {
    const auto self = shared_from_this();
    server_.asked.push_back("subscribe " + (filter.uris.empty() ? "lists" : filter.uris.front()));
    Task<void> waiting = wait(self);
    co_await waiting;
    if (server_.refusal) co_return *server_.refusal;
    if (!server_.next_refusals.empty()) {
      const Error refused = server_.next_refusals.front();
      server_.next_refusals.pop_front();
      co_return refused;
    }
    co_return ++server_.subscriptions;
  }
  Task<Result<void>> unsubscribe(std::uint64_t number) override {
    const auto self = shared_from_this();
    server_.asked.push_back("unsubscribe " + std::to_string(number));
    if (server_.held_ends) {
      Event held = *server_.held_ends;
      const bool set = co_await held.wait(loop_, Clock::duration::max());
      static_cast<void>(set);
    }
    co_return Result<void>();
  }
  Task<Result<void>> set_log_level(mcp::LoggingLevel level) override {
    const auto self = shared_from_this();
    server_.asked.push_back("level " + std::string(to_string(level)));
    Task<void> waiting = wait(self);
    co_await waiting;
    if (server_.refusal) co_return *server_.refusal;
    co_return Result<void>();
  }
  Result<void> notify(std::string_view, const json::Raw&) override { return {}; }
  Task<Result<void>> ping() override { co_return Result<void>(); }
  std::optional<Error> end_reason() const override { return end_reason_; }
  Error explained(Error error, std::string_view) const override { return error; }
  void abort() noexcept override { end(); }
  Task<void> close() override {
    end();
    co_return;
  }

  // The server is gone.
  void end() {
    if (end_reason_) return;
    end_reason_ = Error(ErrorKind::closed, "gone");
    handlers.ended(*end_reason_);
  }

  const mcp::ClientHandlers handlers;  // how the server speaks by itself

 private:
  static Task<void> wait(std::shared_ptr<MemoryUpstream> self) {
    if (!self->server_.held) co_return;
    Event held = *self->server_.held;
    const bool set = co_await held.wait(self->loop_, Clock::duration::max());
    static_cast<void>(set);
  }
  static Task<Result<rpc::Message>> answer(std::shared_ptr<MemoryUpstream> self) {
    Task<void> waiting = wait(self);
    co_await waiting;
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
    for (auto& [name, server] : memory) {
      if (server.held) server.held->set();
      if (server.held_ends) server.held_ends->set();
    }
    settle();
    if (pool) loop.block_on(pool->shutdown(0ms));
  }

  void open_pool(pool::UpstreamHandlers handlers = {}) {
    pool::PoolOptions options;
    options.handlers = std::move(handlers);
    options.limits = limits;
    for (const std::string name : {"a", "b"}) {
      options.openers[name] = [this, name](Loop&, pool::UpstreamOpening opening) {
        return open(this, name, std::move(opening.client.handlers));
      };
    }
    pool = pool::Pool::create(loop, std::move(options));
  }
  // Of server `a` or `b`.
  static pool::ServerSpec spec(const std::string& name, pool::Sharing sharing = pool::Sharing::shared) {
    pool::ServerSpec made;
    made.name = name;
    made.sharing = sharing;
    made.restart.initial = 1ms;
    made.reach = pool::NamedConnector{name};
    return made;
  }
  std::shared_ptr<pool::Upstream> start(const std::string& server, const std::string& session = "",
                                        const std::string& user = "") {
    const auto started = loop.block_on(pool->warm(pool::Target(server, session, user)));
    EXPECT_TRUE(started) << started.error().to_string();
    return started.value_or(nullptr);
  }
  // Ends the newest connection of a server and waits until the pool has seen it.
  void lose(const std::string& server, const std::shared_ptr<pool::Upstream>& upstream) {
    memory[server].newest->end();
    EXPECT_TRUE(comes_true([&] { return upstream->state() != pool::State::ready; }));
  }
  // Runs what is queued, and what follows from it at once.
  void settle() {
    for (int turn = 0; turn < 50; ++turn) {
      bool reached = false;
      loop.post([&] { reached = true; });
      loop.run_until([&] { return reached; });
    }
  }
  template <class Condition>
  bool comes_true(Condition condition) {
    return loop.block_on(test::eventually(loop, std::move(condition)));
  }

  Loop loop;
  std::vector<std::string> logged;
  Log log{LogLevel::info, LogFormat::text, [this](std::string_view line) { logged.emplace_back(line); }};
  std::map<std::string, MemoryServer> memory;  // by name
  pool::PoolLimits limits;                     // as of open_pool()
  std::shared_ptr<SessionTable> sessions = std::make_shared<SessionTable>();
  std::shared_ptr<pool::Pool> pool;

 private:
  static Task<pool::OpenedUpstream> open(MemoryServersTest* self, std::string name,
                                         mcp::ClientHandlers handlers) {
    MemoryServer& server = self->memory[name];
    if (server.held) {
      Event held = *server.held;
      const bool set = co_await held.wait(self->loop, Clock::duration::max());
      static_cast<void>(set);
    }
    if (server.unreachable) co_return *server.unreachable;
    server.newest = std::make_shared<MemoryUpstream>(self->loop, server, std::move(handlers));
    co_return std::shared_ptr<pool::UpstreamConnection>(server.newest);
  }
};

}  // namespace fairlead::gateway
