#include "admin/secret_store.hpp"

#include "registry/secret_lookup.hpp"

namespace fairlead::admin {

namespace {

std::string missing_reason(const registry::State& state, const registry::Server& server,
                           const std::string& user) {
  if (registry::has_untrusted_owner(state, server)) return "its owner has not stored it";
  if (user.empty()) return "it is stored neither for the server nor for all servers";
  return "it is stored neither for the caller at this server, nor for the server, nor for all servers";
}

Error missing_secret(const registry::State& state, const registry::Server& server,
                     const pool::SecretRequest& request) {
  return Error(ErrorKind::validation, missing_reason(state, server, request.user))
      .with([&](ErrorDetail& detail) {
        detail.remedy = registry::how_to_provide(state, server, request.name);
      });
}

// The owner of a server who is not an administrator also decides where its values are sent.
pool::SecretProvider provider_of(const registry::State& state, const registry::Server& server,
                                 const registry::FoundSecret& found) {
  if (found.source != registry::SecretSource::user) return pool::SecretProvider::administrator;
  if (registry::has_untrusted_owner(state, server)) return pool::SecretProvider::owner;
  const registry::UserPtr user = state.users.find(found.secret->user);
  const bool administrator = user && user->role == registry::Role::admin;
  return administrator ? pool::SecretProvider::administrator : pool::SecretProvider::caller;
}

Task<Result<pool::StoredSecret>> find_value(std::shared_ptr<registry::Registry> registry,
                                            pool::SecretRequest request) {
  const registry::State& state = registry->state();
  const registry::ServerPtr server = state.servers.find_by_name(request.server);
  if (!server) co_return Error(ErrorKind::validation, "the server does not exist any more");
  const registry::FoundSecret found = registry::find_secret(state, *server, request.user, request.name);
  if (!found.secret) co_return missing_secret(state, *server, request);
  const Result<registry::SecretText> value = registry->secret_value(*found.secret);
  if (!value) co_return value.error();
  co_return pool::StoredSecret(std::string(value->view()), provider_of(state, *server, found));
}

}  // namespace

pool::SecretStore registry_secret_store(std::shared_ptr<registry::Registry> registry) {
  return [registry = std::move(registry)](pool::SecretRequest request) {
    return find_value(registry, std::move(request));
  };
}

}  // namespace fairlead::admin
