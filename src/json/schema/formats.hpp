// The values of the keyword `format` that are supported. The checks are simple: they reject text that is
// clearly not of the format.
#pragma once

#include <cstdint>
#include <string_view>

namespace fairlead::json::schema {

enum class Format : std::uint8_t { none, date_time, date, time, email, uri, uuid, ipv4, ipv6 };

// Returns Format::none for a name that is not supported.
Format find_format(std::string_view name) noexcept;
std::string_view format_name(Format format) noexcept;
bool matches_format(std::string_view text, Format format);

}  // namespace fairlead::json::schema
