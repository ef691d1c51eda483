// Reads and writes rows of the registry in a transaction. Private to the library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/registry/model.hpp"
#include "registry/json.hpp"
#include "sql/database.hpp"

namespace fairlead::registry {

// Kinds of rows in the table `changes`.
inline constexpr std::string_view kListsKind = "lists";    // row_id: the id of the server
inline constexpr std::string_view kConfigKind = "config";  // row_id: the full key

inline std::int64_t to_stored_time(Time time) noexcept {
  return time.time_since_epoch().count();
}
inline Time from_stored_time(std::int64_t milliseconds) noexcept {
  return Time(std::chrono::milliseconds(milliseconds));
}
inline sql::Value to_stored_time(const std::optional<Time>& time) {
  return time ? sql::Value(to_stored_time(*time)) : sql::Value();
}

// Returns the form of a name that is unique in its table: names must differ in more than ASCII case.
std::string name_key(std::string_view name);

// Columns of a row. The first one is the id.
using Columns = std::vector<std::pair<std::string_view, sql::Value>>;

// How rows of type T are stored. `noun` names the row in messages.
template <class T>
struct RowTable;

template <>
struct RowTable<Server> {
  static constexpr std::string_view kind = "server";
  static constexpr std::string_view table = "servers";
  static constexpr std::string_view noun = "server";
  static Columns columns(const Server& row);
  static Result<Server> parse(json::View document) { return parse_server(document); }
};
template <>
struct RowTable<Endpoint> {
  static constexpr std::string_view kind = "endpoint";
  static constexpr std::string_view table = "endpoints";
  static constexpr std::string_view noun = "endpoint";
  static Columns columns(const Endpoint& row);
  static Result<Endpoint> parse(json::View document) { return parse_endpoint(document); }
};
template <>
struct RowTable<User> {
  static constexpr std::string_view kind = "user";
  static constexpr std::string_view table = "users";
  static constexpr std::string_view noun = "user";
  static Columns columns(const User& row);
  static Result<User> parse(json::View document) { return parse_user(document); }
};
template <>
struct RowTable<Group> {
  static constexpr std::string_view kind = "group";
  static constexpr std::string_view table = "user_groups";
  static constexpr std::string_view noun = "group";
  static Columns columns(const Group& row);
  static Result<Group> parse(json::View document) { return parse_group(document); }
};
template <>
struct RowTable<Token> {
  static constexpr std::string_view kind = "token";
  static constexpr std::string_view table = "tokens";
  static constexpr std::string_view noun = "token";
  static Columns columns(const Token& row);
  static Result<Token> parse(json::View document) { return parse_token(document); }
};
template <>
struct RowTable<Drift> {
  static constexpr std::string_view kind = "drift";
  static constexpr std::string_view table = "drift";
  static constexpr std::string_view noun = "change";
  static Columns columns(const Drift& row);
  static Result<Drift> parse(json::View document) { return parse_drift(document); }
};

template <>
struct RowTable<Secret> {
  static constexpr std::string_view kind = "secret";
  static constexpr std::string_view table = "secrets";
  static constexpr std::string_view noun = "secret";
  static Columns columns(const Secret& row);
  static Result<Secret> parse(json::View document) { return parse_secret(document); }
};
template <>
struct RowTable<SecretDataKey> {
  static constexpr std::string_view kind = "secret_key";
  static constexpr std::string_view table = "secret_keys";
  static constexpr std::string_view noun = "data key";
  static Columns columns(const SecretDataKey& row);
  static Result<SecretDataKey> parse(json::View document) { return parse_secret_data_key(document); }
};

// Returns what identifies a secret among all others: its server, user and name.
std::string secret_scope_key(std::string_view server, std::string_view user, std::string_view name);

Result<void> insert_columns(sql::Transaction& transaction, std::string_view table, const Columns& columns);
Result<void> update_columns(sql::Transaction& transaction, std::string_view table, const Columns& columns);
Result<void> delete_from(sql::Transaction& transaction, std::string_view table, std::string_view id);
// Returns the document of a row; nullopt if there is no such row.
Result<std::optional<std::string>> read_document(sql::Transaction& transaction, std::string_view table,
                                                 std::string_view id);
// Returns id and document of up to `limit` rows with ids greater than `after`, ordered by id.
Result<std::vector<sql::Row>> read_documents(sql::Transaction& transaction, std::string_view table,
                                             std::string_view after, std::int64_t limit);

// Returns the row of a stored document. Fails with a message that names the row.
template <class T>
Result<std::shared_ptr<const T>> decode_row(std::string_view id, std::string document) {
  Result<json::Raw> text = json::Raw::parse(document);
  Result<T> row = text ? RowTable<T>::parse(json::View(*text)) : Result<T>(text.error());
  if (row) return std::make_shared<const T>(std::move(*row));
  return Error(ErrorKind::validation, "the row " + std::string(id) + " of the table " +
                                          std::string(RowTable<T>::table) +
                                          " is invalid: " + row.error().message());
}

// Returns null if there is no such row.
template <class T>
Result<std::shared_ptr<const T>> read_row(sql::Transaction& transaction, std::string_view id) {
  Result<std::optional<std::string>> document = read_document(transaction, RowTable<T>::table, id);
  if (!document) return document.error();
  if (!*document) return std::shared_ptr<const T>();
  return decode_row<T>(id, std::move(**document));
}

template <class T>
Result<void> insert_row(sql::Transaction& transaction, const T& row) {
  return insert_columns(transaction, RowTable<T>::table, RowTable<T>::columns(row));
}
template <class T>
Result<void> update_row(sql::Transaction& transaction, const T& row) {
  return update_columns(transaction, RowTable<T>::table, RowTable<T>::columns(row));
}

// The lists of a server; null if none are stored.
Result<std::shared_ptr<const StoredLists>> read_lists(sql::Transaction& transaction,
                                                      std::string_view server_id);
Result<void> write_lists(sql::Transaction& transaction, std::string_view server_id, std::string document,
                         Time fetched_at);

// A value of the configuration; absent if it is the default.
Result<json::Raw> read_config(sql::Transaction& transaction, std::string_view full_key);
Result<void> write_config(sql::Transaction& transaction, std::string_view full_key, const json::Raw& value,
                          Time now);

}  // namespace fairlead::registry
