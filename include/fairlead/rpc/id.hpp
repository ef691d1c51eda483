// JSON-RPC ids. An id received from a remote peer is never converted: `1`, `1.0`, `1e0` and `"1"` are four
// different ids, and each is sent back byte for byte. Only the ids of calls of this library are parsed as
// numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fairlead::rpc {

// Parses an id that this library assigned to a call: decimal digits without a leading zero. Returns nullopt
// if `text` has another form.
std::optional<std::uint64_t> parse_call_id(std::string_view text) noexcept;

}  // namespace fairlead::rpc
