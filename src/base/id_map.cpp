#include "fairlead/base/id_map.hpp"

#include "base/random_bytes.hpp"

namespace fairlead::detail {

std::uint64_t id_hash_seed() noexcept {
  static const std::uint64_t seed = [] {
    std::uint64_t random = 0;
    if (const Result<std::string> bytes = random_bytes(sizeof random))
      std::memcpy(&random, bytes->data(), sizeof random);
    return random;
  }();
  return seed;
}

}  // namespace fairlead::detail
