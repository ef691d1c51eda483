// A recursive-descent parser for the grammar of ECMA-262, section 22.2. Like browsers, it accepts an unpaired
// brace or bracket as a literal. Unsupported syntax is an error and never parsed with another meaning.
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

constexpr int kMaxGroupDepth = 100;  // the parser recurses for each nested group
constexpr std::size_t kMaxLookarounds = 16;
constexpr std::size_t kRangesPerState = 4;  // a character class costs one more state for each four ranges

CharSet sealed(CharSet set) {
  set.seal();
  return set;
}

CharSet line_terminators() {
  CharSet set;
  for (const std::uint32_t c : {0x0au, 0x0du, 0x2028u, 0x2029u}) set.add(c, c);
  return sealed(std::move(set));
}

// Returns the set of characters of \d, \w or \s; nullopt for other letters.
std::optional<CharSet> class_escape_set(char letter) {
  CharSet set;
  if (letter == 'd') {
    set.add('0', '9');
  } else if (letter == 'w') {
    set.add('0', '9');
    set.add('A', 'Z');
    set.add('a', 'z');
    set.add('_', '_');
  } else if (letter == 's') {
    set.add(line_terminators());
    set.add(0x09, 0x0d);
    set.add_property("Zs");
    set.add(0xfeff, 0xfeff);
  } else {
    return std::nullopt;
  }
  return sealed(std::move(set));
}

class RegexParser {
 public:
  RegexParser(std::string_view pattern, RegexCost& cost) : pattern_(pattern), cost_(cost) {}

  Result<RegexTree> parse() {
    tree_.root = parse_choice();
    if (!failed() && !done()) fail("unmatched )");
    if (failed()) return *std::move(error_);
    return std::move(tree_);
  }

 private:
  bool failed() const { return error_.has_value(); }
  bool done() const { return pos_ >= pattern_.size(); }
  bool next_is(std::string_view text) const { return pattern_.substr(pos_).starts_with(text); }
  bool consume(std::string_view text) {
    if (!next_is(text)) return false;
    pos_ += text.size();
    return true;
  }
  char peek() const { return done() ? '\0' : pattern_[pos_]; }

  std::uint32_t fail(std::string_view problem);
  bool spend(std::size_t states);
  std::uint32_t add(RegexTree::Node node);
  std::uint32_t add_set(CharSet set);
  std::uint32_t next_code_point();

  std::uint32_t parse_choice();
  std::uint32_t parse_sequence();
  std::uint32_t parse_term();
  std::uint32_t parse_atom();
  std::uint32_t parse_group();
  std::uint32_t parse_lookaround(bool behind, bool negated);
  void skip_group_name();
  std::uint32_t parse_quantified(std::uint32_t node);
  bool parse_braces(std::uint32_t& min, std::uint32_t& max);
  bool parse_number(std::size_t& pos, std::uint32_t& value) const;

  std::uint32_t parse_escape();
  std::optional<CharSet> parse_class_escape();
  CharSet parse_property(bool negated);
  std::uint32_t parse_character_escape();
  std::uint32_t parse_hex(std::size_t digits);
  std::uint32_t parse_unicode_escape();

  std::uint32_t parse_char_class();
  void parse_class_range(CharSet& set);
  std::uint32_t parse_class_atom(std::optional<CharSet>& set);

  std::string_view pattern_;
  RegexCost& cost_;
  RegexTree tree_;
  std::optional<Error> error_;
  std::size_t pos_ = 0;
  int depth_ = 0;
};

// Records the first error and moves to the end of the pattern, so that parsing ends.
std::uint32_t RegexParser::fail(std::string_view problem) {
  if (!failed())
    error_.emplace(ErrorKind::validation, std::string(problem) + " at byte " + std::to_string(pos_));
  pos_ = pattern_.size();
  return 0;
}

