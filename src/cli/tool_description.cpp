#include "cli/tool_description.hpp"

#include <set>

#include "base/printable.hpp"
#include "cli/argument_schema.hpp"
#include "process/child_error_context.hpp"

namespace fairlead::cli {

namespace {

using json::Type;
using json::View;

constexpr int kMaxShownDepth = 6;
constexpr std::size_t kMaxDescriptionBytes = 64u << 10;  // of all arguments together

std::string member_text(View object, std::string_view key) {
  return object[key].as_string().value_or("");
}

// Returns the lines of `text`, each after `indent`.
std::string indented(const std::string& text, const std::string& indent) {
  std::string out;
  const std::string printable = printable_text(text);
  for (std::size_t at = 0; at < printable.size();) {
    const std::size_t end = std::min(printable.find('\n', at), printable.size());
    out += (end > at ? indent : "") + printable.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

class SchemaText {
 public:
  explicit SchemaText(View root) : root_(root) {}

  // Appends the properties of an object.
  void add_properties(View unresolved, const std::string& indent, int depth) {
    const View schema = resolved_schema(root_, unresolved);
    std::set<std::string> required;
    schema["required"].each_element([&](View name) {
      required.insert(name.as_string().value_or(""));
      return true;
    });
    schema["properties"].each_member([&](std::string_view key, bool escaped, View property) {
      const std::string name = escaped ? json::unescape(key) : std::string(key);
      add_property(name, property, required.contains(name), indent, depth);
      return text_.size() < kMaxDescriptionBytes;
    });
  }

  std::string finish() {
    if (text_.size() >= kMaxDescriptionBytes) text_ += "  …\n";
    return std::move(text_);
  }

 private:
  void add_property(const std::string& name, View unresolved, bool required, const std::string& indent,
                    int depth) {
    const View property = resolved_schema(root_, unresolved);
    text_ += indent + printable_line(name) + " (" + value_description(root_, property);
    if (required) text_ += ", required";
    if (const View value = property["default"]; !value.absent())
      text_ += ", default " + shortened(printable_json(value.text()), 200);
    text_ += ")\n";
    const std::string title = member_text(property, "title");
    const std::string description = member_text(property, "description");
    text_ += indented(description.empty() ? title : description, indent + "    ");
    if (depth == 0) return;
    add_properties(property, indent + "  ", depth - 1);
    add_properties(property["items"], indent + "  ", depth - 1);
    for (const char* const key : {"anyOf", "oneOf", "allOf"}) {
      property[key].each_element([&](View part) {
        add_properties(part, indent + "  ", depth - 1);
        return text_.size() < kMaxDescriptionBytes;
      });
    }
  }

  View root_;
  std::string text_;
};

std::string properties_text(View schema) {
  SchemaText text(schema);
  text.add_properties(schema, "  ", kMaxShownDepth);
  return text.finish();
}

std::string hints_text(View annotations) {
  std::string hints;
  for (const auto& [key, name] :
       {std::pair("readOnlyHint", "read-only"), std::pair("destructiveHint", "destructive"),
        std::pair("idempotentHint", "idempotent"), std::pair("openWorldHint", "open world")}) {
    if (annotations[key].as_bool() == true) hints += (hints.empty() ? "" : ", ") + std::string(name);
  }
  return hints.empty() ? hints : "The server says that it is: " + hints + ".\n";
}

// The words of a call with all required arguments.
std::string example_call(View schema, const std::string& target, const std::string& name) {
  std::string command = "fairlead tools " + process::shell_quoted(target) + " " + process::shell_quoted(name);
  schema["required"].each_element([&](View required) {
    const std::string key = required.as_string().value_or("");
    const std::set<std::string> types = allowed_types(schema, schema["properties"][key]);
    const bool structured =
        !types.contains("string") && (types.contains("object") || types.contains("array"));
    command += " " + process::shell_quoted(key) + (structured ? ":=JSON" : "=VALUE");
    return command.size() < 1000;
  });
  return printable_line(command);
}

}  // namespace

std::string describe_tool(View tool, const std::string& target) {
  const std::string name = member_text(tool, "name");
  const View schema = tool["inputSchema"];
  const std::string title = member_text(tool, "title");
  std::string text = printable_line(name) +
                     (title.empty() || title == name ? "" : " (" + printable_line(title) + ")") + "\n";
  text += indented(member_text(tool, "description"), "  ");
  text += hints_text(tool["annotations"]);
  const std::string arguments = properties_text(schema);
  text += arguments.empty() ? "\nIt takes no arguments.\n" : "\nArguments:\n" + arguments;
  const std::string result = properties_text(tool["outputSchema"]);
  if (!result.empty()) text += "\nResult:\n" + result;
  return text + "\nCall: " + example_call(schema, target, name) + "\n";
}

}  // namespace fairlead::cli
