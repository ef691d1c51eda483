// HeaderAnnotations: the `x-mcp-header` annotations of a tool's input schema. They declare which arguments
// are also sent as HTTP headers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fairlead/json/view.hpp"
#include "fairlead/protocol/list_limits.hpp"

namespace fairlead::mcp {

// An argument that is also sent as an HTTP header.
struct HeaderParam {
  enum class Type : std::uint8_t { string, integer, boolean };
  std::vector<std::string> path;  // keys from `arguments` down to the argument
  std::string header;             // header name, such as "Mcp-Param-Region"
  Type type = Type::string;
};
// The header arguments of one tool; null if there are none.
using HeaderParams = std::shared_ptr<const std::vector<HeaderParam>>;

// The result of reading the annotations of an input schema.
struct HeaderAnnotations {
  std::vector<HeaderParam> params;     // empty if there is a problem
  std::optional<std::string> problem;  // why the annotations are invalid; nullopt if they are valid

  // Returns `params` as a shared vector; null if there are none.
  HeaderParams shared_params() const {
    return params.empty() ? nullptr : std::make_shared<const std::vector<HeaderParam>>(params);
  }
};
// Reads the annotations of `input_schema` in one pass over its text. More than `max_header_params`
// annotations are a problem.
HeaderAnnotations read_header_annotations(json::View input_schema, const ListLimits& limits = {});

// Returns false if the JSON value `schema`, which may also be a whole tool, certainly contains no annotation.
// Much cheaper than read_header_annotations().
bool may_have_header_annotations(json::View schema) noexcept;

// Checks a schema against max_schema_bytes and max_schema_depth. Returns nullopt if it is within both, and
// otherwise a message such as "its `outputSchema` is over the limit max_schema_bytes (262144)", where
// `schema_name` is "outputSchema".
std::optional<std::string> schema_limit_problem(std::string_view schema_name, json::View schema,
                                                const ListLimits& limits = {});

}  // namespace fairlead::mcp
