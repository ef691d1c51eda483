// Compares JSON values as JSON Schema defines equality: numbers by value, strings by their characters,
// objects regardless of the order of their members. If a key is repeated, its last value counts.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "json/schema/step_budget.hpp"
#include "json/tape.hpp"

namespace fairlead::json::schema {

// A value in a tape.
struct ValueRef {
  const Tape& tape;
  TapeIndex entry;
};

// Charges `budget` for reading the string at `entry`; decoding escapes costs more. Returns false once the
// budget is exhausted.
inline bool charge_string(const Tape& tape, TapeIndex entry, StepBudget& budget) noexcept {
  return budget.spend_bytes(tape.text(entry).size() * (tape.needs_decoding(entry) ? 8 : 1));
}

// Returns whether the values are equal. Returns false for any values once `budget` is exhausted.
bool equal(ValueRef a, ValueRef b, StepBudget& budget);

// Returns the number of distinct keys of an object.
std::size_t count_distinct_keys(ValueRef object, StepBudget& budget);

// Returns the positions of two equal elements of an array. Returns nullopt if all elements differ, and once
// `budget` is exhausted.
std::optional<std::pair<std::uint32_t, std::uint32_t>> find_equal_elements(ValueRef array,
                                                                           StepBudget& budget);

}  // namespace fairlead::json::schema
