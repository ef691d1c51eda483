// Work: what a validation may still do. Schemas and values may both be hostile, so every step is paid for.
#pragma once

#include <cstddef>

namespace fairlead::json::schema {

class Work {
 public:
  explicit Work(std::size_t steps) noexcept : left_(steps) {}

  // False once there is nothing left; it stays so.
  bool spend(std::size_t steps) noexcept {
    if (steps > left_) {
      left_ = 0;
      exhausted_ = true;
      return false;
    }
    left_ -= steps;
    return true;
  }
  // For looking at that many bytes.
  bool spend_bytes(std::size_t bytes) noexcept { return spend(1 + bytes / kBytesPerStep); }

  bool exhausted() const noexcept { return exhausted_; }
  std::size_t left() const noexcept { return left_; }

 private:
  static constexpr std::size_t kBytesPerStep = 64;

  std::size_t left_;
  bool exhausted_ = false;
};

}  // namespace fairlead::json::schema
