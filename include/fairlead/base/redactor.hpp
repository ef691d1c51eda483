// Redactor: replaces secrets in text that people get to see.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead {

// A set of secrets. Calls are cheap when it is empty.
class Redactor {
 public:
  // Shorter values are not redacted: they occur in too much other text.
  static constexpr std::size_t kMinSecret = 4;

  Redactor() = default;
  explicit Redactor(const std::vector<std::string>& secrets);

  // Each line of a secret with several lines is a secret too, because text is often seen line by line.
  void add(std::string_view secret);
  bool empty() const noexcept { return secrets_.empty(); }

  // Returns `text` with each secret replaced by `***`. At the end of `text`, where it may have been
  // truncated, the beginning of a secret is replaced too.
  std::string redact(std::string_view text) const;
  // Whether redact() would change `text`.
  bool finds_secret(std::string_view text) const;

 private:
  void insert(std::string_view secret);
  void add_lines(std::string_view secret);
  void index();
  // The secret that `text` begins with, or all of `text` if it is the beginning of a secret; empty: neither.
  std::string_view secret_at(std::string_view text) const;
  std::size_t next_secret(std::string_view text, std::size_t from) const;

  std::vector<std::string> secrets_;        // by first byte, then longest first
  std::array<std::uint32_t, 257> first_{};  // where the secrets with this first byte begin
};

// The secrets that are in use now. Thread-safe.
class SharedRedactor : public std::enable_shared_from_this<SharedRedactor> {
 public:
  // Redacts `secrets` until the handle is released.
  std::shared_ptr<void> add(std::vector<std::string> secrets);
  // The secrets in use now.
  std::shared_ptr<const Redactor> current() const;

  std::string redact(std::string_view text) const { return current()->redact(text); }

 private:
  void release(const std::vector<std::string>& secrets);

  mutable std::mutex mutex_;
  std::map<std::string, std::size_t, std::less<>> uses_;
  mutable std::shared_ptr<const Redactor> current_ = std::make_shared<const Redactor>();  // null: outdated
};

}  // namespace fairlead
