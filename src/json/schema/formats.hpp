// The formats that can be asserted. Simple checks: they refuse what is clearly something else.
#pragma once

#include <cstdint>
#include <string_view>

namespace fairlead::json::schema {

enum class Format : std::uint8_t { none, date_time, date, time, email, uri, uuid, ipv4, ipv6 };

// Format::none for names that are not asserted.
Format find_format(std::string_view name) noexcept;
std::string_view name_of(Format format) noexcept;
bool has_format(std::string_view text, Format format);

}  // namespace fairlead::json::schema
