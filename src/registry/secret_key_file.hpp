// The key-encryption keys of the secret store as the operator configures them: as text, or in a file. Private
// to the library.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"
#include "registry/secret_cipher.hpp"

namespace fairlead::registry {

// Where the key is from. A text or a file has a key in each line: the preferred one first, then earlier ones.
struct SecretKeyOptions {
  SecretKeyOptions() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::shared_ptr<const SecretText> text;  // overrides `file`
  std::string source;                      // of `text`, for messages: "FAIRLEAD_SECRET_KEY"
  std::string file;                        // empty: no file
  // Creates the file if neither it nor a secret exists, and changes the key in it (rekey_secrets()). Only for
  // a database that one gateway uses.
  bool manage_file = false;
  // If false, a database whose key is not available is opened all the same; its secrets cannot be used.
  bool required = true;

  std::string description() const;
};

// Reads the lines of a text; blank ones are skipped. Fails with the line number; never quotes the text.
Result<std::vector<SecretKey>> parse_secret_keys(std::string_view text);

// The file of a key. While the key is being changed, PATH.new has the new one: whichever the database names
// is the current one, so that the process may be killed at any time.
class SecretKeyFile {
 public:
  explicit SecretKeyFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const noexcept { return path_; }
  // Returns the keys of the file, then that of PATH.new. Without either file, returns no key. Fails if
  // another user could read or replace the file.
  Result<std::vector<SecretKey>> read() const;
  // Creates the file with a new key, mode 0600. An existing file is not replaced: its keys are returned.
  Result<std::vector<SecretKey>> create() const;
  // Returns the key of PATH.new when it is on the disk: a new one, or that of an earlier change that has
  // failed. Its transaction may have been committed nevertheless, so no key is removed or replaced before
  // the database has proved which one it uses. `key_id` is the key of the database; first completes the
  // change that has installed it in the database only.
  Result<SecretKey> prepare_next(std::string_view key_id) const;
  // PATH.new becomes the file, and the file becomes PATH.previous, for backups of the database.
  Result<void> install_next() const;
  // Completes or undoes a change of the key that was interrupted. `key_id` is the key of the database.
  // REQUIRES: no change of the key is in progress.
  Result<void> settle(std::string_view key_id) const;

 private:
  Result<SecretKey> write_next() const;

  std::string path_;
};

}  // namespace fairlead::registry
