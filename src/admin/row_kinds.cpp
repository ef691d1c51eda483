#include "admin/row_kinds.hpp"

#include <algorithm>

#include "base/glob.hpp"
#include "registry/json.hpp"

namespace fairlead::admin {

namespace {

NameFilter name_filter(const Query& query) {
  const std::string* const name = query.find("name");
  return NameFilter{name ? *name : std::string()};
}

std::optional<std::string> text_parameter(const Query& query, std::string_view name) {
  const std::string* const value = query.find(name);
  return value ? std::optional(*value) : std::nullopt;
}

// Sets `into` to the value of a parameter that is one of several words.
template <class Value, class Parse>
Result<void> word_parameter(const Query& query, std::string_view name, Parse parse, std::string_view words,
                            std::optional<Value>& into) {
  const std::string* const value = query.find(name);
  if (!value) return {};
  into = parse(*value);
  if (!into) return parameter_error(name, "is none of " + std::string(words));
  return {};
}

}  // namespace

bool NameFilter::matches_name(std::string_view text) const {
  return name.empty() || glob_matches(name, text);
}

Result<std::optional<bool>> boolean_parameter(const Query& query, std::string_view name) {
  const std::string* const value = query.find(name);
  if (!value) return std::optional<bool>();
  if (*value == "true") return std::optional<bool>(true);
  if (*value == "false") return std::optional<bool>(false);
  return parameter_error(name, "is neither true nor false");
}

Result<ServerKind::Filter> ServerKind::Filter::parse(const Query& query) {
  Filter filter;
  static_cast<NameFilter&>(filter) = name_filter(query);
  const Result<std::optional<bool>> enabled = boolean_parameter(query, "enabled");
  if (!enabled) return enabled.error();
  filter.enabled = *enabled;
  filter.tag = text_parameter(query, "tag");
  filter.domain = text_parameter(query, "domain");
  const Result<void> parsed = word_parameter(query, "visibility", registry::parse_visibility,
                                             "hidden, visible, user", filter.visibility);
  if (!parsed) return parsed.error();
  return filter;
}

bool ServerKind::Filter::matches(const Row& row) const {
  return matches_name(row.name) && (!enabled || *enabled == row.enabled) &&
         (!visibility || *visibility == row.visibility) && (!domain || *domain == row.domain) &&
         (!tag || std::ranges::find(row.tags, *tag) != row.tags.end());
}

json::Raw ServerKind::json(const Principal& reader, const Row& row) {
  return registry::to_json(row, registry::redaction_for(reader, row));
}

Result<EndpointKind::Filter> EndpointKind::Filter::parse(const Query& query) {
  Filter filter;
  static_cast<NameFilter&>(filter) = name_filter(query);
  const Result<std::optional<bool>> enabled = boolean_parameter(query, "enabled");
  if (!enabled) return enabled.error();
  filter.enabled = *enabled;
  return filter;
}

bool EndpointKind::Filter::matches(const Row& row) const {
  return matches_name(row.name) && (!enabled || *enabled == row.enabled);
}

json::Raw EndpointKind::json(const Principal& reader, const Row& row) {
  return registry::to_json(row, registry::redaction_for(reader));
}

Result<UserKind::Filter> UserKind::Filter::parse(const Query& query) {
  Filter filter;
  static_cast<NameFilter&>(filter) = name_filter(query);
  const Result<std::optional<bool>> enabled = boolean_parameter(query, "enabled");
  if (!enabled) return enabled.error();
  filter.enabled = *enabled;
  const Result<void> parsed = word_parameter(query, "role", registry::parse_role, "admin, user", filter.role);
  if (!parsed) return parsed.error();
  return filter;
}

bool UserKind::Filter::matches(const Row& row) const {
  return matches_name(row.name) && (!enabled || *enabled == row.enabled) && (!role || *role == row.role);
}

json::Raw UserKind::json(const Principal&, const Row& row) {
  return registry::to_json(row);
}

Result<GroupKind::Filter> GroupKind::Filter::parse(const Query& query) {
  Filter filter;
  static_cast<NameFilter&>(filter) = name_filter(query);
  return filter;
}

json::Raw GroupKind::json(const Principal&, const Row& row) {
  return registry::to_json(row);
}

Result<TokenKind::Filter> TokenKind::Filter::parse(const Query& query) {
  Filter filter;
  static_cast<NameFilter&>(filter) = name_filter(query);
  filter.user = text_parameter(query, "user");
  return filter;
}

bool TokenKind::Filter::matches(const Row& row) const {
  return matches_name(row.name) && (!user || *user == row.user);
}

Result<SecretKind::Filter> SecretKind::Filter::parse(const Query& query) {
  Filter filter;
  static_cast<NameFilter&>(filter) = name_filter(query);
  filter.server = text_parameter(query, "server");
  filter.user = text_parameter(query, "user");
  return filter;
}

bool SecretKind::Filter::matches(const Row& row) const {
  return matches_name(row.name) && (!server || *server == row.server) && (!user || *user == row.user);
}

json::Raw SecretKind::json(const Principal&, const Row& row) {
  return registry::to_json(row);
}

json::Raw TokenKind::json(const Principal&, const Row& row) {
  return registry::to_json(row);
}

}  // namespace fairlead::admin
