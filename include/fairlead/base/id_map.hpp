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

  // Not noexcept, so that libstdc++ stores the hash of each entry instead of computing it again.
  std::size_t operator()(std::string_view id) const {
    std::uint64_t hash = detail::id_hash_seed() ^ id.size();
    if (id.size() < sizeof hash) return static_cast<std::size_t>(mix(hash, short_word(id)));
    // The last word overlaps the one before it.
    for (std::size_t i = 0; i + sizeof hash < id.size(); i += sizeof hash) hash = mix(hash, word_at(id, i));
    return static_cast<std::size_t>(mix(hash, word_at(id, id.size() - sizeof hash)));
  }

 private:
  static std::uint64_t word_at(std::string_view text, std::size_t offset) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + offset, sizeof word);
    return word;
  }
  // Returns all characters of a text of fewer than eight.
  static std::uint64_t short_word(std::string_view text) noexcept {
    if (text.size() >= 4) {
      std::uint32_t first = 0;
      std::uint32_t last = 0;
      std::memcpy(&first, text.data(), sizeof first);
      std::memcpy(&last, text.data() + text.size() - sizeof last, sizeof last);
      return std::uint64_t{first} << 32 | last;
    }
    std::uint64_t word = 0;
    for (const char c : text) word = word << 8 | static_cast<unsigned char>(c);
    return word;
  }
  static std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
  }
};

// Lookups accept a std::string_view.
template <class T>
using IdMap = std::unordered_map<std::string, T, IdHash, std::equal_to<>,
                                 BlockAllocator<std::pair<const std::string, T>>>;

}  // namespace fairlead
