#include "mcp/client_cache.hpp"

#include <algorithm>

namespace fairlead::mcp {

namespace {

// The member that tells the results of a method apart; none for methods that are not cached.
std::optional<std::string_view> telling_member(std::string_view method) {
  if (method == "resources/read" || method == "skills/get") return "uri";
  for (const std::string_view listed :
       {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "skills/list"}) {
    if (method == listed) return "cursor";
  }
  return std::nullopt;
}

// nullopt for a request whose result is not to be kept: another method, or params nobody knows the meaning
// of, such as the answers and the state of a round of questions.
std::optional<std::string> key_of(std::string_view method, json::View params) {
  const std::optional<std::string_view> telling = telling_member(method);
  if (!telling || params.text().size() > ClientCache::kMaxParamsBytes) return std::nullopt;
  bool known = true;
  params.each_member([&](std::string_view key, bool escaped, json::View) {
    known = known && (json::key_equals(key, escaped, "_meta") || json::key_equals(key, escaped, *telling));
    return known;
  });
  if (!known) return std::nullopt;
  const json::View value = params[*telling];
  const std::optional<std::string> text = value.as_string();
  if (!value.absent() && !text) return std::nullopt;
  // An empty cursor is a cursor.
  return std::string(method) + (text ? "\n=" + *text : "\n");
}

}  // namespace

std::optional<json::Indexed> ClientCache::find(std::string_view method, json::View params, Time now) const {
  const std::optional<std::string> key = key_of(method, params);
  const auto found = key ? entries_.find(*key) : entries_.end();
  if (found == entries_.end() || now >= found->second.fresh_until) return std::nullopt;
  return found->second.result;
}

std::optional<json::Indexed> ClientCache::find_stale(std::string_view method, json::View params) const {
  const std::optional<std::string> key = key_of(method, params);
  const auto found = key ? entries_.find(*key) : entries_.end();
  if (found == entries_.end()) return std::nullopt;
  return found->second.result;
}

void ClientCache::store(std::string_view method, json::View params, const json::Indexed& result, Time now,
                        std::uint64_t asked_at) {
  const std::optional<std::string> key = key_of(method, params);
  if (!key || asked_at != generation_) return;
  if (const auto old = entries_.find(*key); old != entries_.end()) erase(old);
  const std::int64_t ttl = result["ttlMs"].as_int().value_or(0);
  const json::View type = result["resultType"];
  const bool complete = type.absent() || type.as_string() == "complete";
  const std::size_t size = key->size() + result.text().size();
  if (ttl <= 0 || !complete || size > kMostBytes / 4) return;
  make_room(size, now);
  const std::chrono::milliseconds longest = kLongest;
  entries_.emplace(*key, Entry{result, now + std::min(std::chrono::milliseconds(ttl), longest)});
  bytes_ += size;
}

void ClientCache::on_notification(std::string_view method, json::View params) {
  if (method == "notifications/tools/list_changed") drop("tools/list\n");
  if (method == "notifications/prompts/list_changed") drop("prompts/list\n");
  if (method == "notifications/resources/list_changed") {
    drop("resources/list\n");
    drop("resources/templates/list\n");
    drop("skills/");
  }
  if (method != "notifications/resources/updated") return;
  const std::optional<std::string> uri = params["uri"].as_string(max_uri_bytes_);
  drop("skills/");  // entries have the digests of what they are about
  if (!uri) return drop("resources/read\n");
  const auto found = entries_.find("resources/read\n=" + *uri);
  if (found != entries_.end()) erase(found);
}

void ClientCache::on_bad_cursor(std::string_view method) {
  drop(std::string(method) + "\n");
}

void ClientCache::drop(std::string_view prefix) {
  ++generation_;
  auto at = entries_.lower_bound(prefix);
  while (at != entries_.end() && at->first.starts_with(prefix)) at = erase(at);
}

ClientCache::Entries::iterator ClientCache::erase(Entries::iterator at) {
  bytes_ -= at->first.size() + at->second.result.text().size();
  return entries_.erase(at);
}

// What is stale goes first, then what would be stale first.
void ClientCache::make_room(std::size_t bytes, Time now) {
  const auto fits = [&] { return entries_.size() < kMostEntries && bytes_ + bytes <= kMostBytes; };
  if (fits()) return;
  for (auto at = entries_.begin(); at != entries_.end();)
    at = now >= at->second.fresh_until ? erase(at) : std::next(at);
  while (!fits()) {
    erase(std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.second.fresh_until < b.second.fresh_until;
    }));
  }
}

}  // namespace fairlead::mcp
