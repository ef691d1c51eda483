#include "mcp/uri_template.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "fairlead/connection/uri.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::string_view kOperators = "+#./;?&";
// Comparing this many bytes of a literal costs as much as one step.
constexpr std::size_t kLiteralBytesPerStep = 64;

Error template_error(std::string_view text, const std::string& reason) {
  constexpr std::size_t kMaxShownBytes = 200;
  const std::string shown(text.substr(0, kMaxShownBytes));
  return Error(ErrorKind::validation, "`" + shown + (text.size() > kMaxShownBytes ? "…" : "") +
                                          "` is not a URI template: " + reason);
}

std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    // Modifiers change how a value is written, not where it ends.
    name = name.substr(0, name.find_first_of("*:"));
    names.emplace_back(name);
    if (comma == std::string_view::npos) return names;
    list.remove_prefix(comma + 1);
  }
}

using CharSet = std::array<bool, 256>;

constexpr CharSet char_set(std::string_view members) {
  CharSet set{};
  for (const char c : members) set[static_cast<unsigned char>(c)] = true;
  return set;
}

// Returns the characters that end the value of a variable: those that the operator always percent-encodes
// inside a value.
const CharSet& value_terminators(char op, bool ends_at_comma) {
  static constexpr CharSet kNone = char_set("");
  static constexpr CharSet kComma = char_set(",");
  static constexpr CharSet kParameter = char_set(";/?#");
  static constexpr CharSet kParameterComma = char_set(";/?#,");
  static constexpr CharSet kLabel = char_set("./?#");
  static constexpr CharSet kSimple = char_set("/?#");
  static constexpr CharSet kSimpleComma = char_set("/?#,");
  switch (op) {
    case '+':
    case '#': return ends_at_comma ? kComma : kNone;
    case ';': return ends_at_comma ? kParameterComma : kParameter;
    case '.': return kLabel;
    default: return ends_at_comma ? kSimpleComma : kSimple;
  }
}

}  // namespace

UriTemplate::Part UriTemplate::make_variable_part(char op, std::string name, bool first, bool last) {
  Part part;
  part.names.push_back(std::move(name));
  part.op = op;
  if (!first && (op == 0 || op == '+' || op == '#')) {
    part.lead = ',';
  } else if (op != '+') {
    part.lead = op;
  }
  part.ends_at_comma = !last && op != '/' && op != '.';
  return part;
}

Result<UriTemplate> UriTemplate::parse(std::string_view text, const ListLimits& limits) {
  if (text.size() > limits.max_uri_bytes)
    return template_error(
        text, "it is over the limit max_uri_bytes (" + std::to_string(limits.max_uri_bytes) + ")");
  UriTemplate result;
  std::size_t variables = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t open = rest.find_first_of("{}");
    if (open != 0) {
      Part literal;
      literal.literal = rest.substr(0, open);
      result.parts_.push_back(std::move(literal));
      if (open == std::string_view::npos) break;
    }
    if (rest[open] == '}') return template_error(text, "unmatched `}`");
    const std::size_t close = rest.find('}', open);
    if (close == std::string_view::npos) return template_error(text, "unmatched `{`");
    std::string_view expression = rest.substr(open + 1, close - open - 1);
    char op = 0;
    if (!expression.empty() && kOperators.find(expression.front()) != std::string_view::npos) {
      op = expression.front();
      expression.remove_prefix(1);
    }
    std::vector<std::string> names = split_names(expression);
    if (std::ranges::any_of(names, &std::string::empty))
      return template_error(text, "a variable has no name");
    variables += names.size();
    if (variables > limits.max_template_variables)
      return template_error(text, "it has more than max_template_variables (" +
                                      std::to_string(limits.max_template_variables) + ")");
    if (op == '?' || op == '&') {
      Part query;
      query.op = op;
      query.names = std::move(names);
      result.parts_.push_back(std::move(query));
    } else {
      for (std::size_t i = 0; i < names.size(); ++i)
        result.parts_.push_back(make_variable_part(op, std::move(names[i]), i == 0, i + 1 == names.size()));
    }
    rest.remove_prefix(close + 1);
  }
  result.extract_literal_ends();
  return result;
}

