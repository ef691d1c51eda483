#include "protocol/header_values.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "fairlead/base/base64.hpp"
#include "json/utf8.hpp"
#include "json/walk.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::string_view kBase64Prefix = "=?base64?";
constexpr std::string_view kBase64Suffix = "?=";
constexpr std::int64_t kMaxExactInteger = (std::int64_t{1} << 53) - 1;

// Checks the size, because prefix and suffix overlap in "=?base64?=".
bool is_base64_form(std::string_view value) {
  return value.size() >= kBase64Prefix.size() + kBase64Suffix.size() && value.starts_with(kBase64Prefix) &&
         value.ends_with(kBase64Suffix);
}

bool is_visible(char c) {
  return c >= 0x20 && c <= 0x7e;
}

// Finds the header arguments in one pass over all arguments, which may be large.
class ArgumentFinder {
 public:
  ArgumentFinder(const std::vector<HeaderParam>& params, json::View arguments)
      : params_(params),
        found_(params.size()),
        p_(arguments.text().data()),
        end_(p_ + arguments.text().size()) {
    std::vector<std::size_t> all(params.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    if (arguments.is(json::Type::object)) scan_object(all, 0);
  }
  // Returns the argument for params[i]; absent if there is none.
  json::View operator[](std::size_t i) const { return found_[i]; }

 private:
  // Scans an object. `candidates` are the indexes of the params whose first `level` path keys lead to it.
  void scan_object(const std::vector<std::size_t>& candidates, std::size_t level) {
    ++p_;
    for (;;) {
      while (p_ < end_ && (json::is_space(*p_) || *p_ == ',')) ++p_;
      if (p_ >= end_ || *p_ == '}') break;
      bool escaped = false;
      const char* const key = p_ + 1;
      const char* const quote = json::find_closing_quote(key, end_, escaped);
      p_ = json::skip_space(json::skip_space(quote + 1, end_) + 1, end_);
      if (p_ >= end_) break;
      scan_member(std::string_view(key, static_cast<std::size_t>(quote - key)), escaped, candidates, level);
    }
    ++p_;
  }

  void scan_member(std::string_view key, bool escaped, const std::vector<std::size_t>& candidates,
                   std::size_t level) {
    std::vector<std::size_t> nested;   // params whose path continues inside this value
    std::vector<std::size_t> matched;  // params whose path ends here
    for (const std::size_t i : candidates) {
      const std::vector<std::string>& path = params_[i].path;
      if (!json::key_equals(key, escaped, path[level])) continue;
      found_[i] = json::View();  // if a key is repeated, the last value is used
      (path.size() == level + 1 ? matched : nested).push_back(i);
    }
    if (!nested.empty() && *p_ == '{') return scan_object(nested, level + 1);
    const char* const value = std::exchange(p_, json::skip_value(p_, end_));
    for (const std::size_t i : matched)
      found_[i] = json::View(std::string_view(value, static_cast<std::size_t>(p_ - value)));
  }

  const std::vector<HeaderParam>& params_;
  std::vector<json::View> found_;
  const char* p_;
  const char* const end_;
};

// Returns the decoded text of the header for an argument; nullopt if the argument has another type.
std::optional<std::string> header_text(json::View value, HeaderParam::Type type) {
  if (value.absent()) return std::nullopt;
  switch (type) {
    case HeaderParam::Type::string: return value.as_string();
    case HeaderParam::Type::boolean:
      if (const auto flag = value.as_bool()) return *flag ? "true" : "false";
      break;
    case HeaderParam::Type::integer:
      if (const auto number = value.as_int()) return std::to_string(*number);
      break;
  }
  return std::nullopt;
}

// Parses `-?\d+(\.0+)?`; returns nullopt for any other text.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point != std::string_view::npos) {
    const std::string_view fraction = text.substr(point + 1);
    if (fraction.empty() || fraction.find_first_not_of('0') != std::string_view::npos) return std::nullopt;
    text = text.substr(0, point);
  }
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Returns true for an integer that a double cannot represent exactly.
bool exceeds_exact_range(const HeaderParam& param, std::string_view text) {
  if (param.type != HeaderParam::Type::integer) return false;
  const std::int64_t number = parse_integer(text).value_or(0);
  return number > kMaxExactInteger || number < -kMaxExactInteger;
}

bool header_matches(const HeaderParam& param, std::string_view header, std::string_view text) {
  const std::optional<std::string> decoded = decode_header_value(header);
  if (!decoded) return false;
  if (param.type == HeaderParam::Type::integer) {
    const std::optional<std::int64_t> number = parse_integer(*decoded);
    return number && number == parse_integer(text);
  }
  return *decoded == text;
}

}  // namespace

void append_header_value(std::string& out, std::string_view text) {
  const bool plain = !text.empty() && text.front() != ' ' && text.back() != ' ' &&
                     std::ranges::all_of(text, is_visible) &&
                     !(text.starts_with(kBase64Prefix) && text.ends_with(kBase64Suffix));
  if (plain) {
    out += text;
  } else {
    out.append(kBase64Prefix).append(base64_encode(text)).append(kBase64Suffix);
  }
}

std::string encode_header_value(std::string_view text) {
  std::string value;
  append_header_value(value, text);
  return value;
}

std::optional<std::string> decode_header_value(std::string_view value) {
  if (!is_base64_form(value)) {
    const bool plain = std::ranges::all_of(value, [](char c) { return is_visible(c) || c == '\t'; });
    if (!plain) return std::nullopt;
    return std::string(value);
  }
  value.remove_prefix(kBase64Prefix.size());
  value.remove_suffix(kBase64Suffix.size());
  std::optional<std::string> bytes = base64_decode(value);
  if (!bytes) return std::nullopt;
  const char* const end = bytes->data() + bytes->size();
  if (json::find_invalid_utf8(bytes->data(), end) != end) return std::nullopt;
  return bytes;
}

std::string_view name_header_param(std::string_view method) noexcept {
  if (method == "tools/call" || method == "prompts/get") return "name";
  if (method == "resources/read") return "uri";
  if (method == "tasks/get" || method == "tasks/update" || method == "tasks/cancel") return "taskId";
  return {};
}

std::vector<std::pair<std::string, std::string>> param_headers(const std::vector<HeaderParam>& params,
                                                               json::View arguments) {
  std::vector<std::pair<std::string, std::string>> headers;
  const ArgumentFinder found(params, arguments);
  for (std::size_t i = 0; i < params.size(); ++i) {
    const HeaderParam& param = params[i];
    const std::optional<std::string> text = header_text(found[i], param.type);
    if (text && !exceeds_exact_range(param, *text))
      headers.emplace_back(param.header, encode_header_value(*text));
  }
  return headers;
}

std::optional<std::string> param_header_problem(const std::vector<HeaderParam>& params, json::View arguments,
                                                const HeaderLookup& header) {
  const ArgumentFinder found(params, arguments);
  for (std::size_t i = 0; i < params.size(); ++i) {
    const HeaderParam& param = params[i];
    const std::optional<std::string> text = header_text(found[i], param.type);
    if (!text) continue;
    const std::optional<std::string_view> value = header(param.header);
    if (!value && exceeds_exact_range(param, *text)) continue;
    if (!value) return param.header + " is missing, but the argument is present";
    if (!header_matches(param, *value, *text)) return param.header + " does not match the argument";
  }
  return std::nullopt;
}

}  // namespace fairlead::mcp
