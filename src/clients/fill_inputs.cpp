#include "clients/fill_inputs.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/contains.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "json/config_reader.hpp"

namespace fairlead::clients {

namespace {

constexpr std::string_view kInputBegin = "${input:";
constexpr std::string_view kArguments = "/config/args/";

Error input_error(const ImportedServer& server, const ImportInput& input, std::string_view problem) {
  return Error(ErrorKind::validation,
               "the input `" + input.name + "` of the server `" + server.name + "` " + std::string(problem));
}

std::vector<std::string> without_empty(std::vector<std::string> values) {
  std::erase_if(values, [](const std::string& value) { return value.empty(); });
  return values;
}

std::vector<std::string> defaults_of(const ImportInput& input) {
  if (input.multiple && !input.default_values.empty()) return without_empty(input.default_values);
  return without_empty({input.default_value});
}

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = failure == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

// Returns what is wrong with a number; empty: nothing.
std::string number_problem(const ImportInput& input, const std::string& text) {
  const std::optional<double> number = number_of(text);
  const auto shown = [](double limit) {
    std::string digits = std::to_string(limit);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
    return digits;
  };
  if (!number) return "must be a number";
  // Written so that NaN is refused.
  if (input.min && !(*number >= *input.min)) return "must be at least " + shown(*input.min);
  if (input.max && !(*number <= *input.max)) return "must be at most " + shown(*input.max);
  return {};
}

std::string quoted_list(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list.append(list.empty() ? "`" : ", `").append(word).append("`");
  return list;
}

Result<void> check_value(const ImportedServer& server, const ImportInput& input, const std::string& value) {
  if (input.secret) return {};
  if (!input.choices.empty() && !contains(input.choices, value))
    return input_error(server, input, "must be one of " + quoted_list(input.choices));
  if (input.format == "number") {
    const std::string problem = number_problem(input, value);
    if (!problem.empty()) return input_error(server, input, problem);
  }
  if (input.format == "boolean" && value != "true" && value != "false")
    return input_error(server, input, "must be true or false");
  return {};
}

// Writes the `config` of a row with the values in it.
class ConfigFiller {
 public:
  explicit ConfigFiller(const ImportedServer& server) : server_(server) {}

  Result<void> take(const InputValues& values);
  json::Raw row();

 private:
  Result<void> take(const ImportInput& input, std::vector<std::string> values);
  void write(json::View value, const std::string& pointer);
  void write_array(json::View array, const std::string& pointer);
  void write_repeated(json::View array, std::size_t first, const ImportInput& input);
  std::optional<std::string> value_of(std::string_view name) const;
  std::string filled(json::View value, const std::string& pointer) const;

