#include "cli/elicitation.hpp"

#include <optional>
#include <vector>

#include "base/printable.hpp"
#include "cli/terminal_prompt.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::cli {

// A value that is asked for. Not in the anonymous namespace, because it is part of the frame of a coroutine
// that is not, either.
struct ElicitedProperty {
  std::string key;
  json::View schema;
};

namespace {

using Action = mcp::ElicitResult::Action;
using Answered = std::optional<std::string>;

// Converts a typed line to JSON of the type in `schema`. Returns nullopt if it is not of that type.
std::optional<std::string> as_json(const std::string& line, json::View schema) {
  const std::string type = schema["type"].as_string().value_or("string");
  if (type == "string") return std::string(json::string(line).text());
  if (type == "boolean") {
    if (line == "y" || line == "yes" || line == "true") return "true";
    if (line == "n" || line == "no" || line == "false") return "false";
    return std::nullopt;
  }
  if (json::validate(line)) return std::nullopt;
  return line;
}

Action action_of(const Answered& consent) {
  if (!consent) return Action::cancel;
  return *consent == "y" || *consent == "yes" ? Action::accept : Action::decline;
}

std::vector<ElicitedProperty> properties_of(const json::Raw& schema) {
  std::vector<ElicitedProperty> properties;
  json::View(schema)["properties"].each_member([&](std::string_view key, bool, json::View property) {
    properties.push_back({std::string(key), property});
    return true;
  });
  return properties;
}

std::string question_for(const ElicitedProperty& property) {
  const std::string label = property.schema["title"].as_string().value_or(property.key);
  return "  " + printable_line(label) + " (" +
         printable_line(property.schema["type"].as_string().value_or("string")) + "): ";
}

// Asks until the answer is of the type of the property. Returns its JSON, empty if the user entered nothing.
Task<Answered> ask_for_value(Loop& loop, ElicitedProperty property, Clock::time_point deadline) {
  while (true) {
    const Answered line = co_await ask_on_loop(loop, question_for(property), deadline);
    if (!line || line->empty()) co_return line;
    const std::optional<std::string> value = as_json(*line, property.schema);
    if (value) co_return *value;
  }
}

}  // namespace

Task<Result<mcp::ElicitResult>> elicit_on_terminal(Loop& loop, std::chrono::milliseconds timeout,
                                                   std::string message, json::Raw schema) {
  const Clock::time_point deadline = Clock::now() + timeout;
  mcp::ElicitResult result;
  std::string question = "\nThe server asks: " + printable_text(message) + "\nAnswer? [y/N] ";
  const Answered consent = co_await ask_on_loop(loop, std::move(question), deadline);
  result.action = action_of(consent);
  if (result.action != Action::accept) co_return result;
  json::Writer content;
  content.begin_object();
  const std::vector<ElicitedProperty> properties = properties_of(schema);
  for (const ElicitedProperty& property : properties) {
    const Answered value = co_await ask_for_value(loop, property, deadline);
    if (!value) {
      result.action = Action::cancel;
      co_return result;
    }
    if (!value->empty()) content.key(property.key).raw(*value);
  }
  content.end_object();
  result.content = content.finish();
  co_return result;
}

Task<Result<mcp::ElicitResult>> elicit_url_on_terminal(Loop& loop, std::chrono::milliseconds timeout,
                                                       std::string message, std::string url) {
  mcp::ElicitResult result;
  std::string question = "\nThe server asks: " + printable_text(message) + "\nIt wants you to open " +
                         printable_line(url) + "\nOpened it? [y/N] ";
  const Answered consent = co_await ask_on_loop(loop, std::move(question), Clock::now() + timeout);
  result.action = action_of(consent);
  co_return result;
}

}  // namespace fairlead::cli
