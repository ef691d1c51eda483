// Revision: the published revisions of the Model Context Protocol. Revisions up to 2025-11-25 are the legacy
// era (an `initialize` handshake, then a stateful session). Revisions from 2026-07-28 on are the modern era
// (stateless; every request carries its own metadata).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fairlead::mcp {

enum class Revision : std::uint8_t { r2024_11_05, r2025_03_26, r2025_06_18, r2025_11_25, r2026_07_28 };

inline constexpr std::array kRevisions = {Revision::r2024_11_05, Revision::r2025_03_26, Revision::r2025_06_18,
                                          Revision::r2025_11_25, Revision::r2026_07_28};
inline constexpr Revision kNewestLegacyRevision = Revision::r2025_11_25;
inline constexpr Revision kNewestRevision = Revision::r2026_07_28;

constexpr bool is_modern(Revision revision) noexcept {
  return revision >= Revision::r2026_07_28;
}
std::string_view to_string(Revision revision) noexcept;
// Returns the revision with the name `name`, such as "2025-11-25"; nullopt if it is not published.
std::optional<Revision> revision_named(std::string_view name) noexcept;

}  // namespace fairlead::mcp
