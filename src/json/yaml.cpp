#include "json/yaml.hpp"

#include <yaml.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::json {

namespace {

constexpr std::size_t kMaxYamlDepth = 32;

bool has_only(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

// Converts a number of the YAML core schema to JSON. Returns an empty string if `text` is not a number.
std::string number_as_json(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  for (const auto& [prefix, base] : {std::pair<std::string_view, int>{"0x", 16}, {"0o", 8}}) {
    if (!text.starts_with(prefix)) continue;
    std::uint64_t value = 0;
    const std::string_view digits = text.substr(2);
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    const bool is_number = problem == std::errc() && !digits.empty() && end == digits.data() + digits.size();
    return is_number ? std::to_string(value) : "";
  }
  std::string number;
  if (text.starts_with('-')) number = "-";
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t e = text.find_first_of("eE");
  std::string_view mantissa = text.substr(0, e);
  const std::size_t dot = mantissa.find('.');
  std::string_view whole = mantissa.substr(0, dot);
  const std::string_view fraction =
      dot == std::string_view::npos ? std::string_view() : mantissa.substr(dot + 1);
  if (whole.empty() && fraction.empty()) return "";
  if ((!whole.empty() && !has_only(whole, kDigits)) || (!fraction.empty() && !has_only(fraction, kDigits)))
    return "";
  while (whole.size() > 1 && whole.front() == '0') whole.remove_prefix(1);
  number += whole.empty() ? "0" : std::string(whole);
  if (!fraction.empty()) number += "." + std::string(fraction);
  if (e == std::string_view::npos) return number;
  std::string_view exponent = text.substr(e + 1);
  number += "e";
  if (exponent.starts_with('-') || exponent.starts_with('+')) {
    number += exponent.front();
    exponent.remove_prefix(1);
  }
  return has_only(exponent, kDigits) ? number + std::string(exponent) : "";
}

std::string_view text_of(const yaml_char_t* text, std::size_t size) {
  return {reinterpret_cast<const char*>(text), size};
}

// Owns a parser of libyaml and its current event.
class EventParser {
 public:
  explicit EventParser(std::string_view text) {
    initialized_ = yaml_parser_initialize(&parser_) != 0;
    if (initialized_)
      yaml_parser_set_input_string(&parser_, reinterpret_cast<const yaml_char_t*>(text.data()), text.size());
  }
  ~EventParser() {
    yaml_event_delete(&event_);
    if (initialized_) yaml_parser_delete(&parser_);
  }
  EventParser(const EventParser&) = delete;
  EventParser& operator=(const EventParser&) = delete;

  // Advances to the next event. Returns false if the text is not valid YAML.
  bool next() {
    yaml_event_delete(&event_);
    return initialized_ && yaml_parser_parse(&parser_, &event_) != 0;
  }
  const yaml_event_t& event() const noexcept { return event_; }
  std::size_t line() const noexcept { return event_.start_mark.line; }

  // The error message of libyaml, such as "found unexpected end of stream while scanning a quoted scalar".
  std::string problem() const {
    if (!initialized_ || parser_.problem == nullptr) return "out of memory";
    return std::string(parser_.problem) +
           (parser_.context == nullptr ? "" : " " + std::string(parser_.context));
  }
  // The line where the context of the error begins, if that is an earlier line.
  std::optional<std::size_t> context_line() const noexcept {
    const bool earlier = parser_.context != nullptr && parser_.context_mark.line < problem_line();
    return earlier ? std::optional(parser_.context_mark.line) : std::nullopt;
  }
  std::size_t problem_line() const noexcept { return parser_.problem_mark.line; }

 private:
  yaml_parser_t parser_{};
  yaml_event_t event_{};
  bool initialized_ = false;
};

// Converts the events of the parser to JSON. The bool functions return false on failure and set problem_.
class DocumentReader {
 public:
  DocumentReader(std::string_view text, const YamlOptions& options) : parser_(text), options_(options) {}

  Result<Raw> read() {
    if (!read_document()) return Error(ErrorKind::validation, problem_);
    // An alias can repeat what is nested deeply at another place.
    if (expanded_ != 0 && validate(out_.text(), kMaxYamlDepth))
      return Error(ErrorKind::validation, "aliases nest it more than 32 deep");
    return out_.finish();
  }

 private:
  using Keys = std::set<std::string, std::less<>>;

  bool fail(const std::string& message) { return fail_at(parser_.line(), message); }
  bool fail_at(std::size_t line, const std::string& message) {
    problem_ = "line " + std::to_string(options_.first_line + line) + ": " + message;
    return false;
  }
  bool next() {
    if (parser_.next()) return true;
    std::string message = parser_.problem();
    if (const auto line = parser_.context_line())
      message += " that begins on line " + std::to_string(options_.first_line + *line);
    return fail_at(parser_.problem_line(), message);
  }

  bool read_document() {
    if (!next() || !next()) return false;
    if (parser_.event().type == YAML_STREAM_END_EVENT) return fail("the document is empty");
    const auto& start = parser_.event().data.document_start;
    if (start.version_directive != nullptr || start.tag_directives.start != start.tag_directives.end)
      return fail("directives are not supported");
    if (!next()) return false;
    if (parser_.event().type != YAML_MAPPING_START_EVENT) return fail("`key: value` is expected");
    if (!read_node(1) || !next() || !next()) return false;
    return parser_.event().type == YAML_STREAM_END_EVENT || fail("more than one document");
  }

  bool read_node(std::size_t depth) {
    if (depth > kMaxYamlDepth) return fail("it is nested more than 32 deep");
    const yaml_event_t& event = parser_.event();
    switch (event.type) {
      case YAML_SCALAR_EVENT:
        return read_anchored(event.data.scalar.anchor, event.data.scalar.tag,
                             [this] { return read_scalar(); });
      case YAML_SEQUENCE_START_EVENT:
        return read_anchored(event.data.sequence_start.anchor, event.data.sequence_start.tag,
                             [&] { return read_sequence(depth); });
      case YAML_MAPPING_START_EVENT:
        return read_anchored(event.data.mapping_start.anchor, event.data.mapping_start.tag,
                             [&] { return read_mapping(depth); });
      default: return read_alias();
    }
  }

  bool aliases_allowed() const noexcept { return options_.max_alias_bytes != 0; }

  // Fails if the node has a tag, or an anchor that is not allowed.
  bool check_properties(const yaml_char_t* anchor, const yaml_char_t* tag) {
    if (anchor != nullptr && !aliases_allowed()) return fail("anchors are not supported");
    return tag == nullptr || fail("tags are not supported");
  }

  // Reads a node with `read`, and keeps its JSON if it has an anchor.
  template <class Read>
  bool read_anchored(const yaml_char_t* anchor, const yaml_char_t* tag, Read read) {
    if (!check_properties(anchor, tag)) return false;
    if (anchor == nullptr) return read();
    const std::string name(reinterpret_cast<const char*>(anchor));
    Writer outside = std::exchange(out_, Writer());
    const bool is_read = read();
    Writer node = std::exchange(out_, std::move(outside));
    if (!is_read) return false;
    // A node can be repeated inside itself only through aliases, which are counted.
    const std::string& json = anchors_[name] = node.text();
    out_.raw(json);
    return true;
  }

  bool read_alias() {
    if (!aliases_allowed()) return fail("aliases are not supported");
    const std::string name(reinterpret_cast<const char*>(parser_.event().data.alias.anchor));
    const auto anchor = anchors_.find(name);
    if (anchor == anchors_.end()) return fail("the alias `" + name + "` has no anchor before it");
    expanded_ += anchor->second.size();
    if (expanded_ > options_.max_alias_bytes) {
      return fail("aliases expand to more than max_alias_bytes (" + std::to_string(options_.max_alias_bytes) +
                  ")");
    }
    out_.raw(anchor->second);
    return true;
  }

  bool read_sequence(std::size_t depth) {
    out_.begin_array();
    while (next()) {
      if (parser_.event().type == YAML_SEQUENCE_END_EVENT) return out_.end_array(), true;
      if (!read_node(depth + 1)) return false;
    }
    return false;
  }

  bool read_mapping(std::size_t depth) {
    Keys keys;
    std::vector<std::string> merged;  // the values of `<<`
    out_.begin_object();
    while (next()) {
      if (parser_.event().type == YAML_MAPPING_END_EVENT) return end_mapping(keys, merged);
      if (is_merge_key()) {
        if (!read_merged(merged, depth)) return false;
      } else if (!read_key(keys) || !next() || !read_node(depth + 1)) {
        return false;
      }
    }
    return false;
  }

  bool is_merge_key() const {
    const yaml_event_t& event = parser_.event();
    return aliases_allowed() && event.type == YAML_SCALAR_EVENT &&
           event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           text_of(event.data.scalar.value, event.data.scalar.length) == "<<";
  }

  bool read_merged(std::vector<std::string>& merged, std::size_t depth) {
    if (!next()) return false;
    Writer outside = std::exchange(out_, Writer());
    const bool is_read = read_node(depth + 1);
    merged.push_back(std::exchange(out_, std::move(outside)).text());
    return is_read;
  }

  // Adds the members of merged mappings that the mapping does not have itself; earlier ones win.
  bool end_mapping(Keys& keys, const std::vector<std::string>& merged) {
    for (const std::string& json : merged) {
      const View value(json);
      if (value.is(Type::array)) {
        value.each_element([&](View element) { return add_missing(keys, element), true; });
      } else {
        add_missing(keys, value);
      }
    }
    out_.end_object();
    return true;
  }

  void add_missing(Keys& keys, View mapping) {
    if (!mapping.is(Type::object)) return;
    mapping.each_member([&](std::string_view key, bool escaped, View value) {
      const std::string name = escaped ? unescape(key) : std::string(key);
      if (keys.insert(name).second) out_.key(name).raw(value.text());
      return true;
    });
  }

  bool read_key(Keys& keys) {
    const auto& scalar = parser_.event().data.scalar;
    if (parser_.event().type != YAML_SCALAR_EVENT) return fail("a key must be text");
    if (!check_properties(scalar.anchor, scalar.tag)) return false;
    if (scalar.anchor != nullptr) return fail("anchors of keys are not supported");
    const std::string_view name = text_of(scalar.value, scalar.length);
    if (name == "<<") return fail("merge keys are not supported");
    if (!keys.emplace(name).second) return fail("duplicate key `" + std::string(name) + "`");
    out_.key(name);
    return true;
  }

  bool read_scalar() {
    const auto& scalar = parser_.event().data.scalar;
    const std::string_view text = text_of(scalar.value, scalar.length);
    if (scalar.style == YAML_PLAIN_SCALAR_STYLE) return write_plain_scalar(text);
    out_.string(text);
    return true;
  }

  bool write_plain_scalar(std::string_view text) {
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
      return fail("JSON cannot represent `" + std::string(text) + "`");
    } else if (const std::string number = number_as_json(text); !number.empty()) {
      out_.raw(number);
    } else {
      out_.string(text);
    }
    return true;
  }

  EventParser parser_;
  YamlOptions options_;
  Writer out_;
  std::map<std::string, std::string> anchors_;  // the JSON of each node with an anchor
  std::size_t expanded_ = 0;                    // bytes that aliases have expanded to
  std::string problem_;
};

}  // namespace

Result<Raw> yaml_to_json(std::string_view text, const YamlOptions& options) {
  return DocumentReader(text, options).read();
}

}  // namespace fairlead::json
