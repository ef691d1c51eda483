// What stands in quotes and brackets, where lines do not count.
#include <charconv>

#include "mcp/yaml.hpp"

namespace fairlead::mcp {

namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

struct Escape {
  char letter;
  std::uint32_t code;
};
constexpr Escape kEscapes[] = {{'0', 0},      {'a', 7},      {'b', 8},     {'t', 9},    {'n', 10},
                               {'v', 11},     {'f', 12},     {'r', 13},    {'e', 27},   {' ', ' '},
                               {'"', '"'},    {'/', '/'},    {'\\', '\\'}, {'N', 0x85}, {'_', 0xa0},
                               {'L', 0x2028}, {'P', 0x2029}, {'\t', 9}};

}  // namespace

bool Yaml::flow_value(std::size_t parent, std::size_t depth) {
  flow_ = std::string(lines_[at_].text);
  pos_ = 0;
  flow_line_ = at_;
  flow_parent_ = parent;
  one_line_ = false;
  if (!flow_node(depth + 1)) return false;
  const std::string_view rest = std::string_view(flow_).substr(pos_);
  const std::size_t said = rest.find_first_not_of(" \t");
  if (said != std::string_view::npos && (said == 0 || rest[said] != '#'))
    return fail(flow_line_, "something stands after the end of the value");
  at_ = flow_line_ + 1;
  return true;
}

// Takes in another line.
bool Yaml::more() {
  const std::size_t line = flow_line_ + 1;
  const bool belongs =
      !one_line_ && line < lines_.size() && (lines_[line].blank() || lines_[line].indent > flow_parent_);
  if (!belongs) return fail(flow_line_, "a quote or bracket is not closed");
  flow_line_ = line;
  flow_ += '\n';
  flow_ += lines_[line].text;
  return true;
}

bool Yaml::flow_space() {
  while (true) {
    if (pos_ == flow_.size()) {
      if (!more()) return false;
    } else if (is_space(flow_[pos_])) {
      ++pos_;
    } else if (flow_[pos_] == '#' && (pos_ == 0 || is_space(flow_[pos_ - 1]))) {
      while (pos_ < flow_.size() && flow_[pos_] != '\n') ++pos_;
    } else {
      return true;
    }
  }
}

bool Yaml::flow_node(std::size_t depth) {
  if (depth > kMostDepth) return fail(flow_line_, "it is nested more than 32 deep");
  const char first = flow_[pos_];
  if (first == '[') return flow_sequence(depth);
  if (first == '{') return flow_mapping(depth);
  std::string text;
  if (first == '"' || first == '\'') {
    if (!quoted(text)) return false;
    out_.string(text);
    return true;
  }
  return flow_plain(text) && resolve(text, flow_line_);
}

bool Yaml::flow_sequence(std::size_t depth) {
  ++pos_;
  out_.begin_array();
  while (flow_space()) {
    if (flow_[pos_] == ']') {
      ++pos_;
      out_.end_array();
      return true;
    }
    if (!flow_node(depth + 1) || !flow_space()) return false;
    if (flow_[pos_] == ':') return fail(flow_line_, "a pair inside [ ] must be in { }");
    if (flow_[pos_] == ',') {
      ++pos_;
    } else if (flow_[pos_] != ']') {
      return fail(flow_line_, "a comma or ] is expected");
    }
  }
  return false;
}

bool Yaml::flow_mapping(std::size_t depth) {
  ++pos_;
  out_.begin_object();
  Keys keys;
  while (flow_space()) {
    if (flow_[pos_] == '}') {
      ++pos_;
      out_.end_object();
      return true;
    }
    std::string key;
    const bool in_quotes = flow_[pos_] == '"' || flow_[pos_] == '\'';
    if (!(in_quotes ? quoted(key) : flow_plain(key)) || !add_key(keys, key, flow_line_) || !flow_space())
      return false;
    bool has_value = flow_[pos_] == ':';
    if (has_value) {
      ++pos_;
      if (!flow_space()) return false;
      has_value = flow_[pos_] != ',' && flow_[pos_] != '}';
    }
    if (!has_value) {
      out_.null();
    } else if (!flow_node(depth + 1) || !flow_space()) {
      return false;
    }
    if (flow_[pos_] == ',') {
      ++pos_;
    } else if (flow_[pos_] != '}') {
      return fail(flow_line_, "a comma or } is expected");
    }
  }
  return false;
}

