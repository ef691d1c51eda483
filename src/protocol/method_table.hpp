// What each method is, in one table: which revisions have it, who sends it, what it needs and how its results
// travel. Routing, validation and encoding are driven from here.
#pragma once

#include <cstdint>
#include <string_view>

#include "fairlead/protocol/revision.hpp"

namespace fairlead::mcp {

enum class Sender : std::uint8_t { client, server, either };

struct MethodInfo {
  std::string_view name;
  Sender sender;
  std::uint8_t revisions;       // a bit per Revision
  std::string_view capability;  // of the receiver: "tools", "resources.subscribe"; empty when none is needed
  bool paginated = false;
  bool cacheable = false;  // modern: results carry ttlMs and cacheScope
  bool may_ask = false;    // modern: may answer input_required
  bool notification = false;
  std::string_view extension{};  // modern: only with this extension

  bool in(Revision revision) const noexcept { return revisions >> static_cast<unsigned>(revision) & 1; }
};

// nullptr for a name no revision knows.
const MethodInfo* find_method(std::string_view name, Revision revision) noexcept;

}  // namespace fairlead::mcp
