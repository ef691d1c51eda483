#include "fairlead/rpc/framing.hpp"

#include <charconv>
#include <cstring>
#include <limits>

#include "rpc/decoders.hpp"

namespace fairlead::rpc {

std::optional<Framing> framing_named(std::string_view name) noexcept {
  for (const Framing framing : {Framing::line, Framing::length, Framing::header}) {
    if (to_string(framing) == name) return framing;
  }
  return std::nullopt;
}

std::string_view to_string(Framing framing) noexcept {
  switch (framing) {
    case Framing::line: return "line";
    case Framing::length: return "length";
    case Framing::header: return "header";
  }
  return "line";
}

std::unique_ptr<Decoder> make_decoder(Framing framing, const Limits& limits, FramingErrorPolicy policy) {
  switch (framing) {
    case Framing::length: return std::make_unique<LengthDecoder>(limits, policy);
    case Framing::header: return std::make_unique<HeaderDecoder>(limits, policy);
    case Framing::line: break;
  }
  return std::make_unique<LineDecoder>(limits);
}

FrameDelimiters frame_delimiters(Framing framing, std::size_t payload_size) {
  FrameDelimiters delimiters{};
  delimiters.suffix = framing == Framing::header ? "" : "\n";
  if (framing == Framing::length) {
    delimiters.prefix_size = 4;
    for (std::size_t i = 0; i < 4; ++i)
      delimiters.prefix_buffer[i] = static_cast<char>(payload_size >> (24 - 8 * i));
  } else if (framing == Framing::header) {
    constexpr std::string_view kName = "Content-Length: ";
    std::memcpy(delimiters.prefix_buffer.data(), kName.data(), kName.size());
    char* end = std::to_chars(delimiters.prefix_buffer.data() + kName.size(),
                              delimiters.prefix_buffer.data() + 36, payload_size)
                    .ptr;
    std::memcpy(end, "\r\n\r\n", 4);
    delimiters.prefix_size = static_cast<std::size_t>(end + 4 - delimiters.prefix_buffer.data());
  }
  return delimiters;
}

std::size_t max_payload_bytes(Framing framing) noexcept {
  return framing == Framing::length ? std::numeric_limits<std::uint32_t>::max()
                                    : std::numeric_limits<std::size_t>::max();
}

}  // namespace fairlead::rpc
