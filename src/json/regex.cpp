#include "json/regex.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "json/code_points.hpp"
#include "json/regex_tree.hpp"

namespace fairlead::json {

// Compiles the syntax tree to instructions. In a machine that runs backwards, the instructions of a sequence
// are in reverse order.
class RegexCompiler {
 public:
  RegexCompiler(RegexTree tree, RegexCost& cost) : tree_(std::move(tree)), cost_(cost) {}

  Result<Regex> compile(bool with_dfa) {
    for (const RegexTree::Lookaround& look : tree_.lookarounds)
      regex_.lookarounds_.push_back(compile_machine(look.body, !look.behind));
    regex_.main_ = compile_machine(tree_.root, false);
    regex_.main_.anchored = begins_with_anchor(tree_.root);
    if (too_large_) return pattern_too_large();
    regex_.sets_ = std::move(tree_.sets);
    regex_.state_count_ = cost_.spent();
    if (with_dfa) regex_.make_dfa();
    return std::move(regex_);
  }

 private:
  using Op = Regex::Op;
  using Kind = RegexTree::Kind;

  Regex::Machine compile_machine(std::uint32_t node, bool backward) {
    const std::uint32_t entry = size();
    backward_ = backward;
    emit(node);
    append(Op::match);
    return {entry, backward, false};
  }

  bool begins_with_anchor(std::uint32_t id) const {
    const RegexTree::Node& node = tree_.nodes[id];
    if (node.kind == Kind::begin) return true;
    if (node.kind == Kind::choice)
      return std::ranges::all_of(node.children, [this](std::uint32_t n) { return begins_with_anchor(n); });
    return node.kind == Kind::sequence && !node.children.empty() && begins_with_anchor(node.children.front());
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(regex_.instructions_.size()); }

  // Returns the index of the new instruction. If the pattern has become too large, sets too_large_ and
  // appends nothing.
  std::uint32_t append(Op op, std::uint32_t a = 0) {
    if (!cost_.spend(1)) too_large_ = true;
    if (!too_large_) regex_.instructions_.push_back({op, a, 0});
    return size() - 1;
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
    case Kind::character: append(Op::character, node.value); break;
    case Kind::set: append(Op::set, node.value); break;
    case Kind::begin: append(Op::begin); break;
    case Kind::end: append(Op::end); break;
    case Kind::word_boundary: append(Op::word_boundary); break;
    case Kind::not_word_boundary: append(Op::not_word_boundary); break;
    case Kind::lookaround: append(Op::lookaround, node.value); break;
    case Kind::negative_lookaround: append(Op::negative_lookaround, node.value); break;
    case Kind::sequence: emit_sequence(node); break;
    case Kind::choice: emit_choice(node); break;
    case Kind::repeat: emit_repeat(node); break;
  }
}

void RegexCompiler::emit_sequence(const RegexTree::Node& node) {
  for (std::size_t i = 0; i < node.children.size(); ++i)
    emit(node.children[backward_ ? node.children.size() - 1 - i : i]);
}

// Emits for the choice A|B|…:
//   split A, next; A: …; jump end; next: split B, …
void RegexCompiler::emit_choice(const RegexTree::Node& node) {
  std::vector<std::uint32_t> jumps;
  for (std::size_t i = 0; i < node.children.size() && !too_large_; ++i) {
    const bool last = i + 1 == node.children.size();
    const std::uint32_t split = last ? 0 : append(Op::split, size() + 1);
    emit(node.children[i]);
    if (last || too_large_) break;
    jumps.push_back(append(Op::jump));
    if (!too_large_) regex_.instructions_[split].b = size();
  }
  if (too_large_) return;
  for (const std::uint32_t jump : jumps) regex_.instructions_[jump].a = size();
}

// Emits `min` copies, then a loop, or `max - min` optional copies. Even an empty copy is charged: otherwise
// `(){1000000000}` would take a long time to compile.
void RegexCompiler::emit_repeat(const RegexTree::Node& node) {
  const std::uint32_t child = node.children.front();
  for (std::uint32_t i = 0; i < node.min && !too_large_; ++i) {
    if (!cost_.spend(1)) too_large_ = true;
    emit(child);
  }
  std::vector<std::uint32_t> exits;
  if (node.max == RegexTree::kUnbounded) {
    exits.push_back(append(Op::split, size() + 1));
    emit(child);
    append(Op::jump, exits.front());
  } else {
    for (std::uint32_t i = node.min; i < node.max && !too_large_; ++i) {
      exits.push_back(append(Op::split, size() + 1));
      emit(child);
    }
  }
  if (too_large_) return;
  for (const std::uint32_t exit : exits) regex_.instructions_[exit].b = size();
}

namespace {

// Storage for three lists of instructions and a set of instructions. Small patterns, which are most of them,
// need no allocation.
class InstructionStorage {
 public:
  explicit InstructionStorage(std::size_t instructions) {
    words_ = (instructions + 63) / 64;
    if (instructions > kInlineInstructions) {
      heap_lists_ = std::make_unique_for_overwrite<std::uint32_t[]>(3 * instructions);
      heap_bits_ = std::make_unique_for_overwrite<std::uint64_t[]>(words_);
    }
    std::uint32_t* const from = heap_lists_ ? heap_lists_.get() : inline_lists_;
    lists_ = {from, from + instructions, from + 2 * instructions};
    bits_ = heap_bits_ ? heap_bits_.get() : inline_bits_;
  }

