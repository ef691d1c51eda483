// MethodInfo: the properties of an MCP method: the revisions that define it, its sender, the capability it
// requires, and how its results are encoded. The table of all methods is used for routing, validation and
// encoding.
#pragma once

#include <cstdint>
#include <string_view>

#include "fairlead/protocol/revision.hpp"

namespace fairlead::mcp {

enum class Sender : std::uint8_t { client, server, either };

struct MethodInfo {
  std::string_view name;
  Sender sender;
  std::uint8_t revisions;       // bit mask with one bit per Revision
  std::string_view capability;  // that the receiver must have declared, such as "tools"; empty: none
  bool paginated = false;
  bool cacheable = false;          // modern era: results contain ttlMs and cacheScope
  bool may_require_input = false;  // modern era: the result may be input_required
  bool is_notification = false;
  std::string_view extension{};  // modern era: the extension that defines the method; empty: none

  bool defined_in(Revision revision) const noexcept {
    return revisions >> static_cast<unsigned>(revision) & 1;
  }
};

// Returns nullptr if `revision` does not define the method `name`.
const MethodInfo* find_method(std::string_view name, Revision revision) noexcept;

}  // namespace fairlead::mcp
