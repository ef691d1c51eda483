#include "fairlead/protocol/extension.hpp"

#include <algorithm>

#include "fairlead/json/view.hpp"

namespace fairlead::mcp {

namespace {

bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_alphanumeric(char c) noexcept {
  return is_letter(c) || (c >= '0' && c <= '9');
}

bool is_label(std::string_view label) noexcept {
  return !label.empty() && is_letter(label.front()) && is_alphanumeric(label.back()) &&
         std::all_of(label.begin(), label.end(), [](char c) { return is_alphanumeric(c) || c == '-'; });
}

bool is_prefix(std::string_view prefix) noexcept {
  while (true) {
    const std::size_t dot = prefix.find('.');
    if (!is_label(prefix.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    prefix.remove_prefix(dot + 1);
  }
}

bool is_name(std::string_view name) noexcept {
  constexpr std::string_view kInnerPunctuation = "-_.";
  return name.empty() || (is_alphanumeric(name.front()) && is_alphanumeric(name.back()) &&
                          std::all_of(name.begin(), name.end(), [&](char c) {
                            return is_alphanumeric(c) || kInnerPunctuation.find(c) != std::string_view::npos;
                          }));
}

}  // namespace

bool is_extension_id(std::string_view id) noexcept {
  const std::size_t slash = id.find('/');
  return slash != std::string_view::npos && is_prefix(id.substr(0, slash)) && is_name(id.substr(slash + 1));
}

std::string extensions_problem(const Extensions& extensions) {
  for (const auto& [id, settings] : extensions) {
    if (!is_extension_id(id)) return "`" + id + "` is not the identifier of an extension: prefix/name";
    if (!settings.absent() && !json::View(settings).is(json::Type::object))
      return "the settings of extension `" + id + "` are not an object";
  }
  return {};
}

void write_extensions(json::Writer& out, const Extensions& extensions) {
  if (extensions.empty()) return;
  out.key("extensions").begin_object();
  for (const auto& [id, settings] : extensions)
    out.key(id).raw(settings.absent() ? std::string_view("{}") : settings.text());
  out.end_object();
}

}  // namespace fairlead::mcp