  std::uint32_t* list(std::size_t i) const noexcept { return lists_[i]; }
  std::size_t word_count() const noexcept { return words_; }
  void clear() noexcept { std::fill_n(bits_, words_, 0); }
  // Adds an instruction to the set. Returns false if the set already contained it.
  bool add(std::uint32_t instruction) noexcept {
    std::uint64_t& word = bits_[instruction / 64];
    const std::uint64_t bit = std::uint64_t{1} << (instruction % 64);
    const bool added = (word & bit) == 0;
    word |= bit;
    return added;
  }

 private:
  static constexpr std::size_t kInlineInstructions = 192;

  std::size_t words_;
  std::array<std::uint32_t*, 3> lists_;
  std::uint64_t* bits_;
  std::unique_ptr<std::uint32_t[]> heap_lists_;
  std::unique_ptr<std::uint64_t[]> heap_bits_;
  std::uint32_t inline_lists_[3 * kInlineInstructions];
  std::uint64_t inline_bits_[kInlineInstructions / 64];
};

struct InstructionList {
  std::uint32_t* instructions;
  std::size_t size = 0;

  void push(std::uint32_t instruction) noexcept { instructions[size++] = instruction; }
  std::uint32_t pop() noexcept { return instructions[--size]; }
};

}  // namespace

// One search in one text: simulates the NFA, position by position, with all states at once.
class RegexMatcher {
 public:
  RegexMatcher(const Regex& regex, std::string_view text, std::size_t& budget)
      : regex_(regex),
        text_(text),
        budget_(budget),
        storage_(regex.instructions_.size()),
        current_{storage_.list(0)},
        next_{storage_.list(1)},
        pending_{storage_.list(2)} {}

  Regex::Match search() {
    for (const Regex::Machine& look : regex_.lookarounds_) {
      std::vector<bool> matches(text_.size() + 1);
      run(look, &matches);
      lookarounds_.push_back(std::move(matches));
    }
    const bool found = run(regex_.main_, nullptr);
    if (budget_exhausted_) return Regex::Match::undecided;
    return found ? Regex::Match::yes : Regex::Match::no;
  }

 private:
  using Op = Regex::Op;

  bool run(const Regex::Machine& machine, std::vector<bool>* matches);
  void begin_position();
  void advance(const Regex::Machine& machine);
  void add_epsilon_closure(std::uint32_t instruction);
  bool assertion_holds(const Regex::Instruction& instruction) const;
  bool is_word_at(std::size_t pos) const;
  void visit(std::uint32_t instruction) {
    if (storage_.add(instruction)) pending_.push(instruction);
  }
  bool spend(std::size_t states) {
    budget_exhausted_ |= states > budget_;
    budget_ -= std::min(states, budget_);
    return !budget_exhausted_;
  }

