// Encodes and decodes header values of arbitrary bytes. An encoded value round-trips and is a valid header
// value; an encoded value that decodes is UTF-8.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "json/utf8.hpp"
#include "protocol/header_values.hpp"

using namespace fairlead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<std::string> decoded = mcp::decode_header_value(text);
  const std::string encoded = mcp::encode_header_value(text);
  for (const char c : encoded) {
    if (c < 0x20 || c > 0x7e) std::abort();
  }
  const std::optional<std::string> back = mcp::decode_header_value(encoded);
  const bool utf8 = json::find_invalid_utf8(text.data(), text.data() + size) == text.data() + size;
  if (utf8 && back != text) std::abort();
  if (!utf8 && back) std::abort();
  if (decoded && mcp::decode_header_value(mcp::encode_header_value(*decoded)) != decoded) std::abort();
  return 0;
}
