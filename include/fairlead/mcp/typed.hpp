// Typed tools: a C++ function becomes a tool. Its argument struct gives the input schema and the decoding,
// its return type the output schema and the structured content.
//
//   struct AddArgs { double a; double b; };
//   BOOST_DESCRIBE_STRUCT(AddArgs, (), (a, b))
//   tool(server, "add", "Adds two numbers", [](const AddArgs& in) { return in.a + in.b; });
//
// Supported members: bool, integers, floating point, std::string, json::Raw (anything), std::optional (not
// required), std::vector, std::map<std::string, T>, described enums (their names) and described structs. A
// function may take a Context before its arguments, and may return
//   std::string or const char*            text,
//   ToolResult                            as it is,
//   anything supported above              structured content (and the same as text for older clients),
//   Result<T> of one of these             whose error becomes a tool error,
//   Task<Result<T>>                       a coroutine, which may ask the client.
#pragma once

#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "fairlead/mcp/server.hpp"

namespace fairlead::mcp {

namespace typed {

template <class T>
concept DescribedStruct = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;
template <class T>
concept DescribedEnum = std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value;

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Args>
inline constexpr bool is_a<Template<Args...>, Template> = true;

template <class T>
inline constexpr bool is_optional = is_a<T, std::optional>;

template <class T>
using Members =
    boost::describe::describe_members<T, boost::describe::mod_any_access | boost::describe::mod_inherited>;

// ---- schema
// ------------------------------------------------------------------------------------------------------

template <class T>
void write_schema(json::Writer& out);

template <DescribedStruct T>
void write_struct_schema(json::Writer& out) {
  out.begin_object().key("type").string("object").key("properties").begin_object();
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using Value = std::remove_cvref_t<decltype(std::declval<T>().*member.pointer)>;
    out.key(member.name);
    if constexpr (is_optional<Value>) {
      write_schema<typename Value::value_type>(out);
    } else {
      write_schema<Value>(out);
    }
  });
  out.end_object().key("required").begin_array();
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using Value = std::remove_cvref_t<decltype(std::declval<T>().*member.pointer)>;
    if constexpr (!is_optional<Value>) out.string(member.name);
  });
  out.end_array().end_object();
}

template <DescribedEnum T>
void write_enum_schema(json::Writer& out) {
  out.begin_object().key("type").string("string").key("enum").begin_array();
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto one) { out.string(one.name); });
  out.end_array().end_object();
}

template <class T>
void write_schema(json::Writer& out) {
  if constexpr (std::same_as<T, json::Raw>) {
    out.begin_object().end_object();
  } else if constexpr (std::same_as<T, bool>) {
    out.begin_object().key("type").string("boolean").end_object();
  } else if constexpr (std::integral<T>) {
    out.begin_object().key("type").string("integer");
    // What does not fit is refused by the schema, with a clear message, and not by the decoding.
    out.key("minimum").integer(static_cast<std::int64_t>(std::numeric_limits<T>::min()));
    if constexpr (sizeof(T) < 8)
      out.key("maximum").integer(static_cast<std::int64_t>(std::numeric_limits<T>::max()));
    out.end_object();
  } else if constexpr (std::floating_point<T>) {
    out.begin_object().key("type").string("number").end_object();
  } else if constexpr (std::same_as<T, std::string>) {
    out.begin_object().key("type").string("string").end_object();
  } else if constexpr (is_a<T, std::vector>) {
    out.begin_object().key("type").string("array").key("items");
    write_schema<typename T::value_type>(out);
    out.end_object();
  } else if constexpr (is_a<T, std::map>) {
    static_assert(std::same_as<typename T::key_type, std::string>, "a map in a tool's types has string keys");
    out.begin_object().key("type").string("object").key("additionalProperties");
    write_schema<typename T::mapped_type>(out);
    out.end_object();
  } else if constexpr (DescribedEnum<T>) {
    write_enum_schema<T>(out);
  } else {
    static_assert(DescribedStruct<T>,
                  "describe the type with BOOST_DESCRIBE_STRUCT(Type, (), (members…)) to use it with a tool");
    write_struct_schema<T>(out);
  }
}

template <class T>
json::Raw schema_of() {
  json::Writer out;
  write_schema<T>(out);
  return out.finish();
}

// ---- decoding: what the schema has let through
// ---------------------------------------------------------------------

template <class T>
bool decode(json::View in, T& out);

template <DescribedStruct T>
bool decode_struct(json::View in, T& out) {
  bool good = in.is(json::Type::object);
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    auto& value = out.*member.pointer;
    const json::View found = in[member.name];
    if constexpr (is_optional<std::remove_cvref_t<decltype(value)>>) {
      if (!found.absent()) good = good && decode(found, value.emplace());
    } else {
      good = good && !found.absent() && decode(found, value);
    }
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

// ---- encoding
// ------------------------------------------------------------------------------------------------------

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
  } else if constexpr (is_a<T, std::vector>) {
    out.begin_array();
    for (const auto& element : value) encode(out, element);
    out.end_array();
  } else if constexpr (is_a<T, std::map>) {
    out.begin_object();
    for (const auto& [key, element] : value) {
      out.key(key);
      encode(out, element);
    }
    out.end_object();
  } else if constexpr (DescribedEnum<T>) {
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto one) {
      if (value == one.value) out.string(one.name);
    });
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

