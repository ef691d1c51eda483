// Field metadata: what a struct says about its members to models and to the validation. It stands beside the
// struct, in its namespace, as a function that argument-dependent lookup finds:
//
//   struct ForecastArgs { std::string city; int days; };
//   BOOST_DESCRIBE_STRUCT(ForecastArgs, (), (city, days))
//   inline auto describe_fields(const ForecastArgs*) {
//     return mcp::fields(
//         mcp::field(&ForecastArgs::city).description("Name of the city").min_length(1),
//         mcp::field(&ForecastArgs::days).description("Days ahead").minimum(1).maximum(14).default_value(3));
//   }
//
// The metadata becomes part of the schemas of tools that take or return the struct, directly or nested, and
// arguments are validated against it before the tool runs. A member with a default is not required: the
// struct has the default where the arguments leave it out. Members without metadata need no entry.
//
// Bounds of an std::optional apply to its value. A derived struct has the metadata of its base unless it has
// a describe_fields of its own; std::tuple_cat joins the two.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fairlead/mcp/typed_encode.hpp"

namespace fairlead::mcp {

// The part of a field's metadata that goes into its schema: keywords and their values as JSON, in the order
// in which they were set.
class FieldSchema {
 public:
  using Keywords = std::vector<std::pair<std::string, std::string>>;

  bool has(std::string_view keyword) const noexcept;
  bool has_default() const noexcept { return has("default"); }
  const Keywords& keywords() const noexcept { return keywords_; }
  const Keywords& labels() const noexcept { return labels_; }  // enumerator and its label, as plain text
  void write_keywords(json::Writer& out) const;
  // What applies to the elements of an array: the labels.
  FieldSchema of_elements() const;

 protected:
  void set(std::string_view keyword, std::string value);
  void set_text(std::string_view keyword, std::string_view text);
  void append(std::string_view keyword, const std::string& element);
  void set_label(std::string enumerator, std::string label);

 private:
  Keywords keywords_;
  Keywords labels_;
};

template <class Struct, class Member>
class Field : public FieldSchema {
 public:
  using Value = typed::value_of<Member>;

  explicit Field(Member Struct::*pointer) : pointer_(pointer) {}

  Field& title(std::string_view text) { return text_keyword("title", text); }
  // What the model reads to decide on a value.
  Field& description(std::string_view text) { return text_keyword("description", text); }

  // The value of the member when the arguments leave it out.
  Field& default_value(Value value) {
    set("default", typed::encoded(value));
    default_ = std::move(value);
    return *this;
  }
  // May be called several times.
  Field& example(const Value& value) {
    append("examples", typed::encoded(value));
    return *this;
  }

  template <class Number>
  Field& minimum(Number bound) {
    return number_keyword("minimum", bound);
  }
  template <class Number>
  Field& maximum(Number bound) {
    return number_keyword("maximum", bound);
  }
  template <class Number>
  Field& exclusive_minimum(Number bound) {
    return number_keyword("exclusiveMinimum", bound);
  }
  template <class Number>
  Field& exclusive_maximum(Number bound) {
    return number_keyword("exclusiveMaximum", bound);
  }
  template <class Number>
  Field& multiple_of(Number divisor) {
    return number_keyword("multipleOf", divisor);
  }

  // In characters.
  Field& min_length(std::size_t length) {
    static_assert(kIsString, "min_length() is for std::string members");
    return size_keyword("minLength", length);
  }
  Field& max_length(std::size_t length) {
    static_assert(kIsString, "max_length() is for std::string members");
    return size_keyword("maxLength", length);
  }
  // A regular expression (ECMA 262) that some part of the value matches; `^` and `$` make it the whole.
  Field& pattern(std::string_view expression) {
    static_assert(kIsString, "pattern() is for std::string members");
    return text_keyword("pattern", expression);
  }
  // "date-time", "email", "uri" and the like. A hint: it is not validated.
  Field& format(std::string_view name) {
    static_assert(kIsString, "format() is for std::string members");
    return text_keyword("format", name);
  }

