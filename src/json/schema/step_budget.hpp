// StepBudget: the number of steps that a validation may still take. Schemas and values may both be hostile,
// so every step is charged.
#pragma once

#include <cstddef>

namespace fairlead::json::schema {

class StepBudget {
 public:
  explicit StepBudget(std::size_t steps) noexcept : left_(steps) {}

  // Subtracts `steps`. Returns false if fewer are left; the budget is exhausted from then on.
  bool spend(std::size_t steps) noexcept {
    if (steps > left_) {
      left_ = 0;
      exhausted_ = true;
      return false;
    }
    left_ -= steps;
    return true;
  }
  // Charges the steps for reading that many bytes.
  bool spend_bytes(std::size_t bytes) noexcept { return spend(1 + bytes / kBytesPerStep); }

  bool exhausted() const noexcept { return exhausted_; }
  std::size_t left() const noexcept { return left_; }

 private:
  static constexpr std::size_t kBytesPerStep = 64;

  std::size_t left_;
  bool exhausted_ = false;
};

}  // namespace fairlead::json::schema
