#include "registry/change_set.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "registry/rows.hpp"
#include "registry/stored_lists.hpp"

namespace fairlead::registry {

namespace {

using sql::Transaction;

constexpr std::int64_t kRowsPerPage = 200;

// More changed rows than this are read one table after the other instead of one by one.
constexpr std::int64_t kMaxRowsReadSingly = 10'000;

void log_invalid_row(const Log& log, const Error& error) {
  log.error("a row of the registry cannot be read; it is ignored", {{"error", error.message()}});
}

// A row that cannot be read must not stay in force as it was before.
template <class T>
Result<void> add_row(Transaction& transaction, std::string id, ChangeSet& changes, const Log& log) {
  Result<std::optional<std::string>> document = read_document(transaction, RowTable<T>::table, id);
  if (!document) return document.error();
  std::shared_ptr<const T> row;
  if (*document) {
    Result<std::shared_ptr<const T>> decoded = decode_row<T>(id, std::move(**document));
    if (decoded) {
      row = std::move(*decoded);
    } else {
      log_invalid_row(log, decoded.error());
    }
  }
  const bool unreadable = document->has_value() && !row;
  changes.rows.push_back(ChangedRow{std::move(id), std::move(row), unreadable});
  return {};
}

// Lists and values that cannot be read count as absent. A failure of the database fails the transaction.
Result<void> add_lists(Transaction& transaction, std::string server_id, ChangeSet& changes, const Log& log) {
  Result<StoredListsPtr> lists = read_lists(transaction, server_id);
  if (!lists) log_invalid_row(log, lists.error());
  changes.rows.push_back(
      ChangedRow{std::move(server_id), ListsRow{lists ? std::move(*lists) : StoredListsPtr()}});
  return {};
}

Result<void> add_config(Transaction& transaction, std::string full_key, ChangeSet& changes, const Log& log) {
  Result<json::Raw> value = read_config(transaction, full_key);
  if (!value) log_invalid_row(log, value.error());
  changes.rows.push_back(
      ChangedRow{std::move(full_key), ConfigValue{value ? std::move(*value) : json::Raw()}});
  return {};
}

Result<void> add_changed(Transaction& transaction, std::string_view kind, std::string id, ChangeSet& changes,
                         const Log& log) {
  if (kind == RowTable<Server>::kind) return add_row<Server>(transaction, std::move(id), changes, log);
  if (kind == RowTable<Endpoint>::kind) return add_row<Endpoint>(transaction, std::move(id), changes, log);
  if (kind == RowTable<User>::kind) return add_row<User>(transaction, std::move(id), changes, log);
  if (kind == RowTable<Group>::kind) return add_row<Group>(transaction, std::move(id), changes, log);
  if (kind == RowTable<Token>::kind) return add_row<Token>(transaction, std::move(id), changes, log);
  if (kind == RowTable<Drift>::kind) return add_row<Drift>(transaction, std::move(id), changes, log);
  if (kind == RowTable<Secret>::kind) return add_row<Secret>(transaction, std::move(id), changes, log);
  if (kind == RowTable<SecretDataKey>::kind)
    return add_row<SecretDataKey>(transaction, std::move(id), changes, log);
  if (kind == kListsKind) return add_lists(transaction, std::move(id), changes, log);
  if (kind == kConfigKind) return add_config(transaction, std::move(id), changes, log);
  return {};  // of a newer version of Fairlead
}

template <class T>
Result<void> add_table(Transaction& transaction, ChangeSet& changes, const Log& log) {
  std::string last;
  for (;;) {
    Result<std::vector<sql::Row>> page = read_documents(transaction, RowTable<T>::table, last, kRowsPerPage);
    if (!page) return page.error();
    if (page->empty()) return {};
    for (sql::Row& row : *page) {
      last = sql::text(row[0]);
      Result<std::shared_ptr<const T>> decoded =
          decode_row<T>(last, std::move(std::get<std::string>(row[1])));
      if (decoded) {
        changes.rows.push_back(ChangedRow{last, std::move(*decoded)});
      } else {
        log_invalid_row(log, decoded.error());
      }
    }
  }
}

Result<void> add_all_lists(Transaction& transaction, ChangeSet& changes, const Log& log) {
  std::string last;
  for (;;) {
    Result<std::vector<sql::Row>> page = transaction.execute(
        "select server_id, document, fetched_at from server_lists where server_id > $1 order by server_id "
        "limit $2",
        {last, kRowsPerPage});
    if (!page) return page.error();
    if (page->empty()) return {};
    for (sql::Row& row : *page) {
      last = sql::text(row[0]);
      Result<StoredLists> lists =
          decode_lists(std::move(std::get<std::string>(row[1])), from_stored_time(sql::integer(row[2])));
      if (lists) {
        changes.rows.push_back(
            ChangedRow{last, ListsRow{std::make_shared<const StoredLists>(std::move(*lists))}});
      } else {
        log_invalid_row(log, lists.error());
      }
    }
  }
}

Result<void> add_all_config(Transaction& transaction, ChangeSet& changes, const Log& log) {
  Result<std::vector<sql::Row>> rows =
      transaction.execute("select full_key, value from config_values order by full_key");
  if (!rows) return rows.error();
  for (const sql::Row& row : *rows) {
    Result<json::Raw> value = json::Raw::parse(sql::text(row[1]));
    if (value) {
      changes.rows.push_back(ChangedRow{sql::text(row[0]), ConfigValue{std::move(*value)}});
    } else {
      log_invalid_row(log, value.error());
    }
  }
  return {};
}

Result<std::int64_t> read_integer(Transaction& transaction, std::string_view statement) {
  Result<std::vector<sql::Row>> rows = transaction.execute(statement);
  if (!rows) return rows.error();
  return rows->empty() ? 0 : sql::integer(rows->front().front());
}

// Whether the table `changes` has all changes after `since`, and not too many of them.
Result<bool> can_read_singly(Transaction& transaction, std::int64_t since, std::int64_t revision) {
  if (revision < since || revision - since > kMaxRowsReadSingly) return false;
  Result<std::vector<sql::Row>> rows = transaction.execute("select min(revision) from changes");
  if (!rows) return rows.error();
  const std::optional<std::int64_t> oldest = sql::optional_integer(rows->front().front());
  return oldest && *oldest <= since + 1;
}

}  // namespace

Result<std::int64_t> lock_revision(Transaction& transaction) {
  Result<std::vector<sql::Row>> rows =
      transaction.execute("update registry_revision set revision = revision where id = 1 returning revision");
  if (!rows) return rows.error();
  if (rows->size() == 1) return sql::integer(rows->front().front());
  return Error(ErrorKind::io, "the database has no revision: the table registry_revision is empty");
}

Result<ChangeSet> read_everything(Transaction& transaction, const Log& log) {
  ChangeSet changes;
  changes.complete = true;
  Result<std::int64_t> revision = read_integer(transaction, "select revision from registry_revision");
  if (!revision) return revision.error();
  changes.revision = *revision;
  // Subscribers are notified in this order: of users before their tokens, of lists and secrets before their
  // servers.
  Result<void> done = add_all_config(transaction, changes, log);
  if (done) done = add_table<User>(transaction, changes, log);
  if (done) done = add_table<Group>(transaction, changes, log);
  if (done) done = add_table<Token>(transaction, changes, log);
  if (done) done = add_table<Endpoint>(transaction, changes, log);
  if (done) done = add_table<Drift>(transaction, changes, log);
  if (done) done = add_table<SecretDataKey>(transaction, changes, log);
  if (done) done = add_table<Secret>(transaction, changes, log);
  if (done) done = add_all_lists(transaction, changes, log);
  if (done) done = add_table<Server>(transaction, changes, log);
  if (!done) return done.error();
  return changes;
}

Result<ChangeSet> read_changes(Transaction& transaction, std::int64_t since, const Log& log) {
  ChangeSet changes;
  Result<std::int64_t> revision = read_integer(transaction, "select revision from registry_revision");
  if (!revision) return revision.error();
  changes.revision = *revision;
  if (*revision == since) return changes;
  Result<bool> singly = can_read_singly(transaction, since, *revision);
  if (!singly) return singly.error();
  if (!*singly) {
    if (Result<std::int64_t> locked = lock_revision(transaction); !locked) return locked.error();
    return read_everything(transaction, log);
  }
  Result<std::vector<sql::Row>> rows = transaction.execute(
      "select kind, row_id, max(revision) as newest from changes where revision > $1 and revision <= $2 "
      "group by kind, row_id order by newest, kind, row_id",
      {since, *revision});
  if (!rows) return rows.error();
  for (const sql::Row& row : *rows) {
    Result<void> added = add_changed(transaction, sql::text(row[0]), sql::text(row[1]), changes, log);
    if (!added) return added.error();
  }
  return changes;
}

}  // namespace fairlead::registry
