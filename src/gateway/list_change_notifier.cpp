#include "gateway/list_change_notifier.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::gateway {

void ListChangeNotifier::add_front(const mcp::Server& front, std::shared_ptr<const EndpointScope> scope) {
  std::erase_if(fronts_, [&](const Front& known) {
    const auto server = known.server.lock();
    return !server || server == front.state();
  });
  fronts_.push_back(Front{front.state(), std::move(scope)});
}

void ListChangeNotifier::Recipients::add(Affected affected) {
  all_clients = all_clients || !affected || predicates.size() >= kMaxPredicates;
  if (all_clients) return predicates.clear();
  predicates.push_back(std::move(affected));
}

bool ListChangeNotifier::Recipients::contains(const EndpointScope& scope, std::string_view session,
                                              const Principal& principal) const {
  return all_clients || std::ranges::any_of(predicates, [&](const Affected& affected) {
           return affected(scope, session, principal);
         });
}

void ListChangeNotifier::notify_changed(mcp::ListKind kind, Affected affected) {
  Recipients& recipients = recipients_.at(static_cast<std::size_t>(kind));
  recipients.add(std::move(affected));
  if (std::exchange(recipients.scheduled, true)) return;
  loop_.post([weak = weak_from_this(), kind] {
    if (const auto self = weak.lock()) self->send(kind);
  });
}

void ListChangeNotifier::send(mcp::ListKind kind) {
  const Recipients recipients = std::exchange(recipients_.at(static_cast<std::size_t>(kind)), Recipients());
  for (const Front& front : std::vector(fronts_)) {
    const auto server = front.server.lock();
    if (!server) continue;
    server->notify_list_changed(kind, [&](std::string_view session, const Principal& principal) {
      return recipients.contains(*front.scope, session, principal);
    });
  }
}

}  // namespace fairlead::gateway
