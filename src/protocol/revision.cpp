#include "fairlead/protocol/revision.hpp"

#include <ranges>

namespace fairlead::mcp {

std::string_view to_string(Revision revision) noexcept {
  switch (revision) {
    case Revision::r2024_11_05: return "2024-11-05";
    case Revision::r2025_03_26: return "2025-03-26";
    case Revision::r2025_06_18: return "2025-06-18";
    case Revision::r2025_11_25: return "2025-11-25";
    case Revision::r2026_07_28: return "2026-07-28";
  }
  return "2025-11-25";
}

std::optional<Revision> revision_named(std::string_view name) noexcept {
  for (const Revision revision : kRevisions | std::views::reverse) {  // most clients use a new one
    if (to_string(revision) == name) return revision;
  }
  return std::nullopt;
}

}  // namespace fairlead::mcp
