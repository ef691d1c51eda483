#include "registry/name_references.hpp"

#include <algorithm>

namespace fairlead::registry {

namespace {

bool names_server(const Endpoint& endpoint, const std::string& name) {
  const std::string prefix = name + "__";
  const auto is_of_server = [&](const std::string& pattern) { return pattern.starts_with(prefix); };
  return std::ranges::find(endpoint.servers, name) != endpoint.servers.end() ||
         std::ranges::any_of(endpoint.tools, is_of_server) ||
         std::ranges::any_of(endpoint.deny, is_of_server) ||
         std::ranges::any_of(endpoint.pinned, is_of_server) ||
         std::ranges::any_of(endpoint.rename, [&](const auto& rule) { return is_of_server(rule.first); });
}

Error named_by(const WriteContext& context, const std::string& what, const std::string& by) {
  // Users who own a server need not know the endpoints and tokens of others.
  const std::string who = is_administrator(context.actor) ? by : "an endpoint or a token";
  return rejected(kInUse, what + " cannot be renamed, because " + who +
                              " names it; remove the name there first, and add the new one afterwards")
      .with([](ErrorDetail& detail) { detail.pointer = "/name"; });
}

// `scope` is "server:NAME" or "endpoint:NAME".
Result<void> check_no_token_has(WriteContext& context, const std::string& scope, const std::string& what) {
  Result<std::vector<sql::Row>> rows = context.transaction.execute(
      "select id, document from tokens where revoked_at is null and (expires_at is null or expires_at > $1) "
      "and "
      "document like $2",
      {to_stored_time(context.now), "%\"" + scope + "\"%"});
  if (!rows) return rows.error();
  for (const sql::Row& row : *rows) {
    Result<TokenPtr> token = decode_row<Token>(sql::text(row[0]), sql::text(row[1]));
    if (!token) return token.error();
    const std::vector<std::string>& scopes = (*token)->scopes;
    if (std::ranges::find(scopes, scope) == scopes.end()) continue;
    return named_by(context, what, "a scope of the token " + (*token)->id);
  }
  return {};
}

}  // namespace

Result<void> check_may_rename(WriteContext& context, const Server& server) {
  const std::string what = describe("server", server.name);
  Result<std::vector<sql::Row>> rows = context.transaction.execute("select id, document from endpoints");
  if (!rows) return rows.error();
  for (const sql::Row& row : *rows) {
    Result<EndpointPtr> endpoint = decode_row<Endpoint>(sql::text(row[0]), sql::text(row[1]));
    if (!endpoint) return endpoint.error();
    if (names_server(**endpoint, server.name))
      return named_by(context, what, "the endpoint `" + (*endpoint)->name + "`");
  }
  return check_no_token_has(context, "server:" + server.name, what);
}

Result<void> check_may_rename(WriteContext& context, const Endpoint& endpoint) {
  return check_no_token_has(context, "endpoint:" + endpoint.name, describe("endpoint", endpoint.name));
}

}  // namespace fairlead::registry
