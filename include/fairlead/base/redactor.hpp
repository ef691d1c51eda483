// Redactor: replaces secrets in text that people get to see.
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

// A set of secrets. Calls are cheap when it is empty.
class Redactor {
 public:
  // Shorter values are not redacted: they occur in too much other text.
  static constexpr std::size_t kMinSecret = 4;

  Redactor() = default;
  // Each line of a secret with several lines is a secret too, because text is often seen line by line. The
  // case of ASCII letters is ignored. Takes about 0.1 us and 20 bytes of memory for each byte of the secrets.
  explicit Redactor(const std::vector<std::string>& secrets);

  bool empty() const noexcept { return indexes_.empty(); }

  // Returns `text` with each secret replaced by `***`, and overlapping ones by a single one. A secret is
  // found in every spelling that the escapes of JSON strings (also in JSON text that is a string of JSON
  // text) and percent-encoding, with + for a space, give it. Takes time proportional to the text.
  std::string redact(std::string_view text) const;
  // The same for the beginning of a longer text: at its end the beginning of a secret (at least kMinSecret
  // bytes) is replaced too.
  std::string redact_excerpt(std::string_view text) const;
  // Whether `text` contains a complete secret.
  bool finds_secret(std::string_view text) const;

 private:
  friend class SharedRedactor;
  void add(std::shared_ptr<const SecretIndex> index);
  std::string redact(std::string_view text, bool truncated) const;

  std::vector<std::shared_ptr<const SecretIndex>> indexes_;  // none of them empty
};

// The secrets that are in use now. Thread-safe.
class SharedRedactor : public std::enable_shared_from_this<SharedRedactor> {
 public:
  // Secrets are indexed in groups, so that adding or releasing one indexes no others than those of its group.
  // A group is larger than this only if it was added at once.
  static constexpr std::size_t kMaxGroupBytes = 64u << 10;

  // Redacts `secrets` until the handle is released, and longer if only a small part of their group has been.
  std::shared_ptr<void> add(std::vector<std::string> secrets);
  // The secrets in use now.
  std::shared_ptr<const Redactor> current() const;

  std::string redact(std::string_view text) const { return current()->redact(text); }

 private:
  struct Group {
    std::set<std::string, std::less<>> secrets;
    std::size_t bytes = 0;
    std::size_t indexed_bytes = 0;             // when `index` was made
    std::shared_ptr<const SecretIndex> index;  // null: not made yet, or half of it has been released

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
  struct Use {
    std::size_t count = 0;
    Group* group = nullptr;
  };

  void add_group(std::vector<std::string> secrets);
  void release(const std::vector<std::string>& secrets);

  mutable std::mutex mutex_;
  std::map<std::string, Use, std::less<>> uses_;
  mutable std::list<Group> groups_;
  mutable std::shared_ptr<const Redactor> current_ = std::make_shared<const Redactor>();  // null: outdated
};

}  // namespace fairlead
