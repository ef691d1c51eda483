// EndpointGatewayTest: a fixture with a gateway whose servers and endpoints are added at run time, with
// policies, and clients of several endpoints and principals.
#pragma once

#include "gateway/harness.hpp"

namespace fairlead::gateway {

using registry::Visibility;

class EndpointGatewayTest : public GatewayTest {
 protected:
  std::map<std::string, pool::ServerSpec> specs;

  // Makes the programs of the servers, and a gateway without servers.
  void create(const std::vector<std::string>& names, Sharing sharing = Sharing::shared) {
    for (const std::string& name : names) {
      add(name, sharing);
      specs[name] = config.servers.back();
    }
    config.servers.clear();
    config.authenticated = true;
    Result<std::shared_ptr<Gateway>> created = Gateway::create(loop, config, gateway_log);
    ASSERT_TRUE(created) << created.error().to_string();
    gateway = *created;
  }
  void put(const std::string& name, ServerPolicy policy = ServerPolicy(),
           std::shared_ptr<const registry::StoredLists> stored = nullptr) {
    const Result<void> changed = gateway->put_server(specs.at(name), std::move(policy), std::move(stored));
    ASSERT_TRUE(changed) << changed.error().to_string();
  }
  static ServerPolicy visible_to(Visibility visibility, const std::string& owner = "") {
    ServerPolicy policy;
    policy.visibility = visibility;
    policy.owner = owner;
    return policy;
  }
  static registry::Endpoint endpoint(const std::string& name) {
    registry::Endpoint made;
    made.name = name;
    return made;
  }

  // ---- principals ----
  static PrincipalPtr user(const std::string& id) {
    auto made = std::make_shared<Principal>();
    made->issuer = "fairlead";
    made->subject = made->user = id;
    return made;
  }
  static PrincipalPtr admin() {
    auto made = std::make_shared<Principal>(*user("root"));
    made->roles = {std::string(kAdminRole)};
    return made;
  }

  // ---- clients ----
  // Returns null if the principal may not use the endpoint.
  std::shared_ptr<Client> connect(const std::string& path, const PrincipalPtr& principal,
                                  mcp::Revision revision = mcp::kNewestLegacyRevision) {
    Result<std::shared_ptr<transport::Application>> application = gateway->endpoints().find(path, *principal);
    if (!application) return nullptr;
    auto client = std::make_shared<Client>();
    mcp::ClientOptions options;
    options.pinned_revision = revision;
    options.cache_results = false;
    options.handlers.on_notification = [weak = std::weak_ptr(client)](std::string_view method,
                                                                      const json::Raw& params) {
      if (const auto self = weak.lock())
        self->received.push_back(std::string(method) + " " +
                                 json::View(params)["uri"].as_string().value_or(""));
    };
    auto [client_side, gateway_side] = make_channel(loop, loop);
    (*application)->serve(gateway_side, principal);
    Result<std::shared_ptr<mcp::Client>> opened =
        loop.block_on(mcp::Client::connect_over(client_side, std::move(options)));
    EXPECT_TRUE(opened) << opened.error().to_string();
    client->client = *opened;
    clients.push_back(client);
    return client;
  }
  std::string call_error(const std::shared_ptr<Client>& client, const std::string& tool) {
    const Result<mcp::ToolResult> result = loop.block_on(client->client->call_tool(tool, raw("{}")));
    return result ? "" : result.error().message();
  }
  std::string read_error(const std::shared_ptr<Client>& client, const std::string& uri) {
    const auto result = loop.block_on(client->client->read_resource(uri));
    return result ? "" : result.error().message();
  }
  // Returns whether the tool is listed within ten seconds.
  bool gets_tool(const std::shared_ptr<Client>& client, const std::string& tool) {
    const auto until = Clock::now() + 10s;
    while (!has_tool(client, tool)) {
      if (Clock::now() > until) return false;
    }
    return true;
  }
  std::size_t instance_count(const std::string& server) { return servers[server]->size(); }

  // Returns stored lists with these tools, of which `quarantined` ones are quarantined.
  static std::shared_ptr<registry::StoredLists> stored_tools(
      const std::vector<std::string>& names, const std::vector<std::string>& quarantined = {}) {
    auto stored = std::make_shared<registry::StoredLists>();
    for (const std::string& name : names) {
      registry::ListedEntry listed;
      listed.entry = raw(R"({"name":")" + name + R"(","inputSchema":{"type":"object"}})");
      listed.quarantined = std::ranges::count(quarantined, name) > 0;
      stored->tools.push_back(std::move(listed));
    }
    return stored;
  }
};

}  // namespace fairlead::gateway
