#include "packages/package_command.hpp"

#include <algorithm>
#include <array>

#include "base/contains.hpp"
#include "clients/fill_inputs.hpp"
#include "packages/input_template.hpp"

namespace fairlead::packages {

namespace {

using clients::literal_text;

// ---- arguments -------------------------------------------------------------------------------------------

// A named argument of which nothing but the name is known is a flag.
bool is_bare_flag(json::View argument) {
  constexpr std::array<std::string_view, 9> kAboutValue = {"value",    "default",     "format",
                                                           "choices",  "placeholder", "isRequired",
                                                           "isSecret", "valueHint",   "isRepeated"};
  return std::ranges::all_of(kAboutValue,
                             [&](std::string_view key) { return document_member(argument, key).absent(); });
}

void add_parts(RowBuilder& row, const InputText& text, std::size_t first_argument) {
  for (const std::string& placeholder : text.placeholders) {
    for (std::size_t i = first_argument; i < row.args.size(); ++i)
      row.add_part(placeholder, row.argument_pointer(i));
  }
}

void add_named(RowBuilder& row, json::View argument, CommandOptions options) {
  const std::string name = text_member(argument, "name");
  if (is_bare_flag(argument)) return row.add_argument(literal_text(name));
  const InputText value = resolve_input(row, argument, name);
  const std::size_t first = row.args.size();
  if (options.join_named_arguments || text_member(argument, "format") == "boolean") {
    row.add_argument(literal_text(name) + "=" + value.text);
  } else {
    row.add_argument(literal_text(name));
    row.add_argument(value.text);
  }
  add_parts(row, value, first);
}

void add_positional(RowBuilder& row, json::View argument) {
  const std::string hint = text_member(argument, "valueHint");
  const InputText value = resolve_input(row, argument, hint.empty() ? "argument" : hint);
  row.add_argument(value.text);
  add_parts(row, value, row.args.size() - 1);
}

void add_arguments(RowBuilder& row, json::View arguments, CommandOptions options) {
  if (!arguments.is(json::Type::array)) return;
  arguments.each_element([&](json::View argument) {
    if (!text_member(argument, "name").empty()) {
      add_named(row, argument, options);
    } else {
      add_positional(row, argument);
    }
    return true;
  });
}

// Whether one of the arguments has this fixed text.
bool has_argument(json::View arguments, std::string_view text) {
  bool found = false;
  if (!arguments.is(json::Type::array)) return found;
  arguments.each_element([&](json::View argument) {
    found = argument["value"].as_string() == text || argument["name"].as_string() == text;
    return !found;
  });
  return found;
}

// ---- variables and headers -------------------------------------------------------------------------------

bool is_variable_name(std::string_view name) {
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

void add_variables(RowBuilder& row, json::View variables) {
  if (!variables.is(json::Type::array)) return;
  variables.each_element([&](json::View variable) {
    const std::string name = text_member(variable, "name");
    if (!is_variable_name(name)) {
      row.remark("the variable `" + name + "` is left out: this is not the name of a variable");
      return true;
    }
    const InputText value = resolve_input(row, variable, name, "env:" + name);
    row.set_variable(name, value.text);
    for (const std::string& placeholder : value.placeholders)
      row.add_part(placeholder, member_pointer("/config/env", name));
    return true;
  });
}

// Docker passes only variables on that its command names.
void add_container_variables(RowBuilder& row, json::View variables) {
  add_variables(row, variables);
  if (!variables.is(json::Type::array)) return;
  variables.each_element([&](json::View variable) {
    const std::string name = text_member(variable, "name");
    if (!row.env.contains(name)) return true;
    const std::size_t first = row.args.size();
    row.add_argument("-e");
    row.add_argument(name);
    if (!document_member(variable, "value").absent()) return true;
    add_parts(row, resolve_input(row, variable, name, "env:" + name), first);
    return true;
  });
}

void add_headers(RowBuilder& row, json::View headers) {
  if (!headers.is(json::Type::array)) return;
  headers.each_element([&](json::View header) {
    const std::string name = text_member(header, "name");
    if (name.empty()) return true;
    const InputText value = resolve_input(row, header, name, "header:" + name);
    row.headers[name] = value.text;
    for (const std::string& placeholder : value.placeholders)
      row.add_part(placeholder, member_pointer("/config/headers", name));
    return true;
  });
}

// ---- identifiers -----------------------------------------------------------------------------------------

// Whether the text is one word that cannot be taken for an option.
bool is_plain_word(std::string_view text) {
  constexpr std::string_view kSymbols = "@/._:~+!-=";
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kSymbols.contains(c);
  });
}

// Why a version does not name one version; empty if it does.
std::string version_problem(const std::string& version) {
  if (version.empty()) return "the package names no version";
  if (version == "latest") return "the package has the version `latest`, which changes";
  const bool is_range = version.ends_with(".x") || version.contains(".x.") ||
                        version.find_first_of("/@:=~") != std::string::npos;
  if (is_range || !is_plain_word(version)) return "`" + version + "` is not the number of one version";
  return {};
}

struct PackageId {
  std::string type;
  std::string identifier;
  std::string version;
};

// The image with its tag or digest.
std::string image_of(RowBuilder& row, const PackageId& id) {
  const std::size_t slash = id.identifier.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const std::string name = id.identifier.substr(begin);
  const bool tagged = name.contains(':') || name.contains('@');
  const std::string image = tagged || id.version.empty() ? id.identifier : id.identifier + ":" + id.version;
  if ((!tagged && id.version.empty()) || image.ends_with(":latest"))
    row.skip_reason = "the image `" + image + "` has no tag of one version";
  return image;
}

// ---- kinds of packages -----------------------------------------------------------------------------------

using Adder = void (*)(RowBuilder& row, json::View package, const PackageId& id, CommandOptions options);

// The program that the document asks for, if it is one of `allowed`, otherwise the first of them.
std::string runtime(RowBuilder& row, json::View package, std::initializer_list<std::string_view> allowed) {
  const std::string hint = text_member(package, "runtimeHint");
  if (hint.empty() || contains(allowed, hint)) return hint.empty() ? std::string(*allowed.begin()) : hint;
  row.remark("the runtime `" + hint + "` is not supported; `" + std::string(*allowed.begin()) + "` is used",
             "/config/command");
  return std::string(*allowed.begin());
}

// Another registry than the public one.
void add_registry(RowBuilder& row, json::View package, std::string_view option,
                  std::string_view public_host) {
  const std::string url = text_member(package, "registryBaseUrl");
  if (url.empty() || url.contains(public_host)) return;
  if (!is_plain_word(url)) return row.remark("the address of the package registry is left out");
  row.add_argument(std::string(option) + "=" + url);
  row.remark("the package comes from the registry " + url);
}

void add_npm(RowBuilder& row, json::View package, const PackageId& id, CommandOptions options) {
  const json::View runtime_arguments = document_member(package, "runtimeArguments");
  row.command = runtime(row, package, {"npx", "bunx"});
  if (row.command == "npx" && !has_argument(runtime_arguments, "-y") &&
      !has_argument(runtime_arguments, "--yes"))
    row.add_argument("-y");
  add_registry(row, package, "--registry", "npmjs.org");
  add_arguments(row, runtime_arguments, options);
  row.add_argument(id.identifier + "@" + id.version);
}

void add_pypi(RowBuilder& row, json::View package, const PackageId& id, CommandOptions options) {
  const json::View runtime_arguments = document_member(package, "runtimeArguments");
  row.command = runtime(row, package, {"uvx"});
  add_registry(row, package, "--default-index", "pypi.org");
  add_arguments(row, runtime_arguments, options);
  const bool names_script = has_argument(runtime_arguments, "--from");
  row.add_argument(names_script ? id.identifier : id.identifier + "==" + id.version);
}

void add_oci(RowBuilder& row, json::View package, const PackageId& id, CommandOptions options) {
  const json::View runtime_arguments = document_member(package, "runtimeArguments");
  row.command = runtime(row, package, {"docker", "podman"});
  for (const std::string_view argument : {"run", "-i", "--rm"}) {
    if (!has_argument(runtime_arguments, argument)) row.add_argument(std::string(argument));
  }
  add_arguments(row, runtime_arguments, options);
  add_container_variables(row, document_member(package, "environmentVariables"));
  row.add_argument(image_of(row, id));
}

void add_nuget(RowBuilder& row, json::View package, const PackageId& id, CommandOptions options) {
  const json::View runtime_arguments = document_member(package, "runtimeArguments");
  row.command = runtime(row, package, {"dnx"});
  row.add_argument(id.identifier + "@" + id.version);
  if (!has_argument(runtime_arguments, "--yes")) row.add_argument("--yes");
  add_registry(row, package, "--source", "api.nuget.org");
  add_arguments(row, runtime_arguments, options);
  if (document_member(package, "packageArguments").size() > 0) row.add_argument("--");
}

// A program that must be installed first.
void add_program(RowBuilder& row, const PackageId& id, const std::string& install) {
  const std::size_t slash = id.identifier.rfind('/');
  row.command = slash == std::string::npos ? id.identifier : id.identifier.substr(slash + 1);
  row.remark("install the program `" + row.command + "` first: " + install, "/config/command");
}
void add_cargo(RowBuilder& row, json::View, const PackageId& id, CommandOptions) {
  add_program(row, id, "cargo install --version " + id.version + " " + id.identifier);
}
void add_go(RowBuilder& row, json::View, const PackageId& id, CommandOptions) {
  add_program(row, id, "go install " + id.identifier + "@" + id.version);
}

void add_bundle(RowBuilder& row, json::View package, const PackageId& id, CommandOptions) {
  const std::string sha256 = text_member(package, "fileSha256");
  row.skip_reason = sha256.empty() ? "the bundle " + id.identifier + " has no SHA-256, so it must not be used"
                                   : "this is a bundle: download " + id.identifier +
                                         ", check that its SHA-256 is " + sha256 + ", and import the file";
}

struct Kind {
  std::string_view type;
  Adder add;
  bool needs_version;
};
constexpr std::array kKinds = {Kind{"npm", add_npm, true},     Kind{"pypi", add_pypi, true},
                               Kind{"oci", add_oci, false},    Kind{"nuget", add_nuget, true},
                               Kind{"cargo", add_cargo, true}, Kind{"go", add_go, true},
                               Kind{"mcpb", add_bundle, false}};

std::string transport_problem(json::View package) {
  const json::View transport = package["transport"];
  const std::string type = text_member(transport, "type");
  if (type.empty() || type == "stdio") return {};
  return "its server listens at " + text_member(transport, "url") + " (" + type +
         "): start it yourself, and add this URL";
}

}  // namespace

