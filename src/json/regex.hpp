// Regex: the regular expressions of JSON Schema (ECMA-262, Unicode mode), matched in time linear in the text.
//
// Schemas come from untrusted servers, so matching never backtracks: an NFA simulation advances all states
// together, one code point at a time. compile() rejects backreferences, which cannot be matched that way. For
// each lookaround, a pass over the text before the search finds all positions at which the lookaround holds.
// Small patterns also get a DFA (regex_dfa.cpp), which matches ASCII text with one table lookup a byte.
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
  enum class Match : std::uint8_t { no, yes, undecided };

  // Fails with kind `validation`; the message has the problem and its byte offset in the pattern. A pattern
  // that needs more than `max_states` states is rejected. `with_dfa` makes matching faster and compiling
  // slower.
  static Result<Regex> compile(std::string_view pattern, std::size_t max_states, bool with_dfa = true);

  // Returns whether some part of `text` matches. Subtracts every state visited from `budget`; returns
  // `undecided` if the budget is exhausted.
  Match search(std::string_view text, std::size_t& budget) const;
  // Returns the number of states that the pattern needs.
  std::size_t state_count() const noexcept { return state_count_; }

 private:
  friend class RegexCompiler;
  friend class RegexMatcher;
  friend class RegexDfaBuilder;

  enum class Op : std::uint8_t {
    character,
    set,
    split,
    jump,
    begin,
    end,
    word_boundary,
    not_word_boundary,
    lookaround,
    negative_lookaround,
    match
  };
  struct Instruction {
    Op op;
    std::uint32_t a = 0;  // code point, set, lookaround, or the next instruction
    std::uint32_t b = 0;  // split: the other next instruction
  };
  // The compiled form of the pattern or of one lookaround. A lookahead runs backwards from the end of the
  // text; a lookbehind and the pattern itself run forwards.
  struct Machine {
    std::uint32_t entry = 0;  // its first instruction
    bool backward = false;
    bool anchored = false;  // can match only from the beginning of the text
  };

  // The DFA for ASCII text. State 0 is the initial state.
  struct Dfa {
    static constexpr std::uint8_t kMatched = 1;       // any text that continues this one matches
    static constexpr std::uint8_t kMatchedAtEnd = 2;  // the text matches if it ends here
    static constexpr std::uint8_t kDead = 4;          // no text that continues this one matches
    std::array<std::uint8_t, 128> classes{};          // by character: its equivalence class
    std::size_t class_count = 0;
    std::vector<std::uint8_t> next;      // by state, then class
    std::vector<std::uint8_t> verdicts;  // by state: kMatched, kMatchedAtEnd and kDead, or none of them
  };

  // Returns `undecided` if `text` has a character outside ASCII before the result is known.
  Match search_ascii(std::string_view text) const;
  void make_dfa();

  std::vector<Instruction> instructions_;
  std::vector<CharSet> sets_;
  std::vector<Machine> lookarounds_;  // nested lookarounds come before the enclosing ones
  Machine main_;
  std::optional<Dfa> dfa_;
  std::size_t state_count_ = 0;
};

}  // namespace fairlead::json
