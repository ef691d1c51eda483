#include "admin/secret_store.hpp"

#include "registry/secret_lookup.hpp"

namespace fairlead::admin {

namespace {

Error missing_secret(const registry::State& state, const registry::Server& server, const std::string& name) {
  const bool own_only = registry::has_untrusted_owner(state, server);
  return Error(ErrorKind::validation,
               own_only
                   ? "its owner has not stored it"
                   : "it is stored neither for the caller at this server, nor for the server, nor for all "
                     "servers")
      .with([&](ErrorDetail& detail) { detail.remedy = registry::how_to_provide(state, server, name); });
}

Task<Result<std::string>> find_value(std::shared_ptr<registry::Registry> registry,
                                     pool::SecretRequest request) {
  const registry::State& state = registry->state();
  const registry::ServerPtr server = state.servers.find_by_name(request.server);
  if (!server) co_return Error(ErrorKind::validation, "the server does not exist any more");
  const registry::FoundSecret found = registry::find_secret(state, *server, request.user, request.name);
  if (!found.secret) co_return missing_secret(state, *server, request.name);
  const Result<registry::SecretText> value = registry->secret_value(*found.secret);
  if (!value) co_return value.error();
  co_return value->view();
}

}  // namespace

pool::SecretStore registry_secret_store(std::shared_ptr<registry::Registry> registry) {
  return [registry = std::move(registry)](pool::SecretRequest request) {
    return find_value(registry, std::move(request));
  };
}

}  // namespace fairlead::admin
