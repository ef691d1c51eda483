#include "mcp/yaml.hpp"

#include <algorithm>
#include <charconv>

namespace fairlead::mcp {

namespace {

bool is_item(std::string_view text) {
  return text == "-" || text.starts_with("- ") || text.starts_with("-\t");
}

std::string_view trim_left(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}
std::string_view trim_right(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t");
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
}

bool is_nothing(std::string_view text) {
  const std::string_view rest = trim_left(text);
  return rest.empty() || rest.front() == '#';
}

bool all_digits(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

// A number of the core schema as JSON spells it; empty when it is none.
std::string as_number(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  for (const auto& [prefix, base] : {std::pair<std::string_view, int>{"0x", 16}, {"0o", 8}}) {
    if (!text.starts_with(prefix)) continue;
    std::uint64_t value = 0;
    const std::string_view digits = text.substr(2);
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    const bool fits = problem == std::errc() && !digits.empty() && end == digits.data() + digits.size();
    return fits ? std::to_string(value) : "";
  }
  std::string made;
  if (text.starts_with('-')) made = "-";
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t e = text.find_first_of("eE");
  std::string_view mantissa = text.substr(0, e);
  const std::size_t dot = mantissa.find('.');
  std::string_view whole = mantissa.substr(0, dot);
  const std::string_view part = dot == std::string_view::npos ? std::string_view() : mantissa.substr(dot + 1);
  if (whole.empty() && part.empty()) return "";
  if ((!whole.empty() && !all_digits(whole, kDigits)) || (!part.empty() && !all_digits(part, kDigits)))
    return "";
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
  made += whole.empty() ? "0" : std::string(whole);
  if (!part.empty()) made += "." + std::string(part);
  if (e == std::string_view::npos) return made;
  std::string_view power = text.substr(e + 1);
  made += "e";
  if (power.starts_with('-') || power.starts_with('+')) {
    made += power.front();
    power.remove_prefix(1);
  }
  return all_digits(power, kDigits) ? made + std::string(power) : "";
}

}  // namespace

Yaml::Yaml(std::string_view text, std::size_t first_line) : first_line_(first_line) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    lines_.push_back(Line{indent, line.substr(indent), line});
  }
}

Result<json::Raw> Yaml::parse() {
  if (!next()) {
    if (!problem_) fail(at_, "there is nothing in it");
  } else if (is_item(lines_[at_].text) || !key_of(lines_[at_].text)) {
    if (!problem_) fail(at_, "`key: value` is expected");
  } else if (mapping(lines_[at_].indent, 1) && next()) {
    fail(at_, "is indented less than the first key");
  }
  if (problem_) return *problem_;
  return out_.finish();
}

bool Yaml::fail(std::size_t line, const std::string& what) {
  if (!problem_)
    problem_ = Error(ErrorKind::validation, "line " + std::to_string(first_line_ + line) + ": " + what);
  return false;
}

// Moves on to a line that says something.
bool Yaml::next() {
  while (at_ < lines_.size() && is_nothing(lines_[at_].text)) ++at_;
  if (problem_ || at_ == lines_.size()) return false;
  if (lines_[at_].text.front() == '\t') return fail(at_, "a tab is no indentation");
  return true;
}

std::string_view Yaml::comment_cut(std::string_view text, bool& cut) const {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
      cut = true;
      return trim_right(text.substr(0, i));
    }
  }
  return trim_right(text);
}

std::optional<Yaml::Key> Yaml::key_of(std::string_view text) {
  if (text.empty() || text.front() == '[' || text.front() == '{') return std::nullopt;
  if (text.front() == '"' || text.front() == '\'') return quoted_key(text);
  bool cut = false;
  const std::string_view said = comment_cut(text, cut);
  for (std::size_t i = 1; i < said.size(); ++i) {
    if (said[i] == ':' && (i + 1 == said.size() || said[i + 1] == ' ' || said[i + 1] == '\t'))
      return Key{std::string(trim_right(said.substr(0, i))), trim_left(text.substr(i + 1))};
  }
  return std::nullopt;
}

