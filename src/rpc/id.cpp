#include "fairlead/rpc/id.hpp"

#include <charconv>

namespace fairlead::rpc {

std::optional<std::uint64_t> parse_call_id(std::string_view text) noexcept {
  if (text.empty() || text.front() < '1' || text.front() > '9') return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace fairlead::rpc
