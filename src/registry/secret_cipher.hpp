// The cryptography of the secret store: AES-256-GCM by OpenSSL. Private to the library.
//
// Values are encrypted with a random data key, and data keys with the key-encryption key, which is not in the
// database. Each encryption has a random nonce of 96 bits, and authenticates a text that identifies the row,
// so that an encrypted value is valid in its own row only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead::registry {

// Overwrites a text, also the unused part of its memory.
void wipe(std::string& text) noexcept;

// A text that is overwritten when it is destroyed or assigned to.
class SecretText {
 public:
  SecretText() = default;
  explicit SecretText(std::string text) : text_(std::move(text)) {}
  ~SecretText() { wipe(text_); }
  SecretText(SecretText&& other) noexcept : text_(std::move(other.text_)) { wipe(other.text_); }
  SecretText& operator=(SecretText&& other) noexcept {
    if (this == &other) return *this;
    wipe(text_);
    text_ = std::move(other.text_);
    wipe(other.text_);
    return *this;
  }

  const std::string& view() const noexcept { return text_; }
  std::string& text() noexcept { return text_; }

 private:
  std::string text_;
};

// A 256-bit key. Its memory is not part of core dumps, is not written to swap space if the limit of locked
// memory allows it, and is overwritten when the last reference ends.
class SecretKey {
 public:
  static constexpr std::size_t kBytes = 32;

  static Result<SecretKey> generate();
  // Fails unless `bytes` has kBytes bytes.
  static Result<SecretKey> from_bytes(std::string_view bytes);
  // Reads 32 bytes in base64 (either alphabet) or hexadecimal. The message of the error does not contain the
  // text.
  static Result<SecretKey> parse(std::string_view text);

  std::string_view bytes() const noexcept;
  // Returns the key in hexadecimal, as parse() reads it, and a line feed.
  SecretText line() const;
  // The first 16 hexadecimal digits of HMAC-SHA256 of a constant text: identifies the key without revealing
  // it.
  const std::string& id() const noexcept { return id_; }

 private:
  class Page;
  explicit SecretKey(std::shared_ptr<Page> page);

  std::shared_ptr<Page> page_;
  std::string id_;
};

// What an encryption returns. The ciphertext ends with the authentication tag.
struct SealedText {
  std::string nonce;
  std::string ciphertext;
};

// `identity` is authenticated, not encrypted.
Result<SealedText> seal(const SecretKey& key, std::string_view plain, std::string_view identity);
// Fails with kind validation if the key or the identity is not that of seal(), or if the text was changed.
Result<SecretText> open_sealed(const SecretKey& key, const SealedText& sealed, std::string_view identity);

// Returns HMAC-SHA256 in hexadecimal.
std::string keyed_digest(const SecretKey& key, std::string_view text);

}  // namespace fairlead::registry
