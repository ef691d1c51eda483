#include "packages/bundle_manifest.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/printable.hpp"
#include "clients/fill_inputs.hpp"
#include "fairlead/json/view.hpp"
#include "packages/row_builder.hpp"

namespace fairlead::packages {

namespace {

constexpr std::string_view kPlatform = "linux";
constexpr std::array<std::string_view, 4> kVersions = {"0.1", "0.2", "0.3", "0.4"};

Error manifest_error(std::string message) {
  return Error(ErrorKind::validation, "manifest.json " + std::move(message));
}

std::string text_of(json::View object, std::string_view key) {
  return object[key].as_string().value_or("");
}

// The text of a scalar: defaults may be numbers and booleans.
std::string scalar_text(json::View value) {
  if (value.absent() || value.is(json::Type::null)) return {};
  return value.is(json::Type::string) ? *value.as_string() : std::string(value.text());
}

std::vector<std::string> names_in(json::View array) {
  std::vector<std::string> names;
  if (!array.is(json::Type::array)) return names;
  array.each_element([&](json::View element) {
    names.push_back(text_of(element, "name"));
    return names.size() < 1'000;
  });
  return names;
}

std::string version_problem_of_manifest(json::View document) {
  std::string version = text_of(document, "manifest_version");
  if (version.empty()) version = text_of(document, "dxt_version");
  if (version.empty()) return "has no `manifest_version`";
  const bool known = std::ranges::any_of(kVersions, [&](std::string_view known_version) {
    return version == known_version || version.starts_with(std::string(known_version) + ".");
  });
  return known ? std::string()
               : "has the version `" + shortened(printable_line(version), 20) +
                     "`; versions 0.1 to 0.4 are supported";
}

// ---- substitution ----------------------------------------------------------------------------------------

// A text of the manifest whose ${…} are replaced.
struct Substituted {
  std::string text;
  std::vector<std::string> placeholders;
  bool is_one_placeholder = false;  // nothing else is in the text
};

class Substitution {
 public:
  Substitution(RowBuilder& row, json::View user_config, const BundlePlaces& places);

  // `has_references`: the text is one in which a literal `$` must be doubled.
  Substituted apply(std::string_view text, bool has_references);
  // Returns an error if a list of values is inside of a longer text.
  std::string problem() const { return problem_; }

 private:
  std::string replace(std::string_view name, Substituted& result, bool has_references);
  std::string placeholder_of(const std::string& key);
  std::string with_places(std::string text) const;
  clients::ImportInput input_of(json::View option) const;

