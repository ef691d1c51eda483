// JSON values compared as JSON Schema has it: numbers by value, strings by their characters, objects whatever
// the order of their members. Of members with the same key the last one counts.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "json/schema/work.hpp"
#include "json/tape.hpp"

namespace fairlead::json::schema {

struct ValueRef {
  const Tape& tape;
  Index at;
};

// For looking at a string; decoding escapes takes longer.
inline bool pay_for_string(const Tape& tape, Index at, Work& work) noexcept {
  return work.spend_bytes(tape.text(at).size() * (tape.special(at) ? 8 : 1));
}

// False, whatever they are, once `work` is exhausted.
bool equal(ValueRef a, ValueRef b, Work& work);

// How many different keys an object has.
std::size_t distinct_keys(ValueRef object, Work& work);

// The positions of two equal elements of an array. nullopt also once `work` is exhausted.
std::optional<std::pair<std::uint32_t, std::uint32_t>> find_equal_elements(ValueRef array, Work& work);

}  // namespace fairlead::json::schema
