// Publishes the changes of the registry and the states of servers as events. Private to the layer.
#pragma once

#include <memory>
#include <vector>

#include "admin/event_hub.hpp"
#include "fairlead/pool/monitor.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

// Returns the subscriptions; the changes are published until they are destroyed.
std::vector<std::shared_ptr<void>> publish_changes(std::shared_ptr<registry::Registry> registry,
                                                   std::shared_ptr<EventHub> events);

// The same for the state transitions of the servers' processes and connections.
std::shared_ptr<void> publish_transitions(std::shared_ptr<registry::Registry> registry,
                                          pool::PoolMonitor& monitor, std::shared_ptr<EventHub> events);

}  // namespace fairlead::admin