// ---- functions
// -----------------------------------------------------------------------------------------------------

template <class T>
struct Unwrapped {
  using type = T;
  static constexpr bool is_task = false;
};
template <class T>
struct Unwrapped<Result<T>> : Unwrapped<T> {};
template <class T>
struct Unwrapped<Task<T>> {
  using type = typename Unwrapped<T>::type;
  static constexpr bool is_task = true;
};

template <class T>
inline constexpr bool is_plain_result = std::same_as<T, ToolResult> || std::same_as<T, std::string> ||
                                        std::same_as<T, const char*> || std::same_as<T, void>;

template <class T>
ToolResult to_tool_result(const T& value) {
  if constexpr (std::same_as<T, ToolResult>) {
    return value;
  } else if constexpr (std::convertible_to<T, std::string_view>) {
    return ToolResult::text(value);
  } else {
    json::Writer out;
    encode(out, value);
    ToolResult result;
    result.structured = out.finish();
    result.content.push_back(Content::text(result.structured.text()));
    return result;
  }
}

template <class T>
Result<ToolResult> to_tool_result(const Result<T>& value) {
  if (!value) return value.error();
  return to_tool_result(*value);
}

// What a function takes and returns: its arguments, or a Context and its arguments.
template <class R, class... Parameters>
struct Shape;
template <class R, class A>
struct Shape<R, A> {
  using Returns = R;
  using Args = std::remove_cvref_t<A>;
  static constexpr bool takes_context = false;
};
template <class R, class C, class A>
struct Shape<R, C, A> : Shape<R, A> {
  static_assert(std::same_as<std::remove_cvref_t<C>, Context>,
                "a tool takes its arguments, or a Context and its arguments");
  static constexpr bool takes_context = true;
};

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class F, class R, class... Parameters>
struct Signature<R (F::*)(Parameters...) const> : Shape<R, Parameters...> {};
template <class R, class... Parameters>
struct Signature<R (*)(Parameters...)> : Shape<R, Parameters...> {};

inline Error undecodable() {
  return Error(ErrorKind::validation, "the arguments do not fit the tool's types");
}

template <class F>
Server::PlainTool plain_tool(F function) {
  using S = Signature<F>;
  return
      [function = std::move(function)](const Context& context, json::View arguments) -> Result<ToolResult> {
        typename S::Args args{};
        if (!decode(arguments, args)) return undecodable();
        if constexpr (S::takes_context) {
          return to_tool_result(function(context, args));
        } else {
          return to_tool_result(function(args));
        }
      };
}

template <class F, class Args>
auto start(const F& function, Context context, Args args) {
  if constexpr (Signature<F>::takes_context) {
    return function(std::move(context), std::move(args));
  } else {
    return function(std::move(args));
  }
}

// A function and not a lambda: g++ 12 miscompiles coroutine lambdas that capture.
template <class F>
Task<Result<ToolResult>> run_coroutine_tool(std::shared_ptr<const F> function, Context context,
                                            json::Raw arguments) {
  using S = Signature<F>;
  typename S::Args args{};
  if (!decode(json::View(arguments), args)) co_return undecodable();
  typename S::Returns task = start(*function, std::move(context), std::move(args));
  auto result = co_await task;
  co_return to_tool_result(result);
}

}  // namespace typed

// Registers `function` as a tool. Programming errors (a name that is taken or illegal) throw
// std::invalid_argument.
template <class F>
void tool(Server& server, std::string name, std::string description, F function,
          ToolAnnotations hints = ToolAnnotations(), TaskSupport task = TaskSupport::never) {
  using S = typed::Signature<F>;
  using Returned = typename typed::Unwrapped<typename S::Returns>::type;
  ToolSpec spec;
  spec.name = std::move(name);
  spec.description = std::move(description);
  spec.annotations = std::move(hints);
  spec.task = task;
  spec.input_schema = typed::schema_of<typename S::Args>();
  if constexpr (!typed::is_plain_result<Returned>) spec.output_schema = typed::schema_of<Returned>();
  Result<void> added;
  if constexpr (typed::Unwrapped<typename S::Returns>::is_task) {
    auto shared = std::make_shared<const F>(std::move(function));
    added = server.add_tool(
        std::move(spec), Server::CoroutineTool([shared](Context context, json::Raw arguments) {
          return typed::run_coroutine_tool<F>(shared, std::move(context), std::move(arguments));
        }));
  } else {
    added = server.add_tool(std::move(spec), typed::plain_tool(std::move(function)));
  }
  if (!added) throw std::invalid_argument(added.error().message());
}

}  // namespace fairlead::mcp
