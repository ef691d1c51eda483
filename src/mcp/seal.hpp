// Sealer: protects state that a client stores for the server between two rounds. The client can read the
// state but not change it: a MAC covers the payload, its expiry and its binding, which is text that must be
// the same in both rounds. Keys can be rotated, since open() accepts all keys.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead::mcp {

class Sealer {
 public:
  using Time = std::chrono::system_clock::time_point;

  // `keys` has the newest key first; seal() uses that one. REQUIRES: `keys` is not empty.
  Sealer(std::vector<std::string> keys, std::chrono::seconds lifetime)
      : keys_(std::move(keys)), lifetime_(lifetime) {}
  // Returns 32 random bytes from getrandom().
  static std::string random_key();

  // Returns the sealed payload, which expires `lifetime` after `now`. `binding` is not part of the sealed
  // text: open() has to be called with the same one.
  std::string seal(std::string_view payload_json, std::string_view binding, Time now) const;
  // Returns the payload. Fails with kind `remote` and code -32602 if `sealed` was not made by seal() with one
  // of the keys, has a different binding, or has expired.
  Result<std::string> open(std::string_view sealed, std::string_view binding, Time now) const;

 private:
  std::vector<std::string> keys_;
  std::chrono::seconds lifetime_;
};

}  // namespace fairlead::mcp
