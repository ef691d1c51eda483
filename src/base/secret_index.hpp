// SecretIndex: finds any of a set of secrets in a text, in time proportional to the text. An Aho-Corasick
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
  // A part of a text.
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  struct Found {
    std::vector<Range> secrets;  // in order; overlapping ones as one
    std::size_t truncated = 0;   // size of the beginning of a secret at the end of the text
  };

  // Secrets of less than Redactor::kMinSecret bytes are left out. Each line of a secret with several lines is
  // a secret too. The case of ASCII letters is ignored. Takes about 0.1 us and 20 bytes for each byte of
  // these.
  explicit SecretIndex(const std::vector<std::string>& secrets);

  bool empty() const noexcept { return secrets_.empty(); }
  Found find(std::string_view text) const;

 private:
  // A state of the automaton: the text read so far ends with the first `depth` bytes of a secret, and with no
  // longer beginning of one. States are in breadth-first order, those of one parent side by side.
  struct State {
    std::uint32_t depth = 0;
    std::uint32_t match = 0;     // size of the longest secret that the text ends with; 0: none
    std::uint32_t fallback = 0;  // the state for the longest shorter beginning of a secret
    std::uint32_t first_child = 0;
    std::uint16_t children = 0;  // by last_byte
    unsigned char last_byte = 0;
  };

  void add_lines(std::string_view secret);
  void index();
  void add_children(std::uint32_t parent, Range secrets, std::vector<Range>& secrets_of);
  // 0: none.
  std::uint32_t child(std::uint32_t state, unsigned char byte) const noexcept;
  std::uint32_t next(std::uint32_t state, unsigned char byte) const noexcept;

  std::vector<std::string> secrets_;                    // in lower case, sorted
  std::vector<State> states_;                           // the first: nothing of a secret has been read
  std::array<std::uint32_t, 256> children_of_first_{};  // by byte; 0: none
};

// Adds `range` to `ranges`, which are in the order of their ends, and joins it with those that it overlaps.
void add_range(std::vector<SecretIndex::Range>& ranges, SecretIndex::Range range);

}  // namespace fairlead
