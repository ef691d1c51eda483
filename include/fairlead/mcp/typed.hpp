// Typed tools: a C++ function becomes a tool. Its argument struct gives the input schema and the decoding,
// its return type the output schema and the structured content.
//
//   struct AddArgs { double a; double b; };
//   BOOST_DESCRIBE_STRUCT(AddArgs, (), (a, b))
//   tool(server, "add", "Adds two numbers", [](const AddArgs& in) { return in.a + in.b; });
//
// Descriptions, bounds and defaults of the members stand beside the struct: mcp/field.hpp.
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

#include <string>
#include <type_traits>

#include "fairlead/mcp/server.hpp"
#include "fairlead/mcp/typed_decode.hpp"
#include "fairlead/mcp/typed_schema.hpp"

namespace fairlead::mcp {

namespace typed {

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

// Registers `function` as a tool. Programming errors throw std::invalid_argument: a name that is taken or
// illegal, field metadata that contradicts itself.
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
  for (const json::Raw* schema : {&spec.input_schema, &spec.output_schema}) {
    const std::string problem = schema->absent() ? std::string() : typed::schema_problem(*schema);
    if (!problem.empty()) throw std::invalid_argument("tool " + spec.name + ": " + problem);
  }
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
