#include "base/glob.hpp"

#include <cstring>

namespace fairlead {

namespace {

// Removes everything up to the end of the first occurrence of `piece`. memmem() takes linear time.
bool skip_past(std::string_view& text, std::string_view piece) noexcept {
  const void* found = ::memmem(text.data(), text.size(), piece.data(), piece.size());
  if (!found) return false;
  text.remove_prefix(static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) + piece.size());
  return true;
}

}  // namespace

// The text before the first `*` and after the last one are fixed. Each piece between two `*` is matched by
// its first occurrence, which leaves the most text for the others.
bool glob_matches(std::string_view pattern, std::string_view text) noexcept {
  const std::size_t first = pattern.find('*');
  if (first == std::string_view::npos) return pattern == text;
  const std::string_view head = pattern.substr(0, first);
  const std::string_view tail = pattern.substr(pattern.rfind('*') + 1);
  if (text.size() < head.size() + tail.size()) return false;
  if (!text.starts_with(head) || !text.ends_with(tail)) return false;
  text = text.substr(head.size(), text.size() - head.size() - tail.size());
  std::string_view rest = pattern.substr(first, pattern.size() - tail.size() - first);
  while (!rest.empty()) {
    rest.remove_prefix(1);  // the `*`
    const std::string_view piece = rest.substr(0, rest.find('*'));
    if (!piece.empty() && !skip_past(text, piece)) return false;
    rest.remove_prefix(piece.size());
  }
  return true;
}

}  // namespace fairlead
