// Changes of secrets and of their keys.
#include <utility>

#include "registry/operations.hpp"
#include "registry/secret_keyring.hpp"
#include "registry/user_limits.hpp"

namespace fairlead::registry {

namespace {

constexpr std::int64_t kSecretsPerPage = 50;

// Returns the data keys in the order of their creation.
Result<std::vector<SecretDataKeyPtr>> read_data_keys(WriteContext& context) {
  constexpr std::int64_t kMaxDataKeys = 1'000;
  Result<std::vector<sql::Row>> rows =
      read_documents(context.transaction, RowTable<SecretDataKey>::table, "", kMaxDataKeys);
  if (!rows) return rows.error();
  std::vector<SecretDataKeyPtr> keys;
  for (sql::Row& row : *rows) {
    Result<SecretDataKeyPtr> key =
        decode_row<SecretDataKey>(sql::text(row[0]), std::move(std::get<std::string>(row[1])));
    if (!key) return key.error();
    keys.push_back(std::move(*key));
  }
  return keys;
}

// Returns the data key that encrypts new values.
Result<SecretDataKeyPtr> current_data_key(WriteContext& context) {
  Result<std::vector<SecretDataKeyPtr>> keys = read_data_keys(context);
  if (!keys) return keys.error();
  if (keys->empty()) return secret_key_missing();
  return keys->back();
}

Result<SecretDataKeyPtr> insert_data_key(WriteContext& context, const std::string& key_id) {
  Result<std::string> id = context.ids.next(context.now);
  if (!id) return id.error();
  Result<SecretDataKey> row = context.secret_keys.new_data_key(std::move(*id), context.now, key_id);
  if (!row) return row.error();
  if (Result<void> done = insert_row(context.transaction, *row); !done) return done.error();
  context.record(RowTable<SecretDataKey>::kind, row->id);
  return std::make_shared<const SecretDataKey>(std::move(*row));
}

// Returns the id of a row by its id or name; empty if there is no such row.
Result<std::string> id_of(WriteContext& context, std::string_view table, const std::string& text) {
  Result<std::vector<sql::Row>> rows =
      context.transaction.execute("select id from " + std::string(table) +
                                      " where id = $1 or name = $1 order by case when id = $1 then 0 "
                                      "else 1 end",
                                  {text});
  if (!rows) return rows.error();
  return rows->empty() ? std::string() : sql::text(rows->front().front());
}

// Replaces names by ids. A text without a row stays as it is.
Result<void> resolve_owner(WriteContext& context, Secret& row) {
  if (!is_administrator(context.actor) && row.user.empty()) row.user = context.actor.user;
  for (auto& [text, table] : {std::pair(&row.server, "servers"), std::pair(&row.user, "users")}) {
    if (text->empty()) continue;
    Result<std::string> id = id_of(context, table, *text);
    if (!id) return id.error();
    if (!id->empty()) *text = std::move(*id);
  }
  return {};
}

Result<void> check_owner(WriteContext& context, const Secret& row) {
  ServerPtr server;
  if (!row.server.empty()) {
    Result<ServerPtr> found = read_row<Server>(context.transaction, row.server);
    if (!found) return found.error();
    server = std::move(*found);
  }
  if (is_administrator(context.actor) && !row.server.empty() && !server)
    return invalid_member("/server", "there is no " + describe("server", row.server));
  if (Result<void> allowed = check_new_secret(context.actor, row, server.get()); !allowed) return allowed;
  if (!row.user.empty() && row.server.empty())
    return invalid_member("/server", "a value of a user needs a `server`");
  return check_reference(context, "users", "user", row.user, "/user");
}

Result<void> check_is_new(WriteContext& context, const Secret& row) {
  Result<std::vector<sql::Row>> rows = context.transaction.execute(
      "select id from secrets where scope_key = $1", {secret_scope_key(row.server, row.user, row.name)});
  if (!rows) return rows.error();
  if (rows->empty()) return {};
  return rejected(kNameTaken, "there is already a " + describe("secret", row.name) +
                                  " of this server and user: " + sql::text(rows->front().front()))
      .with([](ErrorDetail& detail) { detail.pointer = "/name"; });
}

Result<void> encrypt_with_current(WriteContext& context, const SecretText& value, Secret& row) {
  Result<SecretDataKeyPtr> key = current_data_key(context);
  if (!key) return key.error();
  Result<void> done = context.secret_keys.encrypt(**key, value.view(), row);
  if (!done) return done;
  return check_secret_count(context, row, static_cast<std::int64_t>(row.ciphertext.size()));
}

Result<SecretText> value_of(WriteContext& context, const Secret& row) {
  Result<SecretDataKeyPtr> key = read_row<SecretDataKey>(context.transaction, row.data_key);
  if (!key) return key.error();
  if (!*key) return Error(ErrorKind::validation, "the data key " + row.data_key + " does not exist");
  return context.secret_keys.decrypt(**key, row);
}

Result<void> remove_secrets_where(WriteContext& context, std::string_view column, const std::string& id) {
  Result<std::vector<sql::Row>> removed = context.transaction.execute(
      "delete from secrets where " + std::string(column) + " = $1 returning id", {id});
  if (!removed) return removed.error();
  for (const sql::Row& row : *removed) context.record(RowTable<Secret>::kind, sql::text(row.front()));
  return {};
}

}  // namespace

Result<SecretPtr> create_secret(WriteContext& context, NewSecret secret) {
  Secret& row = secret.row;
  Result<void> done = resolve_owner(context, row);
  if (done) done = check_owner(context, row);
  if (done) done = check_is_new(context, row);
  if (!done) return done.error();
  Result<std::string> id = context.ids.next(context.now);
  if (!id) return id.error();
  row.id = std::move(*id);
  row.created_at = row.updated_at = context.now;
  done = encrypt_with_current(context, secret.value, row);
  if (done) done = insert_row(context.transaction, row);
  if (!done) return done.error();
  context.record(RowTable<Secret>::kind, row.id);
  return std::make_shared<const Secret>(std::move(row));
}

Result<SecretPtr> patch_secret(WriteContext& context, const std::string& id, const json::Raw& patch,
                               const Version& version) {
  Result<SecretPtr> before = find_row<Secret>(context, Operation::update, id);
  if (!before) return before;
  Result<void> done = check_version((*before)->version, version);
  if (!done) return done.error();
  const Result<SecretText> value = patched_value(**before, json::View(patch));
  if (!value) return value.error();
  const Result<SecretText> former = value_of(context, **before);
  if (former && former->view() == value->view()) return before;
  Secret after = **before;
  after.version = (*before)->version + 1;
  after.updated_at = context.now;
  done = encrypt_with_current(context, *value, after);
  if (done) done = update_row(context.transaction, after);
  if (!done) return done.error();
  context.record(RowTable<Secret>::kind, after.id);
  return std::make_shared<const Secret>(std::move(after));
}

Result<void> remove_secret(WriteContext& context, const std::string& id, const Version& version) {
  Result<SecretPtr> row = find_row<Secret>(context, Operation::remove, id);
  if (!row) return row.error();
  Result<void> done = check_version((*row)->version, version);
  if (done) done = remove_row(context, **row);
  return done;
}

Result<void> remove_secrets_of_server(WriteContext& context, const std::string& server_id) {
  return remove_secrets_where(context, "server_id", server_id);
}

Result<void> remove_secrets_of_user(WriteContext& context, const std::string& user_id) {
  return remove_secrets_where(context, "user_id", user_id);
}

// ---- keys ------------------------------------------------------------------------------------------------

namespace {

Result<void> create_first_data_key(WriteContext& context, const SecretKeyOptions& options) {
  SecretKeyring& keys = context.secret_keys;
  if (!keys.has_keys() && options.manage_file && !options.text) {
    Result<std::vector<SecretKey>> created = SecretKeyFile(options.file).create();
    if (!created) return created.error();
    for (SecretKey& key : *created) keys.add(std::move(key), false);
  }
  if (!keys.has_keys()) return {};
  Result<SecretDataKeyPtr> inserted = insert_data_key(context, keys.preferred_id());
  return inserted ? Result<void>() : inserted.error();
}

Error missing_key_error(const std::string& key_id, const SecretKeyOptions& options) {
  const std::string reason =
      options.file.empty() ? "no key is configured" : "the key file " + options.file + " does not exist";
  return lost_secret_key(key_id, reason);
}

// Encrypts the data keys with another key-encryption key.
Result<std::size_t> rewrap_data_keys(WriteContext& context, const std::vector<SecretDataKeyPtr>& keys,
                                     const std::string& key_id) {
  for (const SecretDataKeyPtr& key : keys) {
    Result<SecretDataKey> after = context.secret_keys.rewrapped(*key, key_id);
    if (!after) return after.error();
    if (Result<void> done = update_row(context.transaction, *after); !done) return done.error();
    context.record(RowTable<SecretDataKey>::kind, key->id);
  }
  return keys.size();
}

// The version stays, because the value does.
Result<void> reencrypt(WriteContext& context, const SecretDataKey& key, const Secret& before) {
  const Result<SecretText> value = value_of(context, before);
  if (!value)
    return Error(ErrorKind::validation, describe("secret", before.name) + " (" + before.id +
                                            ") cannot be decrypted: " + value.error().message() +
                                            "; set or remove it first");
  Secret after = before;
  Result<void> done = context.secret_keys.encrypt(key, value->view(), after);
  if (done) done = update_row(context.transaction, after);
  if (done) context.record(RowTable<Secret>::kind, after.id);
  return done;
}

Result<std::size_t> reencrypt_all(WriteContext& context, const SecretDataKey& key) {
  std::size_t count = 0;
  std::string last;
  for (;;) {
    Result<std::vector<sql::Row>> page =
        read_documents(context.transaction, RowTable<Secret>::table, last, kSecretsPerPage);
    if (!page) return page.error();
    if (page->empty()) return count;
    for (sql::Row& row : *page) {
      last = sql::text(row[0]);
      Result<SecretPtr> secret = decode_row<Secret>(last, std::move(std::get<std::string>(row[1])));
      if (!secret) return secret.error();
      if (Result<void> done = reencrypt(context, key, **secret); !done) return done.error();
      ++count;
    }
  }
}

Result<std::size_t> replace_data_keys(WriteContext& context, const std::vector<SecretDataKeyPtr>& keys,
                                      const std::string& key_id) {
  Result<SecretDataKeyPtr> added = insert_data_key(context, key_id);
  if (!added) return added.error();
  Result<std::size_t> values = reencrypt_all(context, **added);
  if (!values) return values;
  for (const SecretDataKeyPtr& key : keys) {
    if (Result<void> done = remove_row(context, *key); !done) return done.error();
  }
  return values;
}

}  // namespace

Result<std::string> prepare_secret_keys(WriteContext& context, const SecretKeyOptions& options) {
  Result<std::vector<SecretDataKeyPtr>> rows = read_data_keys(context);
  if (!rows) return rows.error();
  if (rows->empty()) {
    Result<void> created = create_first_data_key(context, options);
    if (!created) return created.error();
    return context.secret_keys.preferred_id();
  }
  const std::string key_id = rows->back()->key_id;
  if (!options.required) return key_id;
  if (!context.secret_keys.has_keys()) return missing_key_error(key_id, options);
  for (const SecretDataKeyPtr& row : *rows) {
    if (Result<void> unlocked = context.secret_keys.unlock(*row); !unlocked) return unlocked.error();
  }
  return key_id;
}

Result<RekeyOutcome> rekey_secrets(WriteContext& context, const RekeyRequest& request,
                                   const std::function<Result<std::string>(std::string_view)>& next_key) {
  const Decision decision = decide(context.actor, Operation::administer, Area::secrets);
  if (!decision) return decision.error("the keys of the secrets");
  Result<std::vector<SecretDataKeyPtr>> keys = read_data_keys(context);
  if (!keys) return keys.error();
  if (keys->empty()) return secret_key_missing();
  RekeyOutcome outcome;
  outcome.previous_key_id = outcome.key_id = keys->back()->key_id;
  if (request.key) {
    Result<std::string> next = next_key(outcome.previous_key_id);
    if (!next) return next.error();
    outcome.key_id = std::move(*next);
  }
  Result<std::size_t> done = request.data_key ? replace_data_keys(context, *keys, outcome.key_id)
                                              : rewrap_data_keys(context, *keys, outcome.key_id);
  if (!done) return done.error();
  context.transaction.erase_former_content();
  outcome.data_keys = request.data_key ? 1 : *done;
  outcome.values = request.data_key ? *done : 0;
  return outcome;
}

}  // namespace fairlead::registry
