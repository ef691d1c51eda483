#include "mcp/tool_calls.hpp"

#include "fairlead/loop/timer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "loop/slices.hpp"
#include "mcp/running.hpp"
#include "mcp/server_tasks.hpp"

namespace fairlead::mcp {

namespace {

json::Raw encode(const FeatureCall& call, const ToolResult& result) {
  const Revision revision = call.state->revision;
  ResultWriter writer(*call.server, revision);
  writer.out().key("content").begin_array();
  for (const Content& content : result.content) writer.out().raw(content.for_revision(revision).raw());
  // Older clients see structured content only as text.
  if (result.content.empty() && !result.structured.absent())
    writer.out().raw(Content::text(result.structured.text()).raw());
  writer.out().end_array();
  if (!result.structured.absent() && revision >= Revision::r2025_06_18) {
    const bool wrap = !is_modern(revision) && !json::View(result.structured).is(json::Type::object);
    writer.out().key("structuredContent");
    if (wrap) writer.out().begin_object().key("result");
    writer.out().raw(result.structured);
    if (wrap) writer.out().end_object();
  }
  if (result.is_error) writer.out().key("isError").boolean(true);
  return writer.finish(result.meta);
}

}  // namespace

FoundTool find_tool(const FeatureCall& call) {
  FoundTool found;
  const std::optional<std::string> name = call.arg("name").as_string();
  const json::View arguments = call.arg("arguments");
  // The Go SDK sends null for a nil map.
  const bool none = arguments.absent() || arguments.is(json::Type::null);
  found.catalogue = call.server->catalogue();
  if (!name) {
    found.refused = rpc::invalid_params("name is not a string");
  } else if (!(found.entry = found.catalogue->tools.find(*name))) {
    found.refused = rpc::invalid_params("Unknown tool: " + *name);
  } else if (!none && !arguments.is(json::Type::object)) {
    found.refused = rpc::invalid_params("arguments is not an object");
  } else {
    found.arguments =
        none ? json::Raw::trusted(Bytes::constant("{}"), true)
             : json::Raw::trusted(call.params.bytes().part(arguments.text()), call.params.one_line());
    const auto violation =
        found.entry->input ? found.entry->input->validate(found.arguments.text()) : std::nullopt;
    if (!violation) return found;
    const std::string text = "Invalid arguments for tool " + *name + ": " + violation->message;
    if (call.state->revision >= Revision::r2025_11_25) {
      found.refused = Answer(encode(call, ToolResult::error(text)));
    } else {
      found.refused = rpc::invalid_params(text);
    }
  }
  return found;
}

Answer answer_of(const FeatureCall& call, const ToolEntry& tool, const Result<ToolResult>& result) {
  if (!result) {
    // Only what the handler made for the client goes to the client.
    if (result.error().detail().rpc_code) return result.error();
    return Answer(encode(call, ToolResult::error(result.error().message())));
  }
  if (tool.output && !result->is_error) {
    if (result->structured.absent())
      return internal(call, "a tool with an output schema returned no structured content");
    if (const auto violation = tool.output->validate(result->structured.text())) {
      return internal(call, "structured content breaks its schema: " + violation->message);
    }
  }
  return encode(call, *result);
}

Answer answer_of(const FeatureCall& call, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ToolError& error) {
    return encode(call, ToolResult::error(error.what()));
  } catch (...) {
    call.log.error("tool threw", {{"what", what_was_thrown(thrown)}});
  }
  return encode(call, ToolResult::error("The tool failed."));
}

namespace {

Answer call_plain(const FeatureCall& call, const FoundTool& found) {
  // It asks no questions, but answers that do not belong to it are no less wrong.
  const Result<void> taken = take_answers(call);
  if (!taken) return taken.error();
  try {
    return answer_of(call, *found.entry,
                     found.entry->plain(Context(call.state), json::View(found.arguments)));
  } catch (...) {
    return answer_of(call, std::current_exception());
  }
}

}  // namespace

Task<Answer> call_tool(FeatureCall call) {
  // Reading, validating and decoding large arguments have a turn of the loop each.
  const bool large = call.params.text().size() > Slices::kLargeMessage;
  if (large) co_await sleep_for(call.state->link->loop(), Slices::kPause);
  FoundTool found = find_tool(call);
  if (found.refused) co_return std::move(*found.refused);
  if (large) co_await sleep_for(call.state->link->loop(), Slices::kPause);
  const Result<bool> at_once = starts_as_task(call, *found.entry);
  if (!at_once) co_return at_once.error();
  if (*at_once) co_return start_task(call, found);
  if (found.entry->plain) co_return call_plain(call, found);
  const Result<void> taken = take_answers(call);
  if (!taken) co_return taken.error();
  Task<Ended<ToolResult>> running =
      run_handler(call.state, found.entry->coroutine(Context(call.state), found.arguments));
  Ended<ToolResult> ended = co_await running;
  if (ended.goes_on) co_return keep_task(call, found, std::move(*ended.goes_on));
  if (ended.thrown) co_return answer_of(call, ended.thrown);
  if (!ended.result) co_return input_required(call);
  co_return answer_of(call, *found.entry, *ended.result);
}

}  // namespace fairlead::mcp
