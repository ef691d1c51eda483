// ListLimits: limits on the lists of a server (tools, prompts, resources, templates) and on the work that one
// entry, lookup or message can cause.
#pragma once

#include <cstddef>

namespace fairlead::mcp {

struct ListLimits {
  // Per list, all pages together. Fetching the list fails with an error that names the exceeded limit.
  std::size_t max_list_pages = 1000;
  std::size_t max_list_entries = 100'000;
  std::size_t max_list_bytes = 32u << 20;
  // In the gateway, per server: the entries of all its lists together. Fetching the list that exceeds the
  // limit fails.
  std::size_t max_server_list_bytes = 32u << 20;

  // Per list entry. A larger entry is omitted from the list.
  std::size_t max_entry_bytes = 512u << 10;

  // Per input or output schema of a tool. A tool whose schema exceeds one of these limits is omitted.
  std::size_t max_schema_bytes = 256u << 10;
  std::size_t max_schema_depth = 64;  // nesting of arrays and objects in the schema text
  // Per output schema: the states of all its patterns together (see json::SchemaOptions). A schema that
  // exceeds the limit is not used: results are not validated against it.
  std::size_t max_schema_pattern_states = 25'000;
  // Per client: the text of all compiled output schemas together. Above it, the least recently used schema is
  // evicted.
  std::size_t max_compiled_schema_bytes = 4u << 20;
  std::size_t max_header_params = 32;  // per tool, arguments that are sent as headers

  // Per URI or URI template of a resource. A longer one is omitted from lists and rejected in requests.
  std::size_t max_uri_bytes = 8u << 10;
  // Variables per URI template. A template with more is omitted.
  std::size_t max_template_variables = 64;
  // Limits the work of finding the URI template that matches a URI. To compare the URI with one template
  // costs 128 steps, plus the bytes of the URI times the parts of the template. In a gateway, each server may
  // use an equal share of the steps that the servers before it have left.
  std::size_t max_template_steps = 6'000'000;

  // Per response to `initialize` or `server/discover`. The handshake fails if it is larger.
  std::size_t max_handshake_bytes = 512u << 10;

  // Per object whose members are looked up by name: params, results, the arguments of a prompt, inputRequests
  // and inputResponses. A message that exceeds it is rejected. The arguments of a tool are not limited.
  std::size_t max_message_members = 1000;
};

}  // namespace fairlead::mcp
