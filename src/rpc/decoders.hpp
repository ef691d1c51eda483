// The decoders of the three framings. Each remembers how far it has scanned, so that a long frame that
// arrives in small pieces is scanned only once. Each skips an oversized frame without buffering it.
#pragma once

#include <string>

#include "fairlead/rpc/framing.hpp"

namespace fairlead::rpc {

class LineDecoder final : public Decoder {
 public:
  explicit LineDecoder(const Limits& limits) : max_frame_bytes_(limits.max_frame_bytes) {}
  Step next(std::string_view input) override;
  Step finish(std::string_view rest) override;

 private:
  Step skip_line(std::string_view input);
  void keep_tail(std::string_view input);
  Step reject_skipped(std::size_t consumed);
  std::string_view strip_byte_order_mark(std::string_view line);

  std::size_t max_frame_bytes_;
  std::size_t scanned_ = 0;    // the input has no newline in its first `scanned_` bytes
  bool skipping_ = false;      // an oversized line is being skipped
  std::string excerpt_;        // beginning and end of the line being skipped, to find its id
  std::string reported_;       // the excerpt to which the last Step points
  bool at_first_line_ = true;  // the first line of the stream has not been read
};

class LengthDecoder final : public Decoder {
 public:
  LengthDecoder(const Limits& limits, FramingErrorPolicy policy)
      : max_frame_bytes_(limits.max_frame_bytes), policy_(policy) {}
  Step next(std::string_view input) override;
  Step finish(std::string_view rest) override;

 private:
  Step reject_length(std::string_view input, std::size_t length);
  Step skip_payload(std::string_view input);
  Step lose_sync(std::string_view input, std::size_t consumed, ErrorKind kind, std::string message);
  Step resync(std::string_view input);

  std::size_t max_frame_bytes_;
  FramingErrorPolicy policy_;
  bool resyncing_ = false;         // skipping to the next newline
  std::size_t bytes_to_skip_ = 0;  // payload bytes of a rejected frame that have not arrived
  bool skipping_ = false;  // a rejected frame is being skipped: its payload, then the newline that ends it
};

class HeaderDecoder final : public Decoder {
 public:
  HeaderDecoder(const Limits& limits, FramingErrorPolicy policy)
      : max_frame_bytes_(limits.max_frame_bytes),
        max_header_bytes_(limits.max_header_bytes),
        policy_(policy) {}
  Step next(std::string_view input) override;
  Step finish(std::string_view rest) override;

 private:
  Step read_header(std::string_view input);
  Step lose_sync(std::string_view input, std::size_t consumed, ErrorKind kind, std::string message);
  Step resync(std::string_view input);

  std::size_t max_frame_bytes_;
  std::size_t max_header_bytes_;
  FramingErrorPolicy policy_;
  bool resyncing_ = false;   // skipping to the next Content-Length
  std::size_t scanned_ = 0;  // bytes of the input that were searched for the end of the header block
  std::optional<std::size_t> length_;  // of the payload, if its header block has been read
  std::size_t bytes_to_skip_ = 0;      // payload bytes of a rejected frame that have not arrived
};

}  // namespace fairlead::rpc
