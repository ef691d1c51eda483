// Type traits of the types that a typed tool may use (listed in mcp/typed.hpp), and their encoding as JSON.
#pragma once

#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "fairlead/json/writer.hpp"

namespace fairlead::mcp::typed {

template <class T>
concept DescribedStruct = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;
template <class T>
concept DescribedEnum = std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value;

template <class T, template <class...> class Template>
inline constexpr bool is_specialization_of = false;
template <template <class...> class Template, class... Args>
inline constexpr bool is_specialization_of<Template<Args...>, Template> = true;

template <class T>
inline constexpr bool is_optional = is_specialization_of<T, std::optional>;
template <class T>
inline constexpr bool is_number = (std::integral<T> && !std::same_as<T, bool>) || std::floating_point<T>;

template <class T>
struct RemoveOptional {
  using type = T;
};
template <class T>
struct RemoveOptional<std::optional<T>> {
  using type = T;
};
// T, or its value type if T is a std::optional.
template <class T>
using remove_optional_t = typename RemoveOptional<std::remove_cvref_t<T>>::type;

template <class T>
struct ElementType {
  using type = T;
};
template <class T>
struct ElementType<std::vector<T>> {
  using type = T;
};
// T, or its element type if T is a std::vector.
template <class T>
using element_t = typename ElementType<T>::type;

template <class T>
using Members =
    boost::describe::describe_members<T, boost::describe::mod_any_access | boost::describe::mod_inherited>;

// Returns an empty string if `value` is not a described enumerator.
template <DescribedEnum T>
std::string enumerator_name(T value) {
  std::string name;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto enumerator) {
    if (value == enumerator.value) name = enumerator.name;
  });
  return name;
}

// Writes `value` as JSON. Empty std::optional members of a struct are omitted.
template <class T>
void encode(json::Writer& out, const T& value) {
  if constexpr (std::same_as<T, json::Raw>) {
    out.raw(value.absent() ? std::string_view("null") : value.text());
  } else if constexpr (std::same_as<T, bool>) {
    out.boolean(value);
  } else if constexpr (std::unsigned_integral<T>) {
    out.unsigned_integer(value);
  } else if constexpr (std::integral<T>) {
    out.integer(value);
  } else if constexpr (std::floating_point<T>) {
    out.number(static_cast<double>(value));
  } else if constexpr (std::same_as<T, std::string>) {
    out.string(value);
  } else if constexpr (is_specialization_of<T, std::vector>) {
    out.begin_array();
    for (const auto& element : value) encode(out, element);
    out.end_array();
  } else if constexpr (is_specialization_of<T, std::map>) {
    out.begin_object();
    for (const auto& [key, element] : value) {
      out.key(key);
      encode(out, element);
    }
    out.end_object();
  } else if constexpr (DescribedEnum<T>) {
    out.string(enumerator_name(value));
  } else {
    out.begin_object();
    boost::mp11::mp_for_each<Members<T>>([&](auto member) {
      const auto& inner = value.*member.pointer;
      if constexpr (is_optional<std::remove_cvref_t<decltype(inner)>>) {
        if (!inner) return;
        out.key(member.name);
        encode(out, *inner);
      } else {
        out.key(member.name);
        encode(out, inner);
      }
    });
    out.end_object();
  }
}

template <class T>
std::string to_json(const T& value) {
  json::Writer out;
  encode(out, value);
  return std::string(out.text());
}

}  // namespace fairlead::mcp::typed