  RowBuilder& row_;
  json::View user_config_;
  std::map<std::string, std::string, std::less<>> places_;
  std::map<std::string, bool, std::less<>> is_multiple_;  // by placeholder
  std::string problem_;
};

Substitution::Substitution(RowBuilder& row, json::View user_config, const BundlePlaces& places)
    : row_(row), user_config_(user_config) {
  places_ = {{"__dirname", places.bundle},
             {"HOME", places.home},
             {"DESKTOP", places.home + "/Desktop"},
             {"DOCUMENTS", places.home + "/Documents"},
             {"DOWNLOADS", places.home + "/Downloads"},
             {"pathSeparator", "/"},
             {"/", "/"}};
}

std::string Substitution::with_places(std::string text) const {
  for (const auto& [name, path] : places_) {
    const std::string reference = "${" + name + "}";
    for (std::size_t at = text.find(reference); at != std::string::npos;
         at = text.find(reference, at + path.size()))
      text.replace(at, reference.size(), path);
  }
  return text;
}

std::string range_text(json::View option) {
  const std::string min = scalar_text(option["min"]);
  const std::string max = scalar_text(option["max"]);
  if (min.empty() && max.empty()) return {};
  if (max.empty()) return " (at least " + min + ")";
  return min.empty() ? " (at most " + max + ")" : " (" + min + " to " + max + ")";
}

clients::ImportInput Substitution::input_of(json::View option) const {
  clients::ImportInput input;
  const std::string type = text_of(option, "type");
  const std::string title = text_of(option, "title");
  const std::string description = text_of(option, "description");
  input.description =
      title + (title.empty() || description.empty() ? "" : ": ") + description + range_text(option);
  input.secret = option["sensitive"].as_bool().value_or(false);
  input.required = option["required"].as_bool().value_or(false);
  input.multiple = option["multiple"].as_bool().value_or(false);
  input.format = type == "file" ? "filepath" : type == "string" ? "" : type;
  if (input.format == "number") {
    if (const json::View min = option["min"]; min.is(json::Type::number)) input.min = min.as_double();
    if (const json::View max = option["max"]; max.is(json::Type::number)) input.max = max.as_double();
  }
  const json::View value = option["default"];
  if (!value.is(json::Type::array)) input.default_value = with_places(scalar_text(value));
  if (value.is(json::Type::array)) {
    value.each_element([&](json::View element) {
      input.default_values.push_back(with_places(scalar_text(element)));
      return input.default_values.size() < 1'000;
    });
    if (!input.multiple && !input.default_values.empty()) input.default_value = input.default_values.front();
  } else if (input.multiple && !input.default_value.empty()) {
    input.default_values = {input.default_value};
  }
  return input;
}

// Returns the placeholder for a value of the user; empty if the manifest does not describe it.
std::string Substitution::placeholder_of(const std::string& key) {
  const json::View option = user_config_[key];
  if (!option.is(json::Type::object)) return {};
  const clients::ImportInput input = input_of(option);
  const bool multiple = input.multiple && !input.secret;
  std::string placeholder = row_.add_input(input, key, "user_config:" + key);
  is_multiple_[placeholder] = multiple;
  return placeholder;
}

std::string Substitution::replace(std::string_view name, Substituted& result, bool has_references) {
  constexpr std::string_view kUserConfig = "user_config.";
  if (const auto place = places_.find(name); place != places_.end())
    return has_references ? clients::literal_text(place->second) : place->second;
  std::string placeholder;
  if (name.starts_with(kUserConfig))
    placeholder = placeholder_of(std::string(name.substr(kUserConfig.size())));
  if (!placeholder.empty()) {
    result.placeholders.push_back(placeholder);
    return placeholder;
  }
  row_.remark("the manifest does not say what ${" + std::string(name) + "} is; it stays as it is");
  return (has_references ? "$${" : "${") + std::string(name) + "}";
}

Substituted Substitution::apply(std::string_view text, bool has_references) {
  Substituted result;
  while (true) {
    const std::size_t begin = text.find("${");
    const std::size_t end = begin == std::string_view::npos ? begin : text.find('}', begin);
    const std::string_view literal = text.substr(0, end == std::string_view::npos ? text.size() : begin);
    result.text += has_references ? clients::literal_text(literal) : std::string(literal);
    if (end == std::string_view::npos) break;
    result.text += replace(text.substr(begin + 2, end - begin - 2), result, has_references);
    text.remove_prefix(end + 1);
  }
  result.is_one_placeholder = result.placeholders.size() == 1 && result.text == result.placeholders.front();
  for (const std::string& placeholder : result.placeholders) {
    if (is_multiple_[placeholder] && !result.is_one_placeholder)
      problem_ = "has a value that may be a list inside of the text `" + result.text + "`";
  }
  return result;
}

// ---- the command -----------------------------------------------------------------------------------------

// The member of the platform's own configuration, if it has one, which replaces the general one.
json::View config_member(json::View config, std::string_view key) {
  const json::View own = config["platform_overrides"][kPlatform][key];
  return own.absent() ? config[key] : own;
}

void add_arguments_of(RowBuilder& row, Substitution& substitution, json::View arguments) {
  if (!arguments.is(json::Type::array)) return;
  arguments.each_element([&](json::View argument) {
    const Substituted text = substitution.apply(scalar_text(argument), true);
    row.add_argument(text.text);
    for (const std::string& placeholder : text.placeholders)
      row.add_part(placeholder, row.last_argument_pointer());
    return row.args.size() < 10'000;
  });
}

void add_environment_of(RowBuilder& row, Substitution& substitution, json::View environment) {
  if (!environment.is(json::Type::object)) return;
  environment.each_member([&](std::string_view key, bool escaped, json::View value) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    const Substituted text = substitution.apply(scalar_text(value), true);
    row.set_variable(name, text.text);
    for (const std::string& placeholder : text.placeholders)
      row.add_part(placeholder, member_pointer("/config/env", name));
    return row.env.size() < 10'000;
  });
}

// A `uv` bundle without a command: uv installs its dependencies and runs it.
void add_uv_command(RowBuilder& row, const BundlePlaces& places, const std::string& entry_point) {
  row.command = "uv";
  for (const std::string_view argument : {"run", "--directory"}) row.add_argument(std::string(argument));
  row.add_argument(clients::literal_text(places.bundle));
  row.add_argument(clients::literal_text(entry_point));
}

std::string platform_problem(json::View document) {
  const json::View platforms = document["compatibility"]["platforms"];
  if (!platforms.is(json::Type::array) || platforms.size() == 0) return {};
  bool runs_here = false;
  platforms.each_element([&](json::View platform) {
    runs_here = platform.as_string() == kPlatform;
    return !runs_here;
  });
  return runs_here ? std::string() : "the bundle does not run on this operating system";
}

}  // namespace

Result<BundleManifest> read_manifest(std::string_view text) {
  Result<json::Raw> parsed = json::Raw::parse(text, 64);
  if (!parsed) return manifest_error("is not JSON: " + parsed.error().message());
  const json::View document(*parsed);
  if (!document.is(json::Type::object)) return manifest_error("is not a JSON object");
  if (const std::string problem = version_problem_of_manifest(document); !problem.empty())
    return manifest_error(problem);
  BundleManifest manifest;
  manifest.name = text_of(document, "name");
  manifest.version = text_of(document, "version");
  manifest.title = text_of(document, "display_name");
  manifest.description = text_of(document, "description");
  manifest.author = text_of(document["author"], "name");
  manifest.tools = names_in(document["tools"]);
  if (manifest.name.empty() || manifest.version.empty())
    return manifest_error("has no `name` or no `version`");
  if (!document["server"].is(json::Type::object)) return manifest_error("has no `server`");
  manifest.document = std::move(*parsed);
  return manifest;
}

Result<clients::ImportedServer> server_of(const BundleManifest& manifest, const BundlePlaces& places,
                                          const json::Raw& source) {
  const json::View document(manifest.document);
  const json::View server = document["server"];
  const json::View config = server["mcp_config"];
  RowBuilder row;
  row.title = manifest.title;
  row.description = manifest.description;
  row.skip_reason = platform_problem(document);
  Substitution substitution(row, document["user_config"], places);
  row.command = substitution.apply(scalar_text(config_member(config, "command")), false).text;
  if (row.command.empty() && text_of(server, "type") == "uv")
    add_uv_command(row, places, text_of(server, "entry_point"));
  if (row.command.empty()) return manifest_error("has no `server.mcp_config.command`");
  add_arguments_of(row, substitution, config_member(config, "args"));
  add_environment_of(row, substitution, config_member(config, "env"));
  if (!substitution.problem().empty()) return manifest_error(substitution.problem());
  return std::move(row).build(manifest.name, source);
}

}  // namespace fairlead::packages
