#include "mcp/uri_template.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "fairlead/connection/uri.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::string_view kOperators = "+#./;?&";
constexpr std::size_t kLiteralBytesPerStep = 64;  // comparing literals is that much faster than the rest

Error bad(std::string_view text, const std::string& why) {
  constexpr std::size_t kMostShown = 200;
  const std::string shown(text.substr(0, kMostShown));
  return Error(ErrorKind::validation,
               "`" + shown + (text.size() > kMostShown ? "…" : "") + "` is not a URI template: " + why);
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    name = name.substr(
        0, name.find_first_of("*:"));  // modifiers change how a value is written, not where it ends
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

// The characters that end a value: those that this operator never leaves unescaped in one.
const CharSet& stops(char op, bool ends_at_comma) {
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

UriTemplate::Part UriTemplate::variable(char op, std::string name, bool first, bool last) {
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
    return bad(text, "it is over the limit max_uri_bytes (" + std::to_string(limits.max_uri_bytes) + ")");
  UriTemplate made;
  std::size_t variables = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t open = rest.find_first_of("{}");
    if (open != 0) {
      Part literal;
      literal.literal = rest.substr(0, open);
      made.parts_.push_back(std::move(literal));
      if (open == std::string_view::npos) break;
    }
    if (rest[open] == '}') return bad(text, "a brace is closed that was not opened");
    const std::size_t close = rest.find('}', open);
    if (close == std::string_view::npos) return bad(text, "a brace is not closed");
    std::string_view inside = rest.substr(open + 1, close - open - 1);
    char op = 0;
    if (!inside.empty() && kOperators.find(inside.front()) != std::string_view::npos) {
      op = inside.front();
      inside.remove_prefix(1);
    }
    std::vector<std::string> names = split(inside);
    if (std::ranges::any_of(names, &std::string::empty)) return bad(text, "a variable has no name");
    variables += names.size();
    if (variables > limits.max_template_variables)
      return bad(text, "it has more than max_template_variables (" +
                           std::to_string(limits.max_template_variables) + ")");
    if (op == '?' || op == '&') {
      Part query;
      query.op = op;
      query.names = std::move(names);
      made.parts_.push_back(std::move(query));
    } else {
      for (std::size_t i = 0; i < names.size(); ++i)
        made.parts_.push_back(variable(op, std::move(names[i]), i == 0, i + 1 == names.size()));
    }
    rest.remove_prefix(close + 1);
  }
  made.take_literal_ends();
  return made;
}

void UriTemplate::take_literal_ends() {
  if (!parts_.empty() && !parts_.front().literal.empty()) {
    prefix_ = std::move(parts_.front().literal);
    parts_.erase(parts_.begin());
  }
  if (!parts_.empty() && !parts_.back().literal.empty()) {
    suffix_ = std::move(parts_.back().literal);
    parts_.pop_back();
  }
}

std::vector<std::string> UriTemplate::variables() const {
  std::vector<std::string> names;
  for (const Part& part : parts_) names.insert(names.end(), part.names.begin(), part.names.end());
  return names;
}

std::optional<std::string_view> UriTemplate::middle_of(std::string_view uri) const noexcept {
  if (uri.size() < prefix_.size() + suffix_.size() || !uri.starts_with(prefix_) || !uri.ends_with(suffix_))
    return std::nullopt;
  return uri.substr(prefix_.size(), uri.size() - prefix_.size() - suffix_.size());
}

// Works from the last part to the first. For each part and each position in the URI it finds the position
// after that part, the farthest from which the remaining parts fit; kNowhere if there is none.
class UriTemplate::Matcher {
 public:
  Matcher(const std::vector<Part>& parts, std::string_view uri)
      : parts_(parts), uri_(uri), row_(uri.size() + 1), after_(parts.size() * row_), last_fit_(row_) {}

  static bool affordable(const std::vector<Part>& parts, std::string_view uri, MatchBudget& budget) {
    std::size_t per_byte = 0;
    for (const Part& part : parts)
      per_byte += std::max<std::size_t>(part.names.size(), 1) + part.literal.size() / kLiteralBytesPerStep;
    return budget.spend(per_byte * (uri.size() + 1));
  }

  bool run() {
    for (std::size_t i = parts_.size(); i-- > 0;) {
      if (!parts_[i].literal.empty()) {
        literal(i);
      } else if (parts_[i].is_query()) {
        query(i);
      } else {
        value(i);
      }
    }
    return parts_.empty() ? uri_.empty() : after_[0] != kNowhere;
  }

  // REQUIRES: run() returned true.
  std::optional<Variables> variables() {
    std::size_t from = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      const std::size_t to = after_[i * row_ + from];
      const std::string_view text = uri_.substr(from, to - from);
      from = to;
      if (!part.literal.empty()) continue;
      const bool good = part.is_query() ? set_pairs(text) : set(part.names[0], text.substr(part.lead != 0));
      if (!good) return std::nullopt;
    }
    return std::move(values_);
  }

 private:
  using Position = std::uint32_t;
  static constexpr Position kNowhere = std::numeric_limits<Position>::max();

  // Whether the parts after part `i` fit from `at` to the end.
  bool rest_fits(std::size_t i, std::size_t at) const {
    return i + 1 == parts_.size() ? at == uri_.size() : after_[(i + 1) * row_ + at] != kNowhere;
  }
  Position& after(std::size_t i, std::size_t at) { return after_[i * row_ + at]; }

  void literal(std::size_t i) {
    const std::string& text = parts_[i].literal;
    for (std::size_t at = 0; at < row_; ++at) {
      const std::size_t end = at + text.size();
      const bool here = end < row_ && rest_fits(i, end) && uri_.substr(at, text.size()) == text;
      after(i, at) = here ? static_cast<Position>(end) : kNowhere;
    }
  }

  void value(std::size_t i) {
    const Part& part = parts_[i];
    Position fit = kNowhere;
    for (std::size_t at = 0; at < row_; ++at) {
      if (rest_fits(i, at)) fit = static_cast<Position>(at);
      last_fit_[at] = fit;
    }
    const std::size_t shortest = part.op == 0 ? 1 : 0;
    const CharSet& stop = stops(part.op, part.ends_at_comma);
    std::size_t limit = uri_.size();  // where a value that starts at `from` ends at the latest
    for (std::size_t from = row_; from-- > 0;) {
      if (from < uri_.size() && stop[static_cast<unsigned char>(uri_[from])]) limit = from;
      const Position end = last_fit_[limit];
      const Position found = end != kNowhere && end >= from + shortest ? end : kNowhere;
      if (part.lead == 0) {
        after(i, from) = found;
      } else if (from > 0) {
        after(i, from - 1) = uri_[from - 1] == part.lead ? found : kNowhere;
      }
    }
    if (part.lead != 0) after(i, uri_.size()) = kNowhere;
  }

  // {?a,b}: the variables may come in any order, and may be absent.
  void query(std::size_t i) {
    const Part& part = parts_[i];
    std::vector<Position>& list_end = last_fit_;  // of a list of pairs that starts here
    std::size_t pair_end = uri_.size();
    std::size_t name_end = uri_.size();
    for (std::size_t from = row_; from-- > 0;) {
      const char c = from < uri_.size() ? uri_[from] : '\0';
      if (c == '&' || c == '#') pair_end = name_end = from;
      if (c == '=') name_end = from;
      const bool begins = from > 0 && (uri_[from - 1] == part.op || uri_[from - 1] == '&');
      list_end[from] = begins ? end_of_list(part, from, name_end, pair_end) : kNowhere;
      const bool absent = c != part.op || from == uri_.size();
      const Position end = absent ? static_cast<Position>(from) : list_end[from + 1];
      after(i, from) = end != kNowhere && rest_fits(i, end) ? end : kNowhere;
    }
  }
  Position end_of_list(const Part& part, std::size_t from, std::size_t name_end, std::size_t pair_end) const {
    if (from == uri_.size()) return static_cast<Position>(from);
    const std::string_view name = uri_.substr(from, name_end - from);
    if (std::ranges::find(part.names, name) == part.names.end()) return kNowhere;
    const bool goes_on = pair_end < uri_.size() && uri_[pair_end] == '&';
    return goes_on ? last_fit_[pair_end + 1] : static_cast<Position>(pair_end);
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
  std::size_t row_;
  std::vector<Position> after_;  // a row of positions for each part
  std::vector<Position>
      last_fit_;  // of the part at hand: the last position up to here that lets the rest fit
  Variables values_;
};

bool UriTemplate::fits(std::string_view uri, MatchBudget& budget) const {
  const std::optional<std::string_view> middle = middle_of(uri);
  return middle && Matcher::affordable(parts_, *middle, budget) && Matcher(parts_, *middle).run();
}

std::optional<UriTemplate::Variables> UriTemplate::match(std::string_view uri, MatchBudget& budget) const {
  const std::optional<std::string_view> middle = middle_of(uri);
  if (!middle || !Matcher::affordable(parts_, *middle, budget)) return std::nullopt;
  Matcher matcher(parts_, *middle);
  return matcher.run() ? matcher.variables() : std::nullopt;
}

}  // namespace fairlead::mcp
