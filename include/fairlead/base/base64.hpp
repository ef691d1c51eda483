// Base64 in its two alphabets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fairlead {

std::string base64_encode(std::string_view bytes);     // + / and padding
std::string base64url_encode(std::string_view bytes);  // - _ and no padding
// nullopt for anything that is not canonical: wrong alphabet, wrong padding, bits left over.
std::optional<std::string> base64_decode(std::string_view text);
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace fairlead
