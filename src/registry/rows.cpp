#include "registry/rows.hpp"

#include "base/lower_case.hpp"
#include "registry/stored_lists.hpp"

namespace fairlead::registry {

std::string name_key(std::string_view name) {
  return lower_case(name);
}

namespace {

sql::Value document_of(const json::Raw& json) {
  return std::string(json.text());
}
sql::Value flag(bool value) {
  return std::int64_t{value};
}

}  // namespace

Columns RowTable<Server>::columns(const Server& row) {
  return {{"id", row.id},
          {"name", row.name},
          {"name_key", name_key(row.name)},
          {"owner", row.owner.empty() ? sql::Value() : sql::Value(row.owner)},
          {"visibility", std::string(to_string(row.visibility))},
          {"transport", row.transport()},
          {"enabled", flag(row.enabled)},
          {"document", document_of(to_json(row))},
          {"version", row.version},
          {"created_at", to_stored_time(row.created_at)},
          {"updated_at", to_stored_time(row.updated_at)}};
}

Columns RowTable<Endpoint>::columns(const Endpoint& row) {
  return {{"id", row.id},
          {"name", row.name},
          {"name_key", name_key(row.name)},
          {"enabled", flag(row.enabled)},
          {"document", document_of(to_json(row))},
          {"version", row.version},
          {"created_at", to_stored_time(row.created_at)},
          {"updated_at", to_stored_time(row.updated_at)}};
}

Columns RowTable<User>::columns(const User& row) {
  return {{"id", row.id},
          {"name", row.name},
          {"name_key", name_key(row.name)},
          {"role", std::string(to_string(row.role))},
          {"enabled", flag(row.enabled)},
          {"document", document_of(to_json(row))},
          {"version", row.version},
          {"created_at", to_stored_time(row.created_at)},
          {"updated_at", to_stored_time(row.updated_at)}};
}

Columns RowTable<Group>::columns(const Group& row) {
  return {{"id", row.id},
          {"name", row.name},
          {"name_key", name_key(row.name)},
          {"document", document_of(to_json(row))},
          {"version", row.version},
          {"created_at", to_stored_time(row.created_at)},
          {"updated_at", to_stored_time(row.updated_at)}};
}

Columns RowTable<Token>::columns(const Token& row) {
  return {{"id", row.id},
          {"name", row.name},
          {"user_id", row.user},
          {"sha256", row.sha256},
          {"document", document_of(to_stored_json(row))},
          {"version", row.version},
          {"created_at", to_stored_time(row.created_at)},
          {"expires_at", to_stored_time(row.expires_at)},
          {"revoked_at", to_stored_time(row.revoked_at)},
          {"last_used_at", to_stored_time(row.last_used_at)}};
}

Columns RowTable<Drift>::columns(const Drift& row) {
  return {{"id", row.id},
          {"server_id", row.server_id},
          {"kind", row.kind},
          {"name", row.name},
          {"status", std::string(to_string(row.status))},
          {"detected_at", to_stored_time(row.detected_at)},
          {"document", document_of(to_json(row))}};
}

std::string secret_scope_key(std::string_view server, std::string_view user, std::string_view name) {
  std::string key(server);
  key.append("\n").append(user).append("\n").append(name);
  return key;
}

Columns RowTable<Secret>::columns(const Secret& row) {
  return {{"id", row.id},
          {"scope_key", secret_scope_key(row.server, row.user, row.name)},
          {"name", row.name},
          {"server_id", row.server.empty() ? sql::Value() : sql::Value(row.server)},
          {"user_id", row.user.empty() ? sql::Value() : sql::Value(row.user)},
          {"data_key_id", row.data_key},
          {"bytes", static_cast<std::int64_t>(row.ciphertext.size())},
          {"document", document_of(to_stored_json(row))},
          {"version", row.version},
          {"created_at", to_stored_time(row.created_at)},
          {"updated_at", to_stored_time(row.updated_at)}};
}

Columns RowTable<SecretDataKey>::columns(const SecretDataKey& row) {
  return {{"id", row.id},
          {"key_id", row.key_id},
          {"document", document_of(to_stored_json(row))},
          {"created_at", to_stored_time(row.created_at)}};
}

namespace {

std::vector<sql::Value> values_of(const Columns& columns) {
  std::vector<sql::Value> values;
  values.reserve(columns.size());
  for (const auto& [name, value] : columns) values.push_back(value);
  return values;
}

Result<void> execute(sql::Transaction& transaction, std::string_view statement,
                     std::span<const sql::Value> parameters) {
  Result<std::vector<sql::Row>> done = transaction.execute(statement, parameters);
  if (!done) return done.error();
  return {};
}

}  // namespace

Result<void> insert_columns(sql::Transaction& transaction, std::string_view table, const Columns& columns) {
  std::string names;
  std::string places;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i != 0) {
      names += ", ";
      places += ", ";
    }
    names += columns[i].first;
    places += "$" + std::to_string(i + 1);
  }
  return execute(transaction,
                 "insert into " + std::string(table) + " (" + names + ") values (" + places + ")",
                 values_of(columns));
}

