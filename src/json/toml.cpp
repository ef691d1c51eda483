#include "json/toml.hpp"

#include <sstream>
#include <stdexcept>

#include "json/jsonc.hpp"
#include "json/text_position.hpp"
#include "json/toml_depth.hpp"
#include "json/toml_parser.hpp"

namespace fairlead::json {

std::expected<Raw, TomlProblem> toml_to_json(std::string_view text, const TomlLimits& limits) {
  if (const auto too_deep = TomlDepth(text).first_deeper_than(limits.max_depth)) {
    return std::unexpected(TomlProblem{
        line_at(text, *too_deep),
        "nests deeper than " + std::string(limits.depth_name) + " (" + std::to_string(limits.max_depth) + ")",
        position_at(text, *too_deep).column});
  }
  try {
    const toml::table table = toml::parse(text);
    std::ostringstream json;
    json << toml::json_formatter{table};
    Result<Raw> raw = Raw::parse(json.str());
    if (raw) return *raw;
    return std::unexpected(TomlProblem{0, raw.error().message()});
  } catch (const toml::parse_error& problem) {
    const toml::source_position at = problem.source().begin;
    return std::unexpected(TomlProblem{at.line, std::string(problem.description()), at.column});
  } catch (const std::logic_error& problem) {
    return std::unexpected(TomlProblem{0, problem.what()});
  }
}

}  // namespace fairlead::json
