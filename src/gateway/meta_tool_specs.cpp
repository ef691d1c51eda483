#include "gateway/meta_tool_specs.hpp"

#include <utility>

namespace fairlead::gateway {
namespace {

json::Raw schema(std::string_view text) {
  return json::Raw::trusted(Bytes::constant(text), true);
}

mcp::ToolSpec read_only_spec(std::string_view name, std::string title, std::string description,
                             std::string_view input_schema, std::string_view output_schema) {
  mcp::ToolSpec spec;
  spec.name = name;
  spec.title = std::move(title);
  spec.description = std::move(description);
  spec.input_schema = schema(input_schema);
  spec.output_schema = schema(output_schema);
  spec.annotations.read_only = true;
  spec.annotations.destructive = false;
  spec.annotations.idempotent = true;
  spec.annotations.open_world = false;
  return spec;
}

mcp::ToolSpec discover_tools_spec() {
  return read_only_spec(
      kDiscoverTools, "Discover tools",
      "Finds tools for a task. Use this first: most tools are not listed and can only be found here. "
      "Describe what you want to do in a few words, such as \"rename a file\" or \"list open issues of a "
      "repository\"; search again with other words if nothing fits. Then read the parameters with "
      "get_tool_schema and call the tool with execute_tool.",
      R"({"type":"object","properties":{"query":{"type":"string","description":"What the tool should do, in your own words"},)"
      R"("domain":{"type":"string","description":"Only search the domain with this domain_id"},)"
      R"("limit":{"type":"integer","minimum":1,"maximum":50,"default":10,"description":"Maximum number of tools"}},)"
      R"("required":["query"],"additionalProperties":false})",
      R"({"type":"object","properties":{"items":{"type":"array","description":"The best matches first","items":{"type":"object",)"
      R"("properties":{"tool_id":{"type":"string","description":"Pass this to get_tool_schema and execute_tool"},)"
      R"("server":{"type":"string"},"tool":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},)"
      R"("domain":{"type":"string"},"score":{"type":"number"}},"required":["tool_id","server","tool","description","score"]}},)"
      R"("more":{"type":"boolean","description":"Whether further tools match"},)"
      R"("note":{"type":"string"}},"required":["items","more"]})");
}

mcp::ToolSpec get_tool_schema_spec() {
  return read_only_spec(
      kGetToolSchema, "Get the schema of a tool",
      "Returns the full description of a tool and the JSON Schema of its parameters. Read it before you call "
      "the tool with execute_tool.",
      R"({"type":"object","properties":{"tool_id":{"type":"string","description":"A tool_id of discover_tools or browse_tool_domain"}},)"
      R"("required":["tool_id"],"additionalProperties":false})",
      R"({"type":"object","properties":{"tool_id":{"type":"string"},"server":{"type":"string"},"tool":{"type":"string"},)"
      R"("title":{"type":"string"},"description":{"type":"string"},)"
      R"("inputSchema":{"type":"object","description":"JSON Schema of the params of execute_tool"},)"
      R"("outputSchema":{"type":"object","description":"JSON Schema of the structured content of the result"},)"
      R"("annotations":{"type":"object"}},"required":["tool_id","server","tool","inputSchema"]})");
}

mcp::ToolSpec execute_tool_spec() {
  mcp::ToolSpec spec;
  spec.name = kExecuteTool;
  spec.title = "Execute a tool";
  spec.description =
      "Calls a tool that was found with discover_tools or browse_tool_domain, and returns its result "
      "unchanged. Put the tool's parameters, as get_tool_schema describes them, into `params`. If you cannot "
      "pass an object, pass the same object as JSON text in `params_json`.";
  spec.input_schema = schema(
      R"({"type":"object","properties":{"tool_id":{"type":"string","description":"The tool_id of the tool"},)"
      R"("params":{"type":"object","description":"The parameters of the tool; {} if it has none","additionalProperties":true},)"
      R"("params_json":{"type":"string","description":"Instead of params: the parameters as JSON text"}},)"
      R"("required":["tool_id"],"additionalProperties":false})");
  return spec;
}

mcp::ToolSpec list_tool_domains_spec() {
  return read_only_spec(
      kListToolDomains, "List the domains of tools",
      "Lists the subject areas of the available tools, with their servers and the number of tools. Use it to "
      "get an overview, or to restrict discover_tools to one domain.",
      R"({"type":"object","properties":{},"additionalProperties":false})",
      R"({"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{)"
      R"("domain_id":{"type":"string","description":"Pass this to browse_tool_domain and discover_tools"},)"
      R"("servers":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},)"
      R"("title":{"type":"string"},"description":{"type":"string"}},"required":["name"]}},)"
      R"("server_count":{"type":"integer"},"tool_count":{"type":"integer"}},)"
      R"("required":["domain_id","servers","server_count","tool_count"]}},)"
      R"("more":{"type":"boolean","description":"Whether there are further domains"},"note":{"type":"string"}},)"
      R"("required":["items","more"]})");
}

mcp::ToolSpec browse_tool_domain_spec() {
  return read_only_spec(
      kBrowseToolDomain, "Browse the tools of a domain",
      "Lists all tools of a domain, page by page. If the result has a nextCursor, pass it as `cursor` to get "
      "the next page. discover_tools is faster if you know what you need.",
      R"({"type":"object","properties":{"domain_id":{"type":"string","description":"A domain_id of list_tool_domains"},)"
      R"("cursor":{"type":"string","description":"The nextCursor of the previous page"}},)"
      R"("required":["domain_id"],"additionalProperties":false})",
      R"({"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{)"
      R"("tool_id":{"type":"string","description":"Pass this to get_tool_schema and execute_tool"},"server":{"type":"string"},)"
      R"("tool":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"}},)"
      R"("required":["tool_id","server","tool","description"]}},"nextCursor":{"type":"string"}},"required":["items"]})");
}

}  // namespace

const std::vector<mcp::ToolSpec>& meta_tool_specs() {
  static const std::vector<mcp::ToolSpec> kSpecs = {discover_tools_spec(), get_tool_schema_spec(),
                                                    execute_tool_spec(), list_tool_domains_spec(),
                                                    browse_tool_domain_spec()};
  return kSpecs;
}

}  // namespace fairlead::gateway