Result<void> update_columns(sql::Transaction& transaction, std::string_view table, const Columns& columns) {
  std::string assignments;
  for (std::size_t i = 1; i < columns.size(); ++i) {
    if (i != 1) assignments += ", ";
    assignments += std::string(columns[i].first) + " = $" + std::to_string(i + 1);
  }
  return execute(transaction, "update " + std::string(table) + " set " + assignments + " where id = $1",
                 values_of(columns));
}

Result<void> delete_from(sql::Transaction& transaction, std::string_view table, std::string_view id) {
  const sql::Value key = std::string(id);
  return execute(transaction, "delete from " + std::string(table) + " where id = $1", std::span(&key, 1));
}

Result<std::optional<std::string>> read_document(sql::Transaction& transaction, std::string_view table,
                                                 std::string_view id) {
  Result<std::vector<sql::Row>> rows =
      transaction.execute("select document from " + std::string(table) + " where id = $1", {std::string(id)});
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<std::string>();
  return std::optional(sql::text(rows->front().front()));
}

Result<std::vector<sql::Row>> read_documents(sql::Transaction& transaction, std::string_view table,
                                             std::string_view after, std::int64_t limit) {
  return transaction.execute(
      "select id, document from " + std::string(table) + " where id > $1 order by id limit $2",
      {std::string(after), limit});
}

Result<std::shared_ptr<const StoredLists>> read_lists(sql::Transaction& transaction,
                                                      std::string_view server_id) {
  Result<std::vector<sql::Row>> rows = transaction.execute(
      "select document, fetched_at from server_lists where server_id = $1", {std::string(server_id)});
  if (!rows) return rows.error();
  if (rows->empty()) return std::shared_ptr<const StoredLists>();
  Result<StoredLists> lists =
      decode_lists(sql::text(rows->front()[0]), from_stored_time(sql::integer(rows->front()[1])));
  if (!lists) return lists.error();
  return std::make_shared<const StoredLists>(std::move(*lists));
}

Result<void> write_lists(sql::Transaction& transaction, std::string_view server_id, std::string document,
                         Time fetched_at) {
  const std::vector<sql::Value> values = {std::string(server_id), std::move(document),
                                          to_stored_time(fetched_at)};
  return execute(transaction,
                 "insert into server_lists (server_id, document, fetched_at) values ($1, $2, $3) on conflict "
                 "(server_id) do update set document = excluded.document, fetched_at = excluded.fetched_at",
                 values);
}

Result<json::Raw> read_config(sql::Transaction& transaction, std::string_view full_key) {
  Result<std::vector<sql::Row>> rows =
      transaction.execute("select value from config_values where full_key = $1", {std::string(full_key)});
  if (!rows) return rows.error();
  if (rows->empty()) return json::Raw();
  return json::Raw::parse(sql::text(rows->front().front()));
}

Result<void> write_config(sql::Transaction& transaction, std::string_view full_key, const json::Raw& value,
                          Time now) {
  const std::string key(full_key);
  if (value.absent()) {
    const sql::Value parameter = key;
    return execute(transaction, "delete from config_values where full_key = $1", std::span(&parameter, 1));
  }
  const std::vector<sql::Value> values = {key, std::string(value.text()), to_stored_time(now)};
  return execute(transaction,
                 "insert into config_values (full_key, value, updated_at) values ($1, $2, $3) on conflict "
                 "(full_key) do update set value = excluded.value, updated_at = excluded.updated_at",
                 values);
}

}  // namespace fairlead::registry
