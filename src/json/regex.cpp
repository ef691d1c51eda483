#include "json/regex.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "json/code_points.hpp"
#include "json/regex_tree.hpp"

namespace fairlead::json {

// The tree as steps. A machine that runs backwards is the same one with its sequences turned round.
class RegexCompiler {
 public:
  RegexCompiler(RegexTree tree, RegexCost& cost) : tree_(std::move(tree)), cost_(cost) {}

  Result<Regex> compile(bool with_table) {
    for (const RegexTree::Look& look : tree_.looks) regex_.looks_.push_back(machine(look.node, !look.behind));
    regex_.main_ = machine(tree_.root, false);
    regex_.main_.anchored = begins_with_anchor(tree_.root);
    if (too_large_) return pattern_too_large();
    regex_.sets_ = std::move(tree_.sets);
    regex_.states_ = cost_.spent();
    if (with_table) regex_.make_dfa();
    return std::move(regex_);
  }

 private:
  using Op = Regex::Op;
  using Kind = RegexTree::Kind;

  Regex::Machine machine(std::uint32_t node, bool backward) {
    const std::uint32_t entry = here();
    backward_ = backward;
    emit(node);
    put(Op::match);
    return {entry, backward, false};
  }

  bool begins_with_anchor(std::uint32_t id) const {
    const RegexTree::Node& node = tree_.nodes[id];
    if (node.kind == Kind::begin) return true;
    if (node.kind == Kind::choice)
      return std::ranges::all_of(node.children, [this](std::uint32_t n) { return begins_with_anchor(n); });
    return node.kind == Kind::sequence && !node.children.empty() && begins_with_anchor(node.children.front());
  }

  std::uint32_t here() const { return static_cast<std::uint32_t>(regex_.steps_.size()); }

  // Also says so, and puts nothing, when the pattern has become too large.
  std::uint32_t put(Op op, std::uint32_t a = 0) {
    if (!cost_.spend(1)) too_large_ = true;
    if (!too_large_) regex_.steps_.push_back({op, a, 0});
    return here() - 1;
  }

  void emit(std::uint32_t id);
  void emit_sequence(const RegexTree::Node& node);
  void emit_choice(const RegexTree::Node& node);
  void emit_repeat(const RegexTree::Node& node);

  RegexTree tree_;
  RegexCost& cost_;
  Regex regex_;
  bool backward_ = false;
  bool too_large_ = false;
};

void RegexCompiler::emit(std::uint32_t id) {
  if (too_large_) return;
  const RegexTree::Node& node = tree_.nodes[id];
  switch (node.kind) {
    case Kind::character: put(Op::character, node.value); break;
    case Kind::set: put(Op::set, node.value); break;
    case Kind::begin: put(Op::begin); break;
    case Kind::end: put(Op::end); break;
    case Kind::word: put(Op::word); break;
    case Kind::not_word: put(Op::not_word); break;
    case Kind::look: put(Op::look, node.value); break;
    case Kind::not_look: put(Op::not_look, node.value); break;
    case Kind::sequence: emit_sequence(node); break;
    case Kind::choice: emit_choice(node); break;
    case Kind::repeat: emit_repeat(node); break;
  }
}

void RegexCompiler::emit_sequence(const RegexTree::Node& node) {
  for (std::size_t i = 0; i < node.children.size(); ++i)
    emit(node.children[backward_ ? node.children.size() - 1 - i : i]);
}

//   split A, next; A: …; jump end; next: split B, …
void RegexCompiler::emit_choice(const RegexTree::Node& node) {
  std::vector<std::uint32_t> jumps;
  for (std::size_t i = 0; i < node.children.size() && !too_large_; ++i) {
    const bool last = i + 1 == node.children.size();
    const std::uint32_t split = last ? 0 : put(Op::split, here() + 1);
    emit(node.children[i]);
    if (last || too_large_) break;
    jumps.push_back(put(Op::jump));
    if (!too_large_) regex_.steps_[split].b = here();
  }
  if (too_large_) return;
  for (const std::uint32_t jump : jumps) regex_.steps_[jump].a = here();
}

// As many copies as the least number, then a loop or as many optional ones as there may be more. A copy costs
// something even when it is empty, or `(){1000000000}` would keep us here.
void RegexCompiler::emit_repeat(const RegexTree::Node& node) {
  const std::uint32_t child = node.children.front();
  for (std::uint32_t i = 0; i < node.min && !too_large_; ++i) {
    if (!cost_.spend(1)) too_large_ = true;
    emit(child);
  }
  std::vector<std::uint32_t> exits;
  if (node.max == RegexTree::kForever) {
    exits.push_back(put(Op::split, here() + 1));
    emit(child);
    put(Op::jump, exits.front());
  } else {
    for (std::uint32_t i = node.min; i < node.max && !too_large_; ++i) {
      exits.push_back(put(Op::split, here() + 1));
      emit(child);
    }
  }
  if (too_large_) return;
  for (const std::uint32_t exit : exits) regex_.steps_[exit].b = here();
}

namespace {

// Room for three lists of steps and a bit for each step; most patterns are small enough for the stack.
class Scratch {
 public:
  explicit Scratch(std::size_t steps) {
    words_ = (steps + 63) / 64;
    if (steps > kSmall) {
      many_ = std::make_unique_for_overwrite<std::uint32_t[]>(3 * steps);
      many_bits_ = std::make_unique_for_overwrite<std::uint64_t[]>(words_);
    }
    std::uint32_t* const from = many_ ? many_.get() : few_;
    lists_ = {from, from + steps, from + 2 * steps};
    bits_ = many_bits_ ? many_bits_.get() : few_bits_;
  }