  const ImportedServer& server_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::set<std::string, std::less<>> removed_;
  std::map<std::string, const ImportInput*, std::less<>> repeated_;  // by the pointers of their elements
  std::map<std::string, std::string, std::less<>> current_;          // the value of a repeated input
  json::Writer out_;
};

Result<void> ConfigFiller::take(const InputValues& values) {
  for (const ImportInput& input : server_.inputs) {
    const auto given = values.find(input.name);
    const Result<void> taken =
        take(input, given == values.end() ? std::vector<std::string>() : without_empty(given->second));
    if (!taken) return taken;
  }
  return {};
}

Result<void> ConfigFiller::take(const ImportInput& input, std::vector<std::string> values) {
  if (values.empty()) values = defaults_of(input);
  if (values.empty() && input.required && !input.secret) return input_error(server_, input, "needs a value");
  if (values.size() > 1 && !input.multiple) return input_error(server_, input, "can have only one value");
  for (const std::string& value : values) {
    if (const Result<void> checked = check_value(server_, input, value); !checked) return checked;
  }
  if (values.empty() && !input.required) removed_.insert(input.parts.begin(), input.parts.end());
  if (values.size() > 1) {
    for (const std::string& part : input.parts) {
      if (part.starts_with(kArguments)) repeated_.emplace(part, &input);
    }
  }
  values_.emplace(input.name, std::move(values));
  return {};
}

// Arguments, variables, headers and URLs may contain references, other texts may not.
bool may_have_references(std::string_view pointer) {
  return pointer.starts_with(kArguments) || pointer.starts_with("/config/env/") ||
         pointer.starts_with("/config/headers/") || pointer == "/config/url";
}

// Returns the value for a placeholder; nullopt if it is not that of an input.
std::optional<std::string> ConfigFiller::value_of(std::string_view name) const {
  if (const auto current = current_.find(name); current != current_.end()) return current->second;
  const auto values = values_.find(name);
  if (values == values_.end()) return std::nullopt;
  return values->second.empty() ? std::string() : values->second.front();
}

std::string ConfigFiller::filled(json::View value, const std::string& pointer) const {
  const std::string original = value.as_string().value_or("");
  const bool has_references = may_have_references(pointer);
  std::string_view text = original;
  std::string result;
  while (!text.empty()) {
    const std::size_t end = text.starts_with(kInputBegin) ? text.find('}') : std::string_view::npos;
    const std::optional<std::string> input =
        end == std::string_view::npos ? std::nullopt
                                      : value_of(text.substr(kInputBegin.size(), end - kInputBegin.size()));
    if (input) result += has_references ? literal_text(*input) : *input;
    const std::size_t literal = has_references && text.starts_with("$$") ? 2 : 1;
    if (!input) result += text.substr(0, literal);
    text.remove_prefix(input ? end + 1 : literal);
  }
  return result;
}

// Writes the elements that belong to `input`, beginning with `first`, once for each value.
void ConfigFiller::write_repeated(json::View array, std::size_t first, const ImportInput& input) {
  for (const std::string& value : values_.find(input.name)->second) {
    current_.insert_or_assign(input.name, value);
    for (std::size_t i = first; i < array.size(); ++i) {
      const std::string pointer = std::string(kArguments) + std::to_string(i);
      if (!contains(input.parts, pointer)) break;
      write(array[i], pointer);
    }
  }
  current_.erase(input.name);
}

void ConfigFiller::write_array(json::View array, const std::string& pointer) {
  const ImportInput* last_repeated = nullptr;
  std::size_t index = 0;
  out_.begin_array();
  array.each_element([&](json::View element) {
    const std::string at = pointer + "/" + std::to_string(index++);
    if (removed_.contains(at)) return true;
    const auto repeated = repeated_.find(at);
    const ImportInput* const input = repeated == repeated_.end() ? nullptr : repeated->second;
    if (!input) write(element, at);
    if (input && input != last_repeated) write_repeated(array, index - 1, *input);
    last_repeated = input;
    return true;
  });
  out_.end_array();
}

void ConfigFiller::write(json::View value, const std::string& pointer) {
  if (value.is(json::Type::string)) {
    out_.string(filled(value, pointer));
    return;
  }
  if (value.is(json::Type::array)) return write_array(value, pointer);
  if (!value.is(json::Type::object)) {
    out_.raw(value.text());
    return;
  }
  out_.begin_object();
  value.each_member([&](std::string_view key, bool escaped, json::View member) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    std::string at = pointer;
    json::append_to_pointer(at, name);
    if (removed_.contains(at)) return true;
    out_.key(name);
    write(member, at);
    return true;
  });
  out_.end_object();
}

json::Raw ConfigFiller::row() {
  out_.begin_object();
  json::View(server_.row).each_member([&](std::string_view key, bool escaped, json::View member) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    out_.key(name);
    if (name == "config") {
      write(member, "/config");
    } else {
      out_.raw(member.text());
    }
    return true;
  });
  out_.end_object();
  return out_.finish();
}

}  // namespace

std::string literal_text(std::string_view text) {
  std::string literal;
  for (const char c : text) literal.append(c == '$' ? 2 : 1, c);
  return literal;
}

Result<json::Raw> fill_inputs(const ImportedServer& server, const InputValues& values) {
  ConfigFiller filler(server);
  if (const Result<void> taken = filler.take(values); !taken) return taken.error();
  return filler.row();
}

}  // namespace fairlead::clients
