// The syntax tree of a regular expression, between parsing and compiling.
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
    set,        // value: which of `sets`
    begin,
    end,
    word,      // \b
    not_word,  // \B
    sequence,
    choice,
    repeat,  // of the one child
    look,    // value: which of `looks`
    not_look,
  };
  static constexpr std::uint32_t kForever = 0xffffffff;

  struct Node {
    Kind kind;
    std::uint32_t value = 0;
    std::uint32_t min = 0;
    std::uint32_t max = 0;
    std::vector<std::uint32_t> children = {};
  };
  struct Look {
    std::uint32_t node;
    bool behind;
  };

  std::vector<Node> nodes;
  std::vector<CharSet> sets;
  std::vector<Look> looks;  // inner ones before those around them
  std::uint32_t root = 0;
};

// What a pattern has cost so far, in states.
class RegexCost {
 public:
  explicit RegexCost(std::size_t max) noexcept : max_(max) {}
  bool spend(std::size_t states) noexcept {
    spent_ += states;
    return spent_ <= max_;
  }
  std::size_t spent() const noexcept { return spent_; }

 private:
  std::size_t max_;
  std::size_t spent_ = 0;
};

Result<RegexTree> parse_regex(std::string_view pattern, RegexCost& cost);
Error pattern_too_large();

}  // namespace fairlead::json
