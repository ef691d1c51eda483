// Field metadata: descriptions, bounds and defaults of a struct's members, for models and for validation. It
// is returned by a function in the namespace of the struct, found by argument-dependent lookup:
//
// Example:
//   struct ForecastArgs { std::string city; int days; };
//   BOOST_DESCRIBE_STRUCT(ForecastArgs, (), (city, days))
//   inline auto describe_fields(const ForecastArgs*) {
//     return mcp::fields(
//         mcp::field(&ForecastArgs::city).description("Name of the city").min_length(1),
//         mcp::field(&ForecastArgs::days).description("Days ahead").minimum(1).maximum(14).default_value(3));
//   }
//
// The metadata becomes part of the schemas of tools that take or return the struct, directly or nested;
// arguments are validated against it before the tool runs. A member with a default is not required: it has
// the default value if the arguments omit it. Members without metadata need no entry.
//
// Bounds of a std::optional apply to its value. A derived struct inherits the metadata of its base unless it
// has its own describe_fields; std::tuple_cat combines the two.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fairlead/mcp/typed_encode.hpp"

namespace fairlead::mcp {

// The part of a field's metadata that becomes its schema: keywords and their values as JSON, in the order in
// which they were set.
class FieldSchema {
 public:
  using Keywords = std::vector<std::pair<std::string, std::string>>;

  bool has_keyword(std::string_view keyword) const noexcept;
  bool has_default() const noexcept { return has_keyword("default"); }
  const Keywords& keywords() const noexcept { return keywords_; }
  const Keywords& labels() const noexcept { return labels_; }  // pairs of enumerator and label, not encoded
  void write_keywords(json::Writer& out) const;
  // Returns the metadata of the elements of an array field: its labels, without its keywords.
  FieldSchema element_schema() const;

 protected:
  // Sets a keyword to a value that is already JSON, or to a string that is not yet JSON.
  void set_json(std::string_view keyword, std::string json);
  void set_string(std::string_view keyword, std::string_view text);
  // Appends an element, which is JSON, to a keyword whose value is an array.
  void append_json(std::string_view keyword, const std::string& element);
  void add_label(std::string enumerator, std::string label);

 private:
  Keywords keywords_;
  Keywords labels_;
};

template <class Struct, class Member>
class Field : public FieldSchema {
 public:
  using Value = typed::remove_optional_t<Member>;

  explicit Field(Member Struct::*pointer) : pointer_(pointer) {}

  Field& title(std::string_view text) { return set_text_keyword("title", text); }
  // Explains the member to the model that chooses its value.
  Field& description(std::string_view text) { return set_text_keyword("description", text); }

  // The value of the member if the arguments omit it.
  Field& default_value(Value value) {
    set_json("default", typed::to_json(value));
    default_ = std::move(value);
    return *this;
  }
  // Adds an example; may be called repeatedly.
  Field& example(const Value& value) {
    append_json("examples", typed::to_json(value));
    return *this;
  }

  template <class Number>
  Field& minimum(Number bound) {
    return set_number_keyword("minimum", bound);
  }
  template <class Number>
  Field& maximum(Number bound) {
    return set_number_keyword("maximum", bound);
  }
  template <class Number>
  Field& exclusive_minimum(Number bound) {
    return set_number_keyword("exclusiveMinimum", bound);
  }
  template <class Number>
  Field& exclusive_maximum(Number bound) {
    return set_number_keyword("exclusiveMaximum", bound);
  }
  template <class Number>
  Field& multiple_of(Number divisor) {
    return set_number_keyword("multipleOf", divisor);
  }

  // Bounds of the length in characters.
  Field& min_length(std::size_t length) {
    static_assert(kIsString, "min_length() is for std::string members");
    return set_size_keyword("minLength", length);
  }
  Field& max_length(std::size_t length) {
    static_assert(kIsString, "max_length() is for std::string members");
    return set_size_keyword("maxLength", length);
  }
  // A regular expression (ECMA 262) that must match a part of the value, or all of it with `^` and `$`.
  Field& pattern(std::string_view expression) {
    static_assert(kIsString, "pattern() is for std::string members");
    return set_text_keyword("pattern", expression);
  }
  // "date-time", "email", "uri" and so on. A hint for models; values are not validated against it.
  Field& format(std::string_view name) {
    static_assert(kIsString, "format() is for std::string members");
    return set_text_keyword("format", name);
  }

