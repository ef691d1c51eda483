// RegexTree: the syntax tree of a regular expression. The parser builds it; the compiler reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"
#include "json/char_set.hpp"

namespace fairlead::json {

struct RegexTree {
  enum class Kind : std::uint8_t {
    character,  // value: the code point
    set,        // value: index in `sets`
    begin,
    end,
    word_boundary,      // \b
    not_word_boundary,  // \B
    sequence,
    choice,
    repeat,      // has one child
    lookaround,  // value: index in `lookarounds`
    negative_lookaround,
  };
  static constexpr std::uint32_t kUnbounded = 0xffffffff;

  struct Node {
    Kind kind;
    std::uint32_t value = 0;
    std::uint32_t min = 0;
    std::uint32_t max = 0;
    std::vector<std::uint32_t> children = {};
  };
  struct Lookaround {
    std::uint32_t body;  // the node of the pattern inside the parentheses
    bool behind;         // lookbehind; otherwise lookahead
  };

  std::vector<Node> nodes;
  std::vector<CharSet> sets;
  std::vector<Lookaround> lookarounds;  // nested lookarounds come before the enclosing ones
  std::uint32_t root = 0;
};

// Counts the states that a pattern needs, up to a maximum.
class RegexCost {
 public:
  explicit RegexCost(std::size_t max) noexcept : max_(max) {}
  // Adds `states`. Returns false if the sum exceeds the maximum.
  bool spend(std::size_t states) noexcept {
    spent_ += states;
    return spent_ <= max_;
  }
  std::size_t spent() const noexcept { return spent_; }

 private:
  std::size_t max_;
  std::size_t spent_ = 0;
};

// Parses `pattern`. Fails with kind `validation`. Charges `cost` for every node.
Result<RegexTree> parse_regex(std::string_view pattern, RegexCost& cost);
Error pattern_too_large();

}  // namespace fairlead::json
