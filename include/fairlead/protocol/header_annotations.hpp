// Tool arguments that travel as HTTP headers too: `x-mcp-header` in an input schema, and when it may stand
// there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/json/view.hpp"
#include "fairlead/protocol/list_limits.hpp"

namespace fairlead::mcp {

// An argument that travels as a header.
struct HeaderParam {
  enum class Type : std::uint8_t { string, integer, boolean };
  std::vector<std::string> path;  // from `arguments` down
  std::string header;             // "Mcp-Param-Region"
  Type type = Type::string;
};
// Those of one tool, computed once; null if there are none.
using HeaderParams = std::shared_ptr<const std::vector<HeaderParam>>;

// What the annotations of an input schema say.
struct HeaderAnnotations {
  std::vector<HeaderParam> params;     // none if there is a problem
  std::optional<std::string> problem;  // why the schema is not valid

  HeaderParams shared() const {
    return params.empty() ? nullptr : std::make_shared<const std::vector<HeaderParam>>(params);
  }
};
// Reads the schema in one pass. More than `max_header_params` annotations are a problem.
HeaderAnnotations read_header_annotations(json::View input_schema, const ListLimits& limits = {});

// False for a schema, or a tool, that certainly has no annotation. Much cheaper than reading them.
bool may_have_header_annotations(json::View schema) noexcept;

// Which limit the schema named `which` is over, as in "its outputSchema is over the limit max_schema_bytes
// (262144)"; nullopt if none.
std::optional<std::string> schema_limit_problem(std::string_view which, json::View schema,
                                                const ListLimits& limits = {});

}  // namespace fairlead::mcp
