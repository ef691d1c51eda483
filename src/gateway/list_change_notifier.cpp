#include "gateway/list_change_notifier.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::gateway {

void ListChangeNotifier::Recipients::add(mcp::ClientPredicate affected) {
  all_clients = all_clients || !affected || predicates.size() >= kMaxPredicates;
  if (all_clients) return predicates.clear();
  predicates.push_back(std::move(affected));
}

bool ListChangeNotifier::Recipients::contains(std::string_view session, const Principal& principal) const {
  return all_clients || std::ranges::any_of(predicates, [&](const mcp::ClientPredicate& affected) {
           return affected(session, principal);
         });
}

void ListChangeNotifier::notify_changed(mcp::ListKind kind, mcp::ClientPredicate affected) {
  Recipients& recipients = recipients_.at(static_cast<std::size_t>(kind));
  recipients.add(std::move(affected));
  if (std::exchange(recipients.scheduled, true)) return;
  loop_.post([weak = weak_from_this(), kind] {
    if (const auto self = weak.lock()) self->send(kind);
  });
}

void ListChangeNotifier::send(mcp::ListKind kind) {
  const Recipients recipients = std::exchange(recipients_.at(static_cast<std::size_t>(kind)), Recipients());
  front_.state()->notify_list_changed(kind,
                                      [&recipients](std::string_view session, const Principal& principal) {
                                        return recipients.contains(session, principal);
                                      });
}

}  // namespace fairlead::gateway
