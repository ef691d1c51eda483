// DecoderFeed: passes bytes to a decoder as a connection does, and checks the guarantees of the Decoder
// interface.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/rpc/framing.hpp"

namespace fairlead::rpc::decoding {

// The steps of a decoder in order: "frame {…}", "rejected: frame too large", "broken: parse error".
using Events = std::vector<std::string>;

inline Limits limited_to(std::size_t max_frame_bytes) {
  Limits limits;
  limits.max_frame_bytes = max_frame_bytes;
  return limits;
}

class DecoderFeed {
 public:
  explicit DecoderFeed(Framing framing, const Limits& limits = {},
                       FramingErrorPolicy policy = FramingErrorPolicy::close)
      : decoder_(make_decoder(framing, limits, policy)) {}

  DecoderFeed& bytes(std::string_view more) {
    if (broken_) return *this;
    pending_ += more;
    bool again = true;
    while (again) {
      // A copy of exactly this size, so that the sanitizer detects a read past the end.
      const std::vector<char> input(pending_.begin(), pending_.end());
      const std::string_view view(input.data(), input.size());
      const Decoder::Step step = decoder_->next(view);
      again = handle(step, view);
    }
    max_buffered_ = std::max(max_buffered_, pending_.size());
    return *this;
  }

  DecoderFeed& end() {
    if (broken_) return *this;
    const std::string rest = pending_;
    const Decoder::Step step = decoder_->finish(rest);
    EXPECT_EQ(step.consumed, rest.size());
    handle(step, rest);
    return *this;
  }

  const Events& events() const { return events_; }
  // Returns the messages of all errors.
  const std::vector<std::string>& error_messages() const { return error_messages_; }
  // Returns the maximum number of bytes that were left unconsumed between two reads.
  std::size_t max_buffered() const { return max_buffered_; }
  std::size_t buffered() const { return pending_.size(); }
  std::size_t bytes_needed() const { return bytes_needed_; }

 private:
  bool handle(const Decoder::Step& step, std::string_view input) {
    EXPECT_LE(step.consumed, input.size());
    bytes_needed_ = step.bytes_needed;
    switch (step.status) {
      case Decoder::Status::frame:
        EXPECT_TRUE(step.frame.empty() ||
                    (step.frame.data() >= input.data() &&
                     step.frame.data() + step.frame.size() <= input.data() + step.consumed));
        events_.push_back("frame " + std::string(step.frame));
        break;
      case Decoder::Status::rejected: add_error("rejected: ", step); break;
      case Decoder::Status::broken:
        add_error("broken: ", step);
        broken_ = true;
        break;
      case Decoder::Status::incomplete: EXPECT_FALSE(step.error); break;
    }
    pending_.erase(0, step.consumed);
    return step.status == Decoder::Status::frame || step.status == Decoder::Status::rejected;
  }

  void add_error(const std::string& prefix, const Decoder::Step& step) {
    ASSERT_TRUE(step.error);
    events_.push_back(prefix + std::string(fairlead::to_string(step.error->kind())));
    error_messages_.push_back(step.error->message());
  }

  std::unique_ptr<Decoder> decoder_;
  std::string pending_;
  Events events_;
  std::vector<std::string> error_messages_;
  std::size_t max_buffered_ = 0;
  std::size_t bytes_needed_ = 0;
  bool broken_ = false;
};

inline Events at_once(Framing framing, std::string_view input, const Limits& limits = {}) {
  return DecoderFeed(framing, limits).bytes(input).end().events();
}

// R2.4: expects the same events wherever the input is split, and if it is fed byte by byte.
inline void expect_same_at_every_split(Framing framing, std::string_view input, const Limits& limits = {}) {
  const Events whole = at_once(framing, input, limits);
  for (std::size_t at = 0; at <= input.size(); ++at) {
    DecoderFeed feed(framing, limits);
    feed.bytes(input.substr(0, at)).bytes(input.substr(at)).end();
    EXPECT_EQ(feed.events(), whole) << "cut at byte " << at;
  }
  DecoderFeed slow(framing, limits);
  for (const char& c : input) slow.bytes(std::string_view(&c, 1));
  EXPECT_EQ(slow.end().events(), whole) << "byte by byte";
}

inline std::string length_prefix(std::uint32_t length) {
  std::string prefix;
  for (int shift = 24; shift >= 0; shift -= 8) prefix += static_cast<char>(length >> shift);
  return prefix;
}

// Returns the payload with the delimiters of the framing.
inline std::string framed(Framing framing, std::string_view payload) {
  const FrameDelimiters delimiters = frame_delimiters(framing, payload.size());
  return std::string(delimiters.prefix()) + std::string(payload) + std::string(delimiters.suffix);
}

}  // namespace fairlead::rpc::decoding
