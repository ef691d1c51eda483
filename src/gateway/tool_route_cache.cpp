#include "gateway/tool_route_cache.hpp"

#include <cstring>

namespace fairlead::gateway {

// The names of the tools of a server differ mostly at the end.
ToolRouteCache::Slot& ToolRouteCache::slot_for(std::string_view name) noexcept {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  constexpr int kSlotBits = 6;
  static_assert(kSlots == std::size_t{1} << kSlotBits);
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (name.size() >= sizeof(first)) {
    std::memcpy(&first, name.data(), sizeof(first));
    std::memcpy(&last, name.data() + name.size() - sizeof(last), sizeof(last));
  } else {
    for (const char byte : name) last = last << 8 | static_cast<unsigned char>(byte);
  }
  return slots_[((first * 31 + last + name.size()) * kMultiplier) >> (64 - kSlotBits)];
}

ToolRouteCache::Found ToolRouteCache::find(const std::shared_ptr<const Catalogue>& catalogue,
                                           const ServerTable& servers, std::string_view public_name) {
  Slot& slot = slot_for(public_name);
  // Compares the owners, so that another catalogue at the address of a destroyed one is not mistaken for it.
  const bool same_catalogue =
      !slot.catalogue.owner_before(catalogue) && !catalogue.owner_before(slot.catalogue);
  // `found.entry` points into slot.catalogue, so it is only read if that is the same.
  if (same_catalogue && slot.version == servers.version() && slot.found.entry->public_name == public_name)
    return slot.found;
  Found found;
  found.entry = catalogue->find_tool(public_name);
  if (found.entry) found.server = servers.find_entry(found.entry->server);
  if (found.server) slot = Slot{catalogue, servers.version(), found};
  return found;
}

}  // namespace fairlead::gateway
