#include "admin/query.hpp"

#include <algorithm>

#include "admin/problem.hpp"
#include "base/uri.hpp"
#include "fairlead/json/scanner.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::admin {

namespace {

// Returns whether `text` is UTF-8 without NUL.
bool is_plain_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return false;
  const bool ascii = std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) return true;
  std::string quoted = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80)
      quoted += c;
    else
      quoted += 'x';
  }
  quoted += '"';
  return !json::validate(quoted);
}

std::optional<std::string> decode_part(std::string_view text) {
  std::string spaced(text);
  std::ranges::replace(spaced, '+', ' ');
  return decode_segment(spaced);
}

}  // namespace

Error parameter_error(std::string_view name, std::string_view problem) {
  std::string message = "query parameter \"" + std::string(name) + "\" " + std::string(problem);
  return Error(ErrorKind::validation, std::move(message)).with([](ErrorDetail& detail) {
    detail.failure_code = codes::kInvalidParameter;
  });
}

std::optional<std::string> decode_segment(std::string_view segment) {
  std::optional<std::string> decoded = percent_decode_strict(segment);
  if (!decoded || !is_plain_text(*decoded)) return std::nullopt;
  return decoded;
}

Result<Query> Query::parse(std::string_view text) {
  Query query;
  if (text.size() > kMaxBytes)
    return parameter_error("", "is too long: the query has more than max_query_bytes (8192)");
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view parameter = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (parameter.empty()) continue;
    const std::size_t equals = std::min(parameter.find('='), parameter.size());
    const std::optional<std::string> name = decode_part(parameter.substr(0, equals));
    const std::optional<std::string> value =
        decode_part(parameter.substr(std::min(equals + 1, parameter.size())));
    if (!name || !value)
      return parameter_error(name ? *name : "", "is not percent-encoded UTF-8 without NUL");
    if (query.find(*name)) return parameter_error(*name, "occurs more than once");
    query.parameters_.emplace_back(*name, *value);
  }
  return query;
}

const std::string* Query::find(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find_if(parameters_, [&](const auto& entry) { return entry.first == name; });
  return found == parameters_.end() ? nullptr : &found->second;
}

}  // namespace fairlead::admin
