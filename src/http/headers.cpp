#include "fairlead/http/headers.hpp"

#include <algorithm>

namespace fairlead::http {

namespace {

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string_view trimmed(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

bool same_letters(std::string_view a, std::string_view b) noexcept {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

void Headers::set(std::string name, std::string value) {
  erase(name);
  add(std::move(name), std::move(value));
}

void Headers::erase(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return same_name(field.first, name); });
}

std::string_view Headers::get(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find_if(fields_, [&](const Field& field) { return same_name(field.first, name); });
  return found == fields_.end() ? std::string_view() : trimmed(found->second);
}

bool Headers::has(std::string_view name) const noexcept {
  return count(name) > 0;
}

std::size_t Headers::count(std::string_view name) const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(fields_, [&](const Field& field) { return same_name(field.first, name); }));
}

}  // namespace fairlead::http
