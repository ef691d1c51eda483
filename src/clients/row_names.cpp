#include "clients/row_names.hpp"

#include <algorithm>

#include "pool/server_name.hpp"

namespace fairlead::clients {

namespace {

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void drop_last_separators(std::string& name) {
  while (!name.empty() && (name.back() == '_' || name.back() == '-')) name.pop_back();
}

// Replaces each run of characters that a name cannot have by one `-`.
std::string valid_name(std::string_view text) {
  if (!pool::server_name_problem(text)) return std::string(text);
  std::string name;
  for (const char c : text) {
    const char next = is_plain(c) ? c : '-';
    const bool is_separator = next == '-' || next == '_';
    const bool follows_separator = name.empty() || name.back() == '-' || name.back() == '_';
    if (!is_separator || !follows_separator) name += next;
    if (name.size() == pool::kMaxServerNameBytes) break;
  }
  drop_last_separators(name);
  return name.empty() ? "server" : name;
}

std::string in_lower_case(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c | 32) : c; });
  return name;
}

}  // namespace

std::string RowNames::add(std::string_view name) {
  std::string base = valid_name(name);
  if (base == "servers" || base == "e") base += "-server";  // paths below /mcp that are not servers
  std::string unique = base;
  for (std::size_t number = 2; !used_.insert(in_lower_case(unique)).second; ++number) {
    const std::string suffix = "-" + std::to_string(number);
    unique = base.substr(0, pool::kMaxServerNameBytes - suffix.size());
    drop_last_separators(unique);
    unique += suffix;
  }
  return unique;
}

}  // namespace fairlead::clients