  std::uint32_t* list(std::size_t i) const noexcept { return lists_[i]; }
  std::size_t words() const noexcept { return words_; }
  void forget() noexcept { std::fill_n(bits_, words_, 0); }
  // False when it was there already.
  bool add(std::uint32_t step) noexcept {
    std::uint64_t& word = bits_[step / 64];
    const std::uint64_t bit = std::uint64_t{1} << (step % 64);
    const bool added = (word & bit) == 0;
    word |= bit;
    return added;
  }

 private:
  static constexpr std::size_t kSmall = 192;

  std::size_t words_;
  std::array<std::uint32_t*, 3> lists_;
  std::uint64_t* bits_;
  std::unique_ptr<std::uint32_t[]> many_;
  std::unique_ptr<std::uint64_t[]> many_bits_;
  std::uint32_t few_[3 * kSmall];
  std::uint64_t few_bits_[kSmall / 64];
};

struct List {
  std::uint32_t* steps;
  std::size_t size = 0;

  void push(std::uint32_t step) noexcept { steps[size++] = step; }
  std::uint32_t pop() noexcept { return steps[--size]; }
};

}  // namespace

// One search: all states at one position, then all at the next.
class RegexRun {
 public:
  RegexRun(const Regex& regex, std::string_view text, std::size_t& budget)
      : regex_(regex),
        text_(text),
        budget_(budget),
        scratch_(regex.steps_.size()),
        now_{scratch_.list(0)},
        next_{scratch_.list(1)},
        todo_{scratch_.list(2)} {}

  Regex::Match search() {
    for (const Regex::Machine& look : regex_.looks_) {
      std::vector<bool> where(text_.size() + 1);
      run(look, &where);
      looks_.push_back(std::move(where));
    }
    const bool found = run(regex_.main_, nullptr);
    if (spent_) return Regex::Match::gave_up;
    return found ? Regex::Match::yes : Regex::Match::no;
  }

 private:
  using Op = Regex::Op;

  bool run(const Regex::Machine& machine, std::vector<bool>* where);
  void begin_round();
  void advance(const Regex::Machine& machine);
  void enter(std::uint32_t step);
  bool holds(const Regex::Step& step) const;
  bool is_word_at(std::size_t at) const;
  void visit(std::uint32_t step) {
    if (scratch_.add(step)) todo_.push(step);
  }
  bool spend(std::size_t states) {
    spent_ |= states > budget_;
    budget_ -= std::min(states, budget_);
    return !spent_;
  }

