// Decoding: a JSON value, once the schema has accepted it, becomes a value of a C++ type.
#pragma once

#include <array>
#include <utility>

#include "fairlead/json/view.hpp"
#include "fairlead/mcp/field.hpp"

namespace fairlead::mcp::typed {

template <class T>
bool decode(json::View in, T& out);

// `fallback` is the value of a member that is absent.
template <class Member>
bool decode_member(json::View in, Member& out, const std::optional<value_of<Member>>* fallback) {
  if (in.absent()) {
    if (fallback && *fallback) out = **fallback;
    return is_optional<Member> || (fallback && *fallback);
  }
  if constexpr (is_optional<Member>) {
    return decode(in, out.emplace());
  } else {
    return decode(in, out);
  }
}

template <DescribedStruct T>
bool decode_struct(json::View in, T& out) {
  bool good = in.is(json::Type::object);
  // All members in one pass: a lookup for each would read large arguments as often.
  std::array<json::View, boost::mp11::mp_size<Members<T>>::value> values;
  in.each_member([&](std::string_view key, bool escaped, json::View value) {
    auto place = values.begin();
    boost::mp11::mp_for_each<Members<T>>([&](auto member) {
      if (json::key_equals(key, escaped, member.name)) *place = value;
      ++place;
    });
    return true;
  });
  auto value = values.begin();
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    const auto* field = field_of<T>(member.pointer);
    good = good && decode_member(*value++, out.*member.pointer, field ? &field->fallback() : nullptr);
  });
  return good;
}

template <class T>
bool decode(json::View in, T& out) {
  if constexpr (std::same_as<T, json::Raw>) {
    out = json::Raw::trusted(Bytes::copy_of(in.text()));
    return true;
  } else if constexpr (std::same_as<T, bool>) {
    const auto value = in.as_bool();
    if (value) out = *value;
    return value.has_value();
  } else if constexpr (std::integral<T>) {
    const auto value = in.as_int();
    if (!value || !std::in_range<T>(*value)) return false;
    out = static_cast<T>(*value);
    return true;
  } else if constexpr (std::floating_point<T>) {
    const auto value = in.as_double();
    if (value) out = static_cast<T>(*value);
    return value.has_value();
  } else if constexpr (std::same_as<T, std::string>) {
    auto value = in.as_string();
    if (value) out = std::move(*value);
    return value.has_value();
  } else if constexpr (is_a<T, std::vector>) {
    bool good = in.is(json::Type::array);
    in.each_element([&](json::View element) { return good = decode(element, out.emplace_back()); });
    return good;
  } else if constexpr (is_a<T, std::map>) {
    bool good = in.is(json::Type::object);
    in.each_member([&](std::string_view key, bool escaped, json::View value) {
      return good = decode(value, out[escaped ? json::unescape(key) : std::string(key)]);
    });
    return good;
  } else if constexpr (DescribedEnum<T>) {
    const auto name = in.as_string();
    bool good = false;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto one) {
      if (name == one.name) {
        out = one.value;
        good = true;
      }
    });
    return good;
  } else {
    return decode_struct(in, out);
  }
}

}  // namespace fairlead::mcp::typed
