#include "pool/server_name.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace fairlead::pool {

namespace {

bool may_be_in_server_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

}  // namespace

std::optional<std::string> server_name_problem(std::string_view server) {
  if (server.empty()) return "a server's name is empty";
  const std::string quoted = "server name `" + shortened(server, 2 * kMaxServerNameBytes) + "`";
  if (server.size() > kMaxServerNameBytes)
    return quoted + " is longer than " + std::to_string(kMaxServerNameBytes) + " characters";
  if (!std::ranges::all_of(server, may_be_in_server_name))
    return quoted + " has characters other than letters, digits, `-` and `_`";
  if (server.front() == '_' || server.back() == '_' || server.contains("__"))
    return quoted + " has a `_` at its beginning or end, or two in a row";
  return std::nullopt;
}

}  // namespace fairlead::pool
