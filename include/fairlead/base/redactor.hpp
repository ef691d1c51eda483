// Redactor: replaces secrets in text for logs, errors and other output.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

class SecretIndex;

// An immutable set of secrets. Redacting is cheap if the set is empty.
class Redactor {
 public:
  // Shorter values are not redacted, because they occur in too much unrelated text.
  static constexpr std::size_t kMinSecretBytes = 4;

  Redactor() = default;
  // Each line of a multi-line secret is also a secret, because text is often logged line by line. The case of
  // ASCII letters is ignored. Costs about 0.1 us and 20 bytes of memory per byte of the secrets.
  explicit Redactor(const std::vector<std::string>& secrets);

  bool empty() const noexcept { return indexes_.empty(); }

  // Returns `text` with each secret replaced by `***`; overlapping secrets are replaced by a single `***`.
  // Also finds secrets with JSON string escapes (including JSON nested in a JSON string) and with
  // percent-encoding, where + can stand for a space. Runs in time linear in the size of the text.
  std::string redact(std::string_view text) const;
  // The same for text that was truncated: a prefix of a secret (at least kMinSecretBytes long) at the end of
  // `text` is replaced too.
  std::string redact_excerpt(std::string_view text) const;
  // Returns true if `text` contains a complete secret.
  bool contains_secret(std::string_view text) const;

 private:
  friend class SharedRedactor;
  void add(std::shared_ptr<const SecretIndex> index);
  std::string redact(std::string_view text, bool truncated) const;

  std::vector<std::shared_ptr<const SecretIndex>> indexes_;  // no index is empty
};

// The secrets in use: components add secrets when they read them, and release them when they no longer use
// them. Thread-safe.
class SharedRedactor : public std::enable_shared_from_this<SharedRedactor> {
 public:
  // Secrets are indexed in groups, so that adding or releasing a secret re-indexes only its group. A group is
  // larger than this only if it was added in one call.
  static constexpr std::size_t kMaxGroupBytes = 64u << 10;

  // Adds `secrets`, which are redacted until the returned handle is released, and possibly longer: a group is
  // indexed again only when at least half of it has been released.
  std::shared_ptr<void> add(std::vector<std::string> secrets);
  // Returns a redactor for the secrets in use now.
  std::shared_ptr<const Redactor> snapshot() const;

  std::string redact(std::string_view text) const { return snapshot()->redact(text); }

 private:
  struct Group {
    std::set<std::string, std::less<>> secrets;
    std::size_t bytes = 0;
    std::size_t indexed_bytes = 0;             // value of `bytes` when `index` was built
    std::shared_ptr<const SecretIndex> index;  // null: must be built (new group, or half of it was released)

    void insert(std::string secret) {
      bytes += secret.size();
      secrets.insert(std::move(secret));
    }
    void erase(const std::string& secret) {
      bytes -= secret.size();
      secrets.erase(secret);
      if (2 * bytes <= indexed_bytes) index = nullptr;
    }
  };
  struct SecretUse {
    std::size_t count = 0;   // handles that contain the secret
    Group* group = nullptr;  // the group in which the secret is indexed
  };

  void add_group(std::vector<std::string> secrets);
  void release(const std::vector<std::string>& secrets);

  mutable std::mutex mutex_;
  std::map<std::string, SecretUse, std::less<>> uses_;
  mutable std::list<Group> groups_;
  mutable std::shared_ptr<const Redactor> snapshot_ = std::make_shared<const Redactor>();  // null: outdated
};

}  // namespace fairlead
