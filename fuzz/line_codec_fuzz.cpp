// Decodes line framing from arbitrary bytes.
#include "codec_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A line cannot contain a newline, one \r at its end is removed, and blank lines and a byte order mark at
  // the start are ignored.
  const auto carries = [](std::string_view payload) {
    return payload.find('\n') == std::string_view::npos && !payload.ends_with('\r') &&
           payload.find_first_not_of(" \t\r") != std::string_view::npos &&
           !payload.starts_with("\xef\xbb\xbf");
  };
  fairlead::rpc::checks::check_codec(fairlead::rpc::Framing::line, data, size, carries);
  return 0;
}
