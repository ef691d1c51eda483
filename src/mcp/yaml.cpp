#include "mcp/yaml.hpp"

#include <yaml.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>

#include "fairlead/json/writer.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::size_t kMaxDepth = 32;

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

std::string_view text_of(const yaml_char_t* text, std::size_t size) {
  return {reinterpret_cast<const char*>(text), size};
}

class Parser {
 public:
  explicit Parser(std::string_view text) {
    ready_ = yaml_parser_initialize(&parser_) != 0;
    if (ready_)
      yaml_parser_set_input_string(&parser_, reinterpret_cast<const yaml_char_t*>(text.data()), text.size());
  }
  ~Parser() {
    yaml_event_delete(&event_);
    if (ready_) yaml_parser_delete(&parser_);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // Moves on to the next event; false when the text is not YAML.
  bool next() {
    yaml_event_delete(&event_);
    return ready_ && yaml_parser_parse(&parser_, &event_) != 0;
  }
  const yaml_event_t& event() const noexcept { return event_; }
  std::size_t line() const noexcept { return event_.start_mark.line; }

  // What libyaml says, such as "found unexpected end of stream while scanning a quoted scalar".
  std::string problem() const {
    if (!ready_ || parser_.problem == nullptr) return "out of memory";
    return std::string(parser_.problem) +
           (parser_.context == nullptr ? "" : " " + std::string(parser_.context));
  }
  // The line where that context begins, if it is another one.
  std::optional<std::size_t> context_line() const noexcept {
    const bool earlier = parser_.context != nullptr && parser_.context_mark.line < problem_line();
    return earlier ? std::optional(parser_.context_mark.line) : std::nullopt;
  }
  std::size_t problem_line() const noexcept { return parser_.problem_mark.line; }

 private:
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  bool ready_ = false;
};

// All bool functions return false when something is wrong; problem_ says what.
class Reader {
 public:
  Reader(std::string_view text, std::size_t first_line) : parser_(text), first_line_(first_line) {}

  Result<json::Raw> read() {
    if (document()) return out_.finish();
    return Error(ErrorKind::validation, problem_);
  }

 private:
  using Keys = std::set<std::string, std::less<>>;

  bool fail(const std::string& what) { return fail_at(parser_.line(), what); }
  bool fail_at(std::size_t line, const std::string& what) {
    problem_ = "line " + std::to_string(first_line_ + line) + ": " + what;
    return false;
  }
  bool next() {
    if (parser_.next()) return true;
    std::string what = parser_.problem();
    if (const auto line = parser_.context_line())
      what += " that begins on line " + std::to_string(first_line_ + *line);
    return fail_at(parser_.problem_line(), what);
  }

  bool document() {
    if (!next() || !next()) return false;
    if (parser_.event().type == YAML_STREAM_END_EVENT) return fail("there is nothing in it");
    const auto& start = parser_.event().data.document_start;
    if (start.version_directive != nullptr || start.tag_directives.start != start.tag_directives.end)
      return fail("directives are not supported");
    if (!next()) return false;
    if (parser_.event().type != YAML_MAPPING_START_EVENT) return fail("`key: value` is expected");
    if (!node(1) || !next() || !next()) return false;
    return parser_.event().type == YAML_STREAM_END_EVENT || fail("there is a second document");
  }

  bool node(std::size_t depth) {
    if (depth > kMaxDepth) return fail("it is nested more than 32 deep");
    const yaml_event_t& event = parser_.event();
    switch (event.type) {
      case YAML_SCALAR_EVENT: return plain(event.data.scalar.anchor, event.data.scalar.tag) && scalar();
      case YAML_SEQUENCE_START_EVENT:
        return plain(event.data.sequence_start.anchor, event.data.sequence_start.tag) && sequence(depth);
      case YAML_MAPPING_START_EVENT:
        return plain(event.data.mapping_start.anchor, event.data.mapping_start.tag) && mapping(depth);
      default: return fail("aliases are not supported");
    }
  }

  bool plain(const yaml_char_t* anchor, const yaml_char_t* tag) {
    if (anchor != nullptr) return fail("anchors are not supported");
    return tag == nullptr || fail("tags are not supported");
  }

  bool sequence(std::size_t depth) {
    out_.begin_array();
    while (next()) {
      if (parser_.event().type == YAML_SEQUENCE_END_EVENT) return out_.end_array(), true;
      if (!node(depth + 1)) return false;
    }
    return false;
  }

  bool mapping(std::size_t depth) {
    Keys keys;
    out_.begin_object();
    while (next()) {
      if (parser_.event().type == YAML_MAPPING_END_EVENT) return out_.end_object(), true;
      if (!key(keys) || !next() || !node(depth + 1)) return false;
    }
    return false;
  }

  bool key(Keys& keys) {
    const auto& scalar = parser_.event().data.scalar;
    if (parser_.event().type != YAML_SCALAR_EVENT) return fail("a key must be text");
    if (!plain(scalar.anchor, scalar.tag)) return false;
    const std::string_view name = text_of(scalar.value, scalar.length);
    if (name == "<<") return fail("merge keys are not supported");
    if (!keys.emplace(name).second) return fail("the key `" + std::string(name) + "` is there already");
    out_.key(name);
    return true;
  }

  bool scalar() {
    const auto& scalar = parser_.event().data.scalar;
    const std::string_view text = text_of(scalar.value, scalar.length);
    if (scalar.style == YAML_PLAIN_SCALAR_STYLE) return resolve(text);
    out_.string(text);
    return true;
  }

  bool resolve(std::string_view text) {
    const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
      return std::ranges::find(words, text) != words.end();
    };
    if (is_one_of({"", "~", "null", "Null", "NULL"})) {
      out_.null();
    } else if (is_one_of({"true", "True", "TRUE"})) {
      out_.boolean(true);
    } else if (is_one_of({"false", "False", "FALSE"})) {
      out_.boolean(false);
    } else if (is_one_of({".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
                          ".nan", ".NaN", ".NAN"})) {
      return fail("`" + std::string(text) + "` is a number that JSON does not have");
    } else if (const std::string number = as_number(text); !number.empty()) {
      out_.raw(number);
    } else {
      out_.string(text);
    }
    return true;
  }

  Parser parser_;
  std::size_t first_line_;
  json::Writer out_;
  std::string problem_;
};

}  // namespace

Result<json::Raw> read_yaml(std::string_view text, std::size_t first_line) {
  return Reader(text, first_line).read();
}

}  // namespace fairlead::mcp