bool Yaml::add_key(Keys& keys, const std::string& key, std::size_t line) {
  if (key == "<<") return fail(line, "merge keys are not supported");
  if (!keys.insert(key).second) return fail(line, "the key `" + key + "` is there already");
  out_.key(key);
  return true;
}

// ---- blocks ---------------------------------------------------------------------------------------------

bool Yaml::node(std::size_t indent, std::size_t depth) {
  if (depth > kMostDepth) return fail(at_, "it is nested more than 32 deep");
  if (is_item(lines_[at_].text)) return sequence(indent, depth);
  if (key_of(lines_[at_].text)) return mapping(indent, depth);
  if (problem_) return false;
  return value(indent - 1, depth, false);  // a scalar on a line of its own
}

bool Yaml::mapping(std::size_t indent, std::size_t depth) {
  Keys keys;
  out_.begin_object();
  while (next() && lines_[at_].indent >= indent) {
    Line& line = lines_[at_];
    if (line.indent > indent) return fail(at_, "is indented more than what it belongs to");
    if (is_item(line.text)) return fail(at_, "a list item stands where a key is expected");
    const std::optional<Key> key = key_of(line.text);
    if (problem_) return false;
    if (!key) return fail(at_, "`key: value` is expected");
    if (std::string_view("&*!%@`|>?,]}").find(line.text.front()) != std::string_view::npos)
      return fail(at_, "a key that begins with `" + std::string(line.text.substr(0, 1)) +
                           "` is not supported; put it in quotes");
    if (!add_key(keys, key->name, at_)) return false;
    line.text = key->rest;
    if (!value(indent, depth, true)) return false;
  }
  out_.end_object();
  return !problem_;
}

bool Yaml::sequence(std::size_t indent, std::size_t depth) {
  if (depth > kMostDepth) return fail(at_, "it is nested more than 32 deep");
  out_.begin_array();
  while (next() && lines_[at_].indent >= indent) {
    Line& line = lines_[at_];
    if (line.indent > indent) return fail(at_, "is indented more than what it belongs to");
    if (!is_item(line.text)) break;
    const std::string_view rest = trim_left(line.text.substr(1));
    const std::size_t offset = static_cast<std::size_t>(rest.data() - line.text.data());
    const bool nested_here = !is_nothing(rest) && (is_item(rest) || key_of(rest).has_value());
    if (problem_) return false;
    line.text = rest;
    // `- key: value` begins a mapping as if the dash were indentation.
    if (nested_here) line.indent = indent + offset;
    if (!(nested_here ? node(indent + offset, depth + 1) : value(indent, depth, false))) return false;
  }
  out_.end_array();
  return !problem_;
}

// What stands after a key or a dash, or on the lines below it.
bool Yaml::value(std::size_t parent, std::size_t depth, bool in_mapping) {
  const std::string_view text = lines_[at_].text;
  if (is_nothing(text)) {
    ++at_;
    return nested(parent, depth, in_mapping);
  }
  switch (text.front()) {
    case '|':
    case '>': return block_scalar(parent);
    case '"':
    case '\'':
    case '[':
    case '{': return flow_value(parent, depth);
    default: return plain(parent);
  }
}

bool Yaml::nested(std::size_t parent, std::size_t depth, bool in_mapping) {
  if (next()) {
    const Line& line = lines_[at_];
    if (line.indent > parent) return node(line.indent, depth + 1);
    // The items of a key's list may stand right below the key.
    if (in_mapping && line.indent == parent && is_item(line.text)) {
      return sequence(parent, depth + 1);
    }
  }
  if (problem_) return false;
  out_.null();
  return true;
}

// ---- plain scalars --------------------------------------------------------------------------------------

