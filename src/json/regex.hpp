// Regex: the regular expressions of JSON Schema (ECMA-262, Unicode mode), matched in time linear in the text.
//
// Schemas come from servers nobody vouches for, so matching never backtracks: all states a pattern can be in
// advance together, one code point at a time. What cannot be done that way (backreferences) is refused when
// the pattern is compiled. Lookaround can be: where it holds is found beforehand for all positions, in one
// pass each. Small patterns also get a table of what follows what (regex_dfa.cpp), with which ASCII text
// takes a look-up a byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"
#include "json/char_set.hpp"

namespace fairlead::json {

class Regex {
 public:
  enum class Match : std::uint8_t { no, yes, gave_up };

  // The error, of kind validation, says what is wrong and at which byte of the pattern. A pattern that needs
  // more than `max_states` states is refused; states() says how many it took. A table makes matching faster
  // and compiling slower.
  static Result<Regex> compile(std::string_view pattern, std::size_t max_states, bool with_table = true);

  // Whether some part of `text` matches. Every state visited is taken off `budget`; gives up when it is
  // spent.
  Match search(std::string_view text, std::size_t& budget) const;
  std::size_t states() const noexcept { return states_; }

 private:
  friend class RegexCompiler;
  friend class RegexRun;
  friend class RegexDfaBuilder;

  enum class Op : std::uint8_t {
    character,
    set,
    split,
    jump,
    begin,
    end,
    word,
    not_word,
    look,
    not_look,
    match
  };
  struct Step {
    Op op;
    std::uint32_t a = 0;  // code point, set, look, or the next step
    std::uint32_t b = 0;  // split: the other next step
  };
  // A lookahead is found from the end of the text backwards, a lookbehind and the pattern itself forwards.
  struct Machine {
    std::uint32_t entry = 0;
    bool backward = false;
    bool anchored = false;  // can begin only where the text begins
  };

  // For ASCII. State 0 is the first.
  struct Dfa {
    static constexpr std::uint8_t kMatched = 1;       // whatever follows
    static constexpr std::uint8_t kMatchedAtEnd = 2;  // if nothing follows
    static constexpr std::uint8_t kHopeless = 4;
    std::array<std::uint8_t, 128> classes{};  // of characters that the pattern treats alike
    std::size_t class_count = 0;
    std::vector<std::uint8_t> next;      // by state, then class
    std::vector<std::uint8_t> verdicts;  // by state
  };

  Match search_ascii(std::string_view text) const;  // gave_up: not ASCII
  void make_dfa();

  std::vector<Step> steps_;
  std::vector<CharSet> sets_;
  std::vector<Machine> looks_;  // inner ones before those around them
  Machine main_;
  std::optional<Dfa> dfa_;
  std::size_t states_ = 0;
};

}  // namespace fairlead::json