  Field& min_items(std::size_t count) {
    static_assert(kIsVector, "min_items() is for std::vector members");
    return set_size_keyword("minItems", count);
  }
  Field& max_items(std::size_t count) {
    static_assert(kIsVector, "max_items() is for std::vector members");
    return set_size_keyword("maxItems", count);
  }
  Field& unique_items() {
    static_assert(kIsVector, "unique_items() is for std::vector members");
    set_json("uniqueItems", "true");
    return *this;
  }

  // The meaning of an enumerator, for models and people; the value remains its name. For enums and vectors of
  // enums.
  template <class Enum>
  Field& label(Enum enumerator, std::string_view text) {
    static_assert(typed::DescribedEnum<typed::element_t<Value>>,
                  "label() is for members of an enum described with BOOST_DESCRIBE_ENUM");
    static_assert(std::same_as<Enum, typed::element_t<Value>>,
                  "label() requires an enumerator of the type of the member");
    if constexpr (typed::DescribedEnum<Enum>)
      add_label(typed::enumerator_name(enumerator), std::string(text));
    return *this;
  }

  Member Struct::*pointer() const noexcept { return pointer_; }
  const std::optional<Value>& declared_default() const noexcept { return default_; }

 private:
  static constexpr bool kIsString = std::same_as<Value, std::string>;
  static constexpr bool kIsVector = typed::is_specialization_of<Value, std::vector>;

  Field& set_text_keyword(std::string_view keyword, std::string_view text) {
    set_string(keyword, text);
    return *this;
  }
  Field& set_size_keyword(std::string_view keyword, std::size_t size) {
    set_json(keyword, std::to_string(size));
    return *this;
  }
  template <class Number>
  Field& set_number_keyword(std::string_view keyword, Number bound) {
    static_assert(typed::is_number<Value>, "bounds are for members that are numbers");
    static_assert(typed::is_number<Number> && (std::floating_point<Value> || std::integral<Number>),
                  "the bound of an integer member is an integer");
    if constexpr (typed::is_number<Number>) set_json(keyword, typed::to_json(bound));
    return *this;
  }

  Member Struct::*pointer_;
  std::optional<Value> default_;
};

// Returns empty metadata of one member, to be filled with the functions above.
template <class Struct, class Member>
Field<Struct, Member> field(Member Struct::*pointer) {
  return Field<Struct, Member>(pointer);
}

// Returns the metadata of a struct, for describe_fields() to return.
template <class... Structs, class... Members>
std::tuple<Field<Structs, Members>...> fields(const Field<Structs, Members>&... all) {
  return std::tuple<Field<Structs, Members>...>(all...);
}

namespace typed {

// Whether describe_fields() is defined for T.
template <class T>
concept HasDescribeFields = requires {
  describe_fields(static_cast<const T*>(nullptr));
};

// Returns the metadata of T: the tuple that describe_fields() returned.
template <HasDescribeFields T>
const auto& fields_of() {
  static const auto all = describe_fields(static_cast<const T*>(nullptr));
  return all;
}

// Points `found` at `candidate` if that is the metadata of the member `pointer`.
template <class Other, class Struct, class Member>
void match_field(const Other& candidate, Member Struct::*pointer, const Field<Struct, Member>*& found) {
  if constexpr (std::same_as<Other, Field<Struct, Member>>) {
    if (candidate.pointer() == pointer) found = &candidate;
  }
}

// Returns the metadata of a member of T; null if it has none.
template <class T, class Struct, class Member>
const Field<Struct, Member>* field_of(Member Struct::*pointer) {
  const Field<Struct, Member>* found = nullptr;
  if constexpr (HasDescribeFields<T>)
    std::apply([&](const auto&... candidate) { (match_field(candidate, pointer, found), ...); },
               fields_of<T>());
  return found;
}

// Validates a schema. Returns the problem and the member that has it: an invalid regular expression, bounds
// that exclude each other, a default or an example that violates the schema. Empty if the schema is usable.
std::string schema_problem(const json::Raw& schema);

}  // namespace typed

}  // namespace fairlead::mcp
