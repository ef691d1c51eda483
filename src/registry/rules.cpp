#include "registry/rules.hpp"

#include <algorithm>
#include <array>

#include "base/contains.hpp"
#include "registry/codes.hpp"

namespace fairlead::registry {

namespace {

Decision allow() {
  return {true, true, {}};
}
Decision forbid(std::string reason) {
  return {false, true, std::move(reason)};
}
Decision conceal() {
  return {false, false, "does not exist"};
}

bool reads(Operation operation) noexcept {
  return operation == Operation::list || operation == Operation::read;
}

// Whether the client may use the admin API at all.
bool has_account(const Principal& principal) noexcept {
  return is_administrator(principal) || is_registry_user(principal);
}

// Returns why the client may not use an area of the admin API; nullopt if it may.
std::optional<Decision> area_refusal(const Principal& principal, Operation operation, Area area) {
  if (!has_account(principal)) return forbid("the admin API needs the token of a user");
  const std::string scope = "admin:" + std::string(to_string(area)) + (reads(operation) ? ":read" : "");
  if (!allows_scope(principal, scope)) return forbid("the token lacks the scope " + scope);
  return std::nullopt;
}

bool owns(const Principal& principal, const Server& server) noexcept {
  return is_registry_user(principal) && !server.owner.empty() && server.owner == principal.user;
}

bool sees_row(const Principal& principal, const Server& server) noexcept {
  return sees(principal, server.visibility, server.owner);
}

Decision decide_change(const Principal& principal, const Server& server) {
  if (is_administrator(principal)) return allow();
  if (server.spec.is_process())
    return forbid("only administrators may create, change and operate stdio servers");
  if (!owns(principal, server)) return forbid("only the owner of the server and administrators may do this");
  if (server.visibility != Visibility::user)
    return forbid("only administrators may change a server that other users see");
  return allow();
}

// A decision about a row of the admin API. `in` is the area whose scope is needed.
Decision decide_in_area(const Principal& principal, Operation operation, const Server& server, Area in) {
  if (operation != Operation::create && !sees_row(principal, server)) return conceal();
  if (const std::optional<Decision> refusal = area_refusal(principal, operation, in)) return *refusal;
  if (reads(operation)) return allow();
  if (operation == Operation::administer && !is_administrator(principal))
    return forbid("only administrators may do this");
  return decide_change(principal, server);
}

Decision decide_use(const Principal& principal, const Endpoint& endpoint) {
  if (!admits(endpoint, principal)) return conceal();
  if (!endpoint.enabled) return is_administrator(principal) ? forbid("the endpoint is disabled") : conceal();
  const std::string scope = "endpoint:" + endpoint.name;
  if (allows_scope(principal, scope)) return allow();
  return forbid("the token lacks the scope " + scope);
}

// Rows that only administrators see, except that `own` rows may be read by their user.
Decision decide_account_row(const Principal& principal, Operation operation, Area area, bool own) {
  const bool admin = is_administrator(principal);
  if (!admin && !own)
    return operation == Operation::create ? forbid("only administrators may do this") : conceal();
  if (const std::optional<Decision> refusal = area_refusal(principal, operation, area)) return *refusal;
  if (operation == Operation::call) return forbid("this cannot be called");
  if (admin || reads(operation)) return allow();
  return forbid("only administrators may do this");
}

}  // namespace

std::string_view to_string(Operation operation) noexcept {
  constexpr std::array<std::string_view, 8> kNames = {"list",   "read", "create",  "update",
                                                      "remove", "call", "operate", "administer"};
  return kNames[static_cast<std::size_t>(operation)];
}

Error Decision::error(std::string_view what) const {
  const std::string message =
      std::string(what) + (visible ? " is not accessible: " + reason : " does not exist");
  return Error(visible ? ErrorKind::authorization : ErrorKind::validation, message).with([&](ErrorDetail& d) {
    d.failure_code = visible ? kForbidden : kNotFound;
  });
}

PrincipalPtr principal_of(const User& user, const Token* token, std::vector<std::string> group_ids,
                          std::string client_address) {
  auto principal = std::make_shared<Principal>();
  principal->issuer = kRegistryIssuer;
  principal->subject = user.id;
  principal->user = user.id;
  principal->groups = std::move(group_ids);
  if (user.role == Role::admin) principal->roles = {std::string(kAdminRole)};
  if (token) principal->scopes = token->scopes;
  if (token) principal->token_id = token->id;
  principal->client_address = std::move(client_address);
  return principal;
}

PrincipalPtr bootstrap_principal(std::string client_address) {
  auto principal = std::make_shared<Principal>();
  principal->issuer = kRegistryIssuer;
  principal->subject = kBootstrapSubject;
  principal->user = kBootstrapUser;
  principal->roles = {std::string(kAdminRole)};
  principal->client_address = std::move(client_address);
  return principal;
}

Decision decide_account(const Principal& principal, const User* user) {
  if (!is_registry_user(principal)) return allow();
  if (!user || user->id != principal.user) return forbid("the user of the token does not exist any more");
  if (!user->enabled) return forbid("the user of the token is disabled");
  if (is_administrator(principal) && user->role != Role::admin)
    return forbid("the user of the token is not an administrator any more");
  return allow();
}

Decision decide_token(const Token* token, Time now) {
  if (!token) return forbid("the token of the request does not exist any more");
  if (token->revoked_at) return forbid("the token of the request was revoked");
  if (token->expires_at && *token->expires_at <= now) return forbid("the token of the request has expired");
  return allow();
}

Decision decide(const Principal& principal, Operation operation, const Server& server) {
  if (operation == Operation::call) return decide_call(principal, server, nullptr);
  return decide_in_area(principal, operation, server, Area::servers);
}

Decision decide_call(const Principal& principal, const Server& server, const Endpoint* endpoint) {
  if (!sees_row(principal, server)) return conceal();
  const std::string scope = "server:" + server.name;
  const bool by_endpoint = endpoint && allows_scope(principal, "endpoint:" + endpoint->name);
  if (by_endpoint || allows_scope(principal, scope)) return allow();
  return forbid("the token lacks the scope " + scope);
}

Decision decide(const Principal& principal, Operation operation, const Endpoint& endpoint) {
  if (operation == Operation::call) return decide_use(principal, endpoint);
  if (operation != Operation::create && !admits(endpoint, principal)) return conceal();
  if (const std::optional<Decision> refusal = area_refusal(principal, operation, Area::endpoints))
    return *refusal;
  if (is_administrator(principal) || reads(operation)) return allow();
  return forbid("only administrators may change endpoints");
}

Decision decide(const Principal& principal, Operation operation, const User& user) {
  const bool own = is_registry_user(principal) && principal.user == user.id && operation != Operation::create;
  return decide_account_row(principal, operation, Area::users, own);
}

Decision decide(const Principal& principal, Operation operation, const Group&) {
  return decide_account_row(principal, operation, Area::groups, false);
}

Decision decide(const Principal& principal, Operation operation, const Token& token) {
  const bool own = is_registry_user(principal) && principal.user == token.user;
  const bool managed = own && (operation == Operation::create || operation == Operation::remove);
  if (!managed) return decide_account_row(principal, operation, Area::tokens, own);
  if (const std::optional<Decision> refusal = area_refusal(principal, operation, Area::tokens))
    return *refusal;
  return allow();
}

Decision decide(const Principal& principal, Operation operation, const Drift&, const Server& server) {
  if (operation == Operation::call) return forbid("this cannot be called");
  return decide_in_area(principal, operation, server, Area::drift);
}

Decision decide(const Principal& principal, Operation operation, const Secret& secret) {
  const bool own = is_registry_user(principal) && !secret.user.empty() && secret.user == principal.user;
  const bool managed = own && (operation == Operation::create || operation == Operation::update ||
                               operation == Operation::remove);
  if (!managed) return decide_account_row(principal, operation, Area::secrets, own);
  if (const std::optional<Decision> refusal = area_refusal(principal, operation, Area::secrets))
    return *refusal;
  return allow();
}

// Anonymous clients have no identity, so they do not own their sessions.
Decision decide_session(const Principal& principal, Operation operation, const Principal& owner) {
  const bool own = !principal.is_anonymous() && same_identity(principal, owner);
  if (!is_administrator(principal) && !own) return conceal();
  if (const std::optional<Decision> refusal = area_refusal(principal, operation, Area::sessions))
    return *refusal;
  if (is_administrator(principal) || reads(operation) || operation == Operation::remove) return allow();
  return forbid("only administrators may do this");
}

namespace {

struct AreaRule {
  Area area;
  bool users_read;
  std::array<Operation, 4> users_do;  // beside reading; rows are decided on one by one
};

constexpr std::array kAreaRules = {
    AreaRule{
        Area::servers, true, {Operation::create, Operation::update, Operation::remove, Operation::operate}},
    AreaRule{Area::endpoints, true, {}},
    AreaRule{Area::users, true, {}},
    AreaRule{Area::groups, false, {}},
    AreaRule{Area::tokens, true, {Operation::create, Operation::remove}},
    AreaRule{Area::config, false, {}},
    AreaRule{Area::drift, true, {Operation::operate}},
    AreaRule{Area::processes, false, {}},
    AreaRule{Area::sessions, true, {Operation::remove}},
    AreaRule{Area::events, true, {}},
    AreaRule{Area::secrets, true, {Operation::create, Operation::update, Operation::remove}},
};

}  // namespace

Decision decide(const Principal& principal, Operation operation, Area area) {
  if (operation == Operation::call) return forbid("this cannot be called");
  if (const std::optional<Decision> refusal = area_refusal(principal, operation, area)) return *refusal;
  if (is_administrator(principal)) return allow();
  const AreaRule& rule = kAreaRules[static_cast<std::size_t>(area)];
  // Unused places of `users_do` are Operation::list, which is never looked up there.
  const bool may = reads(operation) ? rule.users_read : contains(rule.users_do, operation);
  return may ? allow() : forbid("only administrators may do this");
}

Redaction redaction_for(const Principal& principal, const Server& server) {
  return is_administrator(principal) || owns(principal, server) ? Redaction::none : Redaction::secrets;
}

Redaction redaction_for(const Principal& principal) {
  return is_administrator(principal) ? Redaction::none : Redaction::secrets;
}

ServerDefaults defaults_for(const Principal& principal, const Configuration& configuration) {
  ServerDefaults defaults;
  defaults.drift =
      parse_drift_policy(configuration.string("registry.drift_default")).value_or(defaults.drift);
  if (is_administrator(principal)) return defaults;
  defaults.visibility = Visibility::user;
  defaults.owner = principal.user;
  return defaults;
}

Result<void> check_new_secret(const Principal& principal, const Secret& secret, const Server* server) {
  const auto refused = [](Error error, std::string_view pointer) {
    return std::move(error).with([pointer](ErrorDetail& d) { d.pointer = pointer; });
  };
  const Decision decision = decide(principal, Operation::create, secret);
  if (!decision) return refused(decision.error("a secret that is not the user's own"), "/user");
  const bool sees_server = server && sees_row(principal, *server);
  if (secret.server.empty() || sees_server) return {};
  return refused(conceal().error("server `" + secret.server + "`"), "/server");
}

Result<void> check_new_token(const Principal& principal, const Token& token) {
  const Decision decision = decide(principal, Operation::create, token);
  if (!decision)
    return Error(decision.error("a token of this user")).with([](ErrorDetail& d) { d.pointer = "/user"; });
  if (principal.issuer != kRegistryIssuer || scopes_within(token.scopes, principal.scopes)) return {};
  return Error(ErrorKind::authorization, "a token cannot have more scopes than the token that creates it")
      .with([](ErrorDetail& d) {
        d.failure_code = kForbidden;
        d.pointer = "/scopes";
      });
}

}  // namespace fairlead::registry
