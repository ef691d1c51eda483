// The changes of rows: each runs an operation (operations.hpp) in a transaction and applies its outcome.
#include <utility>

#include "registry/registry_impl.hpp"

namespace fairlead::registry {

namespace {

// Stands for the value of an operation that has none.
struct NoValue {};

}  // namespace

Task<Result<void>> RegistryImpl::write_only(PrincipalPtr actor, Operation<void> operation) {
  Operation<NoValue> with_value =
      [operation = std::move(operation)](WriteContext& context) mutable -> Result<NoValue> {
    Result<void> done = operation(context);
    if (!done) return done.error();
    return NoValue();
  };
  const Result<NoValue> written = co_await write<NoValue>(std::move(actor), std::move(with_value));
  if (!written) co_return written.error();
  co_return Result<void>();
}

Task<Result<ServerPtr>> RegistryImpl::create_server(PrincipalPtr actor, json::Raw body) {
  return write<ServerPtr>(std::move(actor), [body = std::move(body)](WriteContext& context) {
    return registry::create_server(context, body);
  });
}

Task<Result<ServerPtr>> RegistryImpl::patch_server(PrincipalPtr actor, std::string id, json::Raw patch,
                                                   Version version) {
  return write<ServerPtr>(std::move(actor),
                          [id = std::move(id), patch = std::move(patch), version](WriteContext& context) {
                            return registry::patch_server(context, id, patch, version);
                          });
}

Task<Result<void>> RegistryImpl::remove_server(PrincipalPtr actor, std::string id, Version version) {
  return write_only(std::move(actor), [id = std::move(id), version](WriteContext& context) {
    return registry::remove_server(context, id, version);
  });
}

Task<Result<EndpointPtr>> RegistryImpl::create_endpoint(PrincipalPtr actor, json::Raw body) {
  return write<EndpointPtr>(std::move(actor), [body = std::move(body)](WriteContext& context) {
    return registry::create_endpoint(context, body);
  });
}

Task<Result<EndpointPtr>> RegistryImpl::patch_endpoint(PrincipalPtr actor, std::string id, json::Raw patch,
                                                       Version version) {
  return write<EndpointPtr>(std::move(actor),
                            [id = std::move(id), patch = std::move(patch), version](WriteContext& context) {
                              return registry::patch_endpoint(context, id, patch, version);
                            });
}

Task<Result<void>> RegistryImpl::remove_endpoint(PrincipalPtr actor, std::string id, Version version) {
  return write_only(std::move(actor), [id = std::move(id), version](WriteContext& context) {
    return registry::remove_endpoint(context, id, version);
  });
}

Task<Result<UserPtr>> RegistryImpl::create_user(PrincipalPtr actor, json::Raw body) {
  return write<UserPtr>(std::move(actor), [body = std::move(body)](WriteContext& context) {
    return registry::create_user(context, body);
  });
}

Task<Result<UserPtr>> RegistryImpl::patch_user(PrincipalPtr actor, std::string id, json::Raw patch,
                                               Version version) {
  return write<UserPtr>(std::move(actor),
                        [id = std::move(id), patch = std::move(patch), version](WriteContext& context) {
                          return registry::patch_user(context, id, patch, version);
                        });
}

Task<Result<void>> RegistryImpl::remove_user(PrincipalPtr actor, std::string id, Version version) {
  return write_only(std::move(actor), [id = std::move(id), version](WriteContext& context) {
    return registry::remove_user(context, id, version);
  });
}

Task<Result<GroupPtr>> RegistryImpl::create_group(PrincipalPtr actor, json::Raw body) {
  return write<GroupPtr>(std::move(actor), [body = std::move(body)](WriteContext& context) {
    return registry::create_group(context, body);
  });
}

Task<Result<GroupPtr>> RegistryImpl::patch_group(PrincipalPtr actor, std::string id, json::Raw patch,
                                                 Version version) {
  return write<GroupPtr>(std::move(actor),
                         [id = std::move(id), patch = std::move(patch), version](WriteContext& context) {
                           return registry::patch_group(context, id, patch, version);
                         });
}

Task<Result<void>> RegistryImpl::remove_group(PrincipalPtr actor, std::string id, Version version) {
  return write_only(std::move(actor), [id = std::move(id), version](WriteContext& context) {
    return registry::remove_group(context, id, version);
  });
}

Task<Result<NewToken>> RegistryImpl::create_token(PrincipalPtr actor, json::Raw body) {
  return write<NewToken>(std::move(actor), [body = std::move(body)](WriteContext& context) {
    return registry::create_token(context, body);
  });
}

Task<Result<TokenPtr>> RegistryImpl::revoke_token(PrincipalPtr actor, std::string id) {
  return write<TokenPtr>(std::move(actor), [id = std::move(id)](WriteContext& context) {
    return registry::revoke_token(context, id);
  });
}

Task<Result<ConfigurationPtr>> RegistryImpl::set_config(PrincipalPtr actor, std::string full_key,
                                                        json::Raw value) {
  Operation<void> operation = [key = std::move(full_key), value = std::move(value)](WriteContext& context) {
    return registry::set_config(context, key, value);
  };
  const Result<void> done = co_await write_only(std::move(actor), std::move(operation));
  if (!done) co_return done.error();
  co_return state_.configuration;
}

Task<Result<DriftPtr>> RegistryImpl::resolve_drift(PrincipalPtr actor, std::string id,
                                                   DriftStatus resolution) {
  return write<DriftPtr>(std::move(actor), [id = std::move(id), resolution](WriteContext& context) {
    return registry::resolve_drift(context, id, resolution);
  });
}

}  // namespace fairlead::registry
