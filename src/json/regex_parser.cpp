// Recursive descent over the grammar of ECMA-262, section 22.2. Where browsers are lenient with a lone brace
// or bracket, so is this; what would change the meaning silently is an error.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include "json/characters.hpp"
#include "json/code_points.hpp"
#include "json/regex_tree.hpp"

namespace fairlead::json {

namespace {

using Kind = RegexTree::Kind;

constexpr int kMaxGroupDepth = 100;  // groups within groups: the parser calls itself for each
constexpr std::size_t kMaxLooks = 16;
constexpr std::size_t kRangesPerState = 4;  // what a large class costs, next to a state

CharSet sealed(CharSet set) {
  set.seal();
  return set;
}

CharSet line_ends() {
  CharSet set;
  for (const std::uint32_t c : {0x0au, 0x0du, 0x2028u, 0x2029u}) set.add(c, c);
  return sealed(std::move(set));
}

// \d, \w and \s; nullopt for other letters.
std::optional<CharSet> class_of(char letter) {
  CharSet set;
  if (letter == 'd') {
    set.add('0', '9');
  } else if (letter == 'w') {
    set.add('0', '9');
    set.add('A', 'Z');
    set.add('a', 'z');
    set.add('_', '_');
  } else if (letter == 's') {
    set.add(line_ends());
    set.add(0x09, 0x0d);
    set.add_property("Zs");
    set.add(0xfeff, 0xfeff);
  } else {
    return std::nullopt;
  }
  return sealed(std::move(set));
}

class Parser {
 public:
  Parser(std::string_view pattern, RegexCost& cost) : pattern_(pattern), cost_(cost) {}

  Result<RegexTree> parse() {
    tree_.root = choice();
    if (!failed() && !done()) fail("unmatched )");
    if (failed()) return *std::move(error_);
    return std::move(tree_);
  }

 private:
  bool failed() const { return error_.has_value(); }
  bool done() const { return at_ >= pattern_.size(); }
  bool looking_at(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!looking_at(text)) return false;
    at_ += text.size();
    return true;
  }
  char peek() const { return done() ? '\0' : pattern_[at_]; }

  std::uint32_t fail(std::string_view what);
  bool spend(std::size_t states);
  std::uint32_t add(RegexTree::Node node);
  std::uint32_t add_set(CharSet set);
  std::uint32_t next_code_point();

  std::uint32_t choice();
  std::uint32_t sequence();
  std::uint32_t term();
  std::uint32_t atom();
  std::uint32_t group();
  std::uint32_t look(bool behind, bool negated);
  void skip_group_name();
  std::uint32_t quantified(std::uint32_t node);
  bool braces(std::uint32_t& min, std::uint32_t& max);
  bool number(std::size_t& at, std::uint32_t& value) const;

  std::uint32_t escape();
  std::optional<CharSet> class_escape();
  CharSet property(bool negated);
  std::uint32_t character_escape();
  std::uint32_t hex(std::size_t digits);
  std::uint32_t unicode_escape();

  std::uint32_t char_class();
  void class_range(CharSet& set);
  std::uint32_t class_atom(std::optional<CharSet>& set);

