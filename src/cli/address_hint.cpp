#include "cli/address_hint.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/printable.hpp"
#include "fairlead/connection/uri.hpp"
#include "process/child_error_context.hpp"

namespace fairlead::cli {

namespace {

bool is_address(std::string_view word) {
  constexpr std::array<std::string_view, 7> kSchemes = {"stdio:",   "tcp:",  "unix:", "http://",
                                                        "https://", "ws://", "wss://"};
  return std::ranges::any_of(kSchemes, [&](std::string_view scheme) { return word.starts_with(scheme); });
}

// Returns whether `text` is HOST:PORT, such as localhost:8808 or [::1]:8808.
bool is_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == 0 || colon == std::string_view::npos) return false;
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  return !port.empty() && port.size() <= 5 &&
         port.find_first_not_of("0123456789") == std::string_view::npos &&
         host.find_first_of("/ @") == std::string_view::npos &&
         (host.find(':') == std::string_view::npos || host.starts_with('['));
}

// Returns whether `word` looks like a URL without a scheme, such as example.com/mcp.
bool is_host_and_path(const std::string& word) {
  const std::size_t slash = word.find('/');
  const std::string_view host = std::string_view(word).substr(0, slash);
  return slash != std::string::npos && slash > 0 && !host.starts_with('.') && !host.starts_with('~') &&
         host.find('.') != std::string_view::npos && ::access(word.c_str(), F_OK) != 0;
}

std::string stdio_address(const std::vector<std::string>& words) {
  std::string address = "stdio:";
  for (const std::string& word : words)
    address += (address.ends_with(':') ? "" : " ") + percent_encode_word(word);
  return address;
}

std::string hint_for_web_address(const std::string& word) {
  const std::size_t slash = word.find('/');
  if (is_host_and_port(std::string_view(word).substr(0, slash)))
    return "http://" + word + (slash == std::string::npos ? "/mcp" : "");
  return is_host_and_path(word) ? "https://" + word : std::string();
}

}  // namespace

std::string address_hint(const std::vector<std::string>& words) {
  if (words.empty() || words.front().empty() || is_address(words.front())) return {};
  const std::string url = hint_for_web_address(words.front());
  if (!url.empty())
    return "To connect to a server over HTTP, write " + printable_line(shortened(url, 200)) + ".";
  const std::string address = stdio_address(words);
  return "To start a command, write it as one argument: " +
         printable_line(shortened(process::shell_quoted(address), 500)) + ".";
}

Error with_address_hint(Error error, const std::string& target) {
  const std::string hint = error.kind() == ErrorKind::validation ? address_hint({target}) : std::string();
  if (hint.empty()) return error;
  return std::move(error).with([&](ErrorDetail& detail) { detail.remedy = hint; });
}

}  // namespace fairlead::cli