  const Regex& regex_;
  std::string_view text_;
  std::size_t& budget_;
  InstructionStorage storage_;                  // the set in it has the instructions visited at this position
  InstructionList current_;                     // the instructions at this position that match a code point
  InstructionList next_;                        // the same for the next position
  InstructionList pending_;                     // instructions to visit at this position
  std::vector<std::vector<bool>> lookarounds_;  // by lookaround, then position: whether it holds
  std::size_t pos_ = 0;
  bool matched_ = false;
  bool budget_exhausted_ = false;
};

// Runs a machine over the text. If `matches` is null, returns true at the first match. Otherwise sets the bit
// of every position at which the machine matches, and returns false.
bool RegexMatcher::run(const Regex::Machine& machine, std::vector<bool>* matches) {
  const std::size_t last = machine.backward ? 0 : text_.size();
  const std::size_t first = text_.size() - last;
  pos_ = first;
  next_.size = 0;
  begin_position();
  for (;;) {
    if (!machine.anchored || pos_ == first) add_epsilon_closure(machine.entry);
    if (matched_ && matches == nullptr) return true;
    if (matched_) (*matches)[pos_] = true;
    std::swap(current_, next_);
    next_.size = 0;
    if (pos_ == last || budget_exhausted_ || (machine.anchored && current_.size == 0)) return false;
    advance(machine);
  }
}

void RegexMatcher::begin_position() {
  matched_ = false;
  storage_.clear();
  spend(1 + storage_.word_count() / 8);
}

// Consumes one code point: fills next_ from current_.
void RegexMatcher::advance(const Regex::Machine& machine) {
  const char* const p = text_.data() + pos_;
  const DecodedCodePoint read =
      machine.backward ? decode_utf8_before(text_.data(), p) : decode_utf8(p, text_.data() + text_.size());
  pos_ = machine.backward ? pos_ - read.length : pos_ + read.length;
  begin_position();
  for (std::size_t i = 0; i < current_.size; ++i) {
    const std::uint32_t id = current_.instructions[i];
    const Regex::Instruction& instruction = regex_.instructions_[id];
    const bool fits = instruction.op == Op::character ? instruction.a == read.code
                                                      : regex_.sets_[instruction.a].has(read.code);
    if (fits) add_epsilon_closure(id + 1);
  }
}

// Adds all instructions that can be reached from `from` without consuming a code point. Uses a list instead
// of recursion, because patterns can be long.
void RegexMatcher::add_epsilon_closure(std::uint32_t from) {
  visit(from);
  while (pending_.size > 0) {
    const std::uint32_t id = pending_.pop();
    if (!spend(1)) {
      pending_.size = 0;
      return;
    }
    const Regex::Instruction& instruction = regex_.instructions_[id];
    switch (instruction.op) {
      case Op::character:
      case Op::set: next_.push(id); break;
      case Op::split: visit(instruction.b); [[fallthrough]];
      case Op::jump: visit(instruction.a); break;
      case Op::match: matched_ = true; break;
      default:
        if (assertion_holds(instruction)) visit(id + 1);
    }
  }
}

bool RegexMatcher::assertion_holds(const Regex::Instruction& instruction) const {
  switch (instruction.op) {
    case Op::begin: return pos_ == 0;
    case Op::end: return pos_ == text_.size();
    case Op::word_boundary: return is_word_at(pos_) != (pos_ > 0 && is_word_at(pos_ - 1));
    case Op::not_word_boundary: return is_word_at(pos_) == (pos_ > 0 && is_word_at(pos_ - 1));
    case Op::lookaround: return lookarounds_[instruction.a][pos_];
    default: return !lookarounds_[instruction.a][pos_];
  }
}

// Returns whether the byte at `pos` is a word character. Word characters are ASCII, so each is one byte.
bool RegexMatcher::is_word_at(std::size_t pos) const {
  if (pos >= text_.size()) return false;
  const char c = text_[pos];
  const char lower = static_cast<char>(c | 0x20);
  return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '_';
}

Result<Regex> Regex::compile(std::string_view pattern, std::size_t max_states, bool with_dfa) {
  RegexCost cost(max_states);
  auto tree = parse_regex(pattern, cost);
  if (!tree) return std::move(tree.error());
  return RegexCompiler(*std::move(tree), cost).compile(with_dfa);
}

Regex::Match Regex::search(std::string_view text, std::size_t& budget) const {
  if (dfa_) {
    const Match match = search_ascii(text);
    budget -= std::min(budget, text.size());
    if (match != Match::undecided) return match;
  }
  return RegexMatcher(*this, text, budget).search();
}

}  // namespace fairlead::json
