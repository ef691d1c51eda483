// extract_keys(): removes many keys from a map at once. Private to the library.
#pragma once

#include <iterator>
#include <utility>
#include <vector>

namespace fairlead {

// Removes the entries of `map` whose keys are in the set `keys`, and returns their values. Iterates over the
// smaller of the two containers and looks the keys up in the other.
template <class Map, class Keys>
std::vector<typename Map::mapped_type> extract_keys(Map& map, const Keys& keys) {
  std::vector<typename Map::mapped_type> extracted;
  const auto extract = [&](typename Map::iterator entry) {
    extracted.push_back(std::move(entry->second));
    return map.erase(entry);
  };
  if (map.size() <= keys.size()) {
    for (auto entry = map.begin(); entry != map.end();)
      entry = keys.contains(entry->first) ? extract(entry) : std::next(entry);
    return extracted;
  }
  for (const auto& key : keys) {
    if (const auto entry = map.find(key); entry != map.end()) extract(entry);
  }
  return extracted;
}

}  // namespace fairlead
