// ToolRouteCache: the tools that were called recently, with their servers. It saves the three lookups by name
// that each call would need. Private to the layer. Not thread-safe: used on the loop of the gateway only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "gateway/catalogue.hpp"
#include "gateway/server_table.hpp"

namespace fairlead::gateway {

class ToolRouteCache {
 public:
  // Valid until the catalogue is destroyed or the server table changes.
  struct Found {
    const CatalogueEntry* entry = nullptr;          // null: the tool is unknown
    const ServerTable::EntryPtr* server = nullptr;  // null: there is no such server
  };

  // Finds a tool of `catalogue` by its public name, and its server in `servers`, which must be the same table
  // in each call. A result with a tool and a server is stored. It is not returned for another catalogue or
  // after a change of the table.
  Found find(const std::shared_ptr<const Catalogue>& catalogue, const ServerTable& servers,
             std::string_view public_name);

 private:
  static constexpr std::size_t kSlots = 64;  // a power of two; a tool replaces another one in its slot

  struct Slot {
    std::weak_ptr<const Catalogue> catalogue;  // never assigned: the slot is empty
    std::uint64_t version = 0;                 // ServerTable::version()
    Found found;
  };
  // Returns the slot for a name. The hash need not be strong, since a collision costs only the lookups.
  Slot& slot_for(std::string_view name) noexcept;

  std::array<Slot, kSlots> slots_;
};

}  // namespace fairlead::gateway
