#include "mcp/seal.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "fairlead/base/base64.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::string_view kVersion = "v1.";

std::string hmac(const std::string& key, std::string_view text) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), out, &size);
  return std::string(reinterpret_cast<const char*>(out), size);
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::int64_t unix_seconds(Sealer::Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

// All failures of open() return the same error, so that a client does not learn which check failed.
Error invalid_request_state_error() {
  return Error::rpc(rpc::kInvalidParams, "requestState is not valid",
                    R"({"reason":"invalid_request_state"})");
}

std::string with_binding(std::string_view body, std::string_view binding) {
  return std::string(body) + "\n" + std::string(binding);
}

}  // namespace

std::string Sealer::random_key() {
  std::string key(32, '\0');
  std::size_t done = 0;
  while (done < key.size()) {
    const ssize_t n = ::getrandom(key.data() + done, key.size() - done, 0);
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return key;
}

std::string Sealer::seal(std::string_view payload_json, std::string_view binding, Time now) const {
  json::Writer body;
  body.begin_object()
      .key("p")
      .raw(payload_json)
      .key("exp")
      .integer(unix_seconds(now + lifetime_))
      .end_object();
  const std::string signed_part = std::string(kVersion) + base64url_encode(body.text());
  return signed_part + "." + base64url_encode(hmac(keys_.front(), with_binding(signed_part, binding)));
}

Result<std::string> Sealer::open(std::string_view sealed, std::string_view binding, Time now) const {
  const std::size_t dot = sealed.rfind('.');
  if (!sealed.starts_with(kVersion) || dot == std::string_view::npos || dot < kVersion.size())
    return invalid_request_state_error();
  const std::string_view signed_part = sealed.substr(0, dot);
  const auto mac = base64url_decode(sealed.substr(dot + 1));
  if (!mac) return invalid_request_state_error();
  bool genuine = false;
  for (const std::string& key : keys_)
    genuine = genuine || equal_in_constant_time(hmac(key, with_binding(signed_part, binding)), *mac);
  if (!genuine) return invalid_request_state_error();
  const auto body = base64url_decode(signed_part.substr(kVersion.size()));
  if (!body) return invalid_request_state_error();
  const json::View view(*body);
  if (view["exp"].as_int().value_or(0) <= unix_seconds(now)) return invalid_request_state_error();
  return std::string(view["p"].text());
}

}  // namespace fairlead::mcp
