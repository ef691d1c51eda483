// ListLimits: bounds on what a server may list, and on the work that one entry, lookup or message may cause.
#pragma once

#include <cstddef>

namespace fairlead::mcp {

struct ListLimits {
  // Of a list, all its pages together. Reaching one is an error of the listing, which names it.
  std::size_t max_list_pages = 1000;
  std::size_t max_list_entries = 100'000;
  std::size_t max_list_bytes = 32u << 20;
  // Of the entries of all lists of one server together, in the gateway. The list that exceeds it is an error
  // likewise.
  std::size_t max_server_list_bytes = 32u << 20;

  // Of one entry. One over it is left out.
  std::size_t max_entry_bytes = 512u << 10;

  // Of a tool's input or output schema. A tool over one is left out.
  std::size_t max_schema_bytes = 256u << 10;
  std::size_t max_schema_depth = 64;  // nesting of arrays and objects in its text
  // Of all patterns of an output schema together (see json::SchemaOptions). One over it is not used.
  std::size_t max_schema_pattern_states = 25'000;
  // Of the text of all output schemas that a client has compiled. The longest unused one makes room.
  std::size_t max_compiled_schema_bytes = 4u << 20;
  std::size_t max_header_params = 32;  // arguments that travel as headers

  // Of a resource's URI or URI template. A listed one over it is left out; a request with one is refused.
  std::size_t max_uri_bytes = 8u << 10;
  // Of a URI template. One over it is left out.
  std::size_t max_template_variables = 64;
  // Of looking up whose template a URI fits: 128 for each template, and bytes of the URI times parts of the
  // template. Each server has an equal share of the steps that those before it have left over.
  std::size_t max_template_steps = 6'000'000;

  // Of what a server says of itself: its answer to `initialize` or `server/discover`. One over it is an error
  // of the handshake.
  std::size_t max_handshake_bytes = 512u << 10;

  // Of an object that a request or a result is looked up in by name: its params, the result, the arguments of
  // a prompt, answers to questions. A message over it is refused. The arguments of a tool are not bounded.
  std::size_t max_message_members = 1000;
};

}  // namespace fairlead::mcp
