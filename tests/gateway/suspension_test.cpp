// Changes the servers at every suspension point of an operation of the gateway. Between two callbacks of the
// loop every coroutine of the gateway is suspended. So an operation is run repeatedly: run number N is
// interrupted by the change after N callbacks, until the operation ends before that.
#include <iostream>

#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

enum class Operation : std::uint8_t { handshake, list, call, subscribe };
enum class Change : std::uint8_t { add, update, remove, disable, enable, enable_later, replace };

constexpr std::array kOperations = {"handshake", "list", "call", "subscribe"};
constexpr std::array kChanges = {"add", "update", "remove", "disable", "enable", "enable_later", "replace"};
constexpr std::array kEras = {mcp::kNewestLegacyRevision, mcp::kNewestRevision};

std::string era_name(mcp::Revision revision) {
  return mcp::is_modern(revision) ? "modern" : "legacy";
}

// A gateway with servers `a`, which is changed, and `b`, which is not. All servers and the client are of one
// era.
class Scenario final : public GatewayTest {
 public:
  Scenario(mcp::Revision era, Operation operation, Change change) : operation_(operation), change_(change) {
    config.list_wait = 20s;
    config.min_list_interval = 1ms;                            // most points wait for a second fetch
    if (operation == Operation::handshake) start_events["a"];  // the operation starts the server
    add("a", Sharing::automatic, era);
    add("b", Sharing::shared, era);
    add("c", Sharing::shared, era);
    spare_ = config.servers.back();
    config.servers.pop_back();
    client_ = connect_client(era);
    if (mcp::is_modern(era)) subscribe_to_tool_list(client_);
    if (operation == Operation::handshake) return;
    EXPECT_TRUE(has_tool(client_, "a__which"));
    EXPECT_EQ(call(client_, "a__which"), "0");
  }
  ~Scenario() override { Scenario::TearDown(); }
  Scenario(const Scenario&) = delete;
  void TestBody() override {}

  // Starts the operation and makes the change after `turns` callbacks of the loop. Returns false if the
  // operation ended earlier.
  bool change_after(std::size_t turns) {
    begin();
    std::size_t seen = 0;
    loop.run_until([&] { return ended() || seen++ == turns; });
    if (ended()) return false;
    make_change();
    return true;
  }
  // Checks that the gateway still works, whatever the outcome of the operation.
  void check() {
    if (operation_ == Operation::list) operation_ended_ = !tools(client_).empty();
    EXPECT_TRUE(wait_until([&] { return operation_ended_; })) << "the operation has ended";
    EXPECT_EQ(call(client_, "b__which"), "0") << "the other server is served";
    check_a();
    if (subscribed_ && change_ != Change::remove && change_ != Change::disable) check_subscription();
    if (change_ == Change::add) {
      EXPECT_EQ(call(client_, "c__which"), "0");
    }
    TearDown();
    EXPECT_EQ(gateway->pool().process_count(), 0u);
    const std::weak_ptr<Gateway> weak = gateway;
    gateway.reset();
    EXPECT_TRUE(weak.expired()) << "something still owns the gateway";
  }

