// A server that comes back in another era: what is sent to it is encoded for the connection it goes out on.
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";

// Speaks one era and answers a call with that in which it was made.
std::shared_ptr<const Methods> methods_of(bool modern) {
  auto methods = std::make_shared<Methods>();
  methods->on("initialize", [modern](const Request& request) -> Answer {
    if (modern) return rpc::method_not_found(request.method());
    return raw(
        R"({"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}})");
  });
  methods->on("server/discover", [modern](const Request& request) -> Answer {
    if (!modern) return rpc::method_not_found(request.method());
    return raw(
        R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"})");
  });
  methods->on("tools/list", [](const Request&) -> Answer {
    return raw(
        R"({"resultType":"complete","tools":[{"name":"era","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"})");
  });
  methods->on("tools/call", [modern](const Request& request) -> Answer {
    const bool enveloped = !request.args()["_meta"][kVersionKey].absent();
    const std::string text = std::string(modern ? "modern" : "legacy") + " server, " +
                             (enveloped ? "modern" : "legacy") + " request";
    return raw(std::string(modern ? R"({"resultType":"complete",)" : "{") +
               R"("content":[{"type":"text","text":")" + text + R"("}]})");
  });
  methods->on("notifications/initialized", [](const Request&) -> Answer { return json::Raw::null(); });
  methods->on("ping", [](const Request&) -> Answer { return raw("{}"); });
  return methods;
}

class EraTest : public GatewayTest {
 protected:
  std::vector<std::shared_ptr<Peer>> connections;  // to the server, in order
  std::vector<bool> eras;                          // of each; true: modern

  static Task<ConnectResult> open_era(EraTest* self, Loop* on) {
    auto [near_end, far_end] = make_channel(*on, *on);
    const std::size_t number = std::min(self->connections.size(), self->eras.size() - 1);
    self->connections.push_back(Peer::start(far_end, methods_of(self->eras[number])));
    co_return near_end;
  }
  void add_changing(std::vector<bool> changing) {
    eras = std::move(changing);
    pool::ServerSpec spec;
    spec.name = "s";
    spec.sharing = Sharing::shared;
    spec.restart.initial = 1ms;
    spec.reach = pool::NamedConnector{"changing"};
    config.connectors["changing"] = [this](Loop& on, ConnectOptions) { return open_era(this, &on); };
    config.servers.push_back(spec);
  }
};

TEST_F(EraTest, ServerThatComesBackInAnotherEraGetsRequestsOfThatEra) {
  for (const bool first : {false, true}) {
    for (const mcp::Revision client_era : {mcp::kNewestLegacy, mcp::kNewest}) {
      SCOPED_TRACE(std::string(first ? "modern" : "legacy") + " first, client of " +
                   std::string(to_string(client_era)));
      add_changing({first, !first});
      const auto client = enter(client_era);
      const std::string before = first ? "modern" : "legacy";
      const std::string after = first ? "legacy" : "modern";
      EXPECT_EQ(call(client, "s__era"), before + " server, " + before + " request");
      connections.back()->close();
      ASSERT_TRUE(comes_true([&] { return gateway->pool().status().front().state != pool::State::ready; }));
      EXPECT_EQ(call(client, "s__era"), after + " server, " + after + " request");
      leave(client);
      clients.clear();
      loop.block_on(gateway->shutdown(0ms));
      gateway = nullptr;
      connections.clear();
      config.servers.clear();
    }
  }
}

}  // namespace
}  // namespace fairlead::gateway