bool RegexParser::spend(std::size_t states) {
  if (failed()) return false;
  if (cost_.spend(states)) return true;
  error_ = pattern_too_large();
  pos_ = pattern_.size();
  return false;
}

std::uint32_t RegexParser::add(RegexTree::Node node) {
  if (!spend(1)) return 0;
  tree_.nodes.push_back(std::move(node));
  return static_cast<std::uint32_t>(tree_.nodes.size() - 1);
}

std::uint32_t RegexParser::add_set(CharSet set) {
  if (!spend(set.range_count() / kRangesPerState)) return 0;
  tree_.sets.push_back(std::move(set));
  return add({.kind = Kind::set, .value = static_cast<std::uint32_t>(tree_.sets.size() - 1)});
}

std::uint32_t RegexParser::next_code_point() {
  const DecodedCodePoint next = decode_utf8(pattern_.data() + pos_, pattern_.data() + pattern_.size());
  pos_ += next.length;
  return next.code;
}

std::uint32_t RegexParser::parse_choice() {
  std::vector<std::uint32_t> branches{parse_sequence()};
  while (consume("|")) branches.push_back(parse_sequence());
  if (branches.size() == 1) return branches.front();
  return add({.kind = Kind::choice, .children = std::move(branches)});
}

std::uint32_t RegexParser::parse_sequence() {
  std::vector<std::uint32_t> terms;
  while (!done() && peek() != '|' && peek() != ')') terms.push_back(parse_term());
  if (terms.size() == 1) return terms.front();
  return add({.kind = Kind::sequence, .children = std::move(terms)});
}

std::uint32_t RegexParser::parse_term() {
  if (consume("^")) return add({.kind = Kind::begin});
  if (consume("$")) return add({.kind = Kind::end});
  if (consume("\\b")) return add({.kind = Kind::word_boundary});
  if (consume("\\B")) return add({.kind = Kind::not_word_boundary});
  return parse_quantified(parse_atom());
}

std::uint32_t RegexParser::parse_atom() {
  switch (peek()) {
    case '(': return parse_group();
    case '[': return parse_char_class();
    case '\\': return parse_escape();
    case '.': ++pos_; return add_set(line_terminators().complement());
    case '*':
    case '+':
    case '?': return fail("nothing to repeat");
    default:
      if (std::uint32_t min = 0, max = 0; parse_braces(min, max)) return fail("nothing to repeat");
      return add({.kind = Kind::character, .value = next_code_point()});
  }
}

std::uint32_t RegexParser::parse_group() {
  if (depth_ == kMaxGroupDepth) return fail("groups nested too deeply");
  ++pos_;
  std::uint32_t node = 0;
  ++depth_;
  if (consume("?:")) {
    node = parse_choice();
  } else if (next_is("?=") || next_is("?!")) {
    node = parse_lookaround(false, pattern_[pos_ + 1] == '!');
  } else if (next_is("?<=") || next_is("?<!")) {
    node = parse_lookaround(true, pattern_[pos_ + 2] == '!');
  } else {
    skip_group_name();
    node = parse_choice();
  }
  --depth_;
  if (!consume(")")) return fail("a group is not closed");
  return node;
}

std::uint32_t RegexParser::parse_lookaround(bool behind, bool negated) {
  pos_ += behind ? 3 : 2;
  const std::uint32_t body = parse_choice();
  if (tree_.lookarounds.size() == kMaxLookarounds) return fail("too many lookarounds");
  tree_.lookarounds.push_back({body, behind});
  return add({.kind = negated ? Kind::negative_lookaround : Kind::lookaround,
              .value = static_cast<std::uint32_t>(tree_.lookarounds.size() - 1)});
}

// Backreferences are not supported, so the name of a group has no effect.
void RegexParser::skip_group_name() {
  if (!consume("?")) return;
  const std::size_t end = pattern_.find('>', pos_);
  if (peek() != '<' || end == std::string_view::npos || end == pos_ + 1) {
    fail("unknown kind of group");
  } else {
    pos_ = end + 1;
  }
}