 private:
  void check_a() {
    const std::string answer = call(client_, "a__which");
    if (change_ == Change::remove) {
      EXPECT_TRUE(answer.starts_with("<Unknown tool")) << answer;
    } else if (change_ == Change::disable) {
      EXPECT_NE(answer.find("disabled"), std::string::npos) << answer;
    } else {
      EXPECT_FALSE(answer.starts_with("<")) << answer;
    }
  }
  void check_subscription() {
    const long before = client_->count(kUpdated);
    // Both servers have the resource: `b` serves it while the lists of `a` are missing.
    EXPECT_EQ(call(client_, "a__touch"), "touched");
    EXPECT_EQ(call(client_, "b__touch"), "touched");
    EXPECT_TRUE(wait_until([&] { return client_->count(kUpdated) > before; })) << "it is still subscribed";
  }
  static Task<void> call_a(std::shared_ptr<mcp::Client> client, bool* ended) {
    Task<Result<mcp::ToolResult>> calling = client->call_tool("a__touch", raw("{}"));
    static_cast<void>(co_await calling);
    *ended = true;
  }
  static Task<void> subscribe_to_memo(std::shared_ptr<mcp::Client> client, bool* ended, bool* subscribed) {
    const Result<std::uint64_t> number = co_await client->subscribe(kMemo);
    *subscribed = number.has_value();
    *ended = true;
  }
  void begin() {
    switch (operation_) {
      case Operation::handshake: start_events.at("a").set(); [[fallthrough]];
      case Operation::call: return loop.spawn(call_a(client_->client, &operation_ended_));
      case Operation::subscribe:
        return loop.spawn(subscribe_to_memo(client_->client, &operation_ended_, &subscribed_));
      case Operation::list: break;
    }
    mcp::tool(instance("a", 0).server, "grown", "", [](const NoArguments&) { return "grown"; });
  }
  bool ended() const {
    return operation_ == Operation::list ? client_->count(kToolsChanged) > 0 : operation_ended_;
  }

  void make_change() {
    const pool::ServerSpec& spec = config.servers.front();
    switch (change_) {
      case Change::add: EXPECT_TRUE(gateway->add_server(spare_)); break;
      case Change::update: EXPECT_TRUE(gateway->update_server(spec)); break;
      case Change::remove: EXPECT_TRUE(gateway->remove_server("a")); break;
      case Change::disable: EXPECT_TRUE(gateway->disable_server("a")); break;
      case Change::enable:
        EXPECT_TRUE(gateway->disable_server("a"));
        EXPECT_TRUE(gateway->enable_server("a"));
        break;
      case Change::enable_later:
        EXPECT_TRUE(gateway->disable_server("a"));
        run_one_callback();
        EXPECT_TRUE(gateway->enable_server("a"));
        break;
      case Change::replace:
        EXPECT_TRUE(gateway->remove_server("a"));
        EXPECT_TRUE(gateway->add_server(spec));
        break;
    }
  }

  void run_one_callback() {
    loop.post([] {});  // otherwise there could be none
    bool run = false;
    loop.run_until([&] { return std::exchange(run, true); });
  }

  Operation operation_;
  Change change_;
  pool::ServerSpec spare_;
  std::shared_ptr<Client> client_;
  bool operation_ended_ = false;
  bool subscribed_ = false;
};

class SuspensionTest : public ::testing::TestWithParam<std::tuple<mcp::Revision, Operation, Change>> {};

TEST_P(SuspensionTest, ServersCanBeChangedAtEverySuspensionPoint) {
  const auto [era, operation, change] = GetParam();
  std::size_t visited = 0;
  for (bool reached = true; reached && !HasFailure(); ++visited) {
    Scenario scenario(era, operation, change);
    reached = scenario.change_after(visited);
    if (reached) scenario.check();
    if (HasFailure()) ADD_FAILURE() << "at suspension point " << visited;
  }
  --visited;  // the last one was not reached
  std::cout << "visited " << visited << " suspension points of " << era_name(era) << ' '
            << kOperations.at(std::size_t(operation)) << " with " << kChanges.at(std::size_t(change)) << '\n';
  RecordProperty("suspension_points", static_cast<int>(visited));
  EXPECT_GE(visited, 3u);
}

INSTANTIATE_TEST_SUITE_P(Changes, SuspensionTest,
                         ::testing::Combine(::testing::ValuesIn(kEras),
                                            ::testing::Values(Operation::handshake, Operation::list,
                                                              Operation::call, Operation::subscribe),
                                            ::testing::Values(Change::add, Change::update, Change::remove,
                                                              Change::disable, Change::enable,
                                                              Change::enable_later, Change::replace)),
                         [](const auto& tested) {
                           return era_name(std::get<0>(tested.param)) + "_" +
                                  kOperations.at(std::size_t(std::get<1>(tested.param))) + "_" +
                                  kChanges.at(std::size_t(std::get<2>(tested.param)));
                         });

}  // namespace
}  // namespace fairlead::gateway
