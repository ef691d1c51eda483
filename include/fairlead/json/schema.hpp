// Schema: JSON Schema, 2020-12 and draft 7, compiled once and then asked often.
//
//   auto schema = json::Schema::compile(R"({"type":"object","properties":{"message":{"type":"string"}}})");
//   if (!schema) return schema.error();                       // "/properties: expected object, got array"
//   if (auto violation = schema->validate(arguments)) …       // "/message: expected string, got number"
//
// Nothing is ever fetched: a reference to a document that is not part of the schema is an error. Schemas and
// values may both be hostile: their size, nesting and the work they cause are bounded, and patterns match in
// linear time.
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
  SchemaDialect dialect = SchemaDialect::draft2020_12;  // of a schema that names none with $schema
  bool assert_formats = false;  // date-time, date, time, email, uri, uuid, ipv4 and ipv6; otherwise ignored

  // Of a schema. Reaching one is an error of compile(), which names it.
  std::size_t max_schema_bytes = 1u << 20;
  std::size_t max_schema_depth = 256;        // nesting of arrays and objects in its text
  std::size_t max_subschemas = 10'000;       // schemas within it, and the metaschemas it refers to
  std::size_t max_pattern_states = 100'000;  // of all its patterns together; `a{1,500}` takes about 1000

  // Of one validation. Reaching one is a violation with `limit_reached`.
  std::size_t max_validation_depth = 1024;       // schemas applied within schemas, and nesting of the value
  std::size_t max_validation_steps = 1'000'000;  // schemas applied, values looked at, texts compared

  static constexpr std::size_t kMaxDepthCeiling = 4096;  // the most a depth may be set to: 2 MiB of stack
};

struct SchemaViolation {
  std::string instance_pointer;  // JSON Pointer to the value that is wrong; empty for the whole
  std::string schema_pointer;    // to the keyword it violates, as in /properties/message/type
  std::string keyword;           // "type"; empty where the schema is `false`
  // One sentence, the pointer in front: "/message: expected string, got number". Fit to be shown to whoever
  // sent the value, a person or a model; long values in it are cut.
  std::string message;
  // No verdict: a limit was reached before there was one. Treated as invalid.
  bool limit_reached = false;
};

// Immutable and cheap to copy; any number of threads may validate with one at the same time.
class Schema {
 public:
  Schema() noexcept = default;  // accepts everything

  // Errors are of kind validation: the JSON Pointer to what is wrong in the schema, and why.
  static Result<Schema> compile(std::string_view schema_json, SchemaOptions options = {});

  // The first violation, or nullopt for a valid value. REQUIRES: `instance_json` is valid JSON (has passed a
  // Scanner). Text that is not does no harm, but the answer means nothing.
  std::optional<SchemaViolation> validate(std::string_view instance_json) const;
  // Up to `max` violations.
  std::vector<SchemaViolation> violations(std::string_view instance_json, std::size_t max) const;

 private:
  struct Compiled;
  explicit Schema(std::shared_ptr<const Compiled> compiled) noexcept : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace fairlead::json
