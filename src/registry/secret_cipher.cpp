#include "registry/secret_cipher.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <limits>

#include "base/random_bytes.hpp"
#include "fairlead/base/base64.hpp"

namespace fairlead::registry {

namespace {

constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kIdDigits = 16;
constexpr std::string_view kIdText = "fairlead key id";

const unsigned char* octets(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* octets(std::string& text) noexcept {
  return reinterpret_cast<unsigned char*>(text.data());
}
int length_of(std::string_view text) noexcept {
  return static_cast<int>(text.size());
}

// The memory is reserved first: growing would leave copies in memory.
std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size() + 1);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<unsigned> digit_value(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::optional<unsigned> high = digit_value(text[i]);
    const std::optional<unsigned> low = digit_value(text[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes += static_cast<char>(*high << 4 | *low);
  }
  return bytes;
}

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const noexcept { ::EVP_CIPHER_CTX_free(context); }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

Error cipher_error() {
  return Error(ErrorKind::io, "the cipher AES-256-GCM is not available");
}

bool encrypt(EVP_CIPHER_CTX* context, const SecretKey& key, std::string_view plain, std::string_view identity,
             SealedText& sealed) {
  int written = 0;
  std::array<unsigned char, kTagBytes> tag{};
  sealed.ciphertext.resize(plain.size());
  const bool done =
      ::EVP_EncryptInit_ex(context, ::EVP_aes_256_gcm(), nullptr, octets(key.bytes()),
                           octets(std::string_view(sealed.nonce))) == 1 &&
      ::EVP_EncryptUpdate(context, nullptr, &written, octets(identity), length_of(identity)) == 1 &&
      ::EVP_EncryptUpdate(context, octets(sealed.ciphertext), &written, octets(plain), length_of(plain)) ==
          1 &&
      ::EVP_EncryptFinal_ex(context, tag.data(), &written) == 1 &&
      ::EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1;
  sealed.ciphertext.append(tag.begin(), tag.end());
  return done;
}

bool decrypt(EVP_CIPHER_CTX* context, const SecretKey& key, const SealedText& sealed,
             std::string_view identity, std::string& plain) {
  const std::string_view text =
      std::string_view(sealed.ciphertext).substr(0, sealed.ciphertext.size() - kTagBytes);
  std::array<unsigned char, kTagBytes> tag{};
  sealed.ciphertext.copy(reinterpret_cast<char*>(tag.data()), kTagBytes, text.size());
  int written = 0;
  plain.resize(text.size());
  return ::EVP_DecryptInit_ex(context, ::EVP_aes_256_gcm(), nullptr, octets(key.bytes()),
                              octets(std::string_view(sealed.nonce))) == 1 &&
         ::EVP_DecryptUpdate(context, nullptr, &written, octets(identity), length_of(identity)) == 1 &&
         ::EVP_DecryptUpdate(context, octets(plain), &written, octets(text), length_of(text)) == 1 &&
         ::EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
         ::EVP_DecryptFinal_ex(context, tag.data(), &written) == 1;
}

std::string hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  ::HMAC(::EVP_sha256(), key.data(), length_of(key), octets(text), text.size(), digest.data(), &size);
  return to_hex(std::string(digest.begin(), digest.begin() + size));
}

}  // namespace

void wipe(std::string& text) noexcept {
  // Growing to the capacity does not allocate.
  text.resize(text.capacity());
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

// ---- keys ------------------------------------------------------------------------------------------------

// Memory of its own, because MADV_DONTDUMP concerns whole pages.
class SecretKey::Page {
 public:
  Page() noexcept {
    void* const memory =
        ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = static_cast<char*>(memory);
    ::madvise(memory_, kPageBytes, MADV_DONTDUMP);
    // A child process gets no copy.
    ::madvise(memory_, kPageBytes, MADV_DONTFORK);
    // Fails above RLIMIT_MEMLOCK; the key may then be swapped.
    static_cast<void>(::mlock(memory_, kPageBytes));
  }
  ~Page() {
    if (!memory_) return;
    ::explicit_bzero(memory_, kPageBytes);
    ::munmap(memory_, kPageBytes);
  }
  Page(const Page&) = delete;

  char* data() const noexcept { return memory_; }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  char* memory_ = nullptr;
};

SecretKey::SecretKey(std::shared_ptr<Page> page) : page_(std::move(page)) {
  id_ = hmac(bytes(), kIdText).substr(0, kIdDigits);
}

std::string_view SecretKey::bytes() const noexcept {
  return {page_->data(), kBytes};
}

SecretText SecretKey::line() const {
  SecretText text(to_hex(bytes()));
  text.text() += '\n';
  return text;
}

Result<SecretKey> SecretKey::from_bytes(std::string_view bytes) {
  if (bytes.size() != kBytes) return Error(ErrorKind::validation, "a key has 32 bytes");
  auto page = std::make_shared<Page>();
  if (!page->data()) return Error::from_errno(ErrorKind::io, "cannot allocate memory for a key", ENOMEM);
  bytes.copy(page->data(), kBytes);
  return SecretKey(std::move(page));
}

Result<SecretKey> SecretKey::generate() {
  Result<std::string> bytes = random_bytes(kBytes);
  if (!bytes) return bytes.error();
  Result<SecretKey> key = from_bytes(*bytes);
  wipe(*bytes);
  return key;
}

Result<SecretKey> SecretKey::parse(std::string_view text) {
  for (const auto decode : {&from_hex, &base64_decode, &base64url_decode}) {
    std::optional<std::string> bytes = decode(text);
    if (!bytes) continue;
    const SecretText read(std::move(*bytes));
    if (read.view().size() == kBytes) return from_bytes(read.view());
  }
  return Error(ErrorKind::validation,
               "is not a key: 32 bytes in base64 or hexadecimal, such as the output of "
               "`openssl rand -base64 32`");
}

// ---- encryption ------------------------------------------------------------------------------------------

Result<SealedText> seal(const SecretKey& key, std::string_view plain, std::string_view identity) {
  Result<std::string> nonce = random_bytes(kNonceBytes);
  if (!nonce) return nonce.error();
  SealedText sealed;
  sealed.nonce = std::move(*nonce);
  const CipherContext context(::EVP_CIPHER_CTX_new());
  if (!context || plain.size() > std::numeric_limits<int>::max() ||
      !encrypt(context.get(), key, plain, identity, sealed))
    return cipher_error();
  return sealed;
}

Result<SecretText> open_sealed(const SecretKey& key, const SealedText& sealed, std::string_view identity) {
  const Error refused(ErrorKind::validation,
                      "the encrypted text was changed, or belongs to another row or key");
  const bool complete = sealed.nonce.size() == kNonceBytes && sealed.ciphertext.size() >= kTagBytes &&
                        sealed.ciphertext.size() <= std::numeric_limits<int>::max();
  if (!complete) return refused;
  const CipherContext context(::EVP_CIPHER_CTX_new());
  if (!context) return cipher_error();
  SecretText plain;
  if (!decrypt(context.get(), key, sealed, identity, plain.text())) return refused;
  return plain;
}

std::string keyed_digest(const SecretKey& key, std::string_view text) {
  return hmac(key.bytes(), text);
}

}  // namespace fairlead::registry
