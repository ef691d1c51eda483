// Removing many keys of a map at once. Private to the library.
#pragma once

#include <iterator>
#include <utility>
#include <vector>

namespace fairlead {

// Removes the entries of `map` whose keys are in the set `keys`, and returns their values. Visits the smaller
// of the two, and looks up its keys in the other.
template <class Map, class Keys>
std::vector<typename Map::mapped_type> take_keys(Map& map, const Keys& keys) {
  std::vector<typename Map::mapped_type> taken;
  const auto take = [&](typename Map::iterator entry) {
    taken.push_back(std::move(entry->second));
    return map.erase(entry);
  };
  if (map.size() <= keys.size()) {
    for (auto entry = map.begin(); entry != map.end();)
      entry = keys.contains(entry->first) ? take(entry) : std::next(entry);
    return taken;
  }
  for (const auto& key : keys) {
    if (const auto entry = map.find(key); entry != map.end()) take(entry);
  }
  return taken;
}

}  // namespace fairlead
