// Secrets and their keys.
#include <utility>

#include "registry/registry_impl.hpp"

namespace fairlead::registry {

Task<Result<SecretPtr>> RegistryImpl::create_secret(PrincipalPtr actor, json::Raw body) {
  Result<NewSecret> parsed = new_secret(json::View(body));
  if (!parsed) co_return parsed.error();
  Operation<SecretPtr> operation = [secret = std::move(*parsed)](WriteContext& context) mutable {
    return registry::create_secret(context, std::move(secret));
  };
  Result<SecretPtr> created = co_await write<SecretPtr>(std::move(actor), std::move(operation));
  co_return created;
}

Task<Result<SecretPtr>> RegistryImpl::patch_secret(PrincipalPtr actor, std::string id, json::Raw patch,
                                                   Version version) {
  return write<SecretPtr>(std::move(actor),
                          [id = std::move(id), patch = std::move(patch), version](WriteContext& context) {
                            return registry::patch_secret(context, id, patch, version);
                          });
}

Task<Result<void>> RegistryImpl::remove_secret(PrincipalPtr actor, std::string id, Version version) {
  return write_only(std::move(actor), [id = std::move(id), version](WriteContext& context) {
    return registry::remove_secret(context, id, version);
  });
}

Result<SecretText> RegistryImpl::secret_value(const Secret& secret) const {
  const auto key = state_.secret_keys.find(secret.data_key);
  if (key == state_.secret_keys.end())
    return Error(ErrorKind::validation, "the data key " + secret.data_key + " is not known");
  return jobs_->secret_keys->decrypt(*key->second, secret);
}

SecretKeyStatus RegistryImpl::secret_key_status() const {
  SecretKeyStatus status;
  status.source = jobs_->secret_keys->source();
  status.data_keys = state_.secret_keys.size();
  status.secrets = state_.secrets.size();
  if (state_.secret_keys.empty()) {
    status.problem = secret_key_missing();
    return status;
  }
  const SecretDataKey& newest = *state_.secret_keys.rbegin()->second;
  status.key_id = newest.key_id;
  const Result<void> usable = jobs_->secret_keys->unlock(newest);
  if (!usable) status.problem = usable.error();
  return status;
}

Result<std::string> RegistryImpl::secret_digest(std::string_view text) const {
  if (state_.secret_keys.empty()) return secret_key_missing();
  return jobs_->secret_keys->digest(*state_.secret_keys.rbegin()->second, text);
}

// ---- changing the key ------------------------------------------------------------------------------------

void RegistryImpl::settle_key_file(const std::string& key_id) {
  const SecretKeyOptions& options = options_.secret_key;
  if (!options.manage_file || options.text || key_id.empty()) return;
  const Result<void> settled = SecretKeyFile(options.file).settle(key_id);
  if (!settled) options_.log.warning("key file not updated", {{"reason", settled.error().message()}});
}

void RegistryImpl::warn_of_missing_key() const {
  if (!options_.secret_key.required || jobs_->secret_keys->has_keys()) return;
  const Error missing = secret_key_missing();
  options_.log.warning("no secrets can be stored",
                       {{"reason", missing.message()}, {"remedy", missing.detail().remedy}});
}

std::function<Result<std::string>(std::string_view)> RegistryImpl::next_key() const {
  const SecretKeyOptions& options = options_.secret_key;
  if (options.manage_file && !options.text && !database_->is_postgresql()) {
    return
        [file = SecretKeyFile(options.file), jobs = jobs_](std::string_view current) -> Result<std::string> {
          Result<SecretKey> key = file.prepare_next(current);
          if (!key) return key.error();
          std::string id = key->id();
          if (!jobs->secret_keys->has_key(id)) jobs->secret_keys->add(std::move(*key), false);
          return id;
        };
  }
  return [jobs = jobs_](std::string_view current) -> Result<std::string> {
    std::string preferred = jobs->secret_keys->preferred_id();
    if (!preferred.empty() && preferred != current) return preferred;
    return Error(ErrorKind::validation, "the configured key is the current one, " + std::string(current))
        .with([](ErrorDetail& detail) {
          detail.failure_code = kNoNewSecretKey;
          detail.remedy =
              "Configure two keys, one in each line, at every gateway of the database: the new one first, "
              "then the current one. Restart the gateways, and repeat the request.";
        });
  };
}

Result<void> RegistryImpl::finish_key_file(const RekeyOutcome& outcome) {
  if (outcome.key_id == outcome.previous_key_id) return {};
  jobs_->secret_keys->forget(outcome.previous_key_id);
  return SecretKeyFile(options_.secret_key.file).install_next();
}

Task<Result<RekeyOutcome>> RegistryImpl::rekey_secrets(PrincipalPtr actor, RekeyRequest request) {
  const auto self = shared_from_this();
  if (!request.key && !request.data_key)
    co_return invalid_member("/key", "nothing is to be replaced: neither `key` nor `dataKey` is true");
  if (rekeying_)
    co_return Error(ErrorKind::resource_exhausted, "another request is replacing the keys of the secrets");
  rekeying_ = true;
  Operation<RekeyOutcome> operation = [request, next = next_key()](WriteContext& context) {
    return registry::rekey_secrets(context, request, next);
  };
  Result<RekeyOutcome> outcome = co_await write<RekeyOutcome>(std::move(actor), std::move(operation));
  rekeying_ = false;
  const bool managed =
      options_.secret_key.manage_file && !options_.secret_key.text && !database_->is_postgresql();
  if (!outcome || !managed) co_return outcome;
  const Result<void> finished = finish_key_file(*outcome);
  if (!finished)
    options_.log.error(
        "the new key is in use, but the key file was not replaced; the next start or change of the key does "
        "it",
        {{"reason", finished.error().message()}, {"key", options_.secret_key.file + ".new"}});
  co_return outcome;
}

}  // namespace fairlead::registry
