// Publishes the changes of the registry as events. Private to the layer.
#pragma once

#include <memory>
#include <vector>

#include "admin/event_hub.hpp"
#include "registry/registry.hpp"

namespace fairlead::admin {

// Returns the subscriptions; the changes are published until they are destroyed.
std::vector<std::shared_ptr<void>> publish_changes(std::shared_ptr<registry::Registry> registry,
                                                   std::shared_ptr<EventHub> events);

}  // namespace fairlead::admin
