// Base64 encoding and decoding (RFC 4648), with the standard and the URL-safe alphabet.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fairlead {

std::string base64_encode(std::string_view bytes);     // uses + and /, with padding
std::string base64url_encode(std::string_view bytes);  // uses - and _, without padding
// Return nullopt if `text` is not canonical: a character outside the alphabet, wrong padding, or non-zero
// unused bits.
std::optional<std::string> base64_decode(std::string_view text);
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace fairlead
