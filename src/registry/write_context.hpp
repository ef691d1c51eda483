// WriteContext: one change of the registry in its transaction. Private to the library.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/uuid.hpp"
#include "fairlead/base/principal.hpp"
#include "fairlead/base/result.hpp"
#include "registry/configuration.hpp"
#include "registry/registry.hpp"
#include "registry/rows.hpp"
#include "registry/rules.hpp"
#include "registry/secret_keyring.hpp"
#include "sql/database.hpp"

namespace fairlead::registry {

// Returns an error of kind validation with this code.
Error rejected(std::string_view code, std::string message);
// Returns the error kInvalidRow for the member at `pointer`.
Error invalid_member(std::string pointer, std::string message);
// Returns the text of a row in messages, such as "server `files`".
std::string describe(std::string_view noun, std::string_view name);

// Used on the thread of the database only. The transaction has locked the revision, so that no other change,
// of this gateway or another one, runs at the same time: what is checked here is still true at the commit.
struct WriteContext {
  sql::Transaction& transaction;
  const Principal& actor;
  const Configuration& configuration;
  Time now;
  UuidGenerator& ids;
  std::size_t max_stored_drift;
  SecretKeyring& secret_keys;
  std::set<std::pair<std::string, std::string>> changed{};  // kind and id of each row

  void record(std::string_view kind, std::string_view id) {
    changed.emplace(std::string(kind), std::string(id));
  }
};

// Returns the row if the actor may do `operation` with it. Otherwise the error is that of the rules, which
// for a row that the actor must not see is the same as for one that does not exist.
template <class T>
Result<std::shared_ptr<const T>> find_row(WriteContext& context, Operation operation, std::string_view id) {
  const std::string what = describe(RowTable<T>::noun, id);
  Result<std::shared_ptr<const T>> row = read_row<T>(context.transaction, id);
  if (!row) return row;
  if (!*row) return Decision().error(what);
  const Decision decision = decide(context.actor, operation, **row);
  if (!decision) return decision.error(what);
  return row;
}

Result<void> check_version(std::int64_t version, const Registry::Version& expected);

// Fails with kNameTaken if another row of the table has the name, or one that differs only in case.
Result<void> check_name(WriteContext& context, std::string_view table, std::string_view noun,
                        std::string_view id, std::string_view name);

// Gives the row an id, the times and its first version, and inserts it.
template <class T>
Result<std::shared_ptr<const T>> insert_new(WriteContext& context, T row) {
  Result<std::string> id = context.ids.next(context.now);
  if (!id) return id.error();
  row.id = std::move(*id);
  row.version = 1;
  row.created_at = row.updated_at = context.now;
  Result<void> done = check_name(context, RowTable<T>::table, RowTable<T>::noun, row.id, row.name);
  if (done) done = insert_row(context.transaction, row);
  if (!done) return done.error();
  context.record(RowTable<T>::kind, row.id);
  return std::make_shared<const T>(std::move(row));
}

// Writes the row with the next version. A row that does not differ from `before` is not written.
template <class T>
Result<std::shared_ptr<const T>> update_changed(WriteContext& context, std::shared_ptr<const T> before,
                                                T after) {
  after.version = before->version;
  after.updated_at = before->updated_at;
  if (to_json(after).text() == to_json(*before).text()) return before;
  after.version = before->version + 1;
  after.updated_at = context.now;
  Result<void> done = check_name(context, RowTable<T>::table, RowTable<T>::noun, after.id, after.name);
  if (done) done = update_row(context.transaction, after);
  if (!done) return done.error();
  context.record(RowTable<T>::kind, after.id);
  return std::make_shared<const T>(std::move(after));
}

template <class T>
Result<void> remove_row(WriteContext& context, const T& row) {
  Result<void> done = delete_from(context.transaction, RowTable<T>::table, row.id);
  if (done) context.record(RowTable<T>::kind, row.id);
  return done;
}

// Fails with kInvalidRow unless `id` is empty or the id of a row of the table.
Result<void> check_reference(WriteContext& context, std::string_view table, std::string_view noun,
                             const std::string& id, const std::string& pointer);
// The same for a list of ids; the error has the pointer of the element.
Result<void> check_references(WriteContext& context, std::string_view table, std::string_view noun,
                              const std::vector<std::string>& ids, const std::string& pointer);

}  // namespace fairlead::registry
