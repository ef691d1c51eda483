#include "registry/secret_keyring.hpp"

#include <algorithm>

#include "fairlead/base/base64.hpp"
#include "registry/codes.hpp"

namespace fairlead::registry {

namespace {

// Joins texts so that no two different lists have the same result.
std::string joined(std::initializer_list<std::string_view> texts) {
  std::string all;
  for (const std::string_view text : texts) all.append(std::to_string(text.size())).append(":").append(text);
  return all;
}

std::string identity_of(const Secret& row) {
  return joined({"fairlead secret 1", row.id, row.name, row.server, row.user, row.data_key});
}
std::string identity_of(const SecretDataKey& row) {
  return joined({"fairlead data key 1", row.id, row.key_id});
}

template <class Row>
Result<void> seal_into(const SecretKey& key, std::string_view plain, Row& row) {
  const Result<SealedText> sealed = seal(key, plain, identity_of(row));
  if (!sealed) return sealed.error();
  row.nonce = base64_encode(sealed->nonce);
  row.ciphertext = base64_encode(sealed->ciphertext);
  return {};
}

template <class Row>
Result<SecretText> open_row(const SecretKey& key, const Row& row) {
  SealedText sealed;
  sealed.nonce = base64_decode(row.nonce).value_or(std::string());
  sealed.ciphertext = base64_decode(row.ciphertext).value_or(std::string());
  return open_sealed(key, sealed, identity_of(row));
}

}  // namespace

Error secret_key_missing() {
  return Error(ErrorKind::validation, "no key for secrets is configured").with([](ErrorDetail& detail) {
    detail.failure_code = kSecretKeyMissing;
    detail.remedy =
        "Start the gateway with the key: --secret-key-file FILE, --secret-key-command COMMAND, or "
        "FAIRLEAD_SECRET_KEY. `openssl rand -base64 32` makes a new one.";
  });
}

Error lost_secret_key(std::string_view key_id, std::string_view reason) {
  return Error(ErrorKind::validation, "the database has secrets that are encrypted with the key " +
                                          std::string(key_id) + ", and " + std::string(reason))
      .with([](ErrorDetail& detail) {
        detail.failure_code = kSecretKeyMissing;
        detail.remedy =
            "Restore the key file DATABASE.key, or for a backup from before a `rekey` DATABASE.key.previous, "
            "or start the gateway with that key: --secret-key-file FILE, --secret-key-command COMMAND, or "
            "FAIRLEAD_SECRET_KEY.";
      });
}

Error secret_key_mismatch(std::string_view needed_id, std::string_view source, std::string_view given_id) {
  return Error(ErrorKind::validation,
               "the secrets of the database are encrypted with the key " + std::string(needed_id) + ", and " +
                   std::string(source) + " has " +
                   (given_id.empty() ? std::string("none") : "the key " + std::string(given_id)))
      .with([](ErrorDetail& detail) {
        detail.failure_code = kSecretKeyMismatch;
        detail.remedy =
            "Configure the key with which the secrets were stored. After a change of the key, list both: the "
            "new one in the first line, the old one in the second.";
      });
}

SecretKeyring::SecretKeyring(std::vector<SecretKey> keys, std::string source)
    : keys_(std::move(keys)), source_(std::move(source)) {}

bool SecretKeyring::has_keys() const {
  const std::scoped_lock lock(mutex_);
  return !keys_.empty();
}

std::string SecretKeyring::preferred_id() const {
  const std::scoped_lock lock(mutex_);
  return keys_.empty() ? std::string() : keys_.front().id();
}

std::string SecretKeyring::source() const {
  const std::scoped_lock lock(mutex_);
  return source_;
}

void SecretKeyring::add(SecretKey key, bool preferred) {
  const std::scoped_lock lock(mutex_);
  keys_.insert(preferred ? keys_.begin() : keys_.end(), std::move(key));
}

bool SecretKeyring::has_key(std::string_view key_id) const {
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(keys_, [&](const SecretKey& key) { return key.id() == key_id; });
}

void SecretKeyring::forget(std::string_view key_id) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(keys_, [&](const SecretKey& key) { return key.id() == key_id; });
}

Result<SecretKey> SecretKeyring::wrapping_key(std::string_view key_id) const {
  const std::scoped_lock lock(mutex_);
  if (keys_.empty()) return lost_secret_key(key_id, "no key is configured");
  const auto found = std::ranges::find(keys_, key_id, &SecretKey::id);
  if (found != keys_.end()) return *found;
  return secret_key_mismatch(key_id, source_, keys_.front().id());
}

Result<SecretDataKey> SecretKeyring::new_data_key(std::string id, Time now, std::string_view key_id) {
  const Result<SecretKey> wrapping = wrapping_key(key_id);
  if (!wrapping) return wrapping.error();
  const Result<SecretKey> key = SecretKey::generate();
  if (!key) return key.error();
  SecretDataKey row;
  row.id = std::move(id);
  row.key_id = key_id;
  row.created_at = now;
  if (Result<void> done = seal_into(*wrapping, key->bytes(), row); !done) return done.error();
  const std::scoped_lock lock(mutex_);
  data_keys_.insert_or_assign(row.id, *key);
  return row;
}

Result<SecretDataKey> SecretKeyring::rewrapped(const SecretDataKey& row, std::string_view key_id) {
  const Result<SecretKey> key = data_key(row);
  if (!key) return key.error();
  const Result<SecretKey> wrapping = wrapping_key(key_id);
  if (!wrapping) return wrapping.error();
  SecretDataKey after = row;
  after.key_id = key_id;
  if (Result<void> done = seal_into(*wrapping, key->bytes(), after); !done) return done.error();
  return after;
}

Result<SecretKey> SecretKeyring::data_key(const SecretDataKey& row) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = data_keys_.find(row.id);
    if (found != data_keys_.end()) return found->second;
  }
  const Result<SecretKey> wrapping = wrapping_key(row.key_id);
  if (!wrapping) return wrapping.error();
  const Result<SecretText> bytes = open_row(*wrapping, row);
  if (!bytes)
    return Error(ErrorKind::validation, "the data key " + row.id + ": " + bytes.error().message())
        .with([](ErrorDetail& detail) { detail.failure_code = kSecretKeyMismatch; });
  Result<SecretKey> key = SecretKey::from_bytes(bytes->view());
  if (!key) return key;
  const std::scoped_lock lock(mutex_);
  data_keys_.insert_or_assign(row.id, *key);
  return key;
}

Result<void> SecretKeyring::unlock(const SecretDataKey& row) {
  const Result<SecretKey> key = data_key(row);
  return key ? Result<void>() : key.error();
}

Result<void> SecretKeyring::encrypt(const SecretDataKey& data_key_row, std::string_view value, Secret& row) {
  const Result<SecretKey> key = data_key(data_key_row);
  if (!key) return key.error();
  row.data_key = data_key_row.id;
  return seal_into(*key, value, row);
}

Result<SecretText> SecretKeyring::decrypt(const SecretDataKey& data_key_row, const Secret& row) {
  const Result<SecretKey> key = data_key(data_key_row);
  if (!key) return key.error();
  return open_row(*key, row);
}

Result<std::string> SecretKeyring::digest(const SecretDataKey& data_key_row, std::string_view text) {
  const Result<SecretKey> key = data_key(data_key_row);
  if (!key) return key.error();
  return keyed_digest(*key, text);
}

}  // namespace fairlead::registry
