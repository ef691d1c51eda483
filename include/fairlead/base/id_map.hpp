// IdMap: a hash table whose keys are ids of requests or sessions. It hashes faster than the standard library
// does, and takes its memory from the block cache.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "fairlead/base/block_cache.hpp"

namespace fairlead {

namespace detail {

// Returns a random number that is the same for the lifetime of the process.
std::uint64_t id_hash_seed() noexcept;

}  // namespace detail

// With this load factor a hash table has one bucket, and allocates no array of buckets, for so many entries.
inline constexpr unsigned short kEntriesWithoutBuckets = 12;

// Hash function for short texts. Clients choose ids, so the hash is seeded at random: ids that collide in one
// process do not collide in another.
struct IdHash {
  using is_transparent = void;

  std::size_t operator()(std::string_view id) const noexcept {
    std::uint64_t hash = detail::id_hash_seed() ^ id.size();
    for (; id.size() > sizeof hash; id.remove_prefix(sizeof hash)) hash = mix(hash, id, sizeof hash);
    return static_cast<std::size_t>(mix(hash, id, id.size()));
  }

 private:
  static std::uint64_t mix(std::uint64_t hash, std::string_view text, std::size_t size) noexcept {
    std::uint64_t word = 0;
    if (size == sizeof word) {
      std::memcpy(&word, text.data(), sizeof word);
    } else {
      for (std::size_t i = 0; i < size; ++i) word = word << 8 | static_cast<unsigned char>(text[i]);
    }
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
  }
};

// Lookups accept a std::string_view.
template <class T>
using IdMap = std::unordered_map<std::string, T, IdHash, std::equal_to<>,
                                 BlockAllocator<std::pair<const std::string, T>>>;

}  // namespace fairlead
