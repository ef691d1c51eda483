// RegistrySync: makes a gateway serve what the registry has. Applies each change of the registry to the
// gateway, and stores the lists that the gateway fetches in the registry. All calls are made on the loop
// thread. Private to the library.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/base/log.hpp"
#include "fairlead/gateway/gateway.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/loop/loop.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

// Returns the spec with which the gateway runs a server: that of the row with the clocks of the settings, but
// servers of users must not reach this machine and private networks, unless the configuration allows it.
pool::ServerSpec gateway_spec(const registry::Server& server, const registry::State& state);

class RegistrySync : public std::enable_shared_from_this<RegistrySync> {
 public:
  // Applies the values of the configuration to the gateway. Called after each change of them.
  using ApplySettings = std::function<void(const registry::Configuration&)>;

  // Adds all servers and endpoints of the registry to the gateway before it returns, so that the first client
  // gets complete lists. From then on applies changes as they happen, until stop() is called. REQUIRES:
  // stop() is called before `loop` or `gateway` is destroyed.
  static std::shared_ptr<RegistrySync> start(Loop& loop, std::shared_ptr<registry::Registry> registry,
                                             gateway::Gateway& gateway, ApplySettings apply_settings,
                                             Log log);
  ~RegistrySync() { stop(); }
  void stop();
  // Returns when the lists of this server that the gateway has fetched so far are stored, or could not be
  // stored, but after kMaxStoreWait at the latest.
  static Task<void> lists_stored(std::shared_ptr<RegistrySync> self, std::string server_id);

 private:
  static constexpr std::chrono::seconds kMaxStoreWait{5};

  RegistrySync(Loop& loop, std::shared_ptr<registry::Registry> registry, gateway::Gateway& gateway,
               ApplySettings apply_settings, Log log)
      : loop_(loop),
        registry_(std::move(registry)),
        gateway_(gateway),
        apply_settings_(std::move(apply_settings)),
        log_(std::move(log)) {}

  void subscribe();
  void apply_all();
  void apply(const registry::Change& change);
  void apply_server(const registry::RowChange<registry::Server>& change);
  void apply_endpoint(const registry::RowChange<registry::Endpoint>& change);
  void apply_user(const registry::RowChange<registry::User>& change);
  void apply_secret(const registry::RowChange<registry::Secret>& change);
  // Visits all servers, in slices.
  static Task<void> apply_system_secret(std::shared_ptr<RegistrySync> self, registry::SecretPtr secret);
  // Replaces the upstreams of a server that use the value of this secret.
  void replace_upstreams(const registry::Server& server, const registry::Secret& secret);
  // Replaces all upstreams of a server that refers to secrets, because it gets others from now on.
  void replace_upstreams_with_secrets(const registry::Server& server);
  void replace_upstreams(const registry::Server& server,
                         const std::function<bool(const std::string& user)>& affects);
  // Returns the id of the owner whose secrets are the only ones that the server gets; empty if it gets all.
  std::string untrusted_owner(const registry::Server& server) const;
  static Task<void> list_again(std::shared_ptr<RegistrySync> self, std::string server);
  void apply_configuration(const registry::RowChange<registry::Configuration>& change);
  void put_server(const registry::Server& server);
  using ServerSelector = std::function<bool(const registry::Server&)>;
  // Puts the selected servers again, in slices. `other_secrets`: they get other secrets than before.
  static Task<void> put_servers(std::shared_ptr<RegistrySync> self, ServerSelector selected,
                                bool other_secrets);
  void put_endpoint(const registry::Endpoint& endpoint);
  // Returns which of the fetched entries may be offered, and starts to store them.
  registry::StoredListsPtr on_fetched(const std::string& name, const gateway::FetchedLists& lists);
  void store_has_ended(const std::string& server_id);
  static Task<void> store_lists(std::shared_ptr<RegistrySync> self, std::string server_id,
                                registry::FetchedEntries lists);

  Loop& loop_;
  std::shared_ptr<registry::Registry> registry_;
  gateway::Gateway& gateway_;
  ApplySettings apply_settings_;
  Log log_;
  std::vector<std::shared_ptr<void>> subscriptions_;
  // The lists of one server that are being stored.
  struct StoresInProgress {
    std::size_t count = 0;
    std::shared_ptr<Event> ended = std::make_shared<Event>();  // set when `count` becomes 0
  };
  std::map<std::string, StoresInProgress> stores_in_progress_;  // by the id of the server; no count is 0
};

}  // namespace fairlead::admin
