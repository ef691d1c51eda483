// API tokens: their text and its digest. Private to the library.
#pragma once

#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead::registry {

// Every token begins with this, so that scanners find leaked tokens.
inline constexpr std::string_view kTokenPrefix = "fl_";

// Returns a new token: kTokenPrefix, 256 random bits in 43 characters (base64url), and their CRC-32 in 6
// characters. Fails with `io` if the system has no random bytes.
Result<std::string> generate_token();

// Returns whether `text` has the form and the checksum of a token. Such a token need not exist.
bool is_token_text(std::string_view text);

// Returns the SHA-256 digest of `text` in lower-case hexadecimal: Token::sha256.
std::string sha256_hex(std::string_view text);

// Returns the start of a token by which people recognise it: Token::prefix.
std::string token_prefix(std::string_view token);

}  // namespace fairlead::registry
