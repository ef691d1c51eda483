// Changes of users, groups and tokens.
#include <algorithm>
#include <utility>

#include "registry/operations.hpp"
#include "registry/tokens.hpp"
#include "registry/user_limits.hpp"

namespace fairlead::registry {

namespace {

// Returns the names of the rows, separated by commas; of many rows only the first ones.
std::string names_of(const std::vector<sql::Row>& rows) {
  constexpr std::size_t kMaxNames = 5;
  std::string names;
  for (std::size_t i = 0; i < std::min(rows.size(), kMaxNames); ++i)
    names += (i == 0 ? "`" : ", `") + sql::text(rows[i].front()) + "`";
  if (rows.size() > kMaxNames) names += " and " + std::to_string(rows.size() - kMaxNames) + " more";
  return names;
}

Result<std::int64_t> count_administrators(WriteContext& context) {
  Result<std::vector<sql::Row>> rows =
      context.transaction.execute("select count(*) from users where role = 'admin' and enabled = 1");
  if (!rows) return rows.error();
  return rows->empty() ? 0 : sql::integer(rows->front().front());
}

bool is_enabled_administrator(const User& user) {
  return user.enabled && user.role == Role::admin;
}

// Called after the change of a user that was an enabled administrator. Without any, only the client with the
// bootstrap token can administer the registry, so only that client may leave it in this state.
Result<void> check_administrator_left(WriteContext& context) {
  if (context.actor.subject == kBootstrapSubject && context.actor.user == kBootstrapUser) return {};
  Result<std::int64_t> count = count_administrators(context);
  if (!count) return count.error();
  if (*count > 0) return {};
  return rejected(kLastAdministrator,
                  "this is the last administrator that is enabled; make another user an administrator first");
}

// Endpoints that name an account are not changed: an endpoint whose last account is removed would be open to
// everybody.
Result<void> check_not_named(WriteContext& context, std::vector<std::string> Endpoint::*accounts,
                             const std::string& id) {
  Result<std::vector<sql::Row>> rows =
      context.transaction.execute("select id, document from endpoints order by name_key");
  if (!rows) return rows.error();
  std::vector<sql::Row> naming;
  for (sql::Row& row : *rows) {
    Result<EndpointPtr> endpoint = decode_row<Endpoint>(sql::text(row[0]), sql::text(row[1]));
    if (!endpoint) return endpoint.error();
    const std::vector<std::string>& named = (**endpoint).*accounts;
    if (std::ranges::find(named, id) != named.end()) naming.push_back({(*endpoint)->name});
  }
  if (naming.empty()) return {};
  return rejected(kInUse, "the endpoints " + names_of(naming) + " name this account; remove it there first");
}

Result<void> check_owns_nothing(WriteContext& context, const User& user) {
  Result<std::vector<sql::Row>> rows =
      context.transaction.execute("select name from servers where owner = $1 order by name_key", {user.id});
  if (!rows) return rows.error();
  if (rows->empty()) return {};
  return rejected(kInUse, describe("user", user.name) + " owns the servers " + names_of(*rows) +
                              "; remove them or set another `owner` first");
}

Result<void> remove_tokens_of(WriteContext& context, const User& user) {
  Result<std::vector<sql::Row>> removed =
      context.transaction.execute("delete from tokens where user_id = $1 returning id", {user.id});
  if (!removed) return removed.error();
  for (const sql::Row& row : *removed) context.record(RowTable<Token>::kind, sql::text(row.front()));
  return {};
}

Result<void> remove_from_groups(WriteContext& context, const User& user) {
  Result<std::vector<sql::Row>> rows = context.transaction.execute("select id, document from user_groups");
  if (!rows) return rows.error();
  for (const sql::Row& row : *rows) {
    Result<GroupPtr> group = decode_row<Group>(sql::text(row[0]), sql::text(row[1]));
    if (!group) return group.error();
    Group after = **group;
    if (std::erase(after.members, user.id) == 0) continue;
    Result<GroupPtr> updated = update_changed(context, *group, std::move(after));
    if (!updated) return updated.error();
  }
  return {};
}

}  // namespace

Result<UserPtr> create_user(WriteContext& context, const json::Raw& body) {
  Result<User> row = new_user(json::View(body));
  if (!row) return row.error();
  const Decision decision = decide(context.actor, Operation::create, *row);
  if (!decision) return decision.error(describe("user", row->name));
  return insert_new(context, std::move(*row));
}

Result<UserPtr> patch_user(WriteContext& context, const std::string& id, const json::Raw& patch,
                           const Version& version) {
  Result<UserPtr> before = find_row<User>(context, Operation::update, id);
  if (!before) return before;
  Result<void> checked = check_version((*before)->version, version);
  if (!checked) return checked.error();
  Result<User> after = patched(**before, json::View(patch));
  if (!after) return after.error();
  Result<UserPtr> updated = update_changed(context, *before, std::move(*after));
  if (!updated || !is_enabled_administrator(**before) || is_enabled_administrator(**updated)) return updated;
  checked = check_administrator_left(context);
  if (!checked) return checked.error();
  return updated;
}

Result<void> remove_user(WriteContext& context, const std::string& id, const Version& version) {
  Result<UserPtr> row = find_row<User>(context, Operation::remove, id);
  if (!row) return row.error();
  const User& user = **row;
  Result<void> done = check_version(user.version, version);
  if (done) done = check_owns_nothing(context, user);
  if (done) done = check_not_named(context, &Endpoint::users, id);
  if (done) done = remove_tokens_of(context, user);
  if (done) done = remove_from_groups(context, user);
  if (done) done = remove_secrets_of_user(context, id);
  if (done) done = remove_row(context, user);
  if (done && is_enabled_administrator(user)) done = check_administrator_left(context);
  return done;
}

Result<GroupPtr> create_group(WriteContext& context, const json::Raw& body) {
  Result<Group> row = new_group(json::View(body));
  if (!row) return row.error();
  const Decision decision = decide(context.actor, Operation::create, *row);
  if (!decision) return decision.error(describe("group", row->name));
  Result<void> checked = check_references(context, "users", "user", row->members, "/members");
  if (!checked) return checked.error();
  return insert_new(context, std::move(*row));
}

Result<GroupPtr> patch_group(WriteContext& context, const std::string& id, const json::Raw& patch,
                             const Version& version) {
  Result<GroupPtr> before = find_row<Group>(context, Operation::update, id);
  if (!before) return before;
  Result<void> checked = check_version((*before)->version, version);
  if (!checked) return checked.error();
  Result<Group> after = patched(**before, json::View(patch));
  if (!after) return after.error();
  checked = check_references(context, "users", "user", after->members, "/members");
  if (!checked) return checked.error();
  return update_changed(context, *before, std::move(*after));
}

Result<void> remove_group(WriteContext& context, const std::string& id, const Version& version) {
  Result<GroupPtr> row = find_row<Group>(context, Operation::remove, id);
  if (!row) return row.error();
  Result<void> done = check_version((*row)->version, version);
  if (done) done = check_not_named(context, &Endpoint::groups, id);
  if (done) done = remove_row(context, **row);
  return done;
}

namespace {

// `user` is the text of a request: an id or a name. Returns null if there is no such user.
Result<UserPtr> find_user(WriteContext& context, const std::string& user) {
  Result<UserPtr> found = read_row<User>(context.transaction, user);
  if (!found || *found) return found;
  Result<std::vector<sql::Row>> rows =
      context.transaction.execute("select id from users where name = $1", {user});
  if (!rows) return rows.error();
  if (rows->empty()) return UserPtr();
  return read_row<User>(context.transaction, sql::text(rows->front().front()));
}

Result<void> resolve_user(WriteContext& context, Token& row) {
  Result<UserPtr> user = find_user(context, row.user);
  if (!user) return user.error();
  if (*user) {
    row.user = (*user)->id;
    return {};
  }
  // A client that may not create tokens of others does not learn whether the user exists.
  Result<void> allowed = check_new_token(context.actor, row);
  if (!allowed) return allowed;
  return invalid_member("/user", "there is no " + describe("user", row.user));
}

// A token that was created with another one does not outlive it.
Result<void> limit_to_creator(WriteContext& context, Token& row) {
  if (context.actor.token_id.empty()) return {};
  Result<TokenPtr> creator = read_row<Token>(context.transaction, context.actor.token_id);
  if (!creator) return creator.error();
  if (!*creator || !(*creator)->expires_at) return {};
  const Time latest = *(*creator)->expires_at;
  if (!row.expires_at) row.expires_at = latest;
  if (*row.expires_at <= latest) return {};
  return Error(ErrorKind::authorization, "a token cannot expire later than the token that creates it")
      .with([](ErrorDetail& detail) {
        detail.failure_code = kForbidden;
        detail.pointer = "/expires";
      });
}

Result<void> fill_token(WriteContext& context, Token& row, std::string& text) {
  Result<std::string> generated = generate_token();
  if (!generated) return generated.error();
  text = std::move(*generated);
  Result<std::string> id = context.ids.next(context.now);
  if (!id) return id.error();
  row.id = std::move(*id);
  row.sha256 = sha256_hex(text);
  row.prefix = token_prefix(text);
  row.version = 1;
  row.created_at = context.now;
  return {};
}

}  // namespace

Result<NewToken> create_token(WriteContext& context, const json::Raw& body) {
  Result<Token> row = new_token(json::View(body), context.now);
  if (!row) return row.error();
  NewToken created;
  Result<void> done = resolve_user(context, *row);
  if (done) done = check_new_token(context.actor, *row);
  if (done) done = limit_to_creator(context, *row);
  if (done) done = check_token_count(context, *row);
  if (done) done = check_lifetime(context.configuration, *row, context.now);
  if (done) done = fill_token(context, *row, created.text);
  if (done) done = insert_row(context.transaction, *row);
  if (!done) return done.error();
  context.record(RowTable<Token>::kind, row->id);
  created.token = std::make_shared<const Token>(std::move(*row));
  return created;
}

Result<TokenPtr> revoke_token(WriteContext& context, const std::string& id) {
  Result<TokenPtr> before = find_row<Token>(context, Operation::remove, id);
  if (!before || (*before)->revoked_at) return before;
  Token after = **before;
  after.revoked_at = context.now;
  ++after.version;
  Result<void> done = update_row(context.transaction, after);
  if (!done) return done.error();
  context.record(RowTable<Token>::kind, id);
  return std::make_shared<const Token>(std::move(after));
}

Result<void> write_token_uses(WriteContext& context, const std::vector<std::pair<std::string, Time>>& uses) {
  for (const auto& [id, time] : uses) {
    Result<TokenPtr> row = read_row<Token>(context.transaction, id);
    if (!row) return row.error();
    if (!*row || ((*row)->last_used_at && *(*row)->last_used_at >= time)) continue;
    Token after = **row;
    after.last_used_at = time;
    Result<void> done = update_row(context.transaction, after);
    if (!done) return done;
    context.record(RowTable<Token>::kind, id);
  }
  return {};
}

Result<void> set_config(WriteContext& context, const std::string& full_key, const json::Raw& value) {
  const Decision decision = decide(context.actor, Operation::update, Area::config);
  if (!decision) return decision.error(describe("configuration key", full_key));
  const Definition* const definition = find_definition(full_key);
  // Reports an unknown key with a suggestion.
  if (!definition) {
    Result<ConfigurationPtr> unknown = context.configuration.with(full_key, json::View(value));
    return unknown ? Result<void>() : unknown.error();
  }
  json::Raw normal;
  if (!value.absent()) {
    Result<json::Raw> valid = validate(*definition, json::View(value));
    if (!valid) return valid.error();
    normal = std::move(*valid);
  }
  // A value that cannot be read is replaced. After a failure of the database the next statement fails.
  Result<json::Raw> before = read_config(context.transaction, full_key);
  if (before && before->text() == normal.text()) return {};
  Result<void> done = write_config(context.transaction, full_key, normal, context.now);
  if (done) context.record(kConfigKind, full_key);
  return done;
}

Result<void> write_definitions(sql::Transaction& transaction) {
  const ConfigurationPtr defaults = Configuration::defaults();
  for (const Definition& definition : definitions()) {
    Result<std::vector<sql::Row>> done = transaction.execute(
        "insert into config_definitions (full_key, document) values ($1, $2) on conflict (full_key) do "
        "update set document = excluded.document where config_definitions.document <> excluded.document",
        {std::string(definition.full_key), std::string(defaults->to_json(definition).text())});
    if (!done) return done.error();
  }
  return {};
}

}  // namespace fairlead::registry
