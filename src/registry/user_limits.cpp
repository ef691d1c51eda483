#include "registry/user_limits.hpp"

#include "fairlead/base/duration.hpp"
#include "registry/codes.hpp"
#include "registry/row_reader.hpp"
#include "registry/rules.hpp"

namespace fairlead::registry {

namespace {

// `limit` is the full key of a definition. `statement` counts the rows that exist.
Result<void> check_count(WriteContext& context, std::string_view limit, std::string_view statement,
                         std::vector<sql::Value> parameters, std::string_view rows) {
  if (is_administrator(context.actor)) return {};
  Result<std::vector<sql::Row>> counted = context.transaction.execute(statement, std::move(parameters));
  if (!counted) return counted.error();
  const std::int64_t maximum = context.configuration.integer(limit);
  if (sql::integer(counted->front().front()) < maximum) return {};
  return Error(ErrorKind::authorization, "a user cannot have more " + std::string(rows) + ": " +
                                             std::string(limit) + " is " + std::to_string(maximum))
      .with([](ErrorDetail& d) { d.failure_code = kForbidden; });
}

}  // namespace

Result<void> check_server_count(WriteContext& context, const Server& after) {
  return check_count(context, "registry.max_user_servers", "select count(*) from servers where owner = $1",
                     {after.owner}, "servers");
}

Result<void> check_token_count(WriteContext& context, const Token& token) {
  return check_count(
      context, "auth.max_user_tokens",
      "select count(*) from tokens where user_id = $1 and revoked_at is null and (expires_at is null "
      "or expires_at > $2)",
      {token.user, static_cast<std::int64_t>(context.now.time_since_epoch().count())}, "tokens");
}

Result<void> check_secret_count(WriteContext& context, const Secret& secret, std::int64_t bytes) {
  Result<void> checked = check_count(context, "registry.max_user_secrets",
                                     "select count(*) from secrets where user_id = $1 and id <> $2",
                                     {secret.user, secret.id}, "secrets");
  if (!checked) return checked;
  Result<std::vector<sql::Row>> rows = context.transaction.execute(
      "select count(*), cast(coalesce(sum(bytes), 0) as bigint) from secrets where id <> $1", {secret.id});
  if (!rows) return rows.error();
  const auto full = [](NamedLimit limit) {
    return rejected(kInvalidRow, "the registry cannot have more secrets: " + std::string(limit.name) +
                                     " is " + std::to_string(limit.value));
  };
  if (sql::integer(rows->front()[0]) >= static_cast<std::int64_t>(kMaxSecrets.value))
    return full(kMaxSecrets);
  if (sql::integer(rows->front()[1]) + bytes > static_cast<std::int64_t>(kMaxSecretsBytes.value))
    return full(kMaxSecretsBytes);
  return {};
}

Result<void> check_lifetime(const Configuration& configuration, const Token& token, Time now) {
  const std::chrono::milliseconds maximum = configuration.duration("auth.max_token_lifetime");
  if (maximum.count() == 0 || (token.expires_at && *token.expires_at - now <= maximum)) return {};
  return invalid_row(
      "`expires` must be at most auth.max_token_lifetime (" + format_duration(maximum) + ") from now",
      "/expires");
}

}  // namespace fairlead::registry
