// A client and the lists of its server: all pages of one, within limits, and the results of tools checked
// with what was listed.
#include "fairlead/loop/timer.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "json/members.hpp"
#include "json/walk.hpp"
#include "loop/slices.hpp"
#include "mcp/client_session.hpp"

namespace fairlead::mcp {

Task<Result<std::vector<json::Raw>>> ClientSession::list(std::string method, std::string member) {
  const auto keep = self();
  const ListLimits& limits = options_.lists;
  std::vector<json::Raw> all;
  std::size_t bytes = 0;
  json::Raw params;
  for (std::size_t page = 0; page < limits.max_list_pages; ++page) {
    ToolCallOptions options;
    Task<Result<json::Indexed>> asking = ask(method, params, std::move(options));
    const Result<json::Indexed> answer = co_await asking;
    if (!answer) co_return answer.error();
    bytes += answer->text().size();
    if (bytes > limits.max_list_bytes) co_return list_over(method, "max_list_bytes", limits.max_list_bytes);
    const json::View entries = (*answer)[member];
    if (!entries.is(json::Type::array))
      co_return Error(ErrorKind::validation, method + " was answered without `" + member + "`");
    Slices slices;
    json::ElementWalk walk(entries.text());
    while (all.size() <= limits.max_list_entries && walk.next()) {
      all.push_back(sub(answer->raw(), json::View(walk.value())));
      if (slices.due(walk.value().size())) co_await sleep_for(loop_, Slices::kPause);
    }
    if (all.size() > limits.max_list_entries)
      co_return list_over(method, "max_list_entries", limits.max_list_entries);
    const json::View next = (*answer)["nextCursor"];
    if (!next.is(json::Type::string)) {
      if (method != "tools/list") co_return all;
      Task<std::vector<json::Raw>> checking = check_tools(std::move(all));
      std::vector<json::Raw> checked = co_await checking;
      co_return checked;
    }
    json::Writer out;
    out.begin_object().key("cursor").raw(next.text()).end_object();
    params = out.finish();
  }
  co_return list_over(method, "max_list_pages", limits.max_list_pages);
}

Task<std::vector<json::Raw>> ClientSession::check_tools(std::vector<json::Raw> tools) {
  const auto keep = self();
  OutputSchemas schemas;
  std::set<std::string> task_only;
  std::vector<json::Raw> valid;
  Slices slices;
  for (json::Raw& tool : tools) {
    const std::size_t bytes = tool.text().size();
    if (const std::optional<std::string> problem = tool_problem(json::View(tool))) {
      const std::string name = bytes > options_.lists.max_entry_bytes
                                   ? std::string()
                                   : json::View(tool)["name"].as_string().value_or("");
      options_.connect.log.warning("a tool is left out", {{"tool", name}, {"problem", *problem}});
    } else {
      const json::Members members(json::View(tool), {"name", "execution", "outputSchema"});
      const std::string name = members["name"].as_string().value_or("");
      if (members["execution"]["taskSupport"].as_string() == "required") task_only.insert(name);
      if (const json::View schema = members["outputSchema"]; !schema.absent())
        schemas.emplace(name, OutputSchema{sub(tool, schema), std::nullopt});
      valid.push_back(std::move(tool));
    }
    if (slices.due(bytes)) co_await sleep_for(loop_, Slices::kPause);
  }
  output_schemas_ = std::move(schemas);
  compiled_schema_bytes_ = 0;
  task_only_ = std::move(task_only);
  tools_seen_ = true;
  co_return valid;
}

std::optional<std::string> ClientSession::tool_problem(json::View tool) const {
  const ListLimits& limits = options_.lists;
  if (tool.text().size() > limits.max_entry_bytes)
    return "it is over the limit max_entry_bytes (" + std::to_string(limits.max_entry_bytes) + ")";
  const json::Members members(tool, {"inputSchema", "outputSchema"});
  for (const std::string_view which : {"inputSchema", "outputSchema"}) {
    std::optional<std::string> problem = schema_limit_problem(which, members[which], limits);
    if (problem) return problem;
  }
  if (!is_modern(revision_)) return std::nullopt;
  return read_header_annotations(members["inputSchema"], limits).problem;
}

// Null if the tool has none, or none that is usable.
const json::Schema* ClientSession::output_schema(const std::string& tool) {
  const auto found = output_schemas_.find(tool);
  if (found == output_schemas_.end()) return nullptr;
  found->second.last_used = ++schema_uses_;
  std::optional<json::Schema>& compiled = found->second.compiled;
  if (!compiled) {
    const std::size_t bytes = found->second.text.text().size();
    make_room_for_schema(bytes);
    json::SchemaOptions options;
    options.max_pattern_states = options_.lists.max_schema_pattern_states;
    Result<json::Schema> made = json::Schema::compile(found->second.text.text(), options);
    if (!made) {
      options_.connect.log.warning("a tool's output schema is not usable",
                                   {{"tool", tool}, {"problem", made.error().message()}});
      output_schemas_.erase(found);
      return nullptr;
    }
    compiled = std::move(*made);
    compiled_schema_bytes_ += bytes;
  }
  return &*compiled;
}

void ClientSession::make_room_for_schema(std::size_t bytes) {
  const std::size_t most = options_.lists.max_compiled_schema_bytes;
  while (compiled_schema_bytes_ > 0 && compiled_schema_bytes_ + bytes > most) {
    OutputSchema* oldest = nullptr;
    for (auto& [tool, schema] : output_schemas_) {
      if (schema.compiled && (!oldest || schema.last_used < oldest->last_used)) oldest = &schema;
    }
    if (!oldest) return;
    oldest->compiled.reset();
    compiled_schema_bytes_ -= oldest->text.text().size();
  }
}

// Compiled between the request and its answer: two turns of the loop from now the request has been written.
void ClientSession::compile_soon(const std::string& tool) {
  if (!output_schemas_.contains(tool)) return;
  loop_.post([weak = std::weak_ptr<ClientSession>(self()), tool] {
    const auto session = weak.lock();
    if (!session) return;
    session->loop_.post([session, tool] { static_cast<void>(session->output_schema(tool)); });
  });
}

Task<Result<ToolResult>> ClientSession::call_tool(std::string name, json::Raw arguments,
                                                  ToolCallOptions options) {
  const auto keep = self();
  compile_soon(name);
  json::Writer params;
  params.begin_object().key("name").string(name);
  if (!arguments.absent()) params.key("arguments").raw(arguments);
  params.end_object();
  Task<Result<json::Indexed>> asking = ask("tools/call", params.finish(), std::move(options));
  Result<json::Indexed> answer = co_await asking;
  if (!answer) co_return answer.error();
  Task<Result<ToolResult>> reading = tool_result(name, std::move(*answer));
  Result<ToolResult> result = co_await reading;
  co_return result;
}

Task<Result<ToolResult>> ClientSession::tool_result(std::string name, json::Indexed answer) {
  const auto keep = self();
  ToolResult result;
  const json::View content = answer["content"];
  if (content.is(json::Type::array)) {
    const std::size_t most = options_.lists.max_list_entries;
    Slices slices;
    json::ElementWalk walk(content.text());
    while (walk.next()) {
      if (result.content.size() == most)
        co_return list_over("the content of tool " + name, "max_list_entries", most);
      result.content.push_back(Content(sub(answer.raw(), json::View(walk.value()))));
      if (slices.due(walk.value().size())) co_await sleep_for(loop_, Slices::kPause);
    }
  }
  result.structured = answer.part("structuredContent");
  result.is_error = answer["isError"].as_bool().value_or(false);
  result.meta = answer.part("_meta");
  if (answer.text().size() > Slices::kLargeMessage) co_await sleep_for(loop_, Slices::kPause);
  const Result<void> valid = check_output(name, result);
  if (!valid) co_return valid.error();
  co_return result;
}

Result<void> ClientSession::check_output(const std::string& name, const ToolResult& result) {
  const json::Schema* const schema = result.is_error ? nullptr : output_schema(name);
  if (!schema) return {};
  if (result.structured.absent())
    return Error(ErrorKind::validation,
                 "tool " + name + " has an output schema but returned no structured content");
  if (const auto violation = schema->validate(result.structured.text()))
    return Error(ErrorKind::validation,
                 "the structured content of tool " + name + " breaks its schema: " + violation->message);
  return {};
}

}  // namespace fairlead::mcp
