// Feeds a decoder as a connection does, and checks on the way what every decoder promises.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/rpc/framing.hpp"

namespace fairlead::rpc::decoding {

// What came out, in order: "frame {…}", "skipped: frame too large", "broken: parse error".
using Events = std::vector<std::string>;

inline Limits limited_to(std::size_t max_frame_bytes) {
  Limits limits;
  limits.max_frame_bytes = max_frame_bytes;
  return limits;
}

class Feed {
 public:
  explicit Feed(Framing framing, const Limits& limits = {},
                FramingErrorPolicy policy = FramingErrorPolicy::close)
      : decoder_(make_decoder(framing, limits, policy)) {}

  Feed& bytes(std::string_view more) {
    if (broken_) return *this;
    pending_ += more;
    bool again = true;
    while (again) {
      // A copy of exactly this size, so that the sanitizer sees a read past the end.
      const std::vector<char> input(pending_.begin(), pending_.end());
      const std::string_view view(input.data(), input.size());
      const Decoder::Step step = decoder_->next(view);
      again = take(step, view);
    }
    most_held_ = std::max(most_held_, pending_.size());
    return *this;
  }

  Feed& end() {
    if (broken_) return *this;
    const std::string rest = pending_;
    const Decoder::Step step = decoder_->at_end(rest);
    EXPECT_EQ(step.consumed, rest.size());
    take(step, rest);
    return *this;
  }

  const Events& events() const { return events_; }
  // The errors' messages.
  const std::vector<std::string>& complaints() const { return complaints_; }
  // The most that was left unconsumed between two reads.
  std::size_t most_held() const { return most_held_; }
  std::size_t held() const { return pending_.size(); }
  std::size_t want() const { return want_; }

 private:
  bool take(const Decoder::Step& step, std::string_view input) {
    EXPECT_LE(step.consumed, input.size());
    want_ = step.want;
    switch (step.what) {
      case Decoder::What::frame:
        EXPECT_TRUE(step.frame.empty() ||
                    (step.frame.data() >= input.data() &&
                     step.frame.data() + step.frame.size() <= input.data() + step.consumed));
        events_.push_back("frame " + std::string(step.frame));
        break;
      case Decoder::What::skipped: note("skipped: ", step); break;
      case Decoder::What::broken:
        note("broken: ", step);
        broken_ = true;
        break;
      case Decoder::What::more: EXPECT_FALSE(step.error); break;
    }
    pending_.erase(0, step.consumed);
    return step.what == Decoder::What::frame || step.what == Decoder::What::skipped;
  }

  void note(const std::string& what, const Decoder::Step& step) {
    ASSERT_TRUE(step.error);
    events_.push_back(what + std::string(fairlead::to_string(step.error->kind())));
    complaints_.push_back(step.error->message());
  }

  std::unique_ptr<Decoder> decoder_;
  std::string pending_;
  Events events_;
  std::vector<std::string> complaints_;
  std::size_t most_held_ = 0;
  std::size_t want_ = 0;
  bool broken_ = false;
};

inline Events at_once(Framing framing, std::string_view input, const Limits& limits = {}) {
  return Feed(framing, limits).bytes(input).end().events();
}

// R2.4: the same comes out wherever the input is cut, and byte by byte.
inline void expect_same_at_every_split(Framing framing, std::string_view input, const Limits& limits = {}) {
  const Events whole = at_once(framing, input, limits);
  for (std::size_t at = 0; at <= input.size(); ++at) {
    Feed feed(framing, limits);
    feed.bytes(input.substr(0, at)).bytes(input.substr(at)).end();
    EXPECT_EQ(feed.events(), whole) << "cut at byte " << at;
  }
  Feed slow(framing, limits);
  for (const char& c : input) slow.bytes(std::string_view(&c, 1));
  EXPECT_EQ(slow.end().events(), whole) << "byte by byte";
}

inline std::string length_prefix(std::uint32_t length) {
  std::string prefix;
  for (int shift = 24; shift >= 0; shift -= 8) prefix += static_cast<char>(length >> shift);
  return prefix;
}

// A payload as the framing lays it on the stream.
inline std::string framed(Framing framing, std::string_view payload) {
  const FrameMarks marks = frame_marks(framing, payload.size());
  return std::string(marks.before()) + std::string(payload) + std::string(marks.suffix);
}

}  // namespace fairlead::rpc::decoding
