#include "base/suggestion.hpp"

#include <algorithm>
#include <vector>

namespace fairlead {

namespace {

constexpr std::size_t kMaxWordBytes = 64;  // longer words get no suggestion
constexpr std::size_t kMaxEdits = 2;       // largest edit distance of a suggestion

// Returns the Damerau-Levenshtein distance: insertions, deletions, replacements and swaps of adjacent
// characters.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> edits(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& fewest = edits[i][j];
      fewest = std::max(i, j);
      if (i == 0 || j == 0) continue;
      const std::size_t replaced = edits[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      fewest = std::min({replaced, edits[i - 1][j] + 1, edits[i][j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) fewest = std::min(fewest, edits[i - 2][j - 2] + 1);
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::string_view closest_word(std::string_view word, std::span<const std::string> known) {
  std::string_view best;
  std::size_t fewest = std::min(kMaxEdits, word.size() / 3) + 1;
  if (word.size() > kMaxWordBytes) return best;
  for (const std::string& candidate : known) {
    const std::size_t edits = edit_distance(word, candidate);
    if (edits >= fewest) continue;
    fewest = edits;
    best = candidate;
  }
  return best;
}

}  // namespace fairlead
