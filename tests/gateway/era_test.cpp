// A server that reconnects in another era: requests are encoded for the connection they are sent on.
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";

// Methods of a server of one era, whose tool returns the era of the server and of the request.
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
    const bool enveloped = !request.params_view()["_meta"][kVersionKey].absent();
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
  std::vector<bool> eras;                          // of each connection; true: modern

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
    spec.transport = pool::ConnectorName{"changing"};
    config.connectors["changing"] = [this](Loop& on, StreamConnectOptions) { return open_era(this, &on); };
    config.servers.push_back(spec);
  }
};

TEST_F(EraTest, ServerThatReconnectsInOtherEraReceivesRequestsOfThatEra) {
  for (const bool first : {false, true}) {
    for (const mcp::Revision client_era : {mcp::kNewestLegacyRevision, mcp::kNewestRevision}) {
      SCOPED_TRACE(std::string(first ? "modern" : "legacy") + " first, client of " +
                   std::string(to_string(client_era)));
      add_changing({first, !first});
      const auto client = connect_client(client_era);
      const std::string before = first ? "modern" : "legacy";
      const std::string after = first ? "legacy" : "modern";
      EXPECT_EQ(call(client, "s__era"), before + " server, " + before + " request");
      connections.back()->close();
      ASSERT_TRUE(
          wait_until([&] { return gateway->pool().status().front().state != pool::UpstreamState::ready; }));
      EXPECT_EQ(call(client, "s__era"), after + " server, " + after + " request");
      disconnect(client);
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
