#include "gateway/list_announcer.hpp"

#include <algorithm>
#include <utility>

namespace fairlead::gateway {

void ListAnnouncer::Audience::add(mcp::Concerns one) {
  everybody = everybody || !one || concerns.size() >= kMaxConcerns;
  if (everybody) return concerns.clear();
  concerns.push_back(std::move(one));
}

bool ListAnnouncer::Audience::has(std::string_view session, const Principal& principal) const {
  return everybody || std::ranges::any_of(concerns, [&](const mcp::Concerns& concerned) {
           return concerned(session, principal);
         });
}

void ListAnnouncer::changed(mcp::ListKind kind, mcp::Concerns concerns) {
  Audience& audience = audiences_.at(static_cast<std::size_t>(kind));
  audience.add(std::move(concerns));
  if (std::exchange(audience.waiting, true)) return;
  loop_.post([weak = weak_from_this(), kind] {
    if (const auto self = weak.lock()) self->announce(kind);
  });
}

void ListAnnouncer::announce(mcp::ListKind kind) {
  const Audience audience = std::exchange(audiences_.at(static_cast<std::size_t>(kind)), Audience());
  front_.state()->tell_changed(kind, [&audience](std::string_view session, const Principal& principal) {
    return audience.has(session, principal);
  });
}

}  // namespace fairlead::gateway
