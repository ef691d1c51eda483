// closest_word(): finds the word for a "did you mean" suggestion. Private to the library.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fairlead {

// Returns the word of `known` with the smallest edit distance to `word`; empty if that distance is more than
// two or more than a third of the length of `word`.
std::string_view closest_word(std::string_view word, std::span<const std::string> known);

}  // namespace fairlead
