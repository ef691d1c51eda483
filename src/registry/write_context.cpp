#include "registry/write_context.hpp"

#include <algorithm>
#include <span>

namespace fairlead::registry {

Error rejected(std::string_view code, std::string message) {
  return Error(ErrorKind::validation, std::move(message)).with([code](ErrorDetail& detail) {
    detail.failure_code = code;
  });
}

Error invalid_member(std::string pointer, std::string message) {
  return rejected(kInvalidRow, std::move(message)).with([&pointer](ErrorDetail& detail) {
    detail.pointer = std::move(pointer);
  });
}

std::string describe(std::string_view noun, std::string_view name) {
  return std::string(noun) + " `" + std::string(name) + "`";
}

Result<void> check_version(std::int64_t version, const Registry::Version& expected) {
  if (!expected || *expected == version) return {};
  return rejected(kVersionMismatch, "the row has changed: its version is " + std::to_string(version) +
                                        ", not " + std::to_string(*expected) +
                                        "; read it again and repeat the change");
}

Result<void> check_name(WriteContext& context, std::string_view table, std::string_view noun,
                        std::string_view id, std::string_view name) {
  Result<std::vector<sql::Row>> rows = context.transaction.execute(
      "select name from " + std::string(table) + " where name_key = $1 and id <> $2",
      {name_key(name), std::string(id)});
  if (!rows) return rows.error();
  if (rows->empty()) return {};
  // Users need not see the row.
  const std::string taken =
      is_administrator(context.actor) ? sql::text(rows->front().front()) : std::string(name);
  const std::string difference = taken == name ? "" : "; names must differ in more than case";
  return rejected(kNameTaken, "there is already a " + describe(noun, taken) + difference)
      .with([](ErrorDetail& detail) { detail.pointer = "/name"; });
}

Result<void> check_reference(WriteContext& context, std::string_view table, std::string_view noun,
                             const std::string& id, const std::string& pointer) {
  if (id.empty()) return {};
  Result<std::optional<std::string>> document = read_document(context.transaction, table, id);
  if (!document) return document.error();
  if (*document) return {};
  return invalid_member(pointer, "there is no " + describe(noun, id));
}

namespace {

// Returns those of the ids that exist.
Result<std::set<std::string>> existing_ids(WriteContext& context, std::string_view table,
                                           std::span<const std::string> ids) {
  std::string statement = "select id from " + std::string(table) + " where id in (";
  std::vector<sql::Value> parameters;
  for (const std::string& id : ids) {
    parameters.emplace_back(id);
    statement += (parameters.size() == 1 ? "$" : ", $") + std::to_string(parameters.size());
  }
  Result<std::vector<sql::Row>> rows = context.transaction.execute(statement + ")", std::span(parameters));
  if (!rows) return rows.error();
  std::set<std::string> existing;
  for (const sql::Row& row : *rows) existing.insert(sql::text(row.front()));
  return existing;
}

}  // namespace

Result<void> check_references(WriteContext& context, std::string_view table, std::string_view noun,
                              const std::vector<std::string>& ids, const std::string& pointer) {
  constexpr std::size_t kIdsPerStatement = 500;
  for (std::size_t first = 0; first < ids.size(); first += kIdsPerStatement) {
    const std::size_t count = std::min(kIdsPerStatement, ids.size() - first);
    Result<std::set<std::string>> existing =
        existing_ids(context, table, std::span(ids).subspan(first, count));
    if (!existing) return existing.error();
    for (std::size_t i = first; i < first + count; ++i) {
      if (!existing->contains(ids[i]))
        return invalid_member(pointer + "/" + std::to_string(i), "there is no " + describe(noun, ids[i]));
    }
  }
  return {};
}

}  // namespace fairlead::registry
