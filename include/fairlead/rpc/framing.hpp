// How messages are laid end to end on a byte stream (docs/wire.md). A Decoder is fed what has been read and
// cuts frames out of it; it does no I/O and owns no buffer. Framing::line is what MCP uses.
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
  line,    // one JSON value a line, ended by \n
  length,  // 4 bytes big-endian length, payload, one \n not counted in the length
  header,  // Content-Length: N, empty line, payload; as language servers do
};

// What a decoder does when it cannot tell where the next frame begins: an impossible length, a broken head.
enum class FramingErrorPolicy : std::uint8_t {
  close,   // the stream ends
  resync,  // skips to what may be the next frame (docs/wire.md) and goes on. Bytes inside a payload may be
           // taken for a frame then: only for senders that are trusted.
};

std::optional<Framing> framing_named(std::string_view name) noexcept;
std::string_view to_string(Framing framing) noexcept;

class Decoder {
 public:
  enum class What : std::uint8_t {
    frame,    // `frame` is one whole frame
    more,     // nothing whole is there yet
    skipped,  // a frame was refused; `error` says why; `frame` is what is left of it, which may be nothing;
              // the stream goes on behind it
    broken,   // the stream cannot be followed any further; `error` says why
  };
  struct Step {
    What what = What::more;
    std::size_t consumed = 0;  // bytes of the input that are done with, those of `frame` included
    std::string_view
        frame;  // lies within the input; with `skipped` it may be the decoder's until the next step
    std::size_t want = 0;  // with `more`: bytes missing of the frame, where that is known
    std::optional<Error> error;
  };

  virtual ~Decoder() = default;
  // `input` is everything not consumed yet. Call again with the rest until it answers `more`; then only with
  // more bytes behind the same unconsumed ones.
  virtual Step next(std::string_view input) = 0;
  // The stream has ended and `rest` is left: a last frame without its end, or an error, or nothing (`more`).
  virtual Step at_end(std::string_view rest) = 0;
};

std::unique_ptr<Decoder> make_decoder(Framing framing, const Limits& limits,
                                      FramingErrorPolicy policy = FramingErrorPolicy::close);

// What stands before and behind a payload.
struct FrameMarks {
  std::array<char, 40> prefix;
  std::size_t prefix_size;
  std::string_view suffix;
  std::string_view before() const noexcept { return {prefix.data(), prefix_size}; }
};
FrameMarks frame_marks(Framing framing, std::size_t payload_size);
// The largest payload this framing can carry at all.
std::size_t largest_payload(Framing framing) noexcept;

}  // namespace fairlead::rpc
