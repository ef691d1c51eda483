#include "process/child_error_context.hpp"

#include <algorithm>
#include <cstdio>

#include "base/printable.hpp"
#include "fairlead/process/failure.hpp"

namespace fairlead::process {

namespace {

constexpr std::size_t kMaxCommandLineBytes = 4u << 10;

bool needs_escapes(std::string_view word) {
  while (!word.empty()) {
    const CodePoint first = first_code_point(word);
    if (first.length == 0 || is_unprintable(first.value)) return true;
    word.remove_prefix(first.length);
  }
  return false;
}

std::string quoted_with_escapes(std::string_view word) {
  std::string text = "$'";
  while (!word.empty()) {
    const CodePoint first = first_code_point(word);
    if (first.length == 0 || is_unprintable(first.value)) {
      for (const char c : word.substr(0, std::max<std::size_t>(first.length, 1))) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        text += c == '\n' ? "\\n" : escape;
      }
    } else {
      if (word.front() == '\'' || word.front() == '\\') text += '\\';
      text += word.substr(0, first.length);
    }
    word.remove_prefix(std::max<std::size_t>(first.length, 1));
  }
  return text + '\'';
}

}  // namespace

Error ChildErrorContext::add_to(Error error, std::string_view code,
                                const std::vector<std::string>& stderr_lines,
                                const std::vector<std::string>& stdout_lines) const {
  std::string message = redactor.redact_excerpt(error.message());
  const ErrorDetail before = error.detail();
  return Error(error.kind(), std::move(message)).with([&](ErrorDetail& detail) {
    detail = before;
    if (!code.empty()) detail.failure_code = code;
    detail.remedy = remedy_for(detail.failure_code);
    detail.command_line = quoted_command_line(command, redactor);
    detail.search_path = redactor.redact(search_path);
    if (!stderr_lines.empty()) detail.stderr_lines = redacted(stderr_lines);
    if (!stdout_lines.empty()) detail.stdout_lines = redacted(stdout_lines);
  });
}

std::vector<std::string> ChildErrorContext::redacted(const std::vector<std::string>& lines) const {
  std::vector<std::string> result;
  for (const std::string& line : lines) result.push_back(redactor.redact_excerpt(line));
  return result;
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  const bool plain = word.find_first_not_of(kPlain) == std::string_view::npos;
  if (!word.empty() && word.front() != '=' && plain) return std::string(word);
  if (needs_escapes(word)) return quoted_with_escapes(word);
  std::string text = "'";
  for (const char c : word) c == '\'' ? text += "'\\''" : text += c;
  return text + '\'';
}

// Redacts the words before they are quoted, because a quoted secret is no longer found.
std::string quoted_command_line(const std::vector<std::string>& command, const Redactor& redactor) {
  std::string text;
  for (const std::string& word : command) {
    const std::string redacted = redactor.redact(word);
    // A first word with = would be a variable assignment.
    const bool assignment = text.empty() && redacted.contains('=');
    if (!text.empty()) text += ' ';
    const std::string quoted = shell_quoted(redacted);
    text += assignment && quoted == redacted ? '\'' + quoted + '\'' : quoted;
    if (text.size() <= kMaxCommandLineBytes) continue;
    return std::string(utf8_prefix(text, kMaxCommandLineBytes)) + " …";
  }
  return text;
}

}  // namespace fairlead::process
