#include "protocol/header_values.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "fairlead/base/base64.hpp"
#include "json/utf8.hpp"
#include "json/walk.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::string_view kOpen = "=?base64?";
constexpr std::string_view kClose = "?=";
constexpr std::int64_t kLargestExact = (std::int64_t{1} << 53) - 1;

// Both marks and room for both: "=?base64?=" has one character in two of them.
bool is_marked(std::string_view value) {
  return value.size() >= kOpen.size() + kClose.size() && value.starts_with(kOpen) && value.ends_with(kClose);
}

bool is_visible(char c) {
  return c >= 0x20 && c <= 0x7e;
}

// Finds the arguments that travel as headers in one pass over all arguments, which may be large.
class ArgumentFinder {
 public:
  ArgumentFinder(const std::vector<HeaderParam>& params, json::View arguments)
      : params_(params),
        found_(params.size()),
        p_(arguments.text().data()),
        end_(p_ + arguments.text().size()) {
    std::vector<std::size_t> all(params.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    if (arguments.is(json::Type::object)) object(all, 0);
  }
  // The argument of params[i]; absent if there is none.
  json::View operator[](std::size_t i) const { return found_[i]; }

 private:
  // Moves over an object that the paths of `wanted` lead to; `level` keys of each path are done.
  void object(const std::vector<std::size_t>& wanted, std::size_t level) {
    ++p_;
    for (;;) {
      while (p_ < end_ && (json::is_space(*p_) || *p_ == ',')) ++p_;
      if (p_ >= end_ || *p_ == '}') break;
      bool escaped = false;
      const char* const key = p_ + 1;
      const char* const quote = json::find_closing_quote(key, end_, escaped);
      p_ = json::skip_any_space(json::skip_any_space(quote + 1, end_) + 1, end_);
      if (p_ >= end_) break;
      member(std::string_view(key, static_cast<std::size_t>(quote - key)), escaped, wanted, level);
    }
    ++p_;
  }

  void member(std::string_view key, bool escaped, const std::vector<std::size_t>& wanted, std::size_t level) {
    std::vector<std::size_t> within;  // those that end deeper
    std::vector<std::size_t> here;
    for (const std::size_t i : wanted) {
      const std::vector<std::string>& path = params_[i].path;
      if (!json::key_equals(key, escaped, path[level])) continue;
      found_[i] = json::View();  // of a key that is repeated the last value counts
      (path.size() == level + 1 ? here : within).push_back(i);
    }
    if (!within.empty() && *p_ == '{') return object(within, level + 1);
    const char* const value = std::exchange(p_, json::skip_trusted(p_, end_));
    for (const std::size_t i : here)
      found_[i] = json::View(std::string_view(value, static_cast<std::size_t>(p_ - value)));
  }

  const std::vector<HeaderParam>& params_;
  std::vector<json::View> found_;
  const char* p_;
  const char* const end_;
};

// An argument as the text its header is to have.
std::optional<std::string> text_of(json::View value, HeaderParam::Type type) {
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

// `-?\d+(\.0+)?`, as a number; nothing else is one.
std::optional<std::int64_t> integer_of(std::string_view text) {
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

bool is_beyond_exact(const HeaderParam& param, std::string_view text) {
  if (param.type != HeaderParam::Type::integer) return false;
  const std::int64_t number = integer_of(text).value_or(0);
  return number > kLargestExact || number < -kLargestExact;
}

bool agree(const HeaderParam& param, std::string_view header, std::string_view text) {
  const std::optional<std::string> decoded = decode_header_value(header);
  if (!decoded) return false;
  if (param.type == HeaderParam::Type::integer) {
    const std::optional<std::int64_t> number = integer_of(*decoded);
    return number && number == integer_of(text);
  }
  return *decoded == text;
}

}  // namespace

std::string encode_header_value(std::string_view text) {
  const bool plain = !text.empty() && text.front() != ' ' && text.back() != ' ' &&
                     std::ranges::all_of(text, is_visible) &&
                     !(text.starts_with(kOpen) && text.ends_with(kClose));
  if (plain) return std::string(text);
  return std::string(kOpen) + base64_encode(text) + std::string(kClose);
}

std::optional<std::string> decode_header_value(std::string_view value) {
  if (!is_marked(value)) {
    const bool plain = std::ranges::all_of(value, [](char c) { return is_visible(c) || c == '\t'; });
    if (!plain) return std::nullopt;
    return std::string(value);
  }
  value.remove_prefix(kOpen.size());
  value.remove_suffix(kClose.size());
  std::optional<std::string> bytes = base64_decode(value);
  if (!bytes) return std::nullopt;
  const char* const end = bytes->data() + bytes->size();
  if (json::find_invalid_utf8(bytes->data(), end) != end) return std::nullopt;
  return bytes;
}

std::string_view named_by(std::string_view method) noexcept {
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
    const std::optional<std::string> text = text_of(found[i], param.type);
    if (text && !is_beyond_exact(param, *text))
      headers.emplace_back(param.header, encode_header_value(*text));
  }
  return headers;
}

std::optional<std::string> param_header_problem(const std::vector<HeaderParam>& params, json::View arguments,
                                                const HeaderLookup& header) {
  const ArgumentFinder found(params, arguments);
  for (std::size_t i = 0; i < params.size(); ++i) {
    const HeaderParam& param = params[i];
    const std::optional<std::string> text = text_of(found[i], param.type);
    if (!text) continue;
    const std::optional<std::string_view> value = header(param.header);
    if (!value && is_beyond_exact(param, *text)) continue;
    if (!value) return param.header + " is missing though the argument is there";
    if (!agree(param, *value, *text)) return param.header + " does not match the argument";
  }
  return std::nullopt;
}

}  // namespace fairlead::mcp