void UriTemplate::extract_literal_ends() {
  if (!parts_.empty() && !parts_.front().literal.empty()) {
    prefix_ = std::move(parts_.front().literal);
    parts_.erase(parts_.begin());
  }
  if (!parts_.empty() && !parts_.back().literal.empty()) {
    suffix_ = std::move(parts_.back().literal);
    parts_.pop_back();
  }
}

std::vector<std::string> UriTemplate::variable_names() const {
  std::vector<std::string> names;
  for (const Part& part : parts_) names.insert(names.end(), part.names.begin(), part.names.end());
  return names;
}

std::optional<std::string_view> UriTemplate::middle_of(std::string_view uri) const noexcept {
  if (uri.size() < prefix_.size() + suffix_.size() || !uri.starts_with(prefix_) || !uri.ends_with(suffix_))
    return std::nullopt;
  return uri.substr(prefix_.size(), uri.size() - prefix_.size() - suffix_.size());
}

// Dynamic programming from the last part to the first: for each part and each position in the URI, computes
// the farthest end of that part from which the remaining parts match; kNoMatch if there is none.
class UriTemplate::Matcher {
 public:
  Matcher(const std::vector<Part>& parts, std::string_view uri)
      : parts_(parts),
        uri_(uri),
        row_size_(uri.size() + 1),
        ends_(parts.size() * row_size_),
        last_matching_end_(row_size_) {}

  // Charges the cost of a match to the budget. Returns false if the budget is exhausted.
  static bool charge_cost(const std::vector<Part>& parts, std::string_view uri, MatchBudget& budget) {
    std::size_t per_byte = 0;
    for (const Part& part : parts)
      per_byte += std::max<std::size_t>(part.names.size(), 1) + part.literal.size() / kLiteralBytesPerStep;
    return budget.spend(per_byte * (uri.size() + 1));
  }

  bool run() {
    for (std::size_t i = parts_.size(); i-- > 0;) {
      if (!parts_[i].literal.empty()) {
        match_literal(i);
      } else if (parts_[i].is_query()) {
        match_query(i);
      } else {
        match_value(i);
      }
    }
    return parts_.empty() ? uri_.empty() : ends_[0] != kNoMatch;
  }

