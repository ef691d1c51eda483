#include "admin/conditional.hpp"

#include <charconv>
#include <vector>

#include "admin/problem.hpp"

namespace fairlead::admin {

namespace {

struct EntityTag {
  bool weak = false;
  std::string_view tag;  // with its quotes
};

void skip_separators(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t,");
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin);
}

// Parses a list of entity tags. Returns nullopt if it is malformed.
std::optional<std::vector<EntityTag>> parse_tags(std::string_view text) {
  std::vector<EntityTag> tags;
  for (skip_separators(text); !text.empty(); skip_separators(text)) {
    EntityTag tag;
    tag.weak = text.starts_with("W/");
    if (tag.weak) text.remove_prefix(2);
    const std::size_t end = text.find('"', 1);
    if (!text.starts_with('"') || end == std::string_view::npos) return std::nullopt;
    tag.tag = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
    tags.push_back(tag);
  }
  return tags;
}

// Returns the version that the tag names; nullopt if it is weak or not a version.
std::optional<std::int64_t> version_in(const EntityTag& tag) {
  const std::string_view digits = tag.tag.substr(1, tag.tag.size() - 2);
  std::int64_t version = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  if (tag.weak || failure != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return version;
}

// Returns the values of all fields of that name as one list.
std::string joined_field(const http::Headers& headers, std::string_view name) {
  std::string joined;
  for (const auto& [field, value] : headers) {
    if (!http::equals_ignore_case(field, name)) continue;
    joined.append(joined.empty() ? "" : ", ").append(value);
  }
  return joined;
}

}  // namespace

std::string entity_tag(std::int64_t version) {
  return "\"" + std::to_string(version) + "\"";
}

Result<std::optional<std::int64_t>> required_version(const http::Headers& headers, std::int64_t current) {
  if (!headers.has("If-Match")) return std::optional<std::int64_t>();
  const std::string field = joined_field(headers, "If-Match");
  if (field == "*") return std::optional<std::int64_t>(current);
  const std::optional<std::vector<EntityTag>> tags = parse_tags(field);
  if (!tags || tags->empty())
    return problem(codes::kInvalidHeader, "If-Match is not a list of entity tags such as \"3\"");
  if (tags->size() == 1) {
    const std::optional<std::int64_t> named = version_in(tags->front());
    if (named) return named;
  }
  const std::string expected = entity_tag(current);
  for (const EntityTag& tag : *tags) {
    if (!tag.weak && tag.tag == expected) return std::optional<std::int64_t>(current);
  }
  return problem(codes::kVersionMismatch,
                 "the row has the version " + std::to_string(current) + ", which If-Match does not name");
}

bool is_not_modified(const http::Headers& headers, std::string_view tag) {
  if (!headers.has("If-None-Match") || tag.empty()) return false;
  const std::string field = joined_field(headers, "If-None-Match");
  if (field == "*") return true;
  const std::optional<std::vector<EntityTag>> tags = parse_tags(field);
  if (!tags) return false;
  for (const EntityTag& given : *tags) {
    if (given.tag == tag) return true;
  }
  return false;
}

}  // namespace fairlead::admin
