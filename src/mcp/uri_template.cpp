#include "mcp/uri_template.hpp"

#include <algorithm>

#include "fairlead/connection/uri.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::string_view kOperators = "+#./;?&";
constexpr std::size_t kMaxSteps = 100'000;  // a hostile URI must not make matching expensive

Error bad(std::string_view text, const char* why) {
  return Error(ErrorKind::validation, "`" + std::string(text) + "` is not a URI template: " + why);
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

// Characters a value of this operator never contains unescaped, so that it ends there.
std::string_view stops(char op) {
  switch (op) {
    case '+':
    case '#': return "";
    case '?':
    case '&': return "&#";
    case ';': return ";/?#";
    case '.': return "./?#";
    default: return "/?#";
  }
}

}  // namespace

Result<UriTemplate> UriTemplate::parse(std::string_view text) {
  UriTemplate made;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t open = rest.find_first_of("{}");
    if (open == std::string_view::npos || open > 0) {
      made.parts_.push_back(Part{.literal = std::string(rest.substr(0, open)), .names = {}});
      if (open == std::string_view::npos) return made;
    }
    if (rest[open] == '}') return bad(text, "a brace is closed that was not opened");
    const std::size_t close = rest.find('}', open);
    if (close == std::string_view::npos) return bad(text, "a brace is not closed");
    std::string_view inside = rest.substr(open + 1, close - open - 1);
    Part part;
    if (!inside.empty() && kOperators.find(inside.front()) != std::string_view::npos) {
      part.op = inside.front();
      inside.remove_prefix(1);
    }
    part.names = split(inside);
    if (std::ranges::any_of(part.names, [](const std::string& name) { return name.empty(); }))
      return bad(text, "a variable has no name");
    made.parts_.push_back(std::move(part));
    rest.remove_prefix(close + 1);
  }
  return made;
}

std::vector<std::string> UriTemplate::variables() const {
  std::vector<std::string> names;
  for (const Part& part : parts_) names.insert(names.end(), part.names.begin(), part.names.end());
  return names;
}

// Tries for each variable the longest value first and gives way until the rest fits.
class UriTemplate::Matcher {
 public:
  explicit Matcher(const std::vector<Part>& parts) : parts_(parts) {}

  std::map<std::string, std::string> values;

  bool parts_from(std::size_t index, std::string_view uri) {
    if (++steps_ > kMaxSteps) return false;
    if (index == parts_.size()) return uri.empty();
    const Part& part = parts_[index];
    if (!part.literal.empty())
      return uri.starts_with(part.literal) && parts_from(index + 1, uri.substr(part.literal.size()));
    if (part.op == '?' || part.op == '&') return query(index, uri);
    return names_from(index, 0, uri);
  }

 private:
  // {?a,b}: the variables may come in any order, and may be missing.
  bool query(std::size_t index, std::string_view uri) {
    const Part& part = parts_[index];
    if (uri.empty() || uri.front() != part.op) return parts_from(index + 1, uri);
    std::string_view rest = uri.substr(1);
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of("&#"), rest.size());
      const std::string_view pair = rest.substr(0, end);
      const std::size_t equals = std::min(pair.find('='), pair.size());
      const std::string name(pair.substr(0, equals));
      if (std::ranges::find(part.names, name) == part.names.end()) return false;
      if (!set(name, pair.substr(std::min(equals + 1, pair.size())))) return false;
      if (end == rest.size() || rest[end] == '#') return parts_from(index + 1, rest.substr(end));
      rest.remove_prefix(end + 1);
    }
    return parts_from(index + 1, rest);
  }

  bool names_from(std::size_t index, std::size_t name, std::string_view uri) {
    const Part& part = parts_[index];
    if (name == part.names.size()) return parts_from(index + 1, uri);
    const char lead = name > 0 && (part.op == 0 || part.op == '+' || part.op == '#') ? ','
                      : part.op == '+'                                               ? 0
                                                                                     : part.op;
    if (lead != 0) {
      if (uri.empty() || uri.front() != lead) return false;
      uri.remove_prefix(1);
    }
    const bool last = name + 1 == part.names.size();
    std::size_t longest = std::min(uri.find_first_of(stops(part.op)), uri.size());
    if (!last && part.op != '/' && part.op != '.') longest = std::min(uri.find(','), longest);
    for (std::size_t length = longest;; --length) {
      if (++steps_ > kMaxSteps) return false;
      if (length > 0 || part.op != 0) {
        const auto before = values;
        if (set(part.names[name], uri.substr(0, length)) && names_from(index, name + 1, uri.substr(length)))
          return true;
        values = before;
      }
      if (length == 0) return false;
    }
  }

  bool set(const std::string& name, std::string_view encoded) {
    const Result<std::string> decoded = percent_decode(encoded);
    if (!decoded) return false;
    values[name] = *decoded;
    return true;
  }

  const std::vector<Part>& parts_;
  std::size_t steps_ = 0;
};

std::optional<std::map<std::string, std::string>> UriTemplate::match(std::string_view uri) const {
  Matcher matcher(parts_);
  if (!matcher.parts_from(0, uri)) return std::nullopt;
  return std::move(matcher.values);
}

}  // namespace fairlead::mcp
