// StringMap<T>: a hash map with string keys that supports lookup by std::string_view without creating a
// string.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace fairlead {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
};

template <class T>
using StringMap = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

}  // namespace fairlead
