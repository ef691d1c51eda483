#include "fairlead/json/schema.hpp"

#include <algorithm>

#include "fairlead/json/scanner.hpp"
#include "json/schema/compiler.hpp"
#include "json/schema/describe.hpp"
#include "json/schema/message_text.hpp"
#include "json/schema/validator.hpp"

namespace fairlead::json {

struct Schema::Compiled {
  schema::Table table;
};

Result<Schema> Schema::compile(std::string_view schema_json, SchemaOptions options) {
  options.max_schema_depth = std::min(options.max_schema_depth, SchemaOptions::kMaxDepthCeiling);
  options.max_validation_depth = std::min(options.max_validation_depth, SchemaOptions::kMaxDepthCeiling);
  if (schema_json.size() > options.max_schema_bytes)
    return Error(ErrorKind::validation, schema::limit_message("the schema is longer than max_schema_bytes",
                                                              options.max_schema_bytes));
  if (const auto problem = json::validate(schema_json, options.max_schema_depth)) {
    const bool too_deep = problem->message().starts_with("nested deeper");
    return Error(ErrorKind::validation,
                 too_deep ? schema::limit_message("the schema is nested deeper than max_schema_depth",
                                                  options.max_schema_depth)
                          : "the schema is not JSON: " + problem->message());
  }
  auto compiled = std::make_shared<Compiled>();
  compiled->table.options = options;
  if (auto error = schema::Compiler(compiled->table).compile(schema_json)) return *std::move(error);
  return Schema(std::move(compiled));
}

std::optional<SchemaViolation> Schema::validate(std::string_view instance_json) const {
  if (!compiled_) return std::nullopt;
  schema::Validator validator(compiled_->table, 1);
  if (validator.accepts(instance_json)) [[likely]]
    return std::nullopt;
  return schema::describe_first(compiled_->table, validator);
}

std::vector<SchemaViolation> Schema::violations(std::string_view instance_json, std::size_t max) const {
  if (!compiled_ || max == 0) return {};
  schema::Validator validator(compiled_->table, max);
  if (validator.accepts(instance_json)) return {};
  return schema::describe_all(compiled_->table, validator);
}

}  // namespace fairlead::json
