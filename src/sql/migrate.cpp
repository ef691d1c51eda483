#include "sql/migrate.hpp"

#include <chrono>
#include <optional>

namespace fairlead::sql {

namespace {

constexpr std::string_view kCreateTable =
    "CREATE TABLE IF NOT EXISTS schema_version "
    "(version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)";
constexpr std::string_view kReadVersion = "SELECT COALESCE(MAX(version), 0) FROM schema_version";
constexpr std::string_view kInsertVersion =
    "INSERT INTO schema_version (version, name, applied_at) VALUES ($1, $2, $3)";

std::int64_t now_milliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

Error in_migration(const Migration& migration, const Error& error) {
  const std::string name = std::to_string(migration.version) + " (" + std::string(migration.name) + ")";
  return Error(error.kind(), "migration " + name + " of the database failed: " + error.message())
      .with([&](ErrorDetail& detail) { detail = error.detail(); });
}

Error too_new(std::int64_t found, std::size_t known) {
  return database_error(ErrorKind::validation,
                        "the database has schema version " + std::to_string(found) +
                            ", but this version of Fairlead knows versions up to " + std::to_string(known) +
                            ": use the version of Fairlead that has written it, or a later one",
                        kSchemaTooNew);
}

Result<void> apply(Driver& driver, const Migration& migration) {
  for (const std::string_view statement : migration.statements) {
    const Result<std::vector<Row>> executed = driver.execute(statement, {});
    if (!executed) return in_migration(migration, executed.error());
  }
  const Value values[] = {std::int64_t{migration.version}, std::string(migration.name), now_milliseconds()};
  const Result<std::vector<Row>> inserted = driver.execute(kInsertVersion, values);
  if (!inserted) return in_migration(migration, inserted.error());
  return {};
}

Result<std::int64_t> read_version(Driver& driver) {
  if (const Result<void> locked = driver.lock_schema(); !locked) return locked.error();
  const Result<std::vector<Row>> created = driver.execute(kCreateTable, {});
  if (!created) return created.error();
  const Result<std::vector<Row>> version = driver.execute(kReadVersion, {});
  if (!version) return version.error();
  return integer(version->at(0).at(0));
}

// In a transaction: applies the next migration. Returns whether the schema has the last version.
Result<bool> apply_next(Driver& driver, const std::vector<Migration>& migrations) {
  const Result<std::int64_t> version = read_version(driver);
  if (!version) return version.error();
  const auto known = static_cast<std::int64_t>(migrations.size());
  if (*version > known) return too_new(*version, migrations.size());
  if (*version == known) return true;
  const Result<void> applied = apply(driver, migrations[static_cast<std::size_t>(*version)]);
  if (!applied) return applied.error();
  return *version + 1 == known;
}

Result<void> check_versions(const std::vector<Migration>& migrations) {
  for (std::size_t index = 0; index < migrations.size(); ++index) {
    if (std::cmp_not_equal(migrations[index].version, index + 1))
      return Error(ErrorKind::validation, "the versions of migrations must be 1, 2, 3, …");
  }
  return {};
}

}  // namespace

Result<void> migrate(Driver& driver, const std::vector<Migration>& migrations) {
  Result<void> outcome = check_versions(migrations);
  if (!outcome) return outcome;
  for (bool last = false; !last;) {
    if (outcome = driver.begin(); !outcome) return outcome;
    const Result<bool> applied = apply_next(driver, migrations);
    outcome = applied ? driver.commit() : Result<void>(applied.error());
    if (!outcome) {
      driver.roll_back();
      return outcome;
    }
    last = *applied;
  }
  return {};
}

}  // namespace fairlead::sql