  std::string_view pattern_;
  RegexCost& cost_;
  RegexTree tree_;
  std::optional<Error> error_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// The first error sticks; the rest of the parse runs out at the end of the pattern.
std::uint32_t Parser::fail(std::string_view what) {
  if (!failed()) error_.emplace(ErrorKind::validation, std::string(what) + " at byte " + std::to_string(at_));
  at_ = pattern_.size();
  return 0;
}

bool Parser::spend(std::size_t states) {
  if (failed()) return false;
  if (cost_.spend(states)) return true;
  error_ = pattern_too_large();
  at_ = pattern_.size();
  return false;
}

std::uint32_t Parser::add(RegexTree::Node node) {
  if (!spend(1)) return 0;
  tree_.nodes.push_back(std::move(node));
  return static_cast<std::uint32_t>(tree_.nodes.size() - 1);
}

std::uint32_t Parser::add_set(CharSet set) {
  if (!spend(set.range_count() / kRangesPerState)) return 0;
  tree_.sets.push_back(std::move(set));
  return add({.kind = Kind::set, .value = static_cast<std::uint32_t>(tree_.sets.size() - 1)});
}

std::uint32_t Parser::next_code_point() {
  const Decoded next = decode_utf8(pattern_.data() + at_, pattern_.data() + pattern_.size());
  at_ += next.length;
  return next.code;
}

std::uint32_t Parser::choice() {
  std::vector<std::uint32_t> branches{sequence()};
  while (take("|")) branches.push_back(sequence());
  if (branches.size() == 1) return branches.front();
  return add({.kind = Kind::choice, .children = std::move(branches)});
}

std::uint32_t Parser::sequence() {
  std::vector<std::uint32_t> terms;
  while (!done() && peek() != '|' && peek() != ')') terms.push_back(term());
  if (terms.size() == 1) return terms.front();
  return add({.kind = Kind::sequence, .children = std::move(terms)});
}

std::uint32_t Parser::term() {
  if (take("^")) return add({.kind = Kind::begin});
  if (take("$")) return add({.kind = Kind::end});
  if (take("\\b")) return add({.kind = Kind::word});
  if (take("\\B")) return add({.kind = Kind::not_word});
  return quantified(atom());
}

std::uint32_t Parser::atom() {
  switch (peek()) {
    case '(': return group();
    case '[': return char_class();
    case '\\': return escape();
    case '.': ++at_; return add_set(line_ends().complement());
    case '*':
    case '+':
    case '?': return fail("nothing to repeat");
    default:
      if (std::uint32_t min = 0, max = 0; braces(min, max)) return fail("nothing to repeat");
      return add({.kind = Kind::character, .value = next_code_point()});
  }
}

std::uint32_t Parser::group() {
  if (depth_ == kMaxGroupDepth) return fail("groups nested too deeply");
  ++at_;
  std::uint32_t node = 0;
  ++depth_;
  if (take("?:")) {
    node = choice();
  } else if (looking_at("?=") || looking_at("?!")) {
    node = look(false, pattern_[at_ + 1] == '!');
  } else if (looking_at("?<=") || looking_at("?<!")) {
    node = look(true, pattern_[at_ + 2] == '!');
  } else {
    skip_group_name();
    node = choice();
  }
  --depth_;
  if (!take(")")) return fail("a group is not closed");
  return node;
}

std::uint32_t Parser::look(bool behind, bool negated) {
  at_ += behind ? 3 : 2;
  const std::uint32_t inside = choice();
  if (tree_.looks.size() == kMaxLooks) return fail("too many lookarounds");
  tree_.looks.push_back({inside, behind});
  return add({.kind = negated ? Kind::not_look : Kind::look,
              .value = static_cast<std::uint32_t>(tree_.looks.size() - 1)});
}

// Nothing can refer to a group, so its name means nothing.
void Parser::skip_group_name() {
  if (!take("?")) return;
  const std::size_t end = pattern_.find('>', at_);
  if (peek() != '<' || end == std::string_view::npos || end == at_ + 1) {
    fail("unknown kind of group");
  } else {
    at_ = end + 1;
  }
}

std::uint32_t Parser::quantified(std::uint32_t node) {
  std::uint32_t min = 0;
  std::uint32_t max = RegexTree::kForever;
  if (take("+")) {
    min = 1;
  } else if (take("?")) {
    max = 1;
  } else if (!take("*") && !braces(min, max)) {
    return node;
  }
  take("?");  // lazy or greedy: the same text matches
  if (min > max) return fail("numbers out of order in {}");
  if (!done() && std::string_view("*+?").find(peek()) != std::string_view::npos)
    return fail("nothing to repeat");
  return add({.kind = Kind::repeat, .min = min, .max = max, .children = {node}});
}

// {n}, {n,} or {n,m}; any other brace stands for itself.
bool Parser::braces(std::uint32_t& min, std::uint32_t& max) {
  if (peek() != '{') return false;
  std::size_t at = at_ + 1;
  if (!number(at, min)) return false;
  max = min;
  if (at < pattern_.size() && pattern_[at] == ',') {
    ++at;
    if (!number(at, max)) max = RegexTree::kForever;
  }
  if (at >= pattern_.size() || pattern_[at] != '}') {
    min = 0;
    return false;
  }
  at_ = at + 1;
  return true;
}

bool Parser::number(std::size_t& at, std::uint32_t& value) const {
  const std::size_t from = at;
  while (at < pattern_.size() && is_digit(pattern_[at])) ++at;
  if (at == from) return false;
  const auto [_, problem] = std::from_chars(pattern_.data() + from, pattern_.data() + at, value);
  if (problem != std::errc()) value = RegexTree::kForever - 1;
  return true;
}

std::uint32_t Parser::escape() {
  if (auto set = class_escape()) return failed() ? 0 : add_set(*std::move(set));
  const char next = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
  if ((next >= '1' && next <= '9') || next == 'k') return fail("backreferences are not supported");
  return add({.kind = Kind::character, .value = character_escape()});
}

// \d \D \w \W \s \S \p{…} \P{…}
std::optional<CharSet> Parser::class_escape() {
  if (at_ + 1 >= pattern_.size()) return std::nullopt;
  const char letter = pattern_[at_ + 1];
  const bool negated = letter >= 'A' && letter <= 'Z';
  const char lower = static_cast<char>(letter | 0x20);
  if (lower == 'p') return property(negated);
  auto set = letter >= 'A' ? class_of(lower) : std::nullopt;
  if (!set) return std::nullopt;
  at_ += 2;
  return negated ? set->complement() : set;
}

CharSet Parser::property(bool negated) {
  CharSet set;
  const std::size_t end = pattern_.find('}', at_);
  if (!pattern_.substr(at_ + 2).starts_with('{') || end == std::string_view::npos) {
    fail("\\p needs a property in braces");
    return set;
  }
  const std::string_view name = pattern_.substr(at_ + 3, end - at_ - 3);
  if (!set.add_property(name)) {
    fail("unknown Unicode property (only general categories, Any and ASCII are supported)");
    return set;
  }
  at_ = end + 1;
  set.seal();
  return negated ? set.complement() : set;
}

// `at_` is at the backslash.
std::uint32_t Parser::character_escape() {
  constexpr std::string_view kLetters = "tnvfr0";
  constexpr std::string_view kMeanings("\t\n\v\f\r\0", kLetters.size());
  if (at_ + 1 >= pattern_.size()) return fail("the pattern ends in a backslash");
  const char letter = pattern_[at_ + 1];
  if (const std::size_t found = kLetters.find(letter); found != std::string_view::npos) {
    at_ += 2;
    if (letter == '0' && is_digit(peek())) return fail("octal escapes are not supported");
    return static_cast<unsigned char>(kMeanings[found]);
  }
  if (letter == 'x') return at_ += 2, hex(2);
  if (letter == 'u') return at_ += 2, unicode_escape();
  const bool alphabetic = (letter | 0x20) >= 'a' && (letter | 0x20) <= 'z';
  if (letter == 'c' && at_ + 2 < pattern_.size() && (pattern_[at_ + 2] | 0x20) >= 'a' &&
      (pattern_[at_ + 2] | 0x20) <= 'z') {
    at_ += 3;
    return static_cast<std::uint32_t>(pattern_[at_ - 1] & 0x1f);
  }
  if (alphabetic || is_digit(letter)) return fail("unknown escape");
  ++at_;
  return next_code_point();
}

std::uint32_t Parser::hex(std::size_t digits) {
  std::uint32_t value = 0;
  const char* const from = pattern_.data() + at_;
  const char* const to = from + std::min(digits, pattern_.size() - at_);
  const auto [end, problem] = std::from_chars(from, to, value, 16);
  if (problem != std::errc() || end != from + digits) return fail("hexadecimal digits expected");
  at_ += digits;
  return value;
}

// After \u: {…}, four digits, or two times four for a surrogate pair.
std::uint32_t Parser::unicode_escape() {
  if (take("{")) {
    const std::size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos || end == at_ || end - at_ > 8)
      return fail("hexadecimal digits expected");
    const std::uint32_t code = hex(end - at_);
    if (code > kMaxCodePoint) return fail("code point over 10FFFF");
    take("}");
    return code;
  }
  const std::uint32_t high = hex(4);
  if (high < 0xd800 || high >= 0xdc00 || !take("\\u")) return high;
  const std::uint32_t low = hex(4);
  if (low < 0xdc00 || low >= 0xe000) return fail("a surrogate pair expected");
  return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

std::uint32_t Parser::char_class() {
  ++at_;
  const bool negated = take("^");
  CharSet set;
  while (!done() && peek() != ']') class_range(set);
  if (!take("]")) return fail("a character class is not closed");
  set.seal();
  return add_set(negated ? set.complement() : std::move(set));
}

void Parser::class_range(CharSet& set) {
  std::optional<CharSet> named;
  const std::uint32_t first = class_atom(named);
  if (named) return set.add(*named);
  if (peek() != '-' || at_ + 1 >= pattern_.size() || pattern_[at_ + 1] == ']') return set.add(first, first);
  ++at_;
  const std::uint32_t last = class_atom(named);
  if (named) {  // as in [a-\d]: the hyphen is one of the characters
    set.add(first, first);
    set.add('-', '-');
    return set.add(*named);
  }
  if (last < first) {
    fail("a range out of order in a character class");
    return;
  }
  set.add(first, last);
}

// One character, or a set such as \d in `set`.
std::uint32_t Parser::class_atom(std::optional<CharSet>& set) {
  if (peek() != '\\') return next_code_point();
  if (take("\\b")) return '\b';
  set = class_escape();
  if (!set) return character_escape();
  spend(set->range_count() / kRangesPerState);
  return 0;
}

}  // namespace

Error pattern_too_large() {
  return Error(ErrorKind::validation, "the pattern needs more states than max_pattern_states leaves");
}

Result<RegexTree> parse_regex(std::string_view pattern, RegexCost& cost) {
  return Parser(pattern, cost).parse();
}

}  // namespace fairlead::json
