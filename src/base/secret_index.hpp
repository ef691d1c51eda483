// SecretIndex: finds all occurrences of a set of secrets in a text in linear time, with an Aho-Corasick
// automaton. Private to the layer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

class SecretIndex {
 public:
  // A range of bytes [begin, end) of a text.
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Matches {
    std::vector<Range> secrets;     // in order; overlapping matches are merged
    std::size_t partial_bytes = 0;  // size of a secret's prefix (>= kMinSecretBytes) at the end; 0: none
  };

  // Ignores secrets shorter than Redactor::kMinSecretBytes. Each line of a multi-line secret is also a
  // secret. The case of ASCII letters is ignored. Costs about 0.1 us and 20 bytes of memory per byte of the
  // secrets.
  explicit SecretIndex(const std::vector<std::string>& secrets);

  bool empty() const noexcept { return secrets_.empty(); }
  Matches find(std::string_view text) const;

 private:
  // A state of the automaton stands for a prefix of a secret: the longest prefix of any secret with which the
  // text read so far ends. States are in breadth-first order, so the children of a state are adjacent.
  struct State {
    std::uint32_t depth = 0;        // size of the prefix
    std::uint32_t match_bytes = 0;  // size of the longest secret with which the text ends; 0: none
    std::uint32_t fallback = 0;     // the state of the longest shorter prefix (failure link)
    std::uint32_t first_child = 0;
    std::uint16_t child_count = 0;  // children are sorted by last_byte
    unsigned char last_byte = 0;    // last byte of the prefix
  };

  void add_lines(std::string_view secret);
  void build_automaton();
  void add_children(std::uint32_t parent, Range secrets, std::vector<Range>& secrets_of);
  // Returns the child of `state` whose last byte is `byte`; 0 if there is none.
  std::uint32_t child(std::uint32_t state, unsigned char byte) const noexcept;
  // Returns the state after `byte` has been read in `state`.
  std::uint32_t next_state(std::uint32_t state, unsigned char byte) const noexcept;

  std::vector<std::string> secrets_;                   // in lower case, sorted
  std::vector<State> states_;                          // states_[0] is the root
  std::array<std::uint32_t, 256> children_of_root_{};  // by byte; 0: none
};

// Adds `range` and merges it with the ranges that it overlaps. REQUIRES: `ranges` is sorted by end, and
// `range` ends last.
void add_range(std::vector<SecretIndex::Range>& ranges, SecretIndex::Range range);

}  // namespace fairlead
