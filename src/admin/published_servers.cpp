#include "admin/published_servers.hpp"

#include <algorithm>
#include <compare>

#include "fairlead/json/view.hpp"
#include "packages/published_document.hpp"

namespace fairlead::admin {

namespace {

bool is_shown(const registry::Server& row) {
  return !row.published.absent() && row.enabled && row.visibility == registry::Visibility::visible;
}

std::string published_text(const registry::Server& row, std::string_view key) {
  return json::View(row.published)[key].as_string().value_or("");
}

// Removes the next part of a version, up to a dot, and returns it.
std::string_view pop_part(std::string_view& version) {
  const std::size_t dot = version.find('.');
  const std::string_view part = version.substr(0, dot);
  version.remove_prefix(dot == std::string_view::npos ? version.size() : dot + 1);
  return part;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Numbers by their value, before words; other parts as text.
std::strong_ordering compare_parts(std::string_view a, std::string_view b) {
  const bool numbers = is_digits(a) && is_digits(b);
  if (!numbers) return is_digits(a) != is_digits(b) ? is_digits(b) <=> is_digits(a) : a <=> b;
  while (a.size() > 1 && a.starts_with('0')) a.remove_prefix(1);
  while (b.size() > 1 && b.starts_with('0')) b.remove_prefix(1);
  return a.size() != b.size() ? a.size() <=> b.size() : a <=> b;
}

std::strong_ordering compare_dotted(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    if (a.empty() != b.empty()) return b.empty() <=> a.empty();
    const std::strong_ordering order = compare_parts(pop_part(a), pop_part(b));
    if (order != 0) return order;
  }
  return std::strong_ordering::equal;
}

struct SplitVersion {
  std::string_view release;
  std::string_view pre_release;
};
SplitVersion split(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  version = version.substr(0, version.find('+'));
  const std::size_t dash = version.find('-');
  if (dash == std::string_view::npos) return {version, {}};
  return {version.substr(0, dash), version.substr(dash + 1)};
}

std::string lower_text(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c | 32) : c; });
  return text;
}

}  // namespace

// As semantic versioning orders them: a pre-release is before its release. Versions that are equal but for
// their build are ordered as texts.
bool NewerVersion::operator()(std::string_view a, std::string_view b) const {
  const SplitVersion first = split(a);
  const SplitVersion second = split(b);
  if (const auto order = compare_dotted(first.release, second.release); order != 0) return order < 0;
  if (first.pre_release.empty() != second.pre_release.empty()) return second.pre_release.empty();
  if (const auto order = compare_dotted(first.pre_release, second.pre_release); order != 0) return order < 0;
  return a < b;
}

PublishedServers::PublishedServers(const std::shared_ptr<registry::Registry>& registry) {
  for (const auto& [id, row] : registry->state().servers.by_id()) {
    if (is_shown(*row)) add(row);
  }
  subscription_ = registry->on_change([this](const registry::Change& change) {
    const auto* const server = std::get_if<registry::RowChange<registry::Server>>(&change);
    if (!server) return;
    if (server->before && is_shown(*server->before)) remove(*server->before);
    if (server->after && is_shown(*server->after)) add(server->after);
  });
}

void PublishedServers::add(const registry::ServerPtr& row) {
  const std::string name = published_text(*row, "name");
  const std::string version = published_text(*row, "version");
  rows_[name][version].insert_or_assign(row->id, row);
  show(name, version);
}

void PublishedServers::remove(const registry::Server& row) {
  const std::string name = published_text(row, "name");
  const std::string version = published_text(row, "version");
  auto& versions = rows_[name];
  versions[version].erase(row.id);
  show(name, version);
  if (versions[version].empty()) versions.erase(version);
  if (versions.empty()) rows_.erase(name);
}

// Updates the entry for a version that has changed.
void PublishedServers::show(const std::string& name, const std::string& version) {
  const auto& rows = rows_[name][version];
  PublishedVersions& versions = servers_[name];
  if (rows.empty()) {
    versions.erase(version);
    if (versions.empty()) servers_.erase(name);
    return;
  }
  const registry::Server& row = *rows.begin()->second;
  PublishedServer shown;
  shown.id = row.id;
  shown.version = version;
  shown.document = packages::server_document_of(row);
  const json::View document(shown.document);
  shown.search_text = lower_text(name + "\n" + document["title"].as_string().value_or("") + "\n" +
                                 document["description"].as_string().value_or(""));
  shown.published_at = row.created_at;
  shown.updated_at = row.updated_at;
  versions.insert_or_assign(version, std::move(shown));
}

}  // namespace fairlead::admin
