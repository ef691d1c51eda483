// Builds the DFA of a small pattern by subset construction, for ASCII text only: a transition for every set
// of instructions and every class of characters. Stops at a limit, because some patterns have too many sets.
#include <algorithm>
#include <map>

#include "json/regex.hpp"

namespace fairlead::json {

class RegexDfaBuilder {
 public:
  explicit RegexDfaBuilder(const Regex& regex)
      : regex_(regex), budget_(kBaseBudget + 16 * regex.instructions_.size()) {}

  std::optional<Regex::Dfa> build() {
    if (!is_simple()) return std::nullopt;
    make_classes();
    find_or_add_state({regex_.main_.entry}, true);
    for (std::size_t state = 0; state < sets_.size(); ++state) {
      if (budget_ == 0 || (sets_.size() + 1) * dfa_.class_count > kMaxTransitions ||
          sets_.size() > kMaxStates)
        return std::nullopt;
      add_row(state);
    }
    return std::move(dfa_);
  }

 private:
  using Op = Regex::Op;
  using InstructionSet = std::vector<std::uint32_t>;

  static constexpr std::size_t kBaseBudget =
      4096;  // instructions to visit, in addition to 16 per instruction
  static constexpr std::size_t kMaxTransitions = 4096;  // entries of the transition table
  static constexpr std::size_t kMaxStates = 250;        // the table stores a state in one byte

  // Returns whether every instruction depends on the position and the next character only.
  bool is_simple() const {
    return regex_.lookarounds_.empty() &&
           std::ranges::none_of(regex_.instructions_, [](const Regex::Instruction& instruction) {
             return instruction.op == Op::word_boundary || instruction.op == Op::not_word_boundary;
           });
  }

  bool accepts(const Regex::Instruction& instruction, std::uint32_t code) const {
    return instruction.op == Op::character ? instruction.a == code : regex_.sets_[instruction.a].has(code);
  }

  void make_classes();
  void add_row(std::size_t state);
  std::uint8_t find_or_add_state(const InstructionSet& entered, bool at_begin);
  bool epsilon_closure(const InstructionSet& entered, bool at_begin, bool at_end, InstructionSet& waiting);

  const Regex& regex_;
  std::size_t budget_;
  Regex::Dfa dfa_;
  std::vector<std::uint32_t> examples_;  // one character of each class
  std::vector<InstructionSet> sets_;     // by state: the instructions that match a character
  std::map<std::pair<InstructionSet, std::uint8_t>, std::uint8_t> known_;  // states by set and verdict
};

// Two characters are in the same class if exactly the same instructions accept them.
void RegexDfaBuilder::make_classes() {
  std::map<std::pair<Op, std::uint32_t>, const Regex::Instruction*> tests;
  for (const Regex::Instruction& instruction : regex_.instructions_) {
    if (instruction.op == Op::character || instruction.op == Op::set)
      tests.try_emplace({instruction.op, instruction.a}, &instruction);
  }
  std::map<std::vector<bool>, std::uint8_t> classes;
  for (std::uint32_t code = 0; code < 128; ++code) {
    std::vector<bool> accepted;
    for (const auto& [_, instruction] : tests) accepted.push_back(accepts(*instruction, code));
    const auto [found, added] = classes.try_emplace(accepted, static_cast<std::uint8_t>(classes.size()));
    dfa_.classes[code] = found->second;
    if (added) examples_.push_back(code);
  }
  dfa_.class_count = examples_.size();
}

void RegexDfaBuilder::add_row(std::size_t state) {
  for (const std::uint32_t code : examples_) {
    InstructionSet entered;
    for (const std::uint32_t instruction : sets_[state]) {
      if (accepts(regex_.instructions_[instruction], code)) entered.push_back(instruction + 1);
    }
    if (!regex_.main_.anchored) entered.push_back(regex_.main_.entry);
    dfa_.next.push_back(find_or_add_state(entered, false));
  }
}

std::uint8_t RegexDfaBuilder::find_or_add_state(const InstructionSet& entered, bool at_begin) {
  InstructionSet waiting;
  InstructionSet unused;
  std::uint8_t verdict = 0;
  if (epsilon_closure(entered, at_begin, true, unused)) verdict |= Regex::Dfa::kMatchedAtEnd;
  if (epsilon_closure(entered, at_begin, false, waiting)) verdict |= Regex::Dfa::kMatched;
  if (verdict == 0 && waiting.empty() && regex_.main_.anchored) verdict |= Regex::Dfa::kDead;
  if (sets_.size() > kMaxStates) return 0;  // too many: build() returns nullopt
  const auto [found, added] = known_.try_emplace({waiting, verdict}, static_cast<std::uint8_t>(sets_.size()));
  if (added) {
    sets_.push_back(std::move(waiting));
    dfa_.verdicts.push_back(verdict);
  }
  return found->second;
}

// Finds the instructions that can be reached from `entered` without consuming a character. Returns whether
// one of them is a match. Sets `waiting` to those that match a character, sorted.
bool RegexDfaBuilder::epsilon_closure(const InstructionSet& entered, bool at_begin, bool at_end,
                                      InstructionSet& waiting) {
  InstructionSet pending = entered;
  std::vector<bool> seen(regex_.instructions_.size());
  bool matched = false;
  while (!pending.empty() && budget_ > 0) {
    const std::uint32_t id = pending.back();
    pending.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    --budget_;
    const Regex::Instruction& instruction = regex_.instructions_[id];
    if (instruction.op == Op::character || instruction.op == Op::set) waiting.push_back(id);
    if (instruction.op == Op::split) pending.push_back(instruction.b);
    if (instruction.op == Op::split || instruction.op == Op::jump) pending.push_back(instruction.a);
    if ((instruction.op == Op::begin && at_begin) || (instruction.op == Op::end && at_end))
      pending.push_back(id + 1);
    matched |= instruction.op == Op::match;
  }
  std::ranges::sort(waiting);
  return matched;
}

void Regex::make_dfa() {
  dfa_ = RegexDfaBuilder(*this).build();
}

Regex::Match Regex::search_ascii(std::string_view text) const {
  const Dfa& dfa = *dfa_;
  std::size_t state = 0;
  for (const char c : text) {
    if ((dfa.verdicts[state] & (Dfa::kMatched | Dfa::kDead)) != 0) break;
    if (static_cast<unsigned char>(c) >= 128) return Match::undecided;
    state = dfa.next[state * dfa.class_count + dfa.classes[static_cast<unsigned char>(c)]];
  }
  const std::uint8_t verdict = dfa.verdicts[state];
  if ((verdict & Dfa::kMatched) != 0) return Match::yes;
  if ((verdict & Dfa::kDead) != 0) return Match::no;
  return (verdict & Dfa::kMatchedAtEnd) != 0 ? Match::yes : Match::no;
}

}  // namespace fairlead::json