  // REQUIRES: run() returned true.
  std::optional<Variables> variables() {
    std::size_t from = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const std::size_t to = ends_[i * row_size_ + from];
      const std::string_view text = uri_.substr(from, to - from);
      from = to;
      if (!part.literal.empty()) continue;
      const bool valid = part.is_query() ? set_pairs(text) : set(part.names[0], text.substr(part.lead != 0));
      if (!valid) return std::nullopt;
    }
    return std::move(values_);
  }

 private:
  using Position = std::uint32_t;
  static constexpr Position kNoMatch = std::numeric_limits<Position>::max();

  // Returns whether the parts after part `i` match the URI from `position` to its end.
  bool rest_matches(std::size_t i, std::size_t position) const {
    return i + 1 == parts_.size() ? position == uri_.size()
                                  : ends_[(i + 1) * row_size_ + position] != kNoMatch;
  }
  // The element of ends_ for part `i` and `position`.
  Position& end_at(std::size_t i, std::size_t position) { return ends_[i * row_size_ + position]; }

  void match_literal(std::size_t i) {
    const std::string& text = parts_[i].literal;
    for (std::size_t position = 0; position < row_size_; ++position) {
      const std::size_t end = position + text.size();
      const bool matches =
          end < row_size_ && rest_matches(i, end) && uri_.substr(position, text.size()) == text;
      end_at(i, position) = matches ? static_cast<Position>(end) : kNoMatch;
    }
  }

  void match_value(std::size_t i) {
    const Part& part = parts_[i];
    Position last = kNoMatch;
    for (std::size_t position = 0; position < row_size_; ++position) {
      if (rest_matches(i, position)) last = static_cast<Position>(position);
      last_matching_end_[position] = last;
    }
    const std::size_t shortest = part.op == 0 ? 1 : 0;
    const CharSet& stop = value_terminators(part.op, part.ends_at_comma);
    std::size_t limit = uri_.size();  // the farthest end of a value that starts at `from`
    for (std::size_t from = row_size_; from-- > 0;) {
      if (from < uri_.size() && stop[static_cast<unsigned char>(uri_[from])]) limit = from;
      const Position end = last_matching_end_[limit];
      const Position found = end != kNoMatch && end >= from + shortest ? end : kNoMatch;
      if (part.lead == 0) {
        end_at(i, from) = found;
      } else if (from > 0) {
        end_at(i, from - 1) = uri_[from - 1] == part.lead ? found : kNoMatch;
      }
    }
    if (part.lead != 0) end_at(i, uri_.size()) = kNoMatch;
  }

  // {?a,b}: the variables may be in any order, and may be absent.
  void match_query(std::size_t i) {
    const Part& part = parts_[i];
    // For each position, the end of the list of pairs that starts there.
    std::vector<Position>& list_end = last_matching_end_;
    std::size_t pair_end = uri_.size();
    std::size_t name_end = uri_.size();
    for (std::size_t from = row_size_; from-- > 0;) {
      const char c = from < uri_.size() ? uri_[from] : '\0';
      if (c == '&' || c == '#') pair_end = name_end = from;
      if (c == '=') name_end = from;
      const bool begins = from > 0 && (uri_[from - 1] == part.op || uri_[from - 1] == '&');
      list_end[from] = begins ? end_of_list(part, from, name_end, pair_end) : kNoMatch;
      const bool absent = c != part.op || from == uri_.size();
      const Position end = absent ? static_cast<Position>(from) : list_end[from + 1];
      end_at(i, from) = end != kNoMatch && rest_matches(i, end) ? end : kNoMatch;
    }
  }
  Position end_of_list(const Part& part, std::size_t from, std::size_t name_end, std::size_t pair_end) const {
    if (from == uri_.size()) return static_cast<Position>(from);
    const std::string_view name = uri_.substr(from, name_end - from);
    if (std::ranges::find(part.names, name) == part.names.end()) return kNoMatch;
    const bool has_next = pair_end < uri_.size() && uri_[pair_end] == '&';
    return has_next ? last_matching_end_[pair_end + 1] : static_cast<Position>(pair_end);
  }

  bool set_pairs(std::string_view list) {
    if (list.empty()) return true;
    list.remove_prefix(1);
    while (!list.empty()) {
      const std::string_view pair = list.substr(0, list.find('&'));
      list.remove_prefix(std::min(list.size(), pair.size() + 1));
      const std::size_t equals = std::min(pair.find('='), pair.size());
      const std::string_view encoded = pair.substr(std::min(equals + 1, pair.size()));
      if (!set(std::string(pair.substr(0, equals)), encoded)) return false;
    }
    return true;
  }

  bool set(const std::string& name, std::string_view encoded) {
    Result<std::string> decoded = percent_decode(encoded);
    if (!decoded) return false;
    values_[name] = std::move(*decoded);
    return true;
  }

  const std::vector<Part>& parts_;
  std::string_view uri_;
  std::size_t row_size_;
  std::vector<Position> ends_;  // for each part a row of row_size_ positions, see above
  // For the current part and each position in the URI: the last position, at or before that one, from which
  // the remaining parts match.
  std::vector<Position> last_matching_end_;
  Variables values_;
};

bool UriTemplate::matches(std::string_view uri, MatchBudget& budget) const {
  const std::optional<std::string_view> middle = middle_of(uri);
  return middle && Matcher::charge_cost(parts_, *middle, budget) && Matcher(parts_, *middle).run();
}

std::optional<UriTemplate::Variables> UriTemplate::extract_variables(std::string_view uri,
                                                                     MatchBudget& budget) const {
  const std::optional<std::string_view> middle = middle_of(uri);
  if (!middle || !Matcher::charge_cost(parts_, *middle, budget)) return std::nullopt;
  Matcher matcher(parts_, *middle);
  return matcher.run() ? matcher.variables() : std::nullopt;
}

}  // namespace fairlead::mcp
