// Ids are kept exactly as they were spelled: `1`, `1.0`, `1e0` and `"1"` are four different ids, and each
// goes back to its sender byte for byte. Only our own ids are ever read as numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fairlead::rpc {

// The number when `spelled` is how this library writes its own ids (digits, no leading zero), else nullopt.
std::optional<std::uint64_t> own_id(std::string_view spelled) noexcept;

}  // namespace fairlead::rpc
