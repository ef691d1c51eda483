#include "mcp/tool_calls.hpp"

#include "fairlead/loop/timer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "loop/slices.hpp"
#include "mcp/handler_run.hpp"
#include "mcp/server_tasks.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::size_t kResultOverheadBytes = 192;  // of a small result, in addition to its texts

std::size_t estimated_size(const ToolResult& result) {
  std::size_t size = kResultOverheadBytes + result.structured.text().size();
  for (const Content& content : result.content) size += content.raw().text().size() + 1;
  if (result.unencoded_text) return size + result.unencoded_text->size();
  return result.content.empty() ? size + result.structured.text().size() : size;
}

// A block of text, before and after its text.
constexpr std::string_view kTextBegin = R"({"type":"text","text":)";
constexpr std::string_view kTextEnd = "}";

// Writes an array of one block of text.
void write_only_text(json::Writer& out, std::string_view text) {
  out.raw_with_string(R"([{"type":"text","text":)", text, "}]");
}

// Encodes the result into one buffer, which then is the result of the response.
json::Raw encode(const FeatureRequest& request, const ToolResult& result) {
  const Revision revision = request.state->revision;
  ResultWriter writer(*request.server, revision);
  json::Writer& out = writer.out();
  out.reserve(estimated_size(result)).key("content");
  if (result.content.empty() && (result.unencoded_text || !result.structured.absent())) {
    // Clients of older revisions receive structured content only as text.
    write_only_text(out, result.unencoded_text ? *result.unencoded_text : result.structured.text());
  } else {
    out.begin_array();
    for (const Content& content : result.content) out.raw(content.for_revision(revision).raw());
    if (result.unencoded_text) out.raw_with_string(kTextBegin, *result.unencoded_text, kTextEnd);
    out.end_array();
  }
  if (!result.structured.absent() && revision >= Revision::r2025_06_18) {
    const bool wrap = !is_modern(revision) && !json::View(result.structured).is(json::Type::object);
    out.key("structuredContent");
    if (wrap) out.begin_object().key("result");
    out.raw(result.structured);
    if (wrap) out.end_object();
  }
  if (result.is_error) out.key("isError").boolean(true);
  return writer.finish(result.meta);
}

}  // namespace

ResolvedToolCall resolve_tool_call(const FeatureRequest& request) {
  ResolvedToolCall resolved;
  const CallFacts& facts = *request.state->facts;
  const std::optional<std::string_view> name = facts.target_text();
  const json::View arguments = facts.arguments;
  // Clients of the Go SDK send null for a nil map.
  const bool none = arguments.absent() || arguments.is(json::Type::null);
  resolved.catalogue = request.server->catalogue();
  if (!name) {
    resolved.rejection = rpc::invalid_params("name is not a string");
  } else if (!(resolved.entry = resolved.catalogue->tools.find(*name))) {
    resolved.rejection = rpc::invalid_params("Unknown tool: " + *facts.name.as_string());
  } else if (!none && !arguments.is(json::Type::object)) {
    resolved.rejection = rpc::invalid_params("arguments is not an object");
  } else {
    resolved.arguments = none ? json::Raw::trusted(Bytes::constant("{}"), true)
                              : json::Raw::trusted(request.params.bytes().part(arguments.text()),
                                                   request.params.is_one_line());
    if (!resolved.entry->input_schema) return resolved;
    const auto violation = resolved.entry->input_schema->validate(resolved.arguments.text());
    if (!violation) return resolved;
    const std::string text = "Invalid arguments for tool " + std::string(*name) + ": " + violation->message;
    if (request.state->revision >= Revision::r2025_11_25) {
      resolved.rejection = Answer(encode(request, ToolResult::error(text)));
    } else {
      resolved.rejection = rpc::invalid_params(text);
    }
  }
  return resolved;
}

Answer answer_for_result(const FeatureRequest& request, const ToolEntry& tool,
                         const Result<ToolResult>& result) {
  if (!result) {
    // An error with a JSON-RPC code is sent to the client unchanged; any other error becomes a tool error
    // with its message.
    if (result.error().detail().rpc_code) return result.error();
    return Answer(encode(request, ToolResult::error(result.error().message())));
  }
  if (tool.output_schema && !result->is_error) {
    if (result->structured.absent())
      return log_internal_error(request, "a tool with an output schema returned no structured content");
    if (const auto violation = tool.output_schema->validate(result->structured.text())) {
      return log_internal_error(request, "structured content violates its schema: " + violation->message);
    }
  }
  return encode(request, *result);
}

Answer answer_for_exception(const FeatureRequest& request, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ToolError& error) {
    return encode(request, ToolResult::error(error.what()));
  } catch (...) {
    request.log.error("tool threw", {{"what", exception_message(thrown)}});
  }
  return encode(request, ToolResult::error("The tool failed."));
}

namespace {

Answer call_plain_handler(const FeatureRequest& request, const ResolvedToolCall& resolved) {
  // A plain handler makes no input requests, but an invalid `requestState` has to be rejected here too.
  const Result<void> collected = collect_input_responses(request);
  if (!collected) return collected.error();
  try {
    return answer_for_result(
        request, *resolved.entry,
        resolved.entry->plain_handler(Context(request.state), json::View(resolved.arguments)));
  } catch (...) {
    return answer_for_exception(request, std::current_exception());
  }
}

Task<Answer> run_coroutine_handler(FeatureRequest request, ResolvedToolCall resolved) {
  const Result<void> collected = collect_input_responses(request);
  if (!collected) co_return collected.error();
  HandlerOutcome<ToolResult> outcome = co_await run_handler(
      request.state, resolved.entry->coroutine_handler(Context(request.state), resolved.arguments));
  if (outcome.suspended) co_return continue_as_task(request, resolved, std::move(*outcome.suspended));
  if (outcome.thrown) co_return answer_for_exception(request, outcome.thrown);
  if (!outcome.result) co_return input_required_result(request);
  co_return answer_for_result(request, *resolved.entry, *outcome.result);
}

// Not a coroutine: a call of a plain handler needs no further coroutine frame.
Task<Answer> call_resolved_tool(FeatureRequest&& request, ResolvedToolCall&& resolved) {
  if (resolved.rejection) return ready_task(std::move(*resolved.rejection));
  const Result<bool> as_task = must_start_as_task(request, *resolved.entry);
  if (!as_task) return ready_task<Answer>(as_task.error());
  if (*as_task) return ready_task(start_task(request, resolved));
  if (resolved.entry->plain_handler) return ready_task(call_plain_handler(request, resolved));
  return run_coroutine_handler(std::move(request), std::move(resolved));
}

// Large arguments are read, validated and decoded in separate turns of the loop.
Task<Answer> call_tool_in_turns(FeatureRequest request) {
  co_await sleep_for(request.state->link->loop(), Slices::kPause);
  ResolvedToolCall resolved = resolve_tool_call(request);
  if (!resolved.rejection) co_await sleep_for(request.state->link->loop(), Slices::kPause);
  Task<Answer> call = call_resolved_tool(std::move(request), std::move(resolved));
  Answer answer = co_await call;
  co_return answer;
}

}  // namespace

Task<Answer> handle_call_tool(FeatureRequest&& request) {
  if (request.params.text().size() > Slices::kLargeMessageBytes)
    return call_tool_in_turns(std::move(request));
  ResolvedToolCall resolved = resolve_tool_call(request);
  return call_resolved_tool(std::move(request), std::move(resolved));
}

}  // namespace fairlead::mcp
