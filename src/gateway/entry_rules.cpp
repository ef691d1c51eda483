#include "gateway/entry_rules.hpp"

#include <initializer_list>
#include <string_view>

#include "json/members.hpp"

namespace fairlead::gateway {

namespace {

using json::Members;
using json::Type;
using json::View;

// Checks members of an object and records the first violation.
class EntryValidator {
 public:
  explicit EntryValidator(std::optional<std::string>& problem) : problem_(problem) {}

  // The member must be present and have this type.
  void require(const Members& members, std::string_view key, Type type) {
    if (!members[key].is(type)) fail(key, type);
  }
  // Each of the members, if present, must have this type.
  void optional(const Members& members, Type type, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (!members[key].absent() && !members[key].is(type)) fail(key, type);
    }
  }
  // The member, if present, must be an array of `type`.
  void optional_array(const Members& members, std::string_view key, Type type) {
    optional(members, Type::array, {key});
    members[key].each_element([&](View element) {
      if (!element.is(type)) fail(std::string(key) + "[]", type);
      return !problem_;
    });
  }
  // Record that the member `key` is not of this type, or is not what is `expected`.
  void fail(std::string_view key, Type type) {
    static constexpr std::string_view kTypes[] = {"null",     "a boolean", "a number",
                                                  "a string", "an array",  "an object"};
    fail(key, kTypes[static_cast<std::size_t>(type)]);
  }
  void fail(std::string_view key, std::string_view expected) {
    if (!problem_) problem_ = "its `" + std::string(key) + "` is not " + std::string(expected);
  }

  bool failed() const noexcept { return problem_.has_value(); }

 private:
  std::optional<std::string>& problem_;
};

void check_icons(EntryValidator& validator, const Members& entry) {
  validator.optional_array(entry, "icons", Type::object);
  entry["icons"].each_element([&](View view) {
    const Members icon(view, {"src", "mimeType", "sizes"});
    validator.require(icon, "src", Type::string);
    validator.optional(icon, Type::string, {"mimeType"});
    validator.optional_array(icon, "sizes", Type::string);
    return !validator.failed();
  });
}

void check_input_schema(EntryValidator& validator, View view, bool modern) {
  const Members schema(view, {"type", "properties", "required"});
  if (schema["type"].as_string() != "object") validator.fail("inputSchema.type", "`object`");
  if (modern) return;
  validator.optional(schema, Type::object, {"properties"});
  validator.optional_array(schema, "required", Type::string);
  schema["properties"].each_member([&](std::string_view key, bool, View property) {
    if (!property.is(Type::object))
      validator.fail("inputSchema.properties." + std::string(key), Type::object);
    return !validator.failed();
  });
}

void check_tool(EntryValidator& validator, const Members& tool, bool modern) {
  validator.require(tool, "inputSchema", Type::object);
  check_input_schema(validator, tool["inputSchema"], modern);
  validator.optional(tool, Type::object, {"outputSchema", "annotations", "execution"});
  const Members hints(tool["annotations"],
                      {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"});
  validator.optional(hints, Type::string, {"title"});
  validator.optional(hints, Type::boolean,
                     {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"});
}

void check_resource(EntryValidator& validator, const Members& resource) {
  validator.require(resource, "name", Type::string);
  validator.optional(resource, Type::string, {"mimeType"});
  validator.optional(resource, Type::number, {"size"});
  validator.optional(resource, Type::object, {"annotations"});
  const Members hints(resource["annotations"], {"audience", "priority", "lastModified"});
  validator.optional_array(hints, "audience", Type::string);
  validator.optional(hints, Type::number, {"priority"});
  validator.optional(hints, Type::string, {"lastModified"});
}

void check_prompt(EntryValidator& validator, const Members& prompt) {
  validator.optional_array(prompt, "arguments", Type::object);
  prompt["arguments"].each_element([&](View view) {
    const Members argument(view, {"name", "title", "description", "required"});
    validator.require(argument, "name", Type::string);
    validator.optional(argument, Type::string, {"title", "description"});
    validator.optional(argument, Type::boolean, {"required"});
    return !validator.failed();
  });
}

}  // namespace

std::optional<std::string> entry_problem(ListKind kind, View view, bool modern) {
  const Members entry(view, {"title", "description", "_meta", "icons", "inputSchema", "outputSchema",
                             "annotations", "execution", "name", "mimeType", "size", "arguments"});
  std::optional<std::string> problem;
  EntryValidator validator(problem);
  validator.optional(entry, Type::string, {"title", "description"});
  validator.optional(entry, Type::object, {"_meta"});
  check_icons(validator, entry);
  switch (kind) {
    case ListKind::tools: check_tool(validator, entry, modern); break;
    case ListKind::prompts: check_prompt(validator, entry); break;
    case ListKind::resources:
    case ListKind::templates: check_resource(validator, entry); break;
  }
  return problem;
}

}  // namespace fairlead::gateway
