// The subset construction, for small patterns and ASCII only: which set of steps follows which, for every
// class of characters. Given up at a bound, since the sets of some patterns are too many.
#include <algorithm>
#include <map>

#include "json/regex.hpp"

namespace fairlead::json {

class RegexDfaBuilder {
 public:
  explicit RegexDfaBuilder(const Regex& regex) : regex_(regex), work_(kBaseWork + 16 * regex.steps_.size()) {}

  std::optional<Regex::Dfa> build() {
    if (!is_simple()) return std::nullopt;
    make_classes();
    state_of({regex_.main_.entry}, true);
    for (std::size_t state = 0; state < sets_.size(); ++state) {
      if (work_ == 0 || (sets_.size() + 1) * dfa_.class_count > kMaxTable || sets_.size() > kMaxStates)
        return std::nullopt;
      add_row(state);
    }
    return std::move(dfa_);
  }

 private:
  using Op = Regex::Op;
  using Steps = std::vector<std::uint32_t>;

  static constexpr std::size_t kBaseWork = 4096;
  static constexpr std::size_t kMaxTable = 4096;
  static constexpr std::size_t kMaxStates = 250;  // a state is a byte in the table

  // What a step depends on is only the position and the character.
  bool is_simple() const {
    return regex_.looks_.empty() && std::ranges::none_of(regex_.steps_, [](const Regex::Step& step) {
             return step.op == Op::word || step.op == Op::not_word;
           });
  }

  bool accepts(const Regex::Step& step, std::uint32_t code) const {
    return step.op == Op::character ? step.a == code : regex_.sets_[step.a].has(code);
  }

  void make_classes();
  void add_row(std::size_t state);
  std::uint8_t state_of(const Steps& entered, bool at_begin);
  bool follow(const Steps& entered, bool at_begin, bool at_end, Steps& waiting);

  const Regex& regex_;
  std::size_t work_;
  Regex::Dfa dfa_;
  std::vector<std::uint32_t> examples_;  // a character of each class
  std::vector<Steps> sets_;              // by state: the steps that wait for a character
  std::map<std::pair<Steps, std::uint8_t>, std::uint8_t> known_;
};

// Characters that the same tests accept are in the same class.
void RegexDfaBuilder::make_classes() {
  std::map<std::pair<Op, std::uint32_t>, const Regex::Step*> tests;
  for (const Regex::Step& step : regex_.steps_) {
    if (step.op == Op::character || step.op == Op::set) tests.try_emplace({step.op, step.a}, &step);
  }
  std::map<std::vector<bool>, std::uint8_t> classes;
  for (std::uint32_t code = 0; code < 128; ++code) {
    std::vector<bool> accepted;
    for (const auto& [_, step] : tests) accepted.push_back(accepts(*step, code));
    const auto [found, added] = classes.try_emplace(accepted, static_cast<std::uint8_t>(classes.size()));
    dfa_.classes[code] = found->second;
    if (added) examples_.push_back(code);
  }
  dfa_.class_count = examples_.size();
}

void RegexDfaBuilder::add_row(std::size_t state) {
  for (const std::uint32_t code : examples_) {
    Steps entered;
    for (const std::uint32_t step : sets_[state]) {
      if (accepts(regex_.steps_[step], code)) entered.push_back(step + 1);
    }
    if (!regex_.main_.anchored) entered.push_back(regex_.main_.entry);
    dfa_.next.push_back(state_of(entered, false));
  }
}

std::uint8_t RegexDfaBuilder::state_of(const Steps& entered, bool at_begin) {
  Steps waiting;
  Steps unused;
  std::uint8_t verdict = 0;
  if (follow(entered, at_begin, true, unused)) verdict |= Regex::Dfa::kMatchedAtEnd;
  if (follow(entered, at_begin, false, waiting)) verdict |= Regex::Dfa::kMatched;
  if (verdict == 0 && waiting.empty() && regex_.main_.anchored) verdict |= Regex::Dfa::kHopeless;
  if (sets_.size() > kMaxStates) return 0;  // build() is about to give up
  const auto [found, added] = known_.try_emplace({waiting, verdict}, static_cast<std::uint8_t>(sets_.size()));
  if (added) {
    sets_.push_back(std::move(waiting));
    dfa_.verdicts.push_back(verdict);
  }
  return found->second;
}

// What is reached without a character: whether that is a match, and the steps that wait for one, sorted.
bool RegexDfaBuilder::follow(const Steps& entered, bool at_begin, bool at_end, Steps& waiting) {
  Steps todo = entered;
  std::vector<bool> seen(regex_.steps_.size());
  bool matched = false;
  while (!todo.empty() && work_ > 0) {
    const std::uint32_t id = todo.back();
    todo.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    --work_;
    const Regex::Step& step = regex_.steps_[id];
    if (step.op == Op::character || step.op == Op::set) waiting.push_back(id);
    if (step.op == Op::split) todo.push_back(step.b);
    if (step.op == Op::split || step.op == Op::jump) todo.push_back(step.a);
    if ((step.op == Op::begin && at_begin) || (step.op == Op::end && at_end)) todo.push_back(id + 1);
    matched |= step.op == Op::match;
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
    if ((dfa.verdicts[state] & (Dfa::kMatched | Dfa::kHopeless)) != 0) break;
    if (static_cast<unsigned char>(c) >= 128) return Match::gave_up;
    state = dfa.next[state * dfa.class_count + dfa.classes[static_cast<unsigned char>(c)]];
  }
  const std::uint8_t verdict = dfa.verdicts[state];
  if ((verdict & Dfa::kMatched) != 0) return Match::yes;
  if ((verdict & Dfa::kHopeless) != 0) return Match::no;
  return (verdict & Dfa::kMatchedAtEnd) != 0 ? Match::yes : Match::no;
}

}  // namespace fairlead::json
