// Changes of servers and endpoints.
#include <utility>

#include "registry/name_references.hpp"
#include "registry/operations.hpp"
#include "registry/user_limits.hpp"

namespace fairlead::registry {

namespace {

Result<void> execute_for(WriteContext& context, std::string_view statement, const std::string& id) {
  Result<std::vector<sql::Row>> done = context.transaction.execute(statement, {id});
  if (!done) return done.error();
  return {};
}

Result<void> check_server(WriteContext& context, const Server* before, const Server& after) {
  Result<void> checked = check_change(context.actor, before, after, context.configuration);
  if (!checked) return checked;
  return check_reference(context, "users", "user", after.owner, "/owner");
}

Result<void> check_endpoint(WriteContext& context, const Endpoint& endpoint) {
  Result<void> checked = check_references(context, "users", "user", endpoint.users, "/users");
  if (!checked) return checked;
  return check_references(context, "user_groups", "group", endpoint.groups, "/groups");
}

// A user may not register a process, whatever else is wrong with the body.
Result<void> check_may_register(WriteContext& context, json::View body) {
  if (is_administrator(context.actor) || body["transport"].as_string() != "stdio") return {};
  Server process;
  process.visibility = Visibility::user;
  process.owner = context.actor.user;
  return check_change(context.actor, nullptr, process, context.configuration);
}

}  // namespace

Result<ServerPtr> create_server(WriteContext& context, const json::Raw& body) {
  const Result<void> allowed = check_may_register(context, json::View(body));
  if (!allowed) return allowed.error();
  Result<Server> row = new_server(json::View(body), defaults_for(context.actor, context.configuration));
  if (!row) return row.error();
  Result<void> checked = check_server(context, nullptr, *row);
  if (checked) checked = check_server_count(context, *row);
  if (!checked) return checked.error();
  return insert_new(context, std::move(*row));
}

Result<ServerPtr> patch_server(WriteContext& context, const std::string& id, const json::Raw& patch,
                               const Version& version) {
  Result<ServerPtr> before = find_row<Server>(context, Operation::update, id);
  if (!before) return before;
  Result<void> checked = check_version((*before)->version, version);
  if (!checked) return checked.error();
  Result<Server> after = patched(**before, json::View(patch));
  if (!after) return after.error();
  checked = check_server(context, before->get(), *after);
  if (checked && after->name != (*before)->name) checked = check_may_rename(context, **before);
  if (!checked) return checked.error();
  return update_changed(context, *before, std::move(*after));
}

Result<void> remove_server(WriteContext& context, const std::string& id, const Version& version) {
  Result<ServerPtr> row = find_row<Server>(context, Operation::remove, id);
  if (!row) return row.error();
  Result<void> done = check_version((*row)->version, version);
  if (done) done = execute_for(context, "delete from drift where server_id = $1", id);
  if (done) done = execute_for(context, "delete from server_lists where server_id = $1", id);
  if (done) done = remove_secrets_of_server(context, id);
  if (done) done = remove_row(context, **row);
  return done;
}

Result<EndpointPtr> create_endpoint(WriteContext& context, const json::Raw& body) {
  Result<Endpoint> row = new_endpoint(json::View(body));
  if (!row) return row.error();
  const Decision decision = decide(context.actor, Operation::create, *row);
  if (!decision) return decision.error(describe("endpoint", row->name));
  Result<void> checked = check_endpoint(context, *row);
  if (!checked) return checked.error();
  return insert_new(context, std::move(*row));
}

Result<EndpointPtr> patch_endpoint(WriteContext& context, const std::string& id, const json::Raw& patch,
                                   const Version& version) {
  Result<EndpointPtr> before = find_row<Endpoint>(context, Operation::update, id);
  if (!before) return before;
  Result<void> checked = check_version((*before)->version, version);
  if (!checked) return checked.error();
  Result<Endpoint> after = patched(**before, json::View(patch));
  if (!after) return after.error();
  if ((*before)->name == kDefaultEndpoint && after->name != kDefaultEndpoint)
    return invalid_member("/name", "the endpoint `default` cannot be renamed: it is the one at /mcp");
  checked = check_endpoint(context, *after);
  if (checked && after->name != (*before)->name) checked = check_may_rename(context, **before);
  if (!checked) return checked.error();
  return update_changed(context, *before, std::move(*after));
}

Result<void> remove_endpoint(WriteContext& context, const std::string& id, const Version& version) {
  Result<EndpointPtr> row = find_row<Endpoint>(context, Operation::remove, id);
  if (!row) return row.error();
  if ((*row)->name == kDefaultEndpoint)
    return rejected(kInUse, "the endpoint `default` cannot be removed; set `enabled` to false to close /mcp");
  Result<void> done = check_version((*row)->version, version);
  if (done) done = remove_row(context, **row);
  return done;
}

namespace {

Result<void> seed_endpoint(WriteContext& context, std::string_view name, EndpointMode mode,
                           std::string title) {
  Endpoint endpoint;
  endpoint.name = name;
  endpoint.mode = mode;
  endpoint.title = std::move(title);
  Result<EndpointPtr> inserted = insert_new(context, std::move(endpoint));
  if (!inserted) return inserted.error();
  return {};
}

}  // namespace

Result<void> seed(WriteContext& context, const std::vector<Server>& servers) {
  Result<void> done = seed_endpoint(context, kDefaultEndpoint, EndpointMode::direct, "All tools");
  if (done) done = seed_endpoint(context, kDiscoverEndpoint, EndpointMode::discover, "Tools by search");
  for (const Server& server : servers) {
    if (!done) return done;
    Result<ServerPtr> inserted = insert_new(context, server);
    if (!inserted) done = inserted.error();
  }
  return done;
}

}  // namespace fairlead::registry
