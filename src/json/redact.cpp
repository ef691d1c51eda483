#include "json/redact.hpp"

#include <algorithm>
#include <optional>

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::json {

namespace {

// Returns the position after the closing quote of the string that begins at `open`. REQUIRES: valid JSON.
std::size_t end_of_string(std::string_view text, std::size_t open) {
  std::size_t end = open + 1;
  while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return end + 1;
}

constexpr std::string_view kStartOfString = "\"";
constexpr std::string_view kStartOfStringOrNumber = "\"-0123456789";
constexpr std::string_view kNumberCharacters = "+-.0123456789eE";

std::size_t end_of_token(std::string_view text, std::size_t begin) {
  return text[begin] == '"' ? end_of_string(text, begin)
                            : std::min(text.find_first_not_of(kNumberCharacters, begin), text.size());
}

// Returns the replacement of a string or a number; nullopt if the token contains no secret. Numbers
// are never truncated, so they are searched for complete secrets only.
std::optional<std::string> redacted_token(const Redactor& redactor, std::string_view token) {
  const std::optional<std::string> text = View(token).as_string();
  if (!text) return redactor.contains_secret(token) ? std::optional<std::string>(R"("***")") : std::nullopt;
  const std::string clean = redactor.redact(*text);
  if (clean == *text) return std::nullopt;
  std::string written;
  append_string(written, clean);
  return written;
}

// Redacts the tokens that begin with one of the characters in `starts`.
Raw redact_tokens(const Redactor& redactor, const Raw& value, std::string_view starts) {
  if (redactor.empty() || value.absent()) return value;
  const std::string_view text = value.text();
  std::string clean;
  std::size_t copied = 0;  // bytes of `text` that are in `clean`
  for (std::size_t begin = text.find_first_of(starts); begin < text.size();) {
    const std::size_t end = end_of_token(text, begin);
    if (const auto token = redacted_token(redactor, text.substr(begin, end - begin))) {
      (clean += text.substr(copied, begin - copied)) += *token;
      copied = end;
    }
    begin = text.find_first_of(starts, end);
  }
  if (copied == 0) return value;
  clean += text.substr(copied);
  return Raw::trusted(Bytes::adopt(std::move(clean)), value.is_one_line());
}

}  // namespace

Raw redact(const Redactor& redactor, const Raw& value) {
  return redact_tokens(redactor, value, kStartOfStringOrNumber);
}

Raw redact_strings(const Redactor& redactor, const Raw& value) {
  return redact_tokens(redactor, value, kStartOfString);
}

Error redact(const Redactor& redactor, Error error) {
  if (redactor.empty()) return error;
  ErrorDetail detail = error.detail();
  const Result<Raw> data = Raw::parse_optional(detail.rpc_data);
  detail.rpc_data =
      data ? std::string(redact(redactor, *data).text()) : redactor.redact_excerpt(detail.rpc_data);
  detail.command_line = redactor.redact(detail.command_line);
  detail.search_path = redactor.redact(detail.search_path);
  for (std::string& line : detail.stderr_lines) line = redactor.redact_excerpt(line);
  for (std::string& line : detail.stdout_lines) line = redactor.redact_excerpt(line);
  return Error(error.kind(), redactor.redact_excerpt(error.message())).with([&](ErrorDetail& d) {
    d = std::move(detail);
  });
}

}  // namespace fairlead::json
