// SecretKeyring: the keys of the secret store in memory. Thread-safe: jobs encrypt on the thread of the
// database, the loop decrypts. Private to the library.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/registry/model.hpp"
#include "registry/secret_cipher.hpp"

namespace fairlead::registry {

class SecretKeyring {
 public:
  // `keys`: the key-encryption keys, the preferred one first. `source` describes where they are from, for
  // messages: "the key file /etc/fairlead.key".
  SecretKeyring(std::vector<SecretKey> keys, std::string source);

  bool has_keys() const;
  // Returns the id of the preferred key; empty without keys.
  std::string preferred_id() const;
  std::string source() const;
  // Adds a key; a preferred one is put first.
  void add(SecretKey key, bool preferred);
  bool has_key(std::string_view key_id) const;
  void forget(std::string_view key_id);

  // Return a new data key, encrypted with a key-encryption key, and the same data key encrypted with another
  // one. Fail with kSecretKeyMissing or kSecretKeyMismatch if there is no such key-encryption key.
  Result<SecretDataKey> new_data_key(std::string id, Time now, std::string_view key_id);
  Result<SecretDataKey> rewrapped(const SecretDataKey& row, std::string_view key_id);

  // Decrypts a data key, and keeps it: values can be read as long as the gateway runs, also after the key was
  // encrypted with a key-encryption key that this gateway does not have.
  Result<void> unlock(const SecretDataKey& row);
  // Sets `row.data_key`, `nonce` and `ciphertext`. REQUIRES: the other members of `row` are final.
  Result<void> encrypt(const SecretDataKey& data_key, std::string_view value, Secret& row);
  Result<SecretText> decrypt(const SecretDataKey& data_key, const Secret& row);
  // Returns a digest of a text that only those who have the key can compute.
  Result<std::string> digest(const SecretDataKey& data_key, std::string_view text);

 private:
  Result<SecretKey> data_key(const SecretDataKey& row);
  Result<SecretKey> wrapping_key(std::string_view key_id) const;

  mutable std::mutex mutex_;
  std::vector<SecretKey> keys_;
  std::string source_;
  std::map<std::string, SecretKey, std::less<>> data_keys_;  // by id
};

// Return the error for a registry that never had a key, for one that needs the key `key_id` and has none, and
// for one whose key is another one.
Error secret_key_missing();
Error lost_secret_key(std::string_view key_id, std::string_view reason);
Error secret_key_mismatch(std::string_view needed_id, std::string_view source, std::string_view given_id);

}  // namespace fairlead::registry
