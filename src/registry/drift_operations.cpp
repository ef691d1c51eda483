// Lists of servers and their drift.
#include <algorithm>
#include <utility>

#include "registry/operations.hpp"
#include "registry/stored_lists.hpp"

namespace fairlead::registry {

namespace {

// The limit max_stored_drift_characters: of the resolved changes of one server, with the texts of the
// entries.
constexpr std::int64_t kMaxStoredDriftCharacters = 4 << 20;

Result<DriftRows> read_drift(WriteContext& context, const std::string& server_id) {
  Result<std::vector<sql::Row>> rows = context.transaction.execute(
      "select id, document from drift where server_id = $1 order by id", {server_id});
  if (!rows) return rows.error();
  DriftRows drift;
  for (const sql::Row& row : *rows) {
    Result<DriftPtr> decoded = decode_row<Drift>(sql::text(row[0]), sql::text(row[1]));
    if (!decoded) return decoded.error();
    drift.emplace(sql::text(row[0]), std::move(*decoded));
  }
  return drift;
}

Result<void> write_drift(WriteContext& context, Drift row) {
  const bool is_new = row.id.empty();
  if (is_new) {
    Result<std::string> id = context.ids.next(context.now);
    if (!id) return id.error();
    row.id = std::move(*id);
  }
  Result<void> done = is_new ? insert_row(context.transaction, row) : update_row(context.transaction, row);
  if (done) context.record(RowTable<Drift>::kind, row.id);
  return done;
}

// Removes the oldest changes that were approved or reverted. Rejected ones are kept: they say which entries
// are in quarantine.
Result<void> limit_history(WriteContext& context, const std::string& server_id) {
  Result<std::vector<sql::Row>> rows = context.transaction.execute(
      "select id, length(document) from drift where server_id = $1 and status in ('approved', 'reverted') "
      "order by id desc",
      {server_id});
  if (!rows) return rows.error();
  std::size_t count = 0;
  std::int64_t characters = 0;
  for (const sql::Row& row : *rows) {
    ++count;
    characters += sql::integer(row[1]);
    if (count <= context.max_stored_drift && characters <= kMaxStoredDriftCharacters) continue;
    Result<void> done = delete_from(context.transaction, RowTable<Drift>::table, sql::text(row[0]));
    if (!done) return done;
    context.record(RowTable<Drift>::kind, sql::text(row[0]));
  }
  return {};
}

Result<void> write_entries(WriteContext& context, const std::string& server_id, const StoredLists& lists,
                           std::size_t max_bytes) {
  std::string document = encode_lists(lists);
  if (document.size() > max_bytes) {
    return Error(ErrorKind::resource_exhausted,
                 "the lists of the server have " + std::to_string(document.size()) +
                     " bytes; they are not stored, because max_stored_list_bytes is " +
                     std::to_string(max_bytes));
  }
  Result<void> done = write_lists(context.transaction, server_id, std::move(document), lists.fetched_at);
  if (done) context.record(kListsKind, server_id);
  return done;
}

// A user who is not an administrator cannot fill the database with the lists of many servers.
Result<void> check_lists_of_owner(WriteContext& context, const Server& server, const StoredLists& lists,
                                  std::size_t max_characters) {
  if (server.owner.empty()) return {};
  Result<UserPtr> owner = read_row<User>(context.transaction, server.owner);
  if (!owner) return owner.error();
  if (*owner && (*owner)->role == Role::admin) return {};
  Result<std::vector<sql::Row>> others = context.transaction.execute(
      "select coalesce(sum(length(l.document)), 0) from server_lists l join servers s on s.id = l.server_id "
      "where s.owner = $1 and s.id <> $2",
      {server.owner, server.id});
  if (!others) return others.error();
  const auto used = static_cast<std::size_t>(sql::integer(others->front().front()));
  if (used + encode_lists(lists).size() <= max_characters) return {};
  return Error(ErrorKind::resource_exhausted,
               "the lists of the server are not stored, because those of all servers of its owner would "
               "exceed max_user_list_characters (" +
                   std::to_string(max_characters) + ")");
}

Result<StoredListsPtr> write_time_of_fetch(WriteContext& context, const std::string& server_id,
                                           StoredLists lists) {
  Result<std::vector<sql::Row>> done =
      context.transaction.execute("update server_lists set fetched_at = $2 where server_id = $1",
                                  {server_id, to_stored_time(lists.fetched_at)});
  if (!done) return done.error();
  return std::make_shared<const StoredLists>(std::move(lists));
}

bool has_lists(const FetchedEntries& fetched) {
  return std::ranges::any_of(kListMembers,
                             [&](const ListMember& list) { return (fetched.*list.fetched).has_value(); });
}

}  // namespace

Result<StoredListsPtr> write_fetched_lists(WriteContext& context, const std::string& server_id,
                                           const FetchedEntries& fetched, const ListLimits& limits) {
  Result<ServerPtr> server = read_row<Server>(context.transaction, server_id);
  if (!server) return server.error();
  if (!*server) return Decision().error(describe("server", server_id));
  Result<StoredListsPtr> stored = read_lists(context.transaction, server_id);
  // Lists that cannot be read are replaced. After a failure of the database the next statement fails.
  if (!stored) stored = StoredListsPtr();
  if (!has_lists(fetched)) return *stored ? stored : std::make_shared<const StoredLists>();
  Result<DriftRows> drift = read_drift(context, server_id);
  if (!drift) return drift.error();
  ListMerge merge = merge_lists(**server, stored->get(), &*drift, fetched, context.now);
  if (!merge.changed) return write_time_of_fetch(context, server_id, std::move(merge.lists));
  Result<void> done = check_lists_of_owner(context, **server, merge.lists, limits.user_characters);
  if (done) done = write_entries(context, server_id, merge.lists, limits.bytes);
  for (Drift& row : merge.drift) {
    if (done) done = write_drift(context, std::move(row));
  }
  if (done && !merge.drift.empty()) done = limit_history(context, server_id);
  if (!done) return done.error();
  return std::make_shared<const StoredLists>(std::move(merge.lists));
}

namespace {

Result<void> check_resolution(const Drift& row, DriftStatus resolution) {
  if (resolution != DriftStatus::approved && resolution != DriftStatus::rejected)
    return invalid_member("/status", "a change can be approved or rejected");
  if (row.status == DriftStatus::open || row.status == resolution) return {};
  if (row.status == DriftStatus::rejected) return {};  // approved after all
  return invalid_member("/status",
                        "the change is resolved: its status is " + std::string(to_string(row.status)));
}

Result<void> resolve_entry(WriteContext& context, const Drift& row, DriftStatus resolution) {
  Result<StoredListsPtr> stored = read_lists(context.transaction, row.server_id);
  if (!stored) return stored.error();
  StoredLists lists = *stored ? **stored : StoredLists();
  Result<DriftRows> rows = read_drift(context, row.server_id);
  if (!rows) return rows.error();
  Result<void> done = apply_resolution(lists, *rows, row, resolution);
  if (!done) return done;
  return write_entries(context, row.server_id, lists, static_cast<std::size_t>(-1));
}

}  // namespace

Result<DriftPtr> resolve_drift(WriteContext& context, const std::string& id, DriftStatus resolution) {
  const std::string what = describe("change", id);
  Result<DriftPtr> before = read_row<Drift>(context.transaction, id);
  if (!before) return before;
  if (!*before) return Decision().error(what);
  Result<ServerPtr> server = read_row<Server>(context.transaction, (*before)->server_id);
  if (!server) return server.error();
  if (!*server) return Decision().error(what);
  const Decision decision = decide(context.actor, Operation::operate, **before, **server);
  if (!decision) return decision.error(what);
  Result<void> done = check_resolution(**before, resolution);
  if (done && (*before)->status == resolution) return before;
  if (done) done = resolve_entry(context, **before, resolution);
  if (!done) return done.error();
  Drift after = **before;
  after.status = resolution;
  after.quarantined = resolution == DriftStatus::rejected;
  after.resolved_at = context.now;
  after.resolved_by = context.actor.user;
  done = write_drift(context, after);
  if (!done) return done.error();
  return std::make_shared<const Drift>(std::move(after));
}

}  // namespace fairlead::registry
