#include "fairlead/rpc/id.hpp"

#include <charconv>

namespace fairlead::rpc {

std::optional<std::uint64_t> own_id(std::string_view spelled) noexcept {
  if (spelled.empty() || spelled.front() < '1' || spelled.front() > '9') return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(spelled.data(), spelled.data() + spelled.size(), number);
  if (problem != std::errc() || end != spelled.data() + spelled.size()) return std::nullopt;
  return number;
}

}  // namespace fairlead::rpc
