// The published revisions of the Model Context Protocol. Those up to 2025-11-25 are the legacy era: a
// handshake, then state. From 2026-07-28 on every request says for itself what it needs: the modern era.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fairlead::mcp {

enum class Revision : std::uint8_t { r2024_11_05, r2025_03_26, r2025_06_18, r2025_11_25, r2026_07_28 };

inline constexpr std::array kRevisions = {Revision::r2024_11_05, Revision::r2025_03_26, Revision::r2025_06_18,
                                          Revision::r2025_11_25, Revision::r2026_07_28};
inline constexpr Revision kNewestLegacy = Revision::r2025_11_25;
inline constexpr Revision kNewest = Revision::r2026_07_28;

constexpr bool is_modern(Revision revision) noexcept {
  return revision >= Revision::r2026_07_28;
}
std::string_view to_string(Revision revision) noexcept;
std::optional<Revision> revision_named(std::string_view name) noexcept;

}  // namespace fairlead::mcp
