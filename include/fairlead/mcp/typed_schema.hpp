// Generates the JSON schema of a type from its members and their field metadata.
#pragma once

#include <limits>
#include <stdexcept>

#include "fairlead/mcp/field.hpp"

namespace fairlead::mcp::typed {

template <class T>
void write_schema(json::Writer& out, const FieldSchema& field = FieldSchema());

// Throws std::invalid_argument if describe_fields() and BOOST_DESCRIBE_STRUCT contradict each other.
template <DescribedStruct T>
void check_described_fields() {
  if constexpr (HasDescribeFields<T>) {
    std::size_t matched = 0;
    boost::mp11::mp_for_each<Members<T>>(
        [&](auto member) { matched += field_of<T>(member.pointer) != nullptr; });
    if (matched != std::tuple_size_v<std::remove_cvref_t<decltype(fields_of<T>())>>)
      throw std::invalid_argument(
          "describe_fields() names a member twice, or a member that BOOST_DESCRIBE_STRUCT does not name");
  }
}

template <DescribedStruct T>
void write_struct_keywords(json::Writer& out) {
  check_described_fields<T>();
  const FieldSchema none;
  out.key("type").string("object").key("properties").begin_object();
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using Value = remove_optional_t<decltype(std::declval<T>().*member.pointer)>;
    out.key(member.name);
    const FieldSchema* field = field_of<T>(member.pointer);
    write_schema<Value>(out, field ? *field : none);
  });
  out.end_object().key("required").begin_array();
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using Member = std::remove_cvref_t<decltype(std::declval<T>().*member.pointer)>;
    const FieldSchema* field = field_of<T>(member.pointer);
    if (!is_optional<Member> && !(field && field->has_default())) out.string(member.name);
  });
  out.end_array();
}

template <DescribedEnum T>
void write_enum_keywords(json::Writer& out, const FieldSchema& field) {
  using All = boost::describe::describe_enumerators<T>;
  out.key("type").string("string").key("enum").begin_array();
  boost::mp11::mp_for_each<All>([&](auto enumerator) { out.string(enumerator.name); });
  out.end_array();
  if (field.labels().empty()) return;
  out.key("oneOf").begin_array();
  boost::mp11::mp_for_each<All>([&](auto enumerator) {
    out.begin_object().key("const").string(enumerator.name);
    for (const auto& [name, label] : field.labels())
      if (name == enumerator.name) out.key("title").string(label);
    out.end_object();
  });
  out.end_array();
}

// Adds the range of T as bounds: a value out of range is then rejected by the schema, with a clear message,
// before decoding fails.
template <std::integral T>
void write_integer_keywords(json::Writer& out, const FieldSchema& field) {
  out.key("type").string("integer");
  if (!field.has_keyword("minimum"))
    out.key("minimum").integer(static_cast<std::int64_t>(std::numeric_limits<T>::min()));
  if (sizeof(T) < 8 && !field.has_keyword("maximum"))
    out.key("maximum").integer(static_cast<std::int64_t>(std::numeric_limits<T>::max()));
}

// Writes the members of the schema object of T.
template <class T>
void write_keywords(json::Writer& out, const FieldSchema& field) {
  if constexpr (std::same_as<T, json::Raw>) {
    static_cast<void>(field);  // any value is valid
  } else if constexpr (std::same_as<T, bool>) {
    out.key("type").string("boolean");
  } else if constexpr (std::integral<T>) {
    write_integer_keywords<T>(out, field);
  } else if constexpr (std::floating_point<T>) {
    out.key("type").string("number");
  } else if constexpr (std::same_as<T, std::string>) {
    out.key("type").string("string");
  } else if constexpr (is_specialization_of<T, std::vector>) {
    out.key("type").string("array").key("items");
    write_schema<typename T::value_type>(out, field.element_schema());
  } else if constexpr (is_specialization_of<T, std::map>) {
    static_assert(std::same_as<typename T::key_type, std::string>, "a map in a tool's types has string keys");
    out.key("type").string("object").key("additionalProperties");
    write_schema<typename T::mapped_type>(out);
  } else if constexpr (DescribedEnum<T>) {
    write_enum_keywords<T>(out, field);
  } else {
    static_assert(DescribedStruct<T>,
                  "describe the type with BOOST_DESCRIBE_STRUCT(Type, (), (members…)) to use it with a tool");
    write_struct_keywords<T>(out);
  }
}

template <class T>
void write_schema(json::Writer& out, const FieldSchema& field) {
  out.begin_object();
  write_keywords<T>(out, field);
  field.write_keywords(out);
  out.end_object();
}

template <class T>
json::Raw schema_of() {
  json::Writer out;
  write_schema<T>(out);
  return out.finish();
}

}  // namespace fairlead::mcp::typed
