#include "gateway/inner_call.hpp"

#include "gateway/meta_arguments.hpp"
#include "json/splice.hpp"

namespace fairlead::gateway {
namespace {

struct InnerArguments {
  Bytes text;
  bool one_line = true;
};

Error params_error(const std::string& reason) {
  return Error(ErrorKind::validation, reason);
}

// Returns the object that is the content of a JSON string.
Result<InnerArguments> parse_json_text(std::string_view name, json::View string) {
  const Result<json::Raw> object = json::Raw::parse(string.as_string().value_or(""));
  if (!object || !json::View(*object).is(json::Type::object))
    return params_error("argument `" + std::string(name) + "` is not the JSON text of an object" +
                        (object ? std::string() : ": " + object.error().message()));
  return InnerArguments{object->bytes(), object->text().find_first_of("\r\n") == std::string_view::npos};
}

// Models also pass JSON text as `params`.
Result<InnerArguments> find_inner_arguments(const MetaArguments& arguments, const Bytes& frame) {
  const json::View params = arguments.value("params");
  const json::View text = arguments.value("params_json");
  if (!params.absent() && !text.absent())
    return params_error("pass either `params` or `params_json`, not both");
  if (!text.absent() && !text.is(json::Type::string))
    return params_error("argument `params_json` is not a string");
  if (!text.absent()) return parse_json_text("params_json", text);
  if (params.is(json::Type::string)) return parse_json_text("params", params);
  if (params.absent()) return InnerArguments{Bytes::constant("{}"), true};
  if (!params.is(json::Type::object)) return params_error("argument `params` is not an object");
  return InnerArguments{frame.part(params.text()), true};
}

}  // namespace

Result<mcp::BackendRequest> make_inner_call(const mcp::BackendRequest& request) {
  const mcp::CallFacts& facts = *request.facts;
  const Result<MetaArguments> arguments =
      MetaArguments::read(facts.arguments, {"tool_id", "params", "params_json"});
  if (!arguments) return arguments.error();
  const Result<std::string> tool = arguments->required_string("tool_id");
  if (!tool) return tool.error();
  const Bytes& frame = request.message.frame();
  const Result<InnerArguments> inner = find_inner_arguments(*arguments, frame);
  if (!inner) return inner.error();

  json::Splice splice(frame);
  splice.replace(facts.name.text(), frame.part(arguments->value("tool_id").text()));
  splice.replace(facts.arguments.text(), inner->text);
  const bool one_line = !request.message.has_line_break() && inner->one_line;
  rpc::Message message = rpc::Message::parse_trusted(splice.joined(), one_line);
  mcp::CallFacts::attach(message);
  auto inner_facts = mcp::CallFacts::of(message);
  return mcp::BackendRequest(std::move(message), std::move(inner_facts), request.context);
}

}  // namespace fairlead::gateway
