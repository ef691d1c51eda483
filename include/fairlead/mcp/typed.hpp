// Typed tools: tool() registers a C++ function as a tool. The input schema and the decoding of the arguments
// follow from its argument struct, the output schema and the structured content from its return type.
//
// Example:
//   struct AddArgs { double a; double b; };
//   BOOST_DESCRIBE_STRUCT(AddArgs, (), (a, b))
//   tool(server, "add", "Adds two numbers", [](const AddArgs& in) { return in.a + in.b; });
//
// Descriptions, bounds and defaults of the members are declared beside the struct, see mcp/field.hpp.
//
// Supported member types: bool, integers, floating point, std::string, json::Raw (any value), std::optional
// (not required), std::vector, std::map<std::string, T>, described enums (encoded as their names) and
// described structs. A function may take a Context before its arguments. Its return type may be
//   std::string or const char*            text,
//   ToolResult                            sent unchanged,
//   any type supported above              structured content (and the same as text for older clients),
//   Result<T> of one of these             whose error becomes a tool error,
//   Task<Result<T>>                       a coroutine, which may make input requests to the client.
#pragma once

#include <string>
#include <type_traits>

#include "fairlead/mcp/server.hpp"
#include "fairlead/mcp/typed_decode.hpp"
#include "fairlead/mcp/typed_schema.hpp"

namespace fairlead::mcp {

namespace typed {

// `type` is the value type of a return type, without the Task and the Result around it. `is_coroutine` is
// whether the function returns a Task of the loop.
template <class T>
struct ReturnTraits {
  using type = T;
  static constexpr bool is_coroutine = false;
};
template <class T>
struct ReturnTraits<Result<T>> : ReturnTraits<T> {};
template <class T>
struct ReturnTraits<Task<T>> {
  using type = typename ReturnTraits<T>::type;
  static constexpr bool is_coroutine = true;
};

// Whether a tool that returns a T has no structured content.
template <class T>
inline constexpr bool is_unstructured = std::same_as<T, ToolResult> || std::same_as<T, std::string> ||
                                        std::same_as<T, const char*> || std::same_as<T, void>;

// Neither function copies a text: it is encoded once, in the response.
template <class T>
ToolResult to_tool_result(T value) {
  if constexpr (std::same_as<T, ToolResult>) {
    return value;
  } else {
    ToolResult result;
    if constexpr (std::convertible_to<T, std::string>) {
      result.unencoded_text.emplace(std::move(value));
    } else {
      json::Writer out;
      encode(out, value);
      result.structured = out.finish();  // also encoded as text, because there is no other content
    }
    return result;
  }
}

template <class T>
Result<ToolResult> to_tool_result(Result<T> value) {
  if (!value) return value.error();
  return to_tool_result(std::move(*value));
}

// The return type and the parameters of a tool: its arguments, optionally after a Context.
template <class R, class... Parameters>
struct ToolSignature;
template <class R, class A>
struct ToolSignature<R, A> {
  using ReturnType = R;
  using Parameter = A;
  using Args = std::remove_cvref_t<A>;
  static constexpr bool takes_context = false;
};
template <class R, class C, class A>
struct ToolSignature<R, C, A> : ToolSignature<R, A> {
  static_assert(std::same_as<std::remove_cvref_t<C>, Context>,
                "a tool takes its arguments, or a Context and its arguments");
  static constexpr bool takes_context = true;
};

// The ToolSignature of a function pointer or a lambda.
template <class F>
struct FunctionTraits : FunctionTraits<decltype(&F::operator())> {};
template <class F, class R, class... Parameters>
struct FunctionTraits<R (F::*)(Parameters...) const> : ToolSignature<R, Parameters...> {};
template <class R, class... Parameters>
struct FunctionTraits<R (*)(Parameters...)> : ToolSignature<R, Parameters...> {};

inline Error decode_error() {
  return Error(ErrorKind::validation, "the arguments do not match the types of the tool");
}

// Decoded arguments, whose memory is reused for those of later calls.
template <class Args>
struct DecodedArgs {
  DecodedArgs() = default;
  DecodedArgs(const DecodedArgs&) = delete;
  ~DecodedArgs() { release_buffers(args); }
  Args args{};
};

// Returns a handler that decodes the arguments, calls `function` and encodes its result.
template <class F>
Server::PlainTool make_plain_tool(F function) {
  using Traits = FunctionTraits<F>;
  return
      [function = std::move(function)](const Context& context, json::View arguments) -> Result<ToolResult> {
        DecodedArgs<typename Traits::Args> decoded;
        if (!decode(arguments, decoded.args)) return decode_error();
        // A function that takes its arguments by value gets the decoded ones, not a copy.
        using Parameter = typename Traits::Parameter;
        if constexpr (Traits::takes_context) {
          return to_tool_result(function(context, std::forward<Parameter>(decoded.args)));
        } else {
          return to_tool_result(function(std::forward<Parameter>(decoded.args)));
        }
      };
}

template <class F, class Args>
auto invoke(const F& function, Context context, Args args) {
  if constexpr (FunctionTraits<F>::takes_context) {
    return function(std::move(context), std::move(args));
  } else {
    return function(std::move(args));
  }
}

// Decodes the arguments, runs `function`, which is a coroutine, and encodes its result. Not a lambda, because
// g++ 12 miscompiles coroutine lambdas with captures.
template <class F>
Task<Result<ToolResult>> run_coroutine_tool(std::shared_ptr<const F> function, Context context,
                                            json::Raw arguments) {
  using Traits = FunctionTraits<F>;
  typename Traits::Args args{};
  if (!decode(json::View(arguments), args)) co_return decode_error();
  typename Traits::ReturnType task = invoke(*function, std::move(context), std::move(args));
  auto result = co_await task;
  co_return to_tool_result(std::move(result));
}

}  // namespace typed

// Registers `function` as a tool. Throws std::invalid_argument for programming errors: a name that is invalid
// or already registered, contradictory field metadata.
template <class F>
void tool(Server& server, std::string name, std::string description, F function,
          ToolAnnotations hints = ToolAnnotations(), TaskSupport task = TaskSupport::never) {
  using Traits = typed::FunctionTraits<F>;
  using Returned = typename typed::ReturnTraits<typename Traits::ReturnType>::type;
  ToolSpec spec;
  spec.name = std::move(name);
  spec.description = std::move(description);
  spec.annotations = std::move(hints);
  spec.task = task;
  spec.input_schema = typed::schema_of<typename Traits::Args>();
  if constexpr (!typed::is_unstructured<Returned>) spec.output_schema = typed::schema_of<Returned>();
  for (const json::Raw* schema : {&spec.input_schema, &spec.output_schema}) {
    const std::string problem = schema->absent() ? std::string() : typed::schema_problem(*schema);
    if (!problem.empty()) throw std::invalid_argument("tool " + spec.name + ": " + problem);
  }
  Result<void> added;
  if constexpr (typed::ReturnTraits<typename Traits::ReturnType>::is_coroutine) {
    auto shared = std::make_shared<const F>(std::move(function));
    added = server.add_tool(
        std::move(spec), Server::CoroutineTool([shared](Context context, json::Raw arguments) {
          return typed::run_coroutine_tool<F>(shared, std::move(context), std::move(arguments));
        }));
  } else {
    added = server.add_tool(std::move(spec), typed::make_plain_tool(std::move(function)));
  }
  if (!added) throw std::invalid_argument(added.error().message());
}

}  // namespace fairlead::mcp
