// ClientSession: requests all pages of a list, within the limits, and validates results of tools against the
// output schemas in the tools/list result.
#include "fairlead/loop/timer.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "json/members.hpp"
#include "json/walk.hpp"
#include "loop/slices.hpp"
#include "mcp/client_session.hpp"

namespace fairlead::mcp {

namespace {

// Results of tools up to this size are read at once, others in slices.
constexpr std::size_t kMaxSmallResultBytes = 16u << 10;

}  // namespace

Task<Result<std::vector<json::Raw>>> ClientSession::list(std::string method, std::string member) {
  const auto keep_alive = self();
  const ListLimits& limits = options_.list_limits;
  std::vector<json::Raw> all;
  std::size_t bytes = 0;
  json::Raw params;
  for (std::size_t page = 0; page < limits.max_list_pages; ++page) {
    ClientCallOptions options;
    const Result<json::IndexedRaw> response = co_await request_indexed(method, params, std::move(options));
    if (!response) co_return response.error();
    bytes += response->text().size();
    if (bytes > limits.max_list_bytes)
      co_return list_limit_error(method, "max_list_bytes", limits.max_list_bytes);
    const json::View entries = (*response)[member];
    if (!entries.is(json::Type::array))
      co_return Error(ErrorKind::validation, "the result of " + method + " has no array `" + member + "`");
    Slices slices;
    json::ElementWalk walk(entries.text());
    while (all.size() <= limits.max_list_entries && walk.next()) {
      all.push_back(raw_part(response->raw(), json::View(walk.value())));
      if (slices.due(walk.value().size())) co_await sleep_for(loop_, Slices::kPause);
    }
    if (all.size() > limits.max_list_entries)
      co_return list_limit_error(method, "max_list_entries", limits.max_list_entries);
    const json::View next = (*response)["nextCursor"];
    if (!next.is(json::Type::string)) {
      if (method != "tools/list") co_return all;
      std::vector<json::Raw> checked = co_await filter_and_store_tools(std::move(all));
      co_return checked;
    }
    json::Writer out;
    out.begin_object().key("cursor").raw(next.text()).end_object();
    params = out.finish();
  }
  co_return list_limit_error(method, "max_list_pages", limits.max_list_pages);
}

Task<std::vector<json::Raw>> ClientSession::filter_and_store_tools(std::vector<json::Raw> tools) {
  const auto keep_alive = self();
  OutputSchemas schemas;
  std::set<std::string> task_required_tools;
  std::vector<json::Raw> valid_tools;
  Slices slices;
  for (json::Raw& tool : tools) {
    const std::size_t bytes = tool.text().size();
    if (const std::optional<std::string> problem = tool_problem(json::View(tool))) {
      const std::string name = bytes > options_.list_limits.max_entry_bytes
                                   ? std::string()
                                   : json::View(tool)["name"].as_string().value_or("");
      options_.connect.log.warning("tool omitted", {{"tool", name}, {"problem", *problem}});
    } else {
      const json::Members members(json::View(tool), {"name", "execution", "outputSchema"});
      const std::string name = members["name"].as_string().value_or("");
      if (members["execution"]["taskSupport"].as_string() == "required") task_required_tools.insert(name);
      if (const json::View schema = members["outputSchema"]; !schema.absent())
        schemas.emplace(name, OutputSchema{raw_part(tool, schema), std::nullopt});
      valid_tools.push_back(std::move(tool));
    }
    if (slices.due(bytes)) co_await sleep_for(loop_, Slices::kPause);
  }
  output_schemas_ = std::move(schemas);
  compiled_schema_bytes_ = 0;
  task_required_tools_ = std::move(task_required_tools);
  tools_list_requested_ = true;
  co_return valid_tools;
}

std::optional<std::string> ClientSession::tool_problem(json::View tool) const {
  const ListLimits& limits = options_.list_limits;
  if (tool.text().size() > limits.max_entry_bytes)
    return "it is over the limit max_entry_bytes (" + std::to_string(limits.max_entry_bytes) + ")";
  const json::Members members(tool, {"inputSchema", "outputSchema"});
  for (const std::string_view member : {"inputSchema", "outputSchema"}) {
    std::optional<std::string> problem = schema_limit_problem(member, members[member], limits);
    if (problem) return problem;
  }
  if (!is_modern(revision_)) return std::nullopt;
  return read_header_annotations(members["inputSchema"], limits).problem;
}

const json::Schema* ClientSession::compiled_output_schema(const std::string& tool) {
  const auto found = output_schemas_.find(tool);
  if (found == output_schemas_.end()) return nullptr;
  found->second.last_used = ++schema_use_count_;
  std::optional<json::Schema>& compiled = found->second.compiled;
  if (!compiled) {
    const std::size_t bytes = found->second.schema_text.text().size();
    evict_compiled_schemas(bytes);
    json::SchemaOptions options;
    options.max_pattern_states = options_.list_limits.max_schema_pattern_states;
    Result<json::Schema> result = json::Schema::compile(found->second.schema_text.text(), options);
    if (!result) {
      options_.connect.log.warning("unusable output schema",
                                   {{"tool", tool}, {"problem", result.error().message()}});
      output_schemas_.erase(found);
      return nullptr;
    }
    compiled = std::move(*result);
    compiled_schema_bytes_ += bytes;
  }
  return &*compiled;
}

void ClientSession::evict_compiled_schemas(std::size_t bytes) {
  const std::size_t limit = options_.list_limits.max_compiled_schema_bytes;
  while (compiled_schema_bytes_ > 0 && compiled_schema_bytes_ + bytes > limit) {
    OutputSchema* oldest = nullptr;
    for (auto& [tool, schema] : output_schemas_) {
      if (schema.compiled && (!oldest || schema.last_used < oldest->last_used)) oldest = &schema;
    }
    if (!oldest) return;
    oldest->compiled.reset();
    compiled_schema_bytes_ -= oldest->schema_text.text().size();
  }
}

// The compilation is posted twice, so that it runs after the turn in which the tool call is written, while
// the server processes the call.
void ClientSession::schedule_schema_compilation(const std::string& tool) {
  if (!output_schemas_.contains(tool)) return;
  loop_.post([weak = std::weak_ptr<ClientSession>(self()), tool] {
    const auto session = weak.lock();
    if (!session) return;
    session->loop_.post([session, tool] { static_cast<void>(session->compiled_output_schema(tool)); });
  });
}

Task<Result<ToolResult>> ClientSession::call_tool(std::string name, json::Raw arguments,
                                                  ClientCallOptions options) {
  const auto keep_alive = self();
  schedule_schema_compilation(name);
  RequestParams params = RequestParams::of_tool_call(name, arguments);
  Result<json::IndexedRaw> response =
      co_await serve_request("tools/call", std::move(params), std::move(options));
  if (!response) co_return response.error();
  if (response->text().size() <= kMaxSmallResultBytes) co_return read_small_tool_result(name, *response);
  Result<ToolResult> result = co_await read_tool_result(name, std::move(*response));
  co_return result;
}

namespace {

// Sets all members except `content`, which it returns.
json::View read_result_members(ToolResult& result, const json::IndexedRaw& response) {
  json::View content;
  response.members().each(response.text(), [&](std::string_view key, bool escaped, std::string_view value) {
    const json::View view(value);
    if (json::key_equals(key, escaped, "content")) {
      content = view;
    } else if (json::key_equals(key, escaped, "structuredContent")) {
      result.structured = raw_part(response.raw(), view);
    } else if (json::key_equals(key, escaped, "isError")) {
      result.is_error = view.as_bool().value_or(false);
    } else if (json::key_equals(key, escaped, "_meta")) {
      result.meta = raw_part(response.raw(), view);
    }
    return true;
  });
  return content;
}

}  // namespace

Result<ToolResult> ClientSession::read_small_tool_result(const std::string& name,
                                                         const json::IndexedRaw& response) {
  ToolResult result;
  const json::View content = read_result_members(result, response);
  const std::size_t limit = options_.list_limits.max_list_entries;
  if (content.is(json::Type::array)) {
    json::ElementWalk walk(content.text());
    while (walk.next()) {
      if (result.content.size() == limit)
        return list_limit_error("the content of tool " + name, "max_list_entries", limit);
      result.content.push_back(Content(raw_part(response.raw(), json::View(walk.value()))));
    }
  }
  const Result<void> valid = validate_output(name, result);
  if (!valid) return valid.error();
  return result;
}

Task<Result<ToolResult>> ClientSession::read_tool_result(std::string name, json::IndexedRaw response) {
  const auto keep_alive = self();
  ToolResult result;
  const json::View content = read_result_members(result, response);
  if (content.is(json::Type::array)) {
    const std::size_t limit = options_.list_limits.max_list_entries;
    Slices slices;
    json::ElementWalk walk(content.text());
    while (walk.next()) {
      if (result.content.size() == limit)
        co_return list_limit_error("the content of tool " + name, "max_list_entries", limit);
      result.content.push_back(Content(raw_part(response.raw(), json::View(walk.value()))));
      if (slices.due(walk.value().size())) co_await sleep_for(loop_, Slices::kPause);
    }
  }
  if (response.text().size() > Slices::kLargeMessageBytes) co_await sleep_for(loop_, Slices::kPause);
  const Result<void> valid = validate_output(name, result);
  if (!valid) co_return valid.error();
  co_return result;
}

Result<void> ClientSession::validate_output(const std::string& name, const ToolResult& result) {
  const json::Schema* const schema = result.is_error ? nullptr : compiled_output_schema(name);
  if (!schema) return {};
  if (result.structured.absent())
    return Error(ErrorKind::validation,
                 "tool " + name + " has an output schema but returned no structured content");
  if (const auto violation = schema->validate(result.structured.text()))
    return Error(ErrorKind::validation,
                 "the structured content of tool " + name + " violates its schema: " + violation->message);
  return {};
}

}  // namespace fairlead::mcp
