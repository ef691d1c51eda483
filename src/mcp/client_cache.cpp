#include "mcp/client_cache.hpp"

#include <algorithm>

namespace fairlead::mcp {

namespace {

// Returns the member of the params on which the result of a method depends; nullopt for methods that are not
// cached.
std::optional<std::string_view> key_member(std::string_view method) {
  if (method == "resources/read" || method == "skills/get") return "uri";
  for (const std::string_view list_method :
       {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "skills/list"}) {
    if (method == list_method) return "cursor";
  }
  return std::nullopt;
}

// Returns nullopt for a request whose result is not cached: another method, or params with other members,
// such as inputResponses and requestState.
std::optional<std::string> cache_key(std::string_view method, json::View params) {
  const std::optional<std::string_view> member = key_member(method);
  if (!member || params.text().size() > ClientCache::kMaxParamsBytes) return std::nullopt;
  bool is_cacheable = true;
  params.each_member([&](std::string_view key, bool escaped, json::View) {
    is_cacheable =
        is_cacheable && (json::key_equals(key, escaped, "_meta") || json::key_equals(key, escaped, *member));
    return is_cacheable;
  });
  if (!is_cacheable) return std::nullopt;
  const json::View value = params[*member];
  const std::optional<std::string> text = value.as_string();
  if (!value.absent() && !text) return std::nullopt;
  // An empty cursor differs from no cursor.
  return std::string(method) + (text ? "\n=" + *text : "\n");
}

}  // namespace

std::optional<json::IndexedRaw> ClientCache::find(std::string_view method, json::View params,
                                                  Time now) const {
  const std::optional<std::string> key = cache_key(method, params);
  const auto found = key ? entries_.find(*key) : entries_.end();
  if (found == entries_.end() || now >= found->second.fresh_until) return std::nullopt;
  return found->second.result;
}

std::optional<json::IndexedRaw> ClientCache::find_stale(std::string_view method, json::View params) const {
  const std::optional<std::string> key = cache_key(method, params);
  const auto found = key ? entries_.find(*key) : entries_.end();
  if (found == entries_.end()) return std::nullopt;
  return found->second.result;
}

void ClientCache::store(std::string_view method, json::View params, const json::IndexedRaw& result, Time now,
                        std::uint64_t request_generation) {
  const std::optional<std::string> key = cache_key(method, params);
  if (!key || request_generation != generation_) return;
  if (const auto old = entries_.find(*key); old != entries_.end()) erase(old);
  const std::int64_t ttl = result["ttlMs"].as_int().value_or(0);
  const json::View type = result["resultType"];
  const bool complete = type.absent() || type.as_string() == "complete";
  const std::size_t size = key->size() + result.text().size();
  if (ttl <= 0 || !complete || size > kMaxBytes / 4) return;
  make_room(size, now);
  const std::chrono::milliseconds max_ttl = kMaxTtl;
  entries_.emplace(*key, Entry{result, now + std::min(std::chrono::milliseconds(ttl), max_ttl)});
  bytes_ += size;
}

void ClientCache::invalidate_by_notification(std::string_view method, json::View params) {
  if (method == "notifications/tools/list_changed") erase_prefix("tools/list\n");
  if (method == "notifications/prompts/list_changed") erase_prefix("prompts/list\n");
  if (method == "notifications/resources/list_changed") {
    erase_prefix("resources/list\n");
    erase_prefix("resources/templates/list\n");
    erase_prefix("skills/");
  }
  if (method != "notifications/resources/updated") return;
  const std::optional<std::string> uri = params["uri"].as_string(max_notified_uri_bytes_);
  erase_prefix("skills/");  // skill entries contain digests of resources
  if (!uri) return erase_prefix("resources/read\n");
  const auto found = entries_.find("resources/read\n=" + *uri);
  if (found != entries_.end()) erase(found);
}

void ClientCache::erase_pages(std::string_view method) {
  erase_prefix(std::string(method) + "\n");
}

void ClientCache::erase_prefix(std::string_view prefix) {
  ++generation_;
  auto entry = entries_.lower_bound(prefix);
  while (entry != entries_.end() && entry->first.starts_with(prefix)) entry = erase(entry);
}

ClientCache::Entries::iterator ClientCache::erase(Entries::iterator entry) {
  bytes_ -= entry->first.size() + entry->second.result.text().size();
  return entries_.erase(entry);
}

// Evicts expired entries first, then those that expire first.
void ClientCache::make_room(std::size_t bytes, Time now) {
  const auto fits = [&] { return entries_.size() < kMaxEntries && bytes_ + bytes <= kMaxBytes; };
  if (fits()) return;
  for (auto entry = entries_.begin(); entry != entries_.end();)
    entry = now >= entry->second.fresh_until ? erase(entry) : std::next(entry);
  while (!fits()) {
    erase(std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.second.fresh_until < b.second.fresh_until;
    }));
  }
}

}  // namespace fairlead::mcp
