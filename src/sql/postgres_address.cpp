#include "sql/postgres_address.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <memory>

#include "sql/database.hpp"

namespace fairlead::sql {

namespace {

constexpr std::string_view kMask = "***";
// A shorter secret is too likely to be a part of another word.
constexpr std::size_t kMinSecretBytes = 4;

struct FreeOptions {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};
using ConnectOptions = std::unique_ptr<PQconninfoOption, FreeOptions>;

Error malformed(std::string_view reason) {
  return Error(ErrorKind::validation,
               "the address of the PostgreSQL database is malformed: " + std::string(reason));
}

// libpq takes the first '@' before the first '/' as the end of user and password.
bool has_misplaced_at(std::string_view uri) {
  const std::string_view rest = uri.substr(uri.find("//") + 2);
  const std::size_t first = rest.find('@');
  if (first == std::string_view::npos) return false;
  return rest.find('@', first + 1) != std::string_view::npos || rest.find('/') < first;
}

bool is_port_list(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == ','; });
}

void mask_query_values(std::string& address, std::string_view key) {
  for (std::size_t at = address.find('?'); (at = address.find(key, at)) != std::string::npos;) {
    at += key.size();
    const std::size_t end = std::min(address.find('&', at), address.size());
    address.replace(at, end - at, kMask);
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

Result<PostgresAddress> parse_postgres_address(std::string_view uri) {
  PostgresAddress address{std::string(uri), {}};
  if (uri.find('\0') != std::string_view::npos) return malformed("it contains a NUL");
  if (has_misplaced_at(uri))
    return malformed(
        "an @ in the user, the password, the database or a parameter must be written as %40, and a / as %2F");
  char* reason = nullptr;
  const ConnectOptions options(PQconninfoParse(address.uri.c_str(), &reason));
  const std::unique_ptr<char, decltype(&PQfreemem)> free_reason(reason, &PQfreemem);
  if (!options) return malformed("its percent encoding or its parameters are not valid");
  for (const PQconninfoOption* option = options.get(); option->keyword; ++option) {
    const std::string_view keyword = option->keyword;
    if (!option->val) continue;
    if (keyword == "password" || keyword == "sslpassword") address.secrets.emplace_back(option->val);
    if (keyword == "port" && !is_port_list(option->val)) return malformed("the port is not a number");
  }
  return address;
}

std::string without_secrets(std::string_view message, const std::vector<std::string>& secrets) {
  std::string text(message);
  for (const std::string& secret : secrets) {
    if (secret.size() >= kMinSecretBytes) replace_all(text, secret, kMask);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  replace_all(text, "\n", "; ");
  return text;
}

std::string redacted_address(std::string_view address) {
  std::string shown(address);
  const std::size_t scheme = shown.find("//");
  if (scheme == std::string::npos) return shown;
  if (const std::size_t at = shown.rfind('@'); at != std::string::npos && at > scheme) {
    const std::size_t colon = shown.find(':', scheme);
    if (colon < at) shown.replace(colon + 1, at - colon - 1, kMask);
  }
  mask_query_values(shown, "password=");  // also sslpassword=
  return shown;
}

}  // namespace fairlead::sql
