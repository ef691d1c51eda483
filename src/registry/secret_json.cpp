// The JSON form of secrets. The value is read only, never written.
#include <algorithm>

#include "registry/json.hpp"
#include "registry/row_reader.hpp"

namespace fairlead::registry {

namespace {

bool may_be_in_secret_name(char c) {
  constexpr std::string_view kSymbols = "_-./";  // as in references
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kSymbols.contains(c);
}

std::optional<std::string> value_problem(std::string_view value) {
  if (value.empty()) return "is empty";
  if (value.size() > kMaxSecretValueBytes.value)
    return "has more than " + std::string(kMaxSecretValueBytes.name) + " (" +
           std::to_string(kMaxSecretValueBytes.value) + ") bytes";
  return std::nullopt;
}

std::optional<std::string> base64_problem(std::string_view text) {
  if (text.empty()) return "is empty";
  return std::nullopt;
}

// An id or a name: the text is compared with rows, so only its length matters.
std::optional<std::string> row_problem(std::string_view text) {
  return line_problem(text, kMaxSecretNameBytes);
}

json::Raw write_secret(const Secret& secret, bool with_value) {
  json::Writer out;
  begin_row(out, secret);
  write_text(out, "server", secret.server);
  write_text(out, "user", secret.user);
  if (with_value) {
    out.key("dataKey").string(secret.data_key);
    out.key("nonce").string(secret.nonce);
    out.key("ciphertext").string(secret.ciphertext);
  }
  return end_row(out, secret);
}

}  // namespace

std::optional<std::string> secret_name_problem(std::string_view name) {
  if (std::optional<std::string> problem = line_problem(name, kMaxSecretNameBytes)) return problem;
  if (!std::ranges::all_of(name, may_be_in_secret_name))
    return "has characters other than letters, digits and `_-./`";
  return std::nullopt;
}

json::Raw to_json(const Secret& secret) {
  return write_secret(secret, false);
}

json::Raw to_stored_json(const Secret& secret) {
  return write_secret(secret, true);
}

json::Raw to_stored_json(const SecretDataKey& key) {
  json::Writer out;
  out.begin_object().key("id").string(key.id).key("keyId").string(key.key_id);
  out.key("nonce").string(key.nonce).key("ciphertext").string(key.ciphertext);
  write_time(out, "createdAt", key.created_at);
  out.end_object();
  return out.finish();
}

Result<Secret> parse_secret(json::View document) {
  Secret row;
  RowReader in(document);
  in.common(row)
      .time("updatedAt", row.updated_at)
      .require("name")
      .text("name", row.name, secret_name_problem)
      .id("server", row.server)
      .id("user", row.user)
      .require("dataKey")
      .id("dataKey", row.data_key)
      .require("nonce")
      .text("nonce", row.nonce, base64_problem)
      .require("ciphertext")
      .text("ciphertext", row.ciphertext, base64_problem);
  return in.finish(std::move(row));
}

Result<SecretDataKey> parse_secret_data_key(json::View document) {
  SecretDataKey row;
  RowReader in(document);
  in.id("id", row.id)
      .require("keyId")
      .id("keyId", row.key_id)
      .require("nonce")
      .text("nonce", row.nonce, base64_problem)
      .require("ciphertext")
      .text("ciphertext", row.ciphertext, base64_problem)
      .time("createdAt", row.created_at);
  return in.finish(std::move(row));
}

Result<NewSecret> new_secret(json::View body) {
  if (const Result<void> checked = check_new_body(body); !checked) return checked.error();
  Secret row;
  SecretText value;
  RowReader in(body);
  in.require("name")
      .text("name", row.name, secret_name_problem)
      .text("server", row.server, row_problem)
      .text("user", row.user, row_problem)
      .require("value")
      .text("value", value.text(), value_problem);
  Result<Secret> read = in.finish(std::move(row));
  if (!read) return read.error();
  if (!read->user.empty() && read->server.empty())
    return invalid_row("a value of a user needs a `server`", "/server");
  return NewSecret{std::move(*read), std::move(value)};
}

Result<SecretText> patched_value(const Secret& row, json::View patch) {
  if (const Result<void> checked = check_body(patch); !checked) return checked.error();
  const json::Raw before = to_json(row);
  SecretText value;
  RowReader in(patch);
  in.require("value").text("value", value.text(), value_problem);
  json::View(before).each_member([&](std::string_view key, bool, json::View is) {
    json::Raw given;
    in.any(key, given);
    if (!given.absent() && given.text() != is.text())
      in.in().fail(key, "cannot be changed; create another secret, and remove this one");
    return true;
  });
  // `server` and `user` are absent from rows that have none.
  for (const std::string_view key : {"server", "user"}) {
    json::Raw given;
    if (json::View(before)[key].absent() && in.any(key, given).in().has(key))
      in.in().fail(key, "cannot be changed; create another secret, and remove this one");
  }
  return in.finish(std::move(value));
}

}  // namespace fairlead::registry
