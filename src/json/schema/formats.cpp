#include "json/schema/formats.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <string>

#include "json/characters.hpp"

namespace fairlead::json::schema {

namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, 9> kFormatNames = {"",    "date-time", "date", "time", "email",
                                                          "uri", "uuid",      "ipv4", "ipv6"};

// Returns whether `text` matches `mask`, in which 0 stands for any digit and x for any hexadecimal digit.
bool matches_mask(std::string_view text, std::string_view mask) {
  return std::ranges::equal(text, mask, [](char c, char m) {
    if (m == '0') return is_digit(c);
    return m == 'x' ? is_hex(c) : c == m;
  });
}

int parse_two_digits(std::string_view text, std::size_t at) {
  return (text[at] - '0') * 10 + (text[at + 1] - '0');
}

int days_in_month(int year, int month) {
  if (month == 2) return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

bool is_date(std::string_view text) {
  if (!matches_mask(text, "0000-00-00")) return false;
  const int year = parse_two_digits(text, 0) * 100 + parse_two_digits(text, 2);
  const int month = parse_two_digits(text, 5);
  const int day = parse_two_digits(text, 8);
  return month >= 1 && month <= 12 && day >= 1 && day <= days_in_month(year, month);
}

// Parses a time zone, Z or ±hh:mm, into its offset from UTC in minutes. Returns false if it is neither.
bool parse_time_zone(std::string_view text, int& minutes) {
  minutes = 0;
  if (text == "Z" || text == "z") return true;
  if (!matches_mask(text, "+00:00") && !matches_mask(text, "-00:00")) return false;
  if (parse_two_digits(text, 1) > 23 || parse_two_digits(text, 4) > 59) return false;
  minutes = parse_two_digits(text, 1) * 60 + parse_two_digits(text, 4);
  if (text.front() == '-') minutes = -minutes;
  return true;
}

bool is_time(std::string_view text) {
  if (text.size() < 9 || !matches_mask(text.substr(0, 8), "00:00:00")) return false;
  std::string_view zone = text.substr(8);
  if (zone.starts_with('.')) {
    const std::size_t digits = std::min(zone.find_first_not_of("0123456789", 1), zone.size()) - 1;
    if (digits == 0) return false;
    zone.remove_prefix(digits + 1);
  }
  int minutes = 0;
  if (!parse_time_zone(zone, minutes)) return false;
  const int hour = parse_two_digits(text, 0);
  const int minute = parse_two_digits(text, 3);
  const int second = parse_two_digits(text, 6);
  // A leap second is the last second of a day in UTC.
  const bool leap = second == 60 && (hour * 60 + minute - minutes + 2 * 1440) % 1440 == 1439;
  return hour < 24 && minute < 60 && (second < 60 || leap);
}

bool is_date_time(std::string_view text) {
  return text.size() > 11 && (text[10] | 0x20) == 't' && is_date(text.substr(0, 10)) &&
         is_time(text.substr(11));
}

bool is_email(std::string_view text) {
  const std::size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view local = text.substr(0, at);
  const std::string_view domain = text.substr(at + 1);
  const auto has_valid_dots = [](std::string_view part) {
    return !part.empty() && part.front() != '.' && part.back() != '.' &&
           part.find("..") == std::string_view::npos;
  };
  const bool quoted = local.size() > 2 && local.front() == '"' && local.back() == '"';
  if (!quoted &&
      (!has_valid_dots(local) || local.find_first_of(" \t\"(),:;<>@[\\]") != std::string_view::npos))
    return false;
  if (domain.starts_with('[') && domain.ends_with(']')) return domain.size() > 2;
  return has_valid_dots(domain) && domain.find_first_of(" \t\"(),:;<>@[\\]_") == std::string_view::npos;
}

bool is_uri(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || !is_letter(text.front())) return false;
  const auto in_scheme = [](char c) {
    return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
  };
  if (!std::ranges::all_of(text.substr(0, colon), in_scheme)) return false;
  for (std::size_t i = colon + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c <= ' ' || c > '~' || std::string_view("\"<>\\^`{|}").find(c) != std::string_view::npos)
      return false;
    if (c == '%' && (text.size() - i < 3 || !is_hex(text[i + 1]) || !is_hex(text[i + 2]))) return false;
  }
  return true;
}

bool is_ip_address(std::string_view text, int family) {
  if (text.size() > 45 || text.find('\0') != std::string_view::npos) return false;
  std::array<unsigned char, 16> address;
  return inet_pton(family, std::string(text).c_str(), address.data()) == 1;
}

}  // namespace

Format find_format(std::string_view name) noexcept {
  const auto found = std::ranges::find(kFormatNames, name);
  return found == kFormatNames.end() ? Format::none : static_cast<Format>(found - kFormatNames.begin());
}

std::string_view format_name(Format format) noexcept {
  return kFormatNames[static_cast<std::size_t>(format)];
}

bool matches_format(std::string_view text, Format format) {
  switch (format) {
    case Format::none: return true;
    case Format::date_time: return is_date_time(text);
    case Format::date: return is_date(text);
    case Format::time: return is_time(text);
    case Format::email: return is_email(text);
    case Format::uri: return is_uri(text);
    case Format::uuid: return matches_mask(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
    case Format::ipv4: return is_ip_address(text, AF_INET);
    case Format::ipv6: return is_ip_address(text, AF_INET6);
  }
  return true;
}

}  // namespace fairlead::json::schema
