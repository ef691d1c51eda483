// Sealer: protects what a client carries for us between two rounds. It can be read by anyone and changed by
// nobody: a MAC over the payload, its expiry and what it is bound to. Old keys still open what they sealed,
// so keys can be rotated.
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

  // `keys`, the newest first. REQUIRES: at least one.
  Sealer(std::vector<std::string> keys, std::chrono::seconds lifetime)
      : keys_(std::move(keys)), lifetime_(lifetime) {}
  // A key of its own, from the kernel.
  static std::string random_key();

  // `binding` is not stored: the same must be given to open it again.
  std::string seal(std::string_view payload_json, std::string_view binding, Time now) const;
  // The payload. Kind remote with code -32602 for anything that is not exactly what we sealed, is bound to
  // something else or has expired.
  Result<std::string> open(std::string_view sealed, std::string_view binding, Time now) const;

 private:
  std::vector<std::string> keys_;
  std::chrono::seconds lifetime_;
};

}  // namespace fairlead::mcp
