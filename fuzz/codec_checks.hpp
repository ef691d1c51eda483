// Checks of every frame decoder on arbitrary bytes: the result does not depend on how the stream is split,
// frames lie within the input, buffered bytes stay within the limits, and written frames are read back.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/rpc/framing.hpp"
#include "rpc/write_queue.hpp"

namespace fairlead::rpc::checks {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// The sizes of the pieces a stream is split into: pseudo-random, and the same for the same input.
class PieceSizes {
 public:
  PieceSizes(std::string_view input, std::size_t longest) : state_(input.size() * 2 + 1), longest_(longest) {
    for (const char c : input) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  std::size_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return 1 + state_ % longest_;
  }

 private:
  std::uint64_t state_;
  std::size_t longest_;
};

struct Event {
  Decoder::Status status;
  std::size_t offset = 0;  // the position of a frame in the stream
  std::size_t size = 0;
  ErrorKind kind = ErrorKind::parse;  // the kind of an error
  bool operator==(const Event&) const = default;
};

class DecoderRun {
 public:
  DecoderRun(Framing framing, const Limits& limits, std::string_view stream,
             FramingErrorPolicy policy = FramingErrorPolicy::close)
      : decoder_(make_decoder(framing, limits, policy)),
        stream_(stream),
        max_buffered_(std::max(limits.max_frame_bytes + 5, limits.max_header_bytes)) {}

  // Feeds the stream in pieces of up to `longest` bytes, then its end.
  std::vector<Event> in_pieces_of(std::size_t longest) {
    PieceSizes sizes(stream_, longest);
    std::size_t fed = 0;
    while (fed < stream_.size() && !broken_) {
      fed = std::min(stream_.size(), fed + sizes.next());
      feed(fed);
    }
    if (!broken_) {
      const Decoder::Step last = decoder_->finish(stream_.substr(consumed_));
      require(consumed_ + last.consumed == stream_.size());
      record(last, stream_.size());
    }
    return events_;
  }

 private:
  void feed(std::size_t fed) {
    bool again = true;
    while (again) again = record(decoder_->next(stream_.substr(consumed_, fed - consumed_)), fed);
    require(broken_ || fed - consumed_ <= max_buffered_);
  }

  bool record(const Decoder::Step& step, std::size_t fed) {
    require(step.consumed <= fed - consumed_);
    if (step.status == Decoder::Status::incomplete) {
      require(!step.error && step.frame.empty());
      consumed_ += step.consumed;
      return false;
    }
    Event event{.status = step.status};
    if (step.status == Decoder::Status::frame) {
      event.offset = static_cast<std::size_t>(step.frame.data() - stream_.data());
      event.size = step.frame.size();
      require(event.offset >= consumed_ && event.offset + event.size <= consumed_ + step.consumed &&
              !step.error);
    } else {
      require(step.error && !step.error->message().empty());
      event.kind = step.error->kind();
    }
    events_.push_back(event);
    consumed_ += step.consumed;
    broken_ = step.status == Decoder::Status::broken;
    return !broken_;
  }

  std::unique_ptr<Decoder> decoder_;
  std::string_view stream_;
  std::size_t max_buffered_;
  std::size_t consumed_ = 0;
  bool broken_ = false;
  std::vector<Event> events_;
};

inline void check_splits(Framing framing, const Limits& limits, std::string_view stream) {
  for (const FramingErrorPolicy policy : {FramingErrorPolicy::close, FramingErrorPolicy::resync}) {
    const std::vector<Event> whole = DecoderRun(framing, limits, stream, policy).in_pieces_of(1u << 20);
    for (const std::size_t longest : {1u, 2u, 7u, 300u})
      require(DecoderRun(framing, limits, stream, policy).in_pieces_of(longest) == whole);
  }
}

inline std::string drain_queue(WriteQueue& queue) {
  std::string all;
  std::vector<iovec> parts(3);
  while (!queue.empty()) {
    const std::size_t used = queue.fill_iovecs(parts);
    require(used > 0);
    const std::string_view first(static_cast<const char*>(parts[0].iov_base), parts[0].iov_len);
    const std::string_view some = first.substr(0, first.size() / 2 + 1);
    all += some;
    queue.advance(some.size());
  }
  return all;
}

// Splits the input into payloads, writes them, and reads them back. `carries` returns whether the framing can
// carry a payload.
template <class Carries>
void check_round_trip(Framing framing, std::string_view input, Carries&& carries) {
  PieceSizes sizes(input, 200);
  WriteQueue queue(framing);
  std::vector<std::string_view> sent;
  while (!input.empty()) {
    const std::string_view payload = input.substr(0, sizes.next());
    input.remove_prefix(payload.size());
    if (!carries(payload)) continue;
    require(queue.push(Rope(Bytes::copy_of(payload), true)).has_value());
    sent.push_back(payload);
  }
  const std::string stream = drain_queue(queue);
  const std::vector<Event> read = DecoderRun(framing, Limits(), stream).in_pieces_of(97);
  require(read.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    require(read[i].status == Decoder::Status::frame);
    require(std::string_view(stream).substr(read[i].offset, read[i].size) == sent[i]);
  }
}

template <class Carries>
void check_codec(Framing framing, const std::uint8_t* data, std::size_t size, Carries&& carries) {
  // A copy of exactly this size, so that the sanitizer detects a read past the end.
  const std::vector<char> copy(data, data + size);
  const std::string_view stream(copy.data(), copy.size());
  Limits tight;
  tight.max_frame_bytes = 24;
  tight.max_header_bytes = 40;
  check_splits(framing, tight, stream);
  check_splits(framing, Limits(), stream);
  check_round_trip(framing, stream, carries);
}

}  // namespace fairlead::rpc::checks
