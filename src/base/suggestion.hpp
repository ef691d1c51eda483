// "Did you mean": the known word that a misspelled one is closest to.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fairlead {

// The word of `known` that differs from `word` by the fewest single-character edits; empty if that is more
// than two, or more than a third of the word.
std::string_view closest_word(std::string_view word, std::span<const std::string> known);

}  // namespace fairlead