  const Regex& regex_;
  std::string_view text_;
  std::size_t& budget_;
  Scratch scratch_;  // its bits: the steps visited at this position
  List now_;         // steps that wait for a code point
  List next_;        // the same, at the next position
  List todo_;
  std::vector<std::vector<bool>> looks_;  // where each holds
  std::size_t at_ = 0;
  bool matched_ = false;
  bool spent_ = false;
};

// Without `where`, ends with the first match; with it, notes every position at which the machine matches.
bool RegexRun::run(const Regex::Machine& machine, std::vector<bool>* where) {
  const std::size_t last = machine.backward ? 0 : text_.size();
  const std::size_t first = text_.size() - last;
  at_ = first;
  next_.size = 0;
  begin_round();
  for (;;) {
    if (!machine.anchored || at_ == first) enter(machine.entry);
    if (matched_ && where == nullptr) return true;
    if (matched_) (*where)[at_] = true;
    std::swap(now_, next_);
    next_.size = 0;
    if (at_ == last || spent_ || (machine.anchored && now_.size == 0)) return false;
    advance(machine);
  }
}

void RegexRun::begin_round() {
  matched_ = false;
  scratch_.forget();
  spend(1 + scratch_.words() / 8);
}

// Over one code point: from now_ to next_.
void RegexRun::advance(const Regex::Machine& machine) {
  const char* const p = text_.data() + at_;
  const Decoded read =
      machine.backward ? decode_utf8_before(text_.data(), p) : decode_utf8(p, text_.data() + text_.size());
  at_ = machine.backward ? at_ - read.length : at_ + read.length;
  begin_round();
  for (std::size_t i = 0; i < now_.size; ++i) {
    const std::uint32_t id = now_.steps[i];
    const Regex::Step& step = regex_.steps_[id];
    const bool fits = step.op == Op::character ? step.a == read.code : regex_.sets_[step.a].has(read.code);
    if (fits) enter(id + 1);
  }
}

// Follows what needs no code point, with a list of its own in place of calling itself: patterns can be long.
void RegexRun::enter(std::uint32_t from) {
  visit(from);
  while (todo_.size > 0) {
    const std::uint32_t id = todo_.pop();
    if (!spend(1)) {
      todo_.size = 0;
      return;
    }
    const Regex::Step& step = regex_.steps_[id];
    switch (step.op) {
      case Op::character:
      case Op::set: next_.push(id); break;
      case Op::split: visit(step.b); [[fallthrough]];
      case Op::jump: visit(step.a); break;
      case Op::match: matched_ = true; break;
      default:
        if (holds(step)) visit(id + 1);
    }
  }
}

bool RegexRun::holds(const Regex::Step& step) const {
  switch (step.op) {
    case Op::begin: return at_ == 0;
    case Op::end: return at_ == text_.size();
    case Op::word: return is_word_at(at_) != (at_ > 0 && is_word_at(at_ - 1));
    case Op::not_word: return is_word_at(at_) == (at_ > 0 && is_word_at(at_ - 1));
    case Op::look: return looks_[step.a][at_];
    default: return !looks_[step.a][at_];
  }
}

// Word characters are ASCII, so a byte is enough to see one.
bool RegexRun::is_word_at(std::size_t at) const {
  if (at >= text_.size()) return false;
  const char c = text_[at];
  const char lower = static_cast<char>(c | 0x20);
  return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '_';
}

Result<Regex> Regex::compile(std::string_view pattern, std::size_t max_states, bool with_table) {
  RegexCost cost(max_states);
  auto tree = parse_regex(pattern, cost);
  if (!tree) return std::move(tree.error());
  return RegexCompiler(*std::move(tree), cost).compile(with_table);
}

Regex::Match Regex::search(std::string_view text, std::size_t& budget) const {
  if (dfa_) {
    const Match match = search_ascii(text);
    budget -= std::min(budget, text.size());
    if (match != Match::gave_up) return match;
  }
  return RegexRun(*this, text, budget).search();
}

}  // namespace fairlead::json
