// The words of English that the tool index treats specially. Private to the library.
#pragma once

#include <span>
#include <string_view>

namespace fairlead::search {

// Words without meaning of their own, such as articles. They are only indexed as parts of a tool's name, and
// only searched for if no other word of a query is found.
std::span<const std::string_view> filler_words() noexcept;

// Words that say little in a request, such as "show" and "find", but may distinguish tools, such as "on" and
// "off". They are indexed, and count little in a query.
std::span<const std::string_view> weak_words() noexcept;

// Groups of words that the names and descriptions of tools use for the same thing, separated by spaces.
std::span<const std::string_view> synonym_groups() noexcept;

}  // namespace fairlead::search
