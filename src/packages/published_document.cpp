#include "packages/published_document.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/contains.hpp"
#include "base/ip_address.hpp"
#include "base/printable.hpp"
#include "base/references.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "http/url.hpp"
#include "registry/published.hpp"

namespace fairlead::packages {

namespace {

constexpr std::string_view kSchema =
    "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
constexpr std::size_t kMaxPublishedBytes = 100;  // of title and description

// ---- inputs ----------------------------------------------------------------------------------------------

bool refers_to_secret(std::string_view value) {
  const Result<std::vector<TextPiece>> pieces = parse_references(value);
  return pieces && std::ranges::any_of(*pieces, [](const TextPiece& piece) {
           const auto* const reference = std::get_if<Reference>(&piece);
           return reference && reference->source == Reference::Source::secret;
         });
}

bool names_secret(std::string name) {
  constexpr std::array<std::string_view, 8> kWords = {"key",        "token", "secret", "password",
                                                      "credential", "auth",  "cookie", "passwd"};
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c | 32) : c; });
  return std::ranges::any_of(kWords, [&](std::string_view word) { return name.contains(word); });
}

void write_input(json::Writer& out, const std::string& name, std::string_view value) {
  out.begin_object().key("name").string(name).key("isRequired").boolean(true);
  if (refers_to_secret(value) || names_secret(name)) out.key("isSecret").boolean(true);
  out.end_object();
}

void write_inputs(json::Writer& out, std::string_view key, const std::map<std::string, std::string>& values) {
  if (values.empty()) return;
  out.key(key).begin_array();
  for (const auto& [name, value] : values) write_input(out, name, value);
  out.end_array();
}

// ---- arguments -------------------------------------------------------------------------------------------

// Whether an argument is the name of an option, which is not secret: "--name" of small letters.
bool is_option_name(std::string_view text) {
  constexpr std::size_t kMaxOptionBytes = 32;
  return text.size() > 2 && text.size() <= kMaxOptionBytes && text.starts_with("--") &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

void write_positional(json::Writer& out, int number) {
  out.begin_object().key("type").string("positional").key("valueHint");
  out.string("argument_" + std::to_string(number)).key("isRequired").boolean(true).end_object();
}

void write_named(json::Writer& out, std::string_view name, bool has_value) {
  out.begin_object().key("type").string("named").key("name").string(name);
  if (has_value) out.key("isRequired").boolean(true);
  out.end_object();
}

void write_arguments(json::Writer& out, std::span<const std::string> arguments) {
  if (arguments.empty()) return;
  int number = 0;
  out.key("packageArguments").begin_array();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const std::size_t equals = std::min(argument.find('='), argument.size());
    if (!is_option_name(argument.substr(0, equals))) {
      write_positional(out, ++number);
      continue;
    }
    const bool value_follows =
        equals == argument.size() && i + 1 < arguments.size() && !arguments[i + 1].starts_with('-');
    write_named(out, argument.substr(0, equals), value_follows || equals < argument.size());
    if (value_follows) ++i;
  }
  out.end_array();
}

// ---- packages --------------------------------------------------------------------------------------------

// A package, as a command names it.
struct NamedPackage {
  std::string_view type;
  std::string_view runtime;
  std::string identifier;
  std::string version;                 // may be empty
  std::vector<std::string> arguments;  // behind the package
};

bool is_package_name(std::string_view text, std::string_view symbols) {
  return !text.empty() && !text.starts_with('-') && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || symbols.contains(c);
  });
}

std::vector<std::string> arguments_from(const std::vector<std::string>& arguments, std::size_t first) {
  return {arguments.begin() + static_cast<std::ptrdiff_t>(first), arguments.end()};
}

// "@scope/name@1.2" or "name==1.2".
bool split_version(NamedPackage& package, std::string_view text, std::string_view separator) {
  const std::size_t at = text.find(separator, 1);
  package.identifier = text.substr(0, at);
  if (at != std::string_view::npos) package.version = text.substr(at + separator.size());
  return is_package_name(package.identifier, "@/._-~") &&
         (package.version.empty() ||
          (registry::is_exact_version(package.version) && is_package_name(package.version, "._-+")));
}

// npx -y name@version …
std::optional<NamedPackage> npm_package(const std::vector<std::string>& arguments) {
  constexpr std::array<std::string_view, 2> kYes = {"-y", "--yes"};
  const std::size_t first = !arguments.empty() && contains(kYes, arguments.front()) ? 1 : 0;
  NamedPackage package{"npm", "npx", {}, {}, {}};
  if (first >= arguments.size() || !split_version(package, arguments[first], "@")) return std::nullopt;
  package.arguments = arguments_from(arguments, first + 1);
  return package;
}

// uvx name==version …
std::optional<NamedPackage> pypi_package(const std::vector<std::string>& arguments) {
  NamedPackage package{"pypi", "uvx", {}, {}, {}};
  if (arguments.empty()) return std::nullopt;
  const std::string_view separator = arguments.front().contains("==") ? "==" : "@";
  if (!split_version(package, arguments.front(), separator)) return std::nullopt;
  package.arguments = arguments_from(arguments, 1);
  return package;
}

