#include "registry/published.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/contains.hpp"
#include "registry/row_limits.hpp"
#include "registry/row_reader.hpp"

namespace fairlead::registry {

namespace {

constexpr std::size_t kMaxPublishedItems = 64;
constexpr std::size_t kMaxPublisherBytes = 4u << 10;
constexpr std::string_view kPublisherKey = "io.modelcontextprotocol.registry/publisher-provided";
constexpr NamedLimit kMaxPublishedTitle{"maximum", 100};
constexpr NamedLimit kMaxPublishedName{"maximum", 200};
constexpr NamedLimit kMaxPublishedVersion{"maximum", 255};

bool is_name_character(char c, bool in_namespace) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         (c == '_' && !in_namespace);
}

std::optional<std::string> published_name_problem(std::string_view name) {
  if (std::optional<std::string> problem = line_problem(name, kMaxPublishedName)) return problem;
  const std::size_t slash = name.find('/');
  const auto all = [](std::string_view part, bool in_namespace) {
    return !part.empty() &&
           std::ranges::all_of(part, [&](char c) { return is_name_character(c, in_namespace); });
  };
  const bool valid = slash != std::string_view::npos && all(name.substr(0, slash), true) &&
                     all(name.substr(slash + 1), false);
  return valid ? std::nullopt
               : std::optional<std::string>(
                     "is not a name such as com.example/notes (a domain, reversed, and a name)");
}

std::optional<std::string> published_version_problem(std::string_view version) {
  if (std::optional<std::string> problem = line_problem(version, kMaxPublishedVersion)) return problem;
  return is_exact_version(version) ? std::nullopt
                                   : std::optional<std::string>("is not the number of one version");
}

std::optional<std::string> short_text_problem(std::string_view text) {
  if (text.empty()) return "is empty";
  return characters_problem(text, kMaxPublishedTitle);
}

std::optional<std::string> url_problem(std::string_view url) {
  if (url.starts_with("https://") || url.starts_with("http://")) return line_problem(url, kMaxPatternBytes);
  return "is not an http or https URL";
}

// ---- lists -----------------------------------------------------------------------------------------------

// Why an object lacks one of these texts; nullopt if it has all.
std::optional<std::string> missing_text(json::View object, std::initializer_list<std::string_view> keys) {
  if (!object.is(json::Type::object)) return "is not an object";
  for (const std::string_view key : keys) {
    if (object[key].as_string().value_or("").empty()) return "has no `" + std::string(key) + "`";
  }
  return std::nullopt;
}

std::optional<std::string> transport_type_problem(json::View transport, bool is_remote) {
  const std::string type = transport["type"].as_string().value_or("");
  if (type == "stdio" && !is_remote) return std::nullopt;
  if (type != "streamable-http" && type != "sse") return "has a transport of an unknown `type`";
  const std::string url = transport["url"].as_string().value_or("");
  const bool valid = (url.starts_with("http://") || url.starts_with("https://") || url.starts_with("{")) &&
                     !url.contains(' ');
  return valid ? std::nullopt : std::optional<std::string>("has no `url` with the scheme http or https");
}

std::optional<std::string> package_problem(json::View package) {
  if (auto problem = missing_text(package, {"registryType", "identifier"})) return problem;
  const json::View version = package["version"];
  if (!version.absent() && !is_exact_version(version.as_string().value_or("")))
    return "has a `version` that is not the number of one version";
  if (package["registryType"].as_string() == "mcpb" && package["fileSha256"].absent())
    return "is a bundle without `fileSha256`";
  return transport_type_problem(package["transport"], false);
}

std::optional<std::string> remote_problem(json::View remote) {
  if (auto problem = missing_text(remote, {"type"})) return problem;
  return transport_type_problem(remote, true);
}

std::optional<std::string> icon_problem(json::View icon) {
  if (auto problem = missing_text(icon, {"src"})) return problem;
  const std::string source = *icon["src"].as_string();
  const bool valid = source.starts_with("https://") && source.size() <= 255;
  return valid ? std::nullopt
               : std::optional<std::string>("has a `src` that is not an https URL of at most 255 characters");
}

using ItemCheck = std::optional<std::string> (*)(json::View item);

void check_items(json::ConfigReader& published, std::string_view key, ItemCheck check) {
  const json::View list = published.view()[key];
  if (!published.has(key)) return;
  if (!list.is(json::Type::array)) return published.fail(key, "is not an array");
  if (list.size() > kMaxPublishedItems)
    return published.fail(key, "has more than " + std::to_string(kMaxPublishedItems) + " items");
  std::size_t index = 0;
  list.each_element([&](json::View item) {
    if (const std::optional<std::string> problem = check(item))
      published.fail_entry(key, std::to_string(index), *problem);
    ++index;
    return true;
  });
}

void check_text(json::ConfigReader& published, std::string_view key, const TextCheck& check) {
  std::string text;
  if (!published.has(key)) return;
  published.string(key, text);
  if (const std::optional<std::string> problem = check(text)) published.fail(key, *problem);
}

void check_repository(json::ConfigReader& published) {
  if (!published.has("repository")) return;
  const json::View repository = published.view()["repository"];
  if (const auto problem = missing_text(repository, {"url", "source"}))
    return published.fail("repository", *problem);
  if (const auto problem = url_problem(*repository["url"].as_string()))
    published.fail_entry("repository", "url", *problem);
}

// The only member that the public registry keeps.
void check_meta(json::ConfigReader& published) {
  if (!published.has("_meta")) return;
  const json::View meta = published.view()["_meta"];
  const bool valid = meta.is(json::Type::object) && meta.size() == 1 && !meta[kPublisherKey].absent();
  if (!valid) published.fail("_meta", "has other members than `" + std::string(kPublisherKey) + "`");
  if (meta.text().size() > kMaxPublisherBytes)
    published.fail("_meta", "has more than " + std::to_string(kMaxPublisherBytes) + " bytes");
}

}  // namespace

bool is_exact_version(std::string_view version) noexcept {
  constexpr std::string_view kRange = "^~<>=*| ,";
  if (version.empty() || version == "latest" || version.find_first_of(kRange) != std::string_view::npos)
    return false;
  return !version.ends_with(".x") && !version.contains(".x.") && version != "x";
}

void check_published(json::ConfigReader& row, json::View published) {
  if (!published.is(json::Type::object)) return;
  row.table("published", [](json::ConfigReader& in) {
    for (const std::string_view key : {"name", "version"}) {
      if (!in.has(key)) in.fail(key, "is required");
    }
    check_text(in, "name", published_name_problem);
    check_text(in, "version", published_version_problem);
    check_text(in, "title", short_text_problem);
    check_text(in, "description", short_text_problem);
    check_text(in, "websiteUrl", url_problem);
    check_repository(in);
    check_items(in, "icons", icon_problem);
    check_items(in, "packages", package_problem);
    check_items(in, "remotes", remote_problem);
    check_meta(in);
    in.ignore("$schema");
    in.finish();
  });
}

}  // namespace fairlead::registry