  Field& min_items(std::size_t count) {
    static_assert(kIsVector, "min_items() is for std::vector members");
    return size_keyword("minItems", count);
  }
  Field& max_items(std::size_t count) {
    static_assert(kIsVector, "max_items() is for std::vector members");
    return size_keyword("maxItems", count);
  }
  Field& unique_items() {
    static_assert(kIsVector, "unique_items() is for std::vector members");
    set("uniqueItems", "true");
    return *this;
  }

  // What an enumerator means, for models and people. Its name remains the value. For enums and vectors of
  // them.
  template <class Enum>
  Field& label(Enum enumerator, std::string_view text) {
    static_assert(typed::DescribedEnum<typed::element_of<Value>>,
                  "label() is for members of an enum described with BOOST_DESCRIBE_ENUM");
    static_assert(std::same_as<Enum, typed::element_of<Value>>, "label() wants an enumerator of the member");
    if constexpr (typed::DescribedEnum<Enum>) set_label(typed::name_of(enumerator), std::string(text));
    return *this;
  }

  Member Struct::*pointer() const noexcept { return pointer_; }
  const std::optional<Value>& fallback() const noexcept { return default_; }

 private:
  static constexpr bool kIsString = std::same_as<Value, std::string>;
  static constexpr bool kIsVector = typed::is_a<Value, std::vector>;

  Field& text_keyword(std::string_view keyword, std::string_view text) {
    set_text(keyword, text);
    return *this;
  }
  Field& size_keyword(std::string_view keyword, std::size_t size) {
    set(keyword, std::to_string(size));
    return *this;
  }
  template <class Number>
  Field& number_keyword(std::string_view keyword, Number bound) {
    static_assert(typed::is_number<Value>, "bounds are for members that are numbers");
    static_assert(typed::is_number<Number> && (std::floating_point<Value> || std::integral<Number>),
                  "the bound of an integer member is an integer");
    if constexpr (typed::is_number<Number>) set(keyword, typed::encoded(bound));
    return *this;
  }

  Member Struct::*pointer_;
  std::optional<Value> default_;
};

// Metadata of one member; begins a chain of the functions above.
template <class Struct, class Member>
Field<Struct, Member> field(Member Struct::*pointer) {
  return Field<Struct, Member>(pointer);
}

// All metadata of a struct; what describe_fields() returns.
template <class... Structs, class... Members>
std::tuple<Field<Structs, Members>...> fields(const Field<Structs, Members>&... all) {
  return std::tuple<Field<Structs, Members>...>(all...);
}

namespace typed {

template <class T>
concept HasFields = requires {
  describe_fields(static_cast<const T*>(nullptr));
};

template <HasFields T>
const auto& fields_of() {
  static const auto all = describe_fields(static_cast<const T*>(nullptr));
  return all;
}

template <class Other, class Struct, class Member>
void find_among(const Other& candidate, Member Struct::*pointer, const Field<Struct, Member>*& found) {
  if constexpr (std::same_as<Other, Field<Struct, Member>>) {
    if (candidate.pointer() == pointer) found = &candidate;
  }
}

// The metadata of a member of T; null where there is none.
template <class T, class Struct, class Member>
const Field<Struct, Member>* field_of(Member Struct::*pointer) {
  const Field<Struct, Member>* found = nullptr;
  if constexpr (HasFields<T>)
    std::apply([&](const auto&... one) { (find_among(one, pointer, found), ...); }, fields_of<T>());
  return found;
}

// Why a schema cannot be used, and which member is at fault: a pattern that is no regular expression, bounds
// that exclude each other, a default or an example that violates them. Empty when it can.
std::string schema_problem(const json::Raw& schema);

}  // namespace typed

}  // namespace fairlead::mcp