std::uint32_t RegexParser::parse_quantified(std::uint32_t node) {
  std::uint32_t min = 0;
  std::uint32_t max = RegexTree::kUnbounded;
  if (consume("+")) {
    min = 1;
  } else if (consume("?")) {
    max = 1;
  } else if (!consume("*") && !parse_braces(min, max)) {
    return node;
  }
  consume("?");  // whether a quantifier is lazy or greedy makes no difference to whether a text matches
  if (min > max) return fail("numbers out of order in {}");
  if (!done() && std::string_view("*+?").find(peek()) != std::string_view::npos)
    return fail("nothing to repeat");
  return add({.kind = Kind::repeat, .min = min, .max = max, .children = {node}});
}

// Parses {n}, {n,} or {n,m}. Returns false for any other brace, which is a literal.
bool RegexParser::parse_braces(std::uint32_t& min, std::uint32_t& max) {
  if (peek() != '{') return false;
  std::size_t pos = pos_ + 1;
  if (!parse_number(pos, min)) return false;
  max = min;
  if (pos < pattern_.size() && pattern_[pos] == ',') {
    ++pos;
    if (!parse_number(pos, max)) max = RegexTree::kUnbounded;
  }
  if (pos >= pattern_.size() || pattern_[pos] != '}') {
    min = 0;
    return false;
  }
  pos_ = pos + 1;
  return true;
}

bool RegexParser::parse_number(std::size_t& pos, std::uint32_t& value) const {
  const std::size_t from = pos;
  while (pos < pattern_.size() && is_digit(pattern_[pos])) ++pos;
  if (pos == from) return false;
  const auto [_, problem] = std::from_chars(pattern_.data() + from, pattern_.data() + pos, value);
  if (problem != std::errc()) value = RegexTree::kUnbounded - 1;
  return true;
}

std::uint32_t RegexParser::parse_escape() {
  if (auto set = parse_class_escape()) return failed() ? 0 : add_set(*std::move(set));
  const char next = pos_ + 1 < pattern_.size() ? pattern_[pos_ + 1] : '\0';
  if ((next >= '1' && next <= '9') || next == 'k') return fail("backreferences are not supported");
  return add({.kind = Kind::character, .value = parse_character_escape()});
}

// Parses \d \D \w \W \s \S \p{…} \P{…}; returns nullopt for other escapes.
std::optional<CharSet> RegexParser::parse_class_escape() {
  if (pos_ + 1 >= pattern_.size()) return std::nullopt;
  const char letter = pattern_[pos_ + 1];
  const bool negated = letter >= 'A' && letter <= 'Z';
  const char lower = static_cast<char>(letter | 0x20);
  if (lower == 'p') return parse_property(negated);
  auto set = letter >= 'A' ? class_escape_set(lower) : std::nullopt;
  if (!set) return std::nullopt;
  pos_ += 2;
  return negated ? set->complement() : set;
}

CharSet RegexParser::parse_property(bool negated) {
  CharSet set;
  const std::size_t end = pattern_.find('}', pos_);
  if (!pattern_.substr(pos_ + 2).starts_with('{') || end == std::string_view::npos) {
    fail("\\p needs a property in braces");
    return set;
  }
  const std::string_view name = pattern_.substr(pos_ + 3, end - pos_ - 3);
  if (!set.add_property(name)) {
    fail("unknown Unicode property (only general categories, Any and ASCII are supported)");
    return set;
  }
  pos_ = end + 1;
  set.seal();
  return negated ? set.complement() : set;
}

