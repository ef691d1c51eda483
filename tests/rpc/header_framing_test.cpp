// Header framing (R2.3), as in the Language Server Protocol.
#include <gtest/gtest.h>

#include "decoding.hpp"

namespace fairlead::rpc {
namespace {

using namespace decoding;

Events decoded(std::string_view input, const Limits& limits = limited_to(1000)) {
  return at_once(Framing::header, input, limits);
}

std::string framed(std::string_view payload) {
  return decoding::framed(Framing::header, payload);
}

std::string error_message_for(std::string_view input) {
  DecoderFeed feed(Framing::header);
  feed.bytes(input);
  EXPECT_EQ(feed.events().size(), 1u) << input;
  return feed.error_messages().empty() ? "" : feed.error_messages()[0];
}

TEST(HeaderFramingTest, WrittenFrameIsDecoded) {
  EXPECT_EQ(framed("{}"), "Content-Length: 2\r\n\r\n{}");
  EXPECT_EQ(decoded(framed("{}") + framed("") + framed("[1]")), (Events{"frame {}", "frame ", "frame [1]"}));
}

TEST(HeaderFramingTest, WritesLargestLength) {
  const FrameDelimiters delimiters = frame_delimiters(Framing::header, static_cast<std::size_t>(-1));
  EXPECT_EQ(delimiters.prefix(), "Content-Length: 18446744073709551615\r\n\r\n");
}

TEST(HeaderFramingTest, YieldsSameFramesAtEverySplit) {  // R2.4
  const std::string good = framed("{\"a\":1}") + "content-type: x\r\nCONTENT-LENGTH:3\r\n\r\n[1]" +
                           framed("") + "Content-Length: 2\n\n{}";
  expect_same_at_every_split(Framing::header, good);
  expect_same_at_every_split(Framing::header, good + "{\"jsonrpc\":\"2.0\"}\n");
  expect_same_at_every_split(Framing::header, good + "Content-Length: x\r\n\r\n{}");
  expect_same_at_every_split(Framing::header, framed("12345678901") + framed("[]"), limited_to(10));
  expect_same_at_every_split(Framing::header, good + "banner\r\n\r\n{}");
  expect_same_at_every_split(Framing::header, good + "\r\n\r\n{}");
}

TEST(HeaderFramingTest, YieldsSameFramesAtEverySplitNearHeaderLimit) {  // R2.4
  Limits limits;
  for (limits.max_header_bytes = 16; limits.max_header_bytes < 26; ++limits.max_header_bytes) {
    expect_same_at_every_split(Framing::header, framed("{}") + framed("[]"), limits);
    expect_same_at_every_split(Framing::header, "Content-Length: 2\n\n{}", limits);
    expect_same_at_every_split(Framing::header, "Content-Length: +2\n\n{}", limits);
  }
}

TEST(HeaderFramingTest, AcceptsHeaderNamesInAnyCaseAndOtherHeaders) {
  EXPECT_EQ(decoded("content-length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}"),
            (Events{"frame {}"}));
  EXPECT_EQ(decoded("X: y\r\nCoNtEnT-LeNgTh:2\r\n\r\n{}"), (Events{"frame {}"}));
  EXPECT_EQ(decoded("Content-Length:\t 2 \t\r\n\r\n{}"), (Events{"frame {}"}));
}

TEST(HeaderFramingTest, AcceptsBareNewlines) {
  EXPECT_EQ(decoded("Content-Length: 2\n\n{}Content-Length: 2\r\n\n[]Content-Length: 1\n\r\n1"),
            (Events{"frame {}", "frame []", "frame 1"}));
}

TEST(HeaderFramingTest, LengthCountsBytesNotCharacters) {
  EXPECT_EQ(decoded("Content-Length: 4\r\n\r\n\"\xc3\xa9\"" + framed("1")),
            (Events{"frame \"\xc3\xa9\"", "frame 1"}));
}

TEST(HeaderFramingTest, RejectsAmbiguousLength) {
  const std::string end = "\r\n\r\n{}";
  EXPECT_EQ(error_message_for("Content-Length: 2\r\nContent-Length: 2" + end),
            "Content-Length is given twice");
  EXPECT_EQ(error_message_for("Content-Length: 2\r\ncontent-length: 3" + end),
            "Content-Length is given twice");
  for (const std::string_view length : {"+2", "-2", "2x", "2 2", "2,2", "0x2", "2.0", "", " ", "two", "1e1",
                                        "\xc2\xb2", "99999999999999999999999999"}) {
    EXPECT_EQ(error_message_for("Content-Length: " + std::string(length) + end),
              "Content-Length is not a plain number")
        << length;
  }
}

TEST(HeaderFramingTest, RejectsHeaderWithoutLength) {
  EXPECT_EQ(error_message_for("Content-Type: text/plain\r\n\r\n{}"), "Content-Length is missing");
  EXPECT_EQ(error_message_for("Content-Length : 2\r\n\r\n{}"), "Content-Length is missing");
  EXPECT_EQ(error_message_for("Content\rLength: 2\r\n\r\n{}"), "Content-Length is missing");
  EXPECT_EQ(error_message_for("\r\n\r\n{}"), "a header line has no colon");
  EXPECT_EQ(error_message_for("Server ready\r\nContent-Length: 2\r\n\r\n{}"), "a header line has no colon");
}

TEST(HeaderFramingTest, ReportsLengthOverCeilingAsImpossible) {  // 10^16
  EXPECT_EQ(decoded("Content-Length: 10000000000000000\r\n\r\n{}"), (Events{"broken: frame too large"}));
  EXPECT_NE(error_message_for("Content-Length: 10000000000000000\r\n\r\n{}").find("cannot be true"),
            std::string::npos);
}

TEST(HeaderFramingTest, DetectsJsonInsteadOfHeader) {
  EXPECT_NE(error_message_for("{\"jsonrpc\":\"2.0\"}\n").find("seems to use line framing"),
            std::string::npos);
  EXPECT_NE(error_message_for("[").find("seems to use line framing"), std::string::npos);
  EXPECT_EQ(decoded(framed("{}") + "{}"), (Events{"frame {}", "broken: parse error"}));
}

TEST(HeaderFramingTest, AcceptsFrameAtLimitAndSkipsLargerFrame) {  // R2.5
  EXPECT_EQ(decoded(framed("1234567890"), limited_to(10)), (Events{"frame 1234567890"}));
  EXPECT_EQ(decoded(framed("12345678901") + framed("[]"), limited_to(10)),
            (Events{"rejected: frame too large", "frame []"}));
}

TEST(HeaderFramingTest, BuffersNothingOfSkippedFrame) {  // R2.5
  DecoderFeed feed(Framing::header);
  feed.bytes("Content-Length: 11000000\r\n\r\n");
  const std::string piece(1000, 'x');
  for (int i = 0; i < 11'000; ++i) feed.bytes(piece);
  EXPECT_EQ(feed.bytes_needed(), 0u) << "a skipped frame needs no buffer";
  feed.bytes(framed("[]")).end();
  EXPECT_EQ(feed.events(), (Events{"rejected: frame too large", "frame []"}));
  EXPECT_LE(feed.max_buffered(), 100u);
}

TEST(HeaderFramingTest, RejectsEndlessHeader) {
  DecoderFeed feed(Framing::header);
  for (int i = 0; i < 1000; ++i) feed.bytes("X-Filler: 0123456789\r\n");
  EXPECT_EQ(feed.events(), (Events{"broken: frame too large"}));
  EXPECT_EQ(feed.error_messages()[0], "the head of a frame is over max_header_bytes (8192)");
  EXPECT_LE(feed.max_buffered(), Limits().max_header_bytes + 100);
}

TEST(HeaderFramingTest, AcceptsHeaderAtLimitAndRejectsLargerHeader) {
  Limits limits;
  const std::string head = "Content-Length: 2\r\n\r\n";
  limits.max_header_bytes = head.size();
  EXPECT_EQ(decoded(head + "{}", limits), (Events{"frame {}"}));
  limits.max_header_bytes = head.size() - 1;
  EXPECT_EQ(decoded(head + "{}", limits), (Events{"broken: frame too large"}));
}

TEST(HeaderFramingTest, ReportsStreamEndInsideFrame) {
  const std::string whole = framed("{\"a\":1}");
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    EXPECT_EQ(decoded(framed("[]") + whole.substr(0, cut)), (Events{"frame []", "broken: connection closed"}))
        << cut;
  }
  EXPECT_EQ(decoded(""), Events{});
  EXPECT_EQ(decoded("Content-Length: 11\r\n\r\n123", limited_to(10)),
            (Events{"rejected: frame too large", "broken: connection closed"}));
}

TEST(HeaderFramingTest, ReportsBytesNeeded) {
  DecoderFeed feed(Framing::header);
  EXPECT_EQ(feed.bytes("Content-Length: 100\r\n").bytes_needed(), 0u);
  EXPECT_EQ(feed.bytes("\r\n").bytes_needed(), 100u);
  EXPECT_EQ(feed.bytes("12345").bytes_needed(), 95u);
}

TEST(FramingTest, EachFramingHasName) {
  for (const Framing framing : {Framing::line, Framing::length, Framing::header})
    EXPECT_EQ(framing_named(to_string(framing)), framing);
  EXPECT_EQ(framing_named("Line"), std::nullopt);
  EXPECT_EQ(framing_named(""), std::nullopt);
}

TEST(HeaderFramingTest, ResyncContinuesAtNextContentLength) {
  const auto resynced = [](std::string_view input) {
    DecoderFeed feed(Framing::header, limited_to(1000), FramingErrorPolicy::resync);
    DecoderFeed slow(Framing::header, limited_to(1000), FramingErrorPolicy::resync);
    for (const char& c : input) slow.bytes(std::string_view(&c, 1));
    EXPECT_EQ(slow.end().events(), feed.bytes(input).end().events());
    return feed.events();
  };
  const std::string good = "content-LENGTH: 2\r\n\r\n{}";
  EXPECT_EQ(resynced("Content-Length: -5\r\n\r\nabc" + good), (Events{"rejected: parse error", "frame {}"}));
  EXPECT_EQ(resynced("{\"jsonrpc\":1}\n" + good), (Events{"rejected: parse error", "frame {}"}));
  EXPECT_EQ(resynced("X: " + std::string(9000, 'x') + good),
            (Events{"rejected: frame too large", "frame {}"}));
  EXPECT_EQ(resynced("Content-Length: 99999999999\r\n\r\n{}" + good),
            (Events{"rejected: frame too large", "frame {}"}));
}

}  // namespace
}  // namespace fairlead::rpc
