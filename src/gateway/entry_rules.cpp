#include "gateway/entry_rules.hpp"

#include <initializer_list>
#include <string_view>

#include "json/members.hpp"

namespace fairlead::gateway {

namespace {

using json::Members;
using json::Type;
using json::View;

// Looks at one member after the other and remembers the first that is wrong.
class Rules {
 public:
  explicit Rules(std::optional<std::string>& problem) : problem_(problem) {}

  void need(const Members& of, std::string_view key, Type type) {
    if (!of[key].is(type)) wrong(key, type);
  }
  void may_have(const Members& of, Type type, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (!of[key].absent() && !of[key].is(type)) wrong(key, type);
    }
  }
  // An array of these, if there is one.
  void may_have_all(const Members& of, std::string_view key, Type type) {
    may_have(of, Type::array, {key});
    of[key].each_element([&](View element) {
      if (!element.is(type)) wrong(std::string(key) + "[]", type);
      return !problem_;
    });
  }
  void wrong(std::string_view key, Type type) {
    static constexpr std::string_view kTypes[] = {"null",     "a boolean", "a number",
                                                  "a string", "an array",  "an object"};
    wrong(key, kTypes[static_cast<std::size_t>(type)]);
  }
  void wrong(std::string_view key, std::string_view what) {
    if (!problem_) problem_ = "its `" + std::string(key) + "` is not " + std::string(what);
  }

  bool failed() const noexcept { return problem_.has_value(); }

 private:
  std::optional<std::string>& problem_;
};

void check_icons(Rules& rules, const Members& entry) {
  rules.may_have_all(entry, "icons", Type::object);
  entry["icons"].each_element([&](View view) {
    const Members icon(view, {"src", "mimeType", "sizes"});
    rules.need(icon, "src", Type::string);
    rules.may_have(icon, Type::string, {"mimeType"});
    rules.may_have_all(icon, "sizes", Type::string);
    return !rules.failed();
  });
}

void check_schema(Rules& rules, View view, bool modern) {
  const Members schema(view, {"type", "properties", "required"});
  if (schema["type"].as_string() != "object") rules.wrong("inputSchema.type", "`object`");
  if (modern) return;
  rules.may_have(schema, Type::object, {"properties"});
  rules.may_have_all(schema, "required", Type::string);
  schema["properties"].each_member([&](std::string_view key, bool, View property) {
    if (!property.is(Type::object)) rules.wrong("inputSchema.properties." + std::string(key), Type::object);
    return !rules.failed();
  });
}

void check_tool(Rules& rules, const Members& tool, bool modern) {
  rules.need(tool, "inputSchema", Type::object);
  check_schema(rules, tool["inputSchema"], modern);
  rules.may_have(tool, Type::object, {"outputSchema", "annotations", "execution"});
  const Members hints(tool["annotations"],
                      {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"});
  rules.may_have(hints, Type::string, {"title"});
  rules.may_have(hints, Type::boolean,
                 {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"});
}

void check_resource(Rules& rules, const Members& resource) {
  rules.need(resource, "name", Type::string);
  rules.may_have(resource, Type::string, {"mimeType"});
  rules.may_have(resource, Type::number, {"size"});
  rules.may_have(resource, Type::object, {"annotations"});
  const Members hints(resource["annotations"], {"audience", "priority", "lastModified"});
  rules.may_have_all(hints, "audience", Type::string);
  rules.may_have(hints, Type::number, {"priority"});
  rules.may_have(hints, Type::string, {"lastModified"});
}

void check_prompt(Rules& rules, const Members& prompt) {
  rules.may_have_all(prompt, "arguments", Type::object);
  prompt["arguments"].each_element([&](View view) {
    const Members argument(view, {"name", "title", "description", "required"});
    rules.need(argument, "name", Type::string);
    rules.may_have(argument, Type::string, {"title", "description"});
    rules.may_have(argument, Type::boolean, {"required"});
    return !rules.failed();
  });
}

}  // namespace

std::optional<std::string> entry_problem(Kind kind, View view, bool modern) {
  const Members entry(view, {"title", "description", "_meta", "icons", "inputSchema", "outputSchema",
                             "annotations", "execution", "name", "mimeType", "size", "arguments"});
  std::optional<std::string> problem;
  Rules rules(problem);
  rules.may_have(entry, Type::string, {"title", "description"});
  rules.may_have(entry, Type::object, {"_meta"});
  check_icons(rules, entry);
  switch (kind) {
    case Kind::tools: check_tool(rules, entry, modern); break;
    case Kind::prompts: check_prompt(rules, entry); break;
    case Kind::resources:
    case Kind::templates: check_resource(rules, entry); break;
  }
  return problem;
}

}  // namespace fairlead::gateway
