// Decoding of JSON values into C++ types, after the schema has accepted them.
#pragma once

#include <array>
#include <utility>

#include "fairlead/base/buffer_cache.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/mcp/field.hpp"

namespace fairlead::mcp::typed {

// Returns false if `in` is not a valid T.
template <class T>
bool decode(json::View in, T& out);

// Decodes a member of a struct. If it is absent, assigns `*default_value`; returns false if there is none and
// the member is required.
template <class Member>
bool decode_member(json::View in, Member& out,
                   const std::optional<remove_optional_t<Member>>* default_value) {
  if (in.absent()) {
    if (default_value && *default_value) out = **default_value;
    return is_optional<Member> || (default_value && *default_value);
  }
  if constexpr (is_optional<Member>) {
    return decode(in, out.emplace());
  } else {
    return decode(in, out);
  }
}

template <DescribedStruct T>
bool decode_struct(json::View in, T& out) {
  bool valid = in.is(json::Type::object);
  // Finds all members in one pass. A lookup per member would scan large arguments once for each member.
  std::array<json::View, boost::mp11::mp_size<Members<T>>::value> values;
  in.each_member([&](std::string_view key, bool escaped, json::View value) {
    auto slot = values.begin();
    boost::mp11::mp_for_each<Members<T>>([&](auto member) {
      if (json::key_equals(key, escaped, member.name)) *slot = value;
      ++slot;
    });
    return true;
  });
  auto value = values.begin();
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    const auto* field = field_of<T>(member.pointer);
    valid =
        valid && decode_member(*value++, out.*member.pointer, field ? &field->declared_default() : nullptr);
  });
  return valid;
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
    return in.read_string(out);
  } else if constexpr (is_specialization_of<T, std::vector>) {
    bool valid = in.is(json::Type::array);
    in.each_element([&](json::View element) { return valid = decode(element, out.emplace_back()); });
    return valid;
  } else if constexpr (is_specialization_of<T, std::map>) {
    bool valid = in.is(json::Type::object);
    in.each_member([&](std::string_view key, bool escaped, json::View value) {
      return valid = decode(value, out[escaped ? json::unescape(key) : std::string(key)]);
    });
    return valid;
  } else if constexpr (DescribedEnum<T>) {
    const auto name = in.as_string();
    bool valid = false;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto enumerator) {
      if (name == enumerator.name) {
        out = enumerator.value;
        valid = true;
      }
    });
    return valid;
  } else {
    return decode_struct(in, out);
  }
}

// Releases the memory of the long strings in decoded arguments for reuse. `value` must not be used
// afterwards.
template <class T>
void release_buffers(T& value) noexcept {
  if constexpr (std::same_as<T, std::string>) {
    detail::release_large_buffer(value);
  } else if constexpr (is_optional<T>) {
    if (value) release_buffers(*value);
  } else if constexpr (is_specialization_of<T, std::vector>) {
    if constexpr (std::is_class_v<element_t<T>>) {
      for (auto& element : value) release_buffers(element);
    }
  } else if constexpr (DescribedStruct<T>) {
    boost::mp11::mp_for_each<Members<T>>([&](auto member) { release_buffers(value.*member.pointer); });
  }
}

}  // namespace fairlead::mcp::typed