// docker run -i --rm -e NAME image:tag …
std::optional<NamedPackage> oci_package(const std::vector<std::string>& arguments) {
  constexpr std::array<std::string_view, 4> kFlags = {"run", "-i", "--rm", "--init"};
  std::size_t i = 0;
  while (i < arguments.size()) {
    const bool is_variable = (arguments[i] == "-e" || arguments[i] == "--env") && i + 1 < arguments.size() &&
                             !arguments[i + 1].contains('=');
    if (!is_variable && !contains(kFlags, arguments[i])) break;
    i += is_variable ? 2 : 1;
  }
  if (i >= arguments.size() || !is_package_name(arguments[i], "/._-:@") || arguments[i].ends_with(":latest"))
    return std::nullopt;
  return NamedPackage{"oci", "docker", arguments[i], {}, arguments_from(arguments, i + 1)};
}

std::optional<NamedPackage> package_in(const pool::Program& program) {
  const std::string_view path = program.command;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name == "npx") return npm_package(program.args);
  if (name == "uvx") return pypi_package(program.args);
  if (name == "docker" || name == "podman") return oci_package(program.args);
  return std::nullopt;
}

void write_package(json::Writer& out, const pool::Program& program) {
  const std::optional<NamedPackage> package = package_in(program);
  if (!package) return;
  out.key("packages").begin_array().begin_object().key("registryType").string(package->type);
  out.key("identifier").string(package->identifier);
  if (!package->version.empty()) out.key("version").string(package->version);
  out.key("runtimeHint").string(package->runtime);
  out.key("transport").begin_object().key("type").string("stdio").end_object();
  write_arguments(out, package->arguments);
  write_inputs(out, "environmentVariables", program.env);
  out.end_object().end_array();
}

// ---- remotes ---------------------------------------------------------------------------------------------

bool is_public_host(const std::string& host) {
  constexpr std::array<std::string_view, 9> kPrivate = {".local", ".internal", ".lan",  ".home",     ".corp",
                                                        ".test",  ".intranet", ".arpa", ".localhost"};
  const std::string_view last_label = std::string_view(host).substr(host.rfind('.') + 1);
  const bool is_address = host.contains(':') || last_label.starts_with("0x") ||
                          last_label.find_first_not_of("0123456789") == std::string_view::npos;
  if (is_address) return is_public_address(host);
  return host.contains('.') && !host.ends_with('.') &&
         std::ranges::none_of(kPrivate, [&](std::string_view end) { return host.ends_with(end); });
}

// Whether a path has only ordinary words. The path of a hosted server often has the only secret of its URL.
bool is_ordinary_path(std::string_view path) {
  constexpr std::size_t kMaxWordBytes = 24;
  std::size_t word = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    const bool is_version = c >= '0' && c <= '9' && i > 1 && path[i - 1] == 'v' && path[i - 2] == '/';
    if (!(c >= 'a' && c <= 'z') && c != '/' && c != '-' && c != '_' && !is_version) return false;
    word = c == '/' ? 0 : word + 1;
    if (word > kMaxWordBytes) return false;
  }
  return true;
}

bool may_publish(const std::string& text) {
  const Result<http::Url> url = http::Url::parse(text);
  return url && url->scheme == "https" && url->user_info.empty() && !text.contains('$') &&
         !text.contains('#') && is_public_host(url->host) && is_ordinary_path(url->target);
}

void write_remote(json::Writer& out, const pool::Address& address) {
  if (!may_publish(address.url)) return;
  out.key("remotes").begin_array().begin_object().key("type");
  out.string(address.url.ends_with("/sse") ? "sse" : "streamable-http").key("url").string(address.url);
  write_inputs(out, "headers", address.headers);
  out.end_object().end_array();
}

// ---- the document ----------------------------------------------------------------------------------------

std::string short_line(const std::string& text) {
  constexpr std::string_view kEllipsis = "...";
  const std::string line = printable_line(text.substr(0, text.find('\n')));
  if (line.size() <= kMaxPublishedBytes) return line;
  return std::string(utf8_prefix(line, kMaxPublishedBytes - kEllipsis.size())).append(kEllipsis);
}

// A member of `published`, or if it is absent the derived text.
void write_text_or(json::Writer& out, std::string_view key, json::View published,
                   const std::string& derived) {
  const json::View given = published[key];
  if (given.absent() && derived.empty()) return;
  out.key(key);
  if (given.absent()) {
    out.string(derived);
  } else {
    out.raw(given.text());
  }
}

}  // namespace

json::Raw server_document_of(const registry::Server& row) {
  const json::View published(row.published);
  json::Writer out;
  out.begin_object().key("$schema").string(kSchema);
  out.key("name").raw(published["name"].text());
  const std::string description = short_line(row.description.empty() ? row.title : row.description);
  write_text_or(out, "description", published, description.empty() ? row.name : description);
  write_text_or(out, "title", published, short_line(row.title));
  out.key("version").raw(published["version"].text());
  for (const std::string_view key : {"repository", "websiteUrl", "icons", "packages", "remotes", "_meta"})
    write_text_or(out, key, published, "");
  if (published["packages"].absent() && published["remotes"].absent()) {
    if (const auto* const program = std::get_if<pool::Program>(&row.spec.transport))
      write_package(out, *program);
    if (const auto* const address = std::get_if<pool::Address>(&row.spec.transport))
      write_remote(out, *address);
  }
  out.end_object();
  return out.finish();
}

}  // namespace fairlead::packages
