#include "process/child_error_context.hpp"

#include "fairlead/process/failure.hpp"

namespace fairlead::process {

namespace {

constexpr std::size_t kMaxCommandLineBytes = 4u << 10;

std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += c == '\n' ? ' ' : c;
    }
  }
  return text + '\'';
}

}  // namespace

Error ChildErrorContext::add_to(Error error, std::string_view code,
                                const std::vector<std::string>& stderr_lines) const {
  std::string message = redactor.redact_excerpt(error.message());
  const ErrorDetail before = error.detail();
  return Error(error.kind(), std::move(message)).with([&](ErrorDetail& detail) {
    detail = before;
    if (!code.empty()) detail.failure_code = code;
    detail.remedy = remedy_for(detail.failure_code);
    detail.command_line = redactor.redact(command_line);
    detail.search_path = redactor.redact(search_path);
    if (stderr_lines.empty()) return;
    detail.stderr_lines.clear();
    for (const std::string& line : stderr_lines) detail.stderr_lines.push_back(redactor.redact_excerpt(line));
  });
}

std::string quoted_command_line(std::string_view program, const std::vector<std::string>& args) {
  std::string text = quoted(program);
  for (const std::string& argument : args) {
    text += ' ' + quoted(argument);
    if (text.size() <= kMaxCommandLineBytes) continue;
    text.resize(kMaxCommandLineBytes);
    return text + " …";
  }
  return text;
}

}  // namespace fairlead::process
