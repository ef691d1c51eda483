// Framing: how messages are delimited on a byte stream (docs/wire.md). A Decoder splits the bytes that were
// read into frames; it does no I/O and owns no input buffer. MCP uses Framing::line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "fairlead/base/error.hpp"
#include "fairlead/base/limits.hpp"

namespace fairlead::rpc {

enum class Framing : std::uint8_t {
  line,    // one JSON value per line, terminated by \n
  length,  // 4-byte big-endian length, payload, and one \n that the length does not include
  header,  // "Content-Length: N", an empty line, payload; as in the Language Server Protocol
};

// What a decoder does when it no longer knows where the next frame begins, for example after an impossible
// length or a malformed header block.
enum class FramingErrorPolicy : std::uint8_t {
  close,   // fails; the stream cannot be read any further
  resync,  // skips to the next possible frame boundary (docs/wire.md). Bytes inside a payload can then be
           // mistaken for a frame, so use this only with trusted senders.
};

// Returns nullopt if `name` is not the name of a framing.
std::optional<Framing> framing_named(std::string_view name) noexcept;
std::string_view to_string(Framing framing) noexcept;

class Decoder {
 public:
  enum class Status : std::uint8_t {
    frame,       // `frame` is a complete frame
    incomplete,  // the input contains no complete frame yet
    rejected,    // a frame was rejected: `error` is the reason, `frame` an excerpt of it (possibly empty).
                 // Decoding continues after that frame.
    broken,      // decoding cannot continue; `error` is the reason
  };
  struct Step {
    Status status = Status::incomplete;
    std::size_t consumed = 0;  // bytes of the input that were processed, including those of `frame`
    // Points into the input. With `rejected` it may point into the decoder and is valid until the next call.
    std::string_view frame;
    std::size_t bytes_needed = 0;  // with `incomplete`: bytes missing from the frame; 0: unknown
    std::optional<Error> error;    // with `rejected` and `broken`
  };

  virtual ~Decoder() = default;
  // Decodes the next frame. `input` is all bytes that were read and have not been consumed. The caller calls
  // next() again with the unconsumed rest until the status is `incomplete`, then reads more bytes, appends
  // them to the rest, and continues.
  virtual Step next(std::string_view input) = 0;
  // Called once, when the stream has ended. `rest` is the unconsumed bytes. Returns a last frame without
  // terminator, an error, or `incomplete` if nothing is left.
  virtual Step finish(std::string_view rest) = 0;
};

// Framing::line ignores `policy`: the next frame always begins after the next newline.
std::unique_ptr<Decoder> make_decoder(Framing framing, const Limits& limits,
                                      FramingErrorPolicy policy = FramingErrorPolicy::close);

// The bytes that a framing puts before and after a payload.
struct FrameDelimiters {
  std::array<char, 40> prefix_buffer;
  std::size_t prefix_size;
  std::string_view suffix;
  std::string_view prefix() const noexcept { return {prefix_buffer.data(), prefix_size}; }
};
FrameDelimiters frame_delimiters(Framing framing, std::size_t payload_size);
// Returns the size of the largest payload that the framing can represent.
std::size_t max_payload_bytes(Framing framing) noexcept;

}  // namespace fairlead::rpc