// REQUIRES: `pos_` is at the backslash.
std::uint32_t RegexParser::parse_character_escape() {
  constexpr std::string_view kLetters = "tnvfr0";
  constexpr std::string_view kMeanings("\t\n\v\f\r\0", kLetters.size());
  if (pos_ + 1 >= pattern_.size()) return fail("the pattern ends in a backslash");
  const char letter = pattern_[pos_ + 1];
  if (const std::size_t found = kLetters.find(letter); found != std::string_view::npos) {
    pos_ += 2;
    if (letter == '0' && is_digit(peek())) return fail("octal escapes are not supported");
    return static_cast<unsigned char>(kMeanings[found]);
  }
  if (letter == 'x') return pos_ += 2, parse_hex(2);
  if (letter == 'u') return pos_ += 2, parse_unicode_escape();
  const bool alphabetic = (letter | 0x20) >= 'a' && (letter | 0x20) <= 'z';
  if (letter == 'c' && pos_ + 2 < pattern_.size() && (pattern_[pos_ + 2] | 0x20) >= 'a' &&
      (pattern_[pos_ + 2] | 0x20) <= 'z') {
    pos_ += 3;
    return static_cast<std::uint32_t>(pattern_[pos_ - 1] & 0x1f);
  }
  if (alphabetic || is_digit(letter)) return fail("unknown escape");
  ++pos_;
  return next_code_point();
}

std::uint32_t RegexParser::parse_hex(std::size_t digits) {
  std::uint32_t value = 0;
  const char* const from = pattern_.data() + pos_;
  const char* const to = from + std::min(digits, pattern_.size() - pos_);
  const auto [end, problem] = std::from_chars(from, to, value, 16);
  if (problem != std::errc() || end != from + digits) return fail("hexadecimal digits expected");
  pos_ += digits;
  return value;
}

// Parses the text after \u: {…}, four digits, or a surrogate pair of two escapes with four digits each.
std::uint32_t RegexParser::parse_unicode_escape() {
  if (consume("{")) {
    const std::size_t end = pattern_.find('}', pos_);
    if (end == std::string_view::npos || end == pos_ || end - pos_ > 8)
      return fail("hexadecimal digits expected");
    const std::uint32_t code = parse_hex(end - pos_);
    if (code > kMaxCodePoint) return fail("code point over 10FFFF");
    consume("}");
    return code;
  }
  const std::uint32_t high = parse_hex(4);
  if (high < 0xd800 || high >= 0xdc00 || !consume("\\u")) return high;
  const std::uint32_t low = parse_hex(4);
  if (low < 0xdc00 || low >= 0xe000) return fail("a surrogate pair expected");
  return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

std::uint32_t RegexParser::parse_char_class() {
  ++pos_;
  const bool negated = consume("^");
  CharSet set;
  while (!done() && peek() != ']') parse_class_range(set);
  if (!consume("]")) return fail("a character class is not closed");
  set.seal();
  return add_set(negated ? set.complement() : std::move(set));
}

void RegexParser::parse_class_range(CharSet& set) {
  std::optional<CharSet> named;
  const std::uint32_t first = parse_class_atom(named);
  if (named) return set.add(*named);
  if (peek() != '-' || pos_ + 1 >= pattern_.size() || pattern_[pos_ + 1] == ']') return set.add(first, first);
  ++pos_;
  const std::uint32_t last = parse_class_atom(named);
  if (named) {  // as in [a-\d]: the hyphen is a literal
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

// Parses one character of a class. For an escape such as \d, assigns `set` and returns 0.
std::uint32_t RegexParser::parse_class_atom(std::optional<CharSet>& set) {
  if (peek() != '\\') return next_code_point();
  if (consume("\\b")) return '\b';
  set = parse_class_escape();
  if (!set) return parse_character_escape();
  spend(set->range_count() / kRangesPerState);
  return 0;
}

}  // namespace

Error pattern_too_large() {
  return Error(ErrorKind::validation, "the pattern needs more states than max_pattern_states leaves");
}

Result<RegexTree> parse_regex(std::string_view pattern, RegexCost& cost) {
  return RegexParser(pattern, cost).parse();
}

}  // namespace fairlead::json
