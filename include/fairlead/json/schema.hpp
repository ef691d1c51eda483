// Schema: a compiled JSON Schema, 2020-12 or draft 7, that validates any number of values.
//
// Example:
//   auto schema = json::Schema::compile(R"({"type":"object","properties":{"n":{"type":"integer"}}})");
//   if (!schema) return report(schema.error());
//   if (auto violation = schema->validate(R"({"n":1.5})")) return invalid(violation->message);
//
// References are never fetched: a reference to a document that is not part of the schema is an error. Schemas
// and values may both be hostile: their size, their nesting and the work they cause are bounded, and patterns
// match in linear time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead::json {

enum class SchemaDialect : std::uint8_t { draft2020_12, draft7 };

struct SchemaOptions {
  SchemaDialect dialect = SchemaDialect::draft2020_12;  // used if the schema has no $schema
  // Checks `format` for date-time, date, time, email, uri, uuid, ipv4 and ipv6. If false, ignores `format`.
  bool assert_formats = false;

  // Limits on a schema. compile() fails with the name of the limit that is exceeded.
  std::size_t max_schema_bytes = 1u << 20;
  std::size_t max_schema_depth = 256;        // nesting of arrays and objects in the schema
  std::size_t max_subschemas = 10'000;       // including those of metaschemas that the schema refers to
  std::size_t max_pattern_states = 100'000;  // states of all patterns together; `a{1,500}` needs about 1000

  // Limits on one validation. Exceeding one is a violation with `limit_reached`.
  std::size_t max_validation_depth = 1024;       // nesting of schemas applied, and of the value
  std::size_t max_validation_steps = 1'000'000;  // schemas applied, values read, texts compared

  // Upper bound of max_schema_depth and max_validation_depth, which keeps recursion within 2 MiB of stack.
  static constexpr std::size_t kMaxDepthCeiling = 4096;
};

struct SchemaViolation {
  std::string instance_pointer;  // JSON Pointer to the invalid value; empty for the whole value
  std::string schema_pointer;    // JSON Pointer to the violated keyword, such as /properties/message/type
  std::string keyword;           // such as "type"; empty if the schema is `false`
  // One sentence that begins with the pointer: "/message: expected string, got number". It can be shown to
  // the sender of the value, a person or a model. Long values in it are truncated.
  std::string message;
  // A limit was reached before the result was known. The value is treated as invalid.
  bool limit_reached = false;
};

// Immutable, thread-safe and cheap to copy.
class Schema {
 public:
  Schema() noexcept = default;  // accepts everything

  // Fails with kind `validation`. The message has the JSON Pointer to the place in the schema, and the
  // problem.
  static Result<Schema> compile(std::string_view schema_json, SchemaOptions options = {});

  // Returns the first violation, or nullopt for a valid value. REQUIRES: `instance_json` is valid JSON (a
  // Scanner has validated it). Invalid text is handled safely, but the result is unspecified.
  std::optional<SchemaViolation> validate(std::string_view instance_json) const;
  // Returns up to `max` violations.
  std::vector<SchemaViolation> violations(std::string_view instance_json, std::size_t max) const;

 private:
  struct Compiled;
  explicit Schema(std::shared_ptr<const Compiled> compiled) noexcept : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace fairlead::json
