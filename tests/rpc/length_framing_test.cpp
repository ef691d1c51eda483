// Length framing (R2.2): 4-byte big-endian length, payload, and one newline that the length does not include.
#include <gtest/gtest.h>

#include "decoding.hpp"

namespace fairlead::rpc {
namespace {

using namespace decoding;

constexpr std::string_view kPing = R"({"jsonrpc":"2.0","method":"ping","id":1})";

Events decoded(std::string_view input, std::size_t max = 1000) {
  return at_once(Framing::length, input, limited_to(max));
}

std::string framed(std::string_view payload) {
  return decoding::framed(Framing::length, payload);
}

// Returns `rest` after a length prefix that need not match it.
std::string with_length(std::uint32_t length, std::string_view rest) {
  return length_prefix(length) + std::string(rest);
}

TEST(LengthFramingTest, WritesPingOfSpecification) {  // R2.2
  using namespace std::string_literals;
  EXPECT_EQ(kPing.size(), 40u);
  EXPECT_EQ(framed(kPing), "\0\0\0\x28"s + std::string(kPing) + "\n");
  EXPECT_EQ(decoded(framed(kPing)), (Events{"frame " + std::string(kPing)}));
}

TEST(LengthFramingTest, YieldsSameFramesAtEverySplit) {  // R2.4
  const std::string good = framed(kPing) + framed("{\n\"a\":\r\n1}\n") + framed("") + framed("[]");
  expect_same_at_every_split(Framing::length, good);
  expect_same_at_every_split(Framing::length, framed("12345678901") + framed("[]"), limited_to(10));
  expect_same_at_every_split(Framing::length, good + "{\"jsonrpc\":\"2.0\"}\n");
  expect_same_at_every_split(Framing::length, with_length(3, "12345678\n") + framed("[]"));
  expect_same_at_every_split(Framing::length, with_length(11, "123456789012\n") + framed("[]"),
                             limited_to(10));
  expect_same_at_every_split(Framing::length, with_length(0xffffffff, "{}\n") + framed("[]"));
}

TEST(LengthFramingTest, KeepsRawNewlines) {  // R2.2
  EXPECT_EQ(decoded(framed("{\n\"a\":\r\n1\n}")), (Events{"frame {\n\"a\":\r\n1\n}"}));
  EXPECT_EQ(decoded(framed("\n\n\n")), (Events{"frame \n\n\n"}));
}

TEST(LengthFramingTest, DecodesManyFramesOfOneRead) {
  std::string many;
  Events expected;
  for (int i = 0; i < 100; ++i) {
    many += framed(std::to_string(i));
    expected.push_back("frame " + std::to_string(i));
  }
  EXPECT_EQ(decoded(many), expected);
}

TEST(LengthFramingTest, AcceptsLengthsZeroAndOne) {
  EXPECT_EQ(decoded(framed("")), (Events{"frame "}));
  EXPECT_EQ(decoded(framed("1")), (Events{"frame 1"}));
}

TEST(LengthFramingTest, AcceptsFrameAtLimitAndRejectsLargerFrame) {  // R2.5
  EXPECT_EQ(decoded(framed("1234567890"), 10), (Events{"frame 1234567890"}));
  EXPECT_EQ(decoded(framed("12345678901") + framed("[]"), 10),
            (Events{"rejected: frame too large", "frame []"}));
}

TEST(LengthFramingTest, RejectsOversizedFrameBeforeItArrives) {  // R2.5
  DecoderFeed feed(Framing::length);
  feed.bytes(length_prefix((10u << 20) + 1));
  EXPECT_EQ(feed.events(), (Events{"rejected: frame too large"}));
  EXPECT_EQ(feed.error_messages()[0], "a frame of 10485761 bytes is over max_frame_bytes (10485760)");
  EXPECT_EQ(feed.bytes_needed(), 0u) << "a skipped frame needs no buffer";
  const std::string piece(1u << 16, 'x');
  for (int i = 0; i < 160; ++i) feed.bytes(piece);
  EXPECT_EQ(feed.buffered(), 0u);
  EXPECT_EQ(feed.bytes_needed(), 0u);
  feed.bytes("x\n" + framed("[]")).end();
  EXPECT_EQ(feed.events(), (Events{"rejected: frame too large", "frame []"}));
}

TEST(LengthFramingTest, ReportsPrefixOverCeilingAsImpossible) {  // R2.5
  DecoderFeed feed(Framing::length);
  feed.bytes(length_prefix(0xffffffff));
  EXPECT_EQ(feed.events(), (Events{"broken: frame too large"}));
  EXPECT_NE(feed.error_messages()[0].find("4294967295 bytes cannot be true"), std::string::npos);
}

TEST(LengthFramingTest, SkipsFrameOfTwoGibibytes) {  // 2^31 equals the ceiling
  DecoderFeed feed(Framing::length);
  feed.bytes(length_prefix(0x80000000)).bytes(std::string(1000, 'x'));
  EXPECT_EQ(feed.events(), (Events{"rejected: frame too large"}));
  EXPECT_EQ(feed.buffered(), 0u);
  EXPECT_EQ(feed.end().events().back(), "broken: connection closed");
}

TEST(LengthFramingTest, FailsAfterWrongLength) {  // R2.5
  EXPECT_EQ(decoded(with_length(3, "{\"a\":1}\n") + framed("[]")), (Events{"broken: parse error"}));
  EXPECT_EQ(decoded(with_length(1, "{}\n") + framed("[]")), (Events{"broken: parse error"}));
  EXPECT_EQ(decoded(with_length(0, "{}\n") + framed("[]")), (Events{"broken: parse error"}));
  EXPECT_EQ(decoded(with_length(11, "12345678901x\n") + framed("[]"), 10),
            (Events{"rejected: frame too large", "broken: parse error"}));
}

TEST(LengthFramingTest, RequiresTrailingNewline) {
  EXPECT_EQ(decoded(framed("{}") + length_prefix(2) + "{}"),
            (Events{"frame {}", "broken: connection closed"}));
  EXPECT_EQ(decoded(length_prefix(2) + "{}" + framed("[]")), (Events{"broken: parse error"}));
}

TEST(LengthFramingTest, DetectsTextInsteadOfLength) {
  for (const std::string_view text :
       {"{\"jsonrpc\":\"2.0\"}\n", "Content-Length: 2\r\n\r\n{}", "\n\n\n\n", "[1, 2]\n"}) {
    DecoderFeed feed(Framing::length);
    feed.bytes(text);
    EXPECT_EQ(feed.events(), (Events{"broken: parse error"})) << text;
    EXPECT_NE(feed.error_messages()[0].find("the length prefix is text"), std::string::npos);
  }
}

TEST(LengthFramingTest, ReportsStreamEndInsideFrame) {
  const std::string whole = framed("{\"a\":1}");
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    EXPECT_EQ(decoded(framed("[]") + whole.substr(0, cut)), (Events{"frame []", "broken: connection closed"}))
        << cut;
  }
  EXPECT_EQ(decoded(""), Events{});
  EXPECT_EQ(decoded(length_prefix(11) + "1234", 10),
            (Events{"rejected: frame too large", "broken: connection closed"}));
}

TEST(LengthFramingTest, ReportsBytesNeeded) {
  DecoderFeed feed(Framing::length);
  EXPECT_EQ(feed.bytes(length_prefix(100).substr(0, 1)).bytes_needed(), 3u);
  EXPECT_EQ(feed.bytes(length_prefix(100).substr(1)).bytes_needed(), 101u);
  EXPECT_EQ(feed.bytes("12345").bytes_needed(), 96u);
}

// ---- resync ----------------------------------------------------------------------------------------------

Events resynced(std::string_view input) {
  DecoderFeed feed(Framing::length, limited_to(1000), FramingErrorPolicy::resync);
  DecoderFeed slow(Framing::length, limited_to(1000), FramingErrorPolicy::resync);
  for (const char& c : input) slow.bytes(std::string_view(&c, 1));
  EXPECT_EQ(slow.end().events(), feed.bytes(input).end().events());
  return feed.events();
}

TEST(LengthFramingTest, ResyncContinuesAfterNextNewline) {
  const std::string ping = "frame " + std::string(kPing);
  EXPECT_EQ(resynced(with_length(0xffffffff, "{}\n") + framed(kPing)),
            (Events{"rejected: frame too large", ping}));
  EXPECT_EQ(resynced("{\"a\":1}\n" + framed(kPing)), (Events{"rejected: parse error", ping}));
  EXPECT_EQ(resynced(with_length(3, "12345678\n") + framed(kPing)), (Events{"rejected: parse error", ping}));
  EXPECT_EQ(resynced(with_length(2000, std::string(2005, 'x') + "\n") + framed(kPing)),
            (Events{"rejected: frame too large", "rejected: parse error", ping}));
  EXPECT_EQ(resynced("\n\n\n\n\n"),
            (Events{"rejected: parse error", "rejected: parse error", "broken: connection closed"}));
}

TEST(LengthFramingTest, ResyncBuffersNothingWhileSkipping) {
  DecoderFeed feed(Framing::length, limited_to(1000), FramingErrorPolicy::resync);
  feed.bytes(with_length(0xffffffff, ""));
  for (int i = 0; i < 100; ++i) feed.bytes(std::string(1000, 'x'));
  EXPECT_EQ(feed.buffered(), 0u);
}

}  // namespace
}  // namespace fairlead::rpc
