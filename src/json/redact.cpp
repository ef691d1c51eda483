#include "json/redact.hpp"

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::json {

namespace {

// Where the string that begins at `open` ends: at its closing quote. REQUIRES: valid JSON.
std::size_t closing_quote(std::string_view text, std::size_t open) {
  std::size_t at = open + 1;
  while (text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at;
}

}  // namespace

Raw redact(const Redactor& redactor, const Raw& value) {
  if (redactor.empty() || value.absent()) return value;
  const std::string_view text = value.text();
  std::string clean;
  std::size_t copied = 0;  // how much of `text` is in `clean`
  for (std::size_t open = text.find('"'); open != std::string_view::npos;) {
    const std::size_t close = closing_quote(text, open);
    const std::string_view spelled = text.substr(open + 1, close - open - 1);
    const bool escaped = spelled.contains('\\');
    const std::string decoded = escaped ? unescape(spelled) : std::string();
    const std::string_view inside = escaped ? decoded : spelled;
    if (redactor.finds_secret(inside)) {
      clean += text.substr(copied, open - copied);
      append_string(clean, redactor.redact(inside));
      copied = close + 1;
    }
    open = text.find('"', close + 1);
  }
  if (copied == 0) return value;
  clean += text.substr(copied);
  return Raw::trusted(Bytes::adopt(std::move(clean)), value.one_line());
}

Error redact(const Redactor& redactor, Error error) {
  if (redactor.empty()) return error;
  ErrorDetail detail = error.detail();
  const Result<Raw> data = Raw::parse_optional(detail.rpc_data);
  detail.rpc_data = data ? std::string(redact(redactor, *data).text()) : redactor.redact(detail.rpc_data);
  detail.command_line = redactor.redact(detail.command_line);
  detail.search_path = redactor.redact(detail.search_path);
  for (std::string& line : detail.stderr_lines) line = redactor.redact(line);
  return Error(error.kind(), redactor.redact(error.message())).with([&](ErrorDetail& d) {
    d = std::move(detail);
  });
}

}  // namespace fairlead::json
