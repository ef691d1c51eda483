// The JSON form of users, groups and tokens.
#include <algorithm>
#include <charconv>

#include "base/rfc3339.hpp"
#include "fairlead/base/duration.hpp"
#include "registry/json.hpp"
#include "registry/row_reader.hpp"
#include "registry/rules.hpp"

namespace fairlead::registry {

namespace {

bool may_be_in_account_name(char c) {
  constexpr std::string_view kSymbols = " .-_@+";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kSymbols.contains(c);
}

// Names of accounts are typed in commands and compared by people; other texts belong in `title`.
std::optional<std::string> account_name_problem(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.front() == ' ' || name.back() == ' ') return "begins or ends with a space";
  if (const std::optional<std::string> problem = characters_problem(name, kMaxNameCharacters)) return problem;
  if (!std::ranges::all_of(name, may_be_in_account_name))
    return "has characters other than letters, digits, spaces and `.-_@+`";
  return std::nullopt;
}

Result<User> read_user(json::View document) {
  User row;
  RowReader in(document);
  in.common(row)
      .time("updatedAt", row.updated_at)
      .require("name")
      .text("name", row.name, account_name_problem)
      .title(row.title)
      .choice("role", row.role, &parse_role, "user, admin")
      .flag("enabled", row.enabled);
  return in.finish(std::move(row));
}

Result<Group> read_group(json::View document) {
  Group row;
  RowReader in(document);
  in.common(row)
      .time("updatedAt", row.updated_at)
      .require("name")
      .text("name", row.name, account_name_problem)
      .title(row.title);
  read_ids(in.in(), "members", row.members, kMaxAccessEntries);
  return in.finish(std::move(row));
}

void read_scopes(RowReader& in, std::vector<std::string>& scopes) {
  read_list(in.in(), "scopes", scopes, kMaxScopes, [](std::string_view scope) {
    const std::optional<std::string> problem = line_problem(scope, kMaxScopeBytes);
    return problem ? problem : scope_problem(scope);
  });
}

// Parses a number of days such as "90d", which parse_duration() does not know.
std::optional<std::chrono::milliseconds> parse_days(std::string_view text) {
  constexpr int kMaxDays = 36'500;
  int days = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), days);
  if (problem != std::errc() || end + 1 != text.data() + text.size() || *end != 'd') return std::nullopt;
  if (days < 0 || days > kMaxDays) return std::nullopt;
  return std::chrono::days(days);
}

std::optional<Time> parse_expiry(const std::string& text, Time now) {
  if (const std::optional<Time> time = parse_rfc3339(text)) return time;
  if (const auto days = parse_days(text)) return now + *days;
  if (const Result<std::chrono::milliseconds> duration = parse_duration(text)) return now + *duration;
  return std::nullopt;
}

void read_expiry(RowReader& in, Token& row, Time now) {
  std::string text;
  if (!in.in().has("expires")) return;
  in.in().string("expires", text);
  row.expires_at = parse_expiry(text, now);
  if (!row.expires_at)
    in.in().fail("expires",
                 "is neither a time such as 2026-07-28T10:00:00Z nor a duration such as 90d or 12h");
  if (row.expires_at <= now) in.in().fail("expires", "is not in the future");
}

void write_optional_time(json::Writer& out, std::string_view key, const std::optional<Time>& time) {
  if (time) write_time(out, key, *time);
}

json::Raw write_token(const Token& token, bool with_digest) {
  json::Writer out;
  begin_row(out, token);
  out.key("user").string(token.user);
  out.key("prefix").string(token.prefix);
  if (with_digest) out.key("sha256").string(token.sha256);
  write_list(out, "scopes", token.scopes);
  write_optional_time(out, "expiresAt", token.expires_at);
  write_optional_time(out, "revokedAt", token.revoked_at);
  write_optional_time(out, "lastUsedAt", token.last_used_at);
  return end_row(out, token);
}

template <class T>
Result<T> apply_patch(const T& row, json::View patch, Result<T> (*parse)(json::View)) {
  const json::Raw document = to_json(row);
  const Result<json::Raw> merged = patched_document(json::View(document), patch);
  if (!merged) return merged.error();
  return with_unchanged_members(row, parse(json::View(*merged)));
}

}  // namespace

json::Raw to_json(const User& user) {
  json::Writer out;
  begin_row(out, user);
  write_text(out, "title", user.title);
  out.key("role").string(to_string(user.role));
  out.key("enabled").boolean(user.enabled);
  return end_row(out, user);
}

json::Raw to_json(const Group& group) {
  json::Writer out;
  begin_row(out, group);
  write_text(out, "title", group.title);
  out.key("members").begin_array();
  for (const std::string& member : group.members) out.string(member);
  out.end_array();
  return end_row(out, group);
}

json::Raw to_json(const Token& token) {
  return write_token(token, false);
}

json::Raw to_stored_json(const Token& token) {
  return write_token(token, true);
}

Result<User> parse_user(json::View document) {
  return read_user(document);
}

Result<Group> parse_group(json::View document) {
  return read_group(document);
}

Result<Token> parse_token(json::View document) {
  Token row;
  RowReader in(document);
  const auto plain = [](std::string_view text) { return characters_problem(text, kMaxNameCharacters); };
  in.common(row)
      .text("name", row.name, plain)
      .require("user")
      .text("user", row.user, account_name_problem)
      .text("sha256", row.sha256, plain)
      .text("prefix", row.prefix, plain)
      .time("expiresAt", row.expires_at)
      .time("revokedAt", row.revoked_at)
      .time("lastUsedAt", row.last_used_at);
  read_scopes(in, row.scopes);
  return in.finish(std::move(row));
}

Result<User> new_user(json::View body) {
  if (const Result<void> checked = check_new_body(body); !checked) return checked.error();
  return read_user(body);
}

Result<Group> new_group(json::View body) {
  if (const Result<void> checked = check_new_body(body); !checked) return checked.error();
  return read_group(body);
}

Result<Token> new_token(json::View body, Time now) {
  if (const Result<void> checked = check_new_body(body); !checked) return checked.error();
  Token row;
  RowReader in(body);
  in.text("name", row.name,
          [](std::string_view name) { return characters_problem(name, kMaxNameCharacters); })
      .require("user")
      .text("user", row.user, account_name_problem);
  read_scopes(in, row.scopes);
  read_expiry(in, row, now);
  return in.finish(std::move(row));
}

Result<User> patched(const User& row, json::View patch) {
  return apply_patch(row, patch, &parse_user);
}

Result<Group> patched(const Group& row, json::View patch) {
  return apply_patch(row, patch, &parse_group);
}

}  // namespace fairlead::registry
