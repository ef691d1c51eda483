// The three decoders. Each remembers how far it has looked, so that a long frame that arrives in small
// pieces is looked at once, and each skips a frame that is too large without buffering it.
#pragma once

#include <string>

#include "fairlead/rpc/framing.hpp"

namespace fairlead::rpc {

class LineDecoder final : public Decoder {
 public:
  explicit LineDecoder(const Limits& limits) : max_(limits.max_frame_bytes) {}
  Step next(std::string_view input) override;
  Step at_end(std::string_view rest) override;

 private:
  Step discard(std::string_view input);
  void keep_end(std::string_view input);
  Step refuse_kept(std::size_t consumed);
  std::string_view without_mark(std::string_view line);

  std::size_t max_;
  std::size_t looked_ = 0;  // no newline in this many bytes of the input
  bool discarding_ = false;
  std::string kept_;   // beginning and end of a line whose end says whose it is
  std::string told_;   // the same, of one that has been refused
  bool first_ = true;  // the stream's first line has not been seen
};

class LengthDecoder final : public Decoder {
 public:
  LengthDecoder(const Limits& limits, FramingErrorPolicy policy)
      : max_(limits.max_frame_bytes), policy_(policy) {}
  Step next(std::string_view input) override;
  Step at_end(std::string_view rest) override;

 private:
  Step refuse(std::string_view input, std::size_t length);
  Step skip(std::string_view input);
  Step lose_track(std::string_view input, std::size_t consumed, ErrorKind kind, std::string message);
  Step resync(std::string_view input);

  std::size_t max_;
  FramingErrorPolicy policy_;
  bool resyncing_ = false;   // everything up to the next newline is skipped
  std::size_t to_skip_ = 0;  // payload bytes of a refused frame still to come
  bool skipping_ = false;
};

class HeaderDecoder final : public Decoder {
 public:
  HeaderDecoder(const Limits& limits, FramingErrorPolicy policy)
      : max_(limits.max_frame_bytes), max_head_(limits.max_header_bytes), policy_(policy) {}
  Step next(std::string_view input) override;
  Step at_end(std::string_view rest) override;

 private:
  Step read_head(std::string_view input);
  Step lose_track(std::string_view input, std::size_t consumed, ErrorKind kind, std::string message);
  Step resync(std::string_view input);

  std::size_t max_;
  std::size_t max_head_;
  FramingErrorPolicy policy_;
  bool resyncing_ = false;  // everything up to the next Content-Length is skipped
  std::size_t looked_ = 0;
  std::optional<std::size_t> length_;  // of the payload whose head has been read
  std::size_t to_skip_ = 0;
};

}  // namespace fairlead::rpc
