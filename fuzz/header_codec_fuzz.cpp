// Decodes header framing from arbitrary bytes.
#include "codec_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::rpc::checks::check_codec(fairlead::rpc::Framing::header, data, size,
                                     [](std::string_view) { return true; });
  return 0;
}
