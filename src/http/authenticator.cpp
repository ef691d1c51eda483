#include "fairlead/http/authenticator.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

#include "http/response_head.hpp"

namespace fairlead::http {

namespace {

// Returns whether `text` is a b64token of RFC 6750, the part after "Bearer ".
bool is_bearer_token(std::string_view text) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~+/=").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::ranges::all_of(text, allowed);
}

// Returns the token in "Bearer TOKEN"; nullopt if `credentials` have another scheme.
std::optional<std::string_view> bearer_token(std::string_view credentials) noexcept {
  const std::size_t space = credentials.find(' ');
  if (space == std::string_view::npos || !equals_ignore_case(credentials.substr(0, space), "bearer"))
    return std::nullopt;
  const std::size_t begin = std::min(credentials.find_first_not_of(' ', space), credentials.size());
  return credentials.substr(begin);
}

}  // namespace

std::optional<Authentication> Authenticator::authenticate_now(const Request&) {
  return std::nullopt;
}

Result<void> StaticTokenAuthenticator::add(std::string_view token, Principal principal) {
  if (token.size() < kMinTokenBytes)
    return Error(ErrorKind::validation,
                 "a token must have at least " + std::to_string(kMinTokenBytes) + " characters");
  if (!is_bearer_token(token))
    return Error(ErrorKind::validation, "a token may contain only letters, digits and -._~+/=");
  Entry entry;
  entry.digest = digest_of(token);
  entry.principal = std::make_shared<const Principal>(std::move(principal));
  entries_.push_back(std::move(entry));
  return {};
}

StaticTokenAuthenticator::Digest StaticTokenAuthenticator::digest_of(std::string_view token) {
  Digest digest;
  unsigned size = 0;
  ::EVP_Digest(token.data(), token.size(), digest.data(), &size, ::EVP_sha256(), nullptr);
  return digest;
}

// Compares the digest with all entries, so that the duration of the call does not reveal which entry matched.
PrincipalPtr StaticTokenAuthenticator::find(std::string_view token) const {
  const Digest digest = digest_of(token);
  PrincipalPtr found;
  for (const Entry& entry : entries_) {
    if (::CRYPTO_memcmp(digest.data(), entry.digest.data(), digest.size()) == 0) found = entry.principal;
  }
  return found;
}

Authentication StaticTokenAuthenticator::reject(int status, std::string_view error,
                                                std::string_view message) const {
  Response response = refusal_response(status, message);
  std::string challenge = "Bearer realm=\"" + realm_ + "\"";
  if (!error.empty()) challenge += ", error=\"" + std::string(error) + "\"";
  response.headers.add("WWW-Authenticate", challenge);
  return Authentication(std::move(response));
}

Authentication StaticTokenAuthenticator::decide(const Request& head) const {
  const std::size_t count = head.headers.count("Authorization");
  if (count > 1) return reject(400, "invalid_request", "Bad Request: Authorization occurs more than once");
  const std::optional<std::string_view> token = bearer_token(head.headers.get("Authorization"));
  if (!token) return reject(401, "", "Unauthorized: send a bearer token in the Authorization header");
  PrincipalPtr principal = find(*token);
  if (!principal) return reject(401, "invalid_token", "Unauthorized: the token is not valid");
  return Authentication(std::move(principal));
}

std::optional<Authentication> StaticTokenAuthenticator::authenticate_now(const Request& head) {
  return decide(head);
}

Task<Authentication> StaticTokenAuthenticator::authenticate(const Request& head) {
  co_return decide(head);
}

}  // namespace fairlead::http