void add_package(RowBuilder& row, json::View package, CommandOptions options) {
  const PackageId id{text_member(package, "registryType"), text_member(package, "identifier"),
                     text_member(package, "version")};
  const auto kind = std::ranges::find(kKinds, id.type, &Kind::type);
  if (kind == kKinds.end()) {
    row.skip_reason = "packages of the type `" + id.type + "` are not supported";
  } else if (!is_plain_word(id.identifier)) {
    row.skip_reason = "`" + id.identifier + "` is not the name of a package";
  } else if (kind->needs_version) {
    row.skip_reason = version_problem(id.version);
  }
  if (row.skip_reason.empty()) row.skip_reason = transport_problem(package);
  if (!row.skip_reason.empty()) return;
  kind->add(row, package, id, options);
  add_arguments(row, document_member(package, "packageArguments"), options);
  if (id.type != "oci") add_variables(row, document_member(package, "environmentVariables"));
}

void add_remote(RowBuilder& row, json::View remote) {
  const std::string type = text_member(remote, "type");
  if (type != "streamable-http" && type != "sse") {
    row.skip_reason = "remotes of the type `" + type + "` are not supported";
    return;
  }
  row.url = resolve_template(row, text_member(remote, "url"), remote["variables"], "url", true).text;
  if (row.url.empty()) row.skip_reason = "the remote has no URL";
  add_headers(row, remote["headers"]);
}

}  // namespace fairlead::packages