bool Yaml::flow_plain(std::string& out) {
  constexpr std::string_view kIndicators = ",[]{}";
  if (std::string_view("&*!%@`|>,]}:?#").find(flow_[pos_]) != std::string_view::npos) {
    return fail(flow_line_, "a value that begins with `" + flow_.substr(pos_, 1) + "` is not supported here");
  }
  std::size_t keep = 0;
  while (true) {
    if (pos_ == flow_.size() && !more()) return false;
    const char c = flow_[pos_];
    const char after = pos_ + 1 < flow_.size() ? flow_[pos_ + 1] : '\n';
    if (kIndicators.find(c) != std::string_view::npos) break;
    if (c == ':' && (is_space(after) || kIndicators.find(after) != std::string_view::npos)) break;
    if (c == '#' && is_space(flow_[pos_ - 1])) break;
    if (c == '\n') {
      if (!fold(out, keep)) return false;
      keep = out.size();
      continue;
    }
    out += c;
    ++pos_;
  }
  while (!out.empty() && is_space(out.back())) out.pop_back();
  return true;
}

// Line breaks inside a scalar: one is a space, more are one less than there are.
bool Yaml::fold(std::string& out, std::size_t keep) {
  while (out.size() > keep && (out.back() == ' ' || out.back() == '\t')) out.pop_back();
  std::size_t breaks = 0;
  while (true) {
    if (pos_ == flow_.size() && !more()) return false;
    if (!is_space(flow_[pos_])) break;
    if (flow_[pos_] == '\n') ++breaks;
    ++pos_;
  }
  out += breaks == 1 ? std::string(" ") : std::string(breaks - 1, '\n');
  return true;
}

bool Yaml::quoted(std::string& out) {
  const char quote = flow_[pos_++];
  std::size_t keep = 0;  // what was escaped is not folded away
  while (true) {
    if (pos_ == flow_.size() && !more()) return false;
    const char c = flow_[pos_];
    if (c == '\n') {
      if (!fold(out, keep)) return false;
    } else if (c == quote && quote == '\'' && pos_ + 1 < flow_.size() && flow_[pos_ + 1] == '\'') {
      out += '\'';
      pos_ += 2;
    } else if (c == quote) {
      ++pos_;
      return true;
    } else if (c == '\\' && quote == '"') {
      if (!escape(out)) return false;
      keep = out.size();
    } else {
      out += c;
      ++pos_;
    }
  }
}

bool Yaml::escape(std::string& out) {
  ++pos_;
  if (pos_ == flow_.size() && !more()) return false;
  const char letter = flow_[pos_++];
  if (letter == '\n') {
    while (pos_ < flow_.size() && (flow_[pos_] == ' ' || flow_[pos_] == '\t')) ++pos_;
    return true;
  }
  for (const Escape& one : kEscapes) {
    if (one.letter != letter) continue;
    append_utf8(out, one.code);
    return true;
  }
  const std::size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (digits == 0 || pos_ + digits > flow_.size())
    return fail(flow_line_, "`\\" + std::string(1, letter) + "` is no escape");
  std::uint32_t code = 0;
  const char* const begin = flow_.data() + pos_;
  const auto [end, problem] = std::from_chars(begin, begin + digits, code, 16);
  const bool fits =
      problem == std::errc() && end == begin + digits && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  if (!fits)
    return fail(flow_line_, "`\\" + std::string(1, letter) + "` is not followed by a character's number");
  pos_ += digits;
  append_utf8(out, code);
  return true;
}

std::optional<Yaml::Key> Yaml::quoted_key(std::string_view text) {
  // Only what closes and is followed by a colon on its line is a key; a value may go on.
  const char quote = text.front();
  std::size_t close = 1;
  while (close < text.size() && text[close] != quote) close += text[close] == '\\' && quote == '"' ? 2 : 1;
  while (quote == '\'' && close + 1 < text.size() && text[close + 1] == quote) {
    close += 2;
    while (close < text.size() && text[close] != quote) ++close;
  }
  if (close >= text.size()) return std::nullopt;
  const std::size_t colon = text.find_first_not_of(" \t", close + 1);
  if (colon == std::string_view::npos || text[colon] != ':') return std::nullopt;
  if (colon + 1 < text.size() && text[colon + 1] != ' ' && text[colon + 1] != '\t') return std::nullopt;
  flow_ = std::string(text);
  pos_ = 0;
  flow_line_ = at_;
  one_line_ = true;
  Key key;
  if (!quoted(key.name)) return std::nullopt;
  const std::size_t rest = std::min(text.find_first_not_of(" \t", colon + 1), text.size());
  key.rest = text.substr(rest);
  return key;
}

}  // namespace fairlead::mcp