bool Yaml::plain_part(std::string_view text, std::string& out, bool& ended) {
  const std::string_view said = comment_cut(text, ended);
  if (said.ends_with(':') || said.find(": ") != std::string_view::npos ||
      said.find(":\t") != std::string_view::npos)
    return fail(at_, "a value with a colon must be in quotes");
  out += said;
  return true;
}

bool Yaml::plain(std::size_t parent) {
  const std::size_t begin = at_;
  const std::string_view first = lines_[at_].text;
  if (std::string_view("&*!%@`,]}").find(first.front()) != std::string_view::npos || is_item(first) ||
      first.starts_with("? ")) {
    return fail(at_, "a value that begins with `" + std::string(first.substr(0, 1)) +
                         "` is not supported; put it in quotes");
  }
  std::string text;
  bool ended = false;
  if (!plain_part(first, text, ended)) return false;
  ++at_;
  std::size_t blank = 0;
  for (std::size_t look = at_; !ended && look < lines_.size(); ++look) {
    const Line& line = lines_[look];
    if (line.blank()) {
      ++blank;
      continue;
    }
    if (line.indent <= parent || line.text.front() == '#') break;
    at_ = look;
    text += blank == 0 ? std::string(" ") : std::string(blank, '\n');
    blank = 0;
    if (!plain_part(trim_left(line.text), text, ended)) return false;
    ++at_;
  }
  if (at_ == begin + 1) return resolve(text, begin);
  out_.string(text);
  return true;
}

// As the core schema of YAML 1.2 has it.
bool Yaml::resolve(const std::string& text, std::size_t line) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), text) != words.end();
  };
  if (is_one_of({"", "~", "null", "Null", "NULL"})) {
    out_.null();
  } else if (is_one_of({"true", "True", "TRUE"})) {
    out_.boolean(true);
  } else if (is_one_of({"false", "False", "FALSE"})) {
    out_.boolean(false);
  } else if (is_one_of({".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
                        ".NaN", ".NAN"})) {
    return fail(line, "`" + text + "` is a number that JSON does not have");
  } else if (const std::string number = as_number(text); !number.empty()) {
    out_.raw(number);
  } else {
    out_.string(text);
  }
  return true;
}

// ---- block scalars --------------------------------------------------------------------------------------

bool Yaml::block_scalar(std::size_t parent) {
  bool cut = false;
  const std::string_view header = comment_cut(lines_[at_].text, cut);
  const bool folded = header.front() == '>';
  char chomp = ' ';
  std::size_t indent = 0;
  for (const char c : header.substr(1)) {
    if ((c == '+' || c == '-') && chomp == ' ') {
      chomp = c;
    } else if (c >= '1' && c <= '9' && indent == 0) {
      indent = parent + static_cast<std::size_t>(c - '0');
    } else {
      return fail(at_, "`" + std::string(header) + "` does not begin a block of text");
    }
  }
  ++at_;
  std::string text;
  std::size_t blank = 0;
  bool any = false;
  bool after_deeper = false;
  for (; at_ < lines_.size(); ++at_) {
    const Line& line = lines_[at_];
    const bool only_spaces = line.text.empty();
    if (only_spaces && (indent == 0 || line.indent <= indent)) {
      ++blank;
      continue;
    }
    if (!only_spaces && (line.indent <= parent || line.indent < indent)) break;
    if (indent == 0) indent = line.indent;
    const std::string_view said = line.whole.substr(indent);
    const bool deeper = said.starts_with(' ') || said.starts_with('\t');
    if (!any) {
      text.append(blank, '\n');
    } else if (!folded || deeper || after_deeper) {
      text.append(blank + 1, '\n');
    } else if (blank == 0) {
      text += ' ';
    } else {
      text.append(blank, '\n');
    }
    text += said;
    any = true;
    after_deeper = deeper;
    blank = 0;
  }
  if (chomp == '+') text.append(any ? blank + 1 : blank, '\n');
  if (chomp == ' ' && any) text += '\n';
  out_.string(text);
  return true;
}

}  // namespace fairlead::mcp
