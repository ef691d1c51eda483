// R8.3: SseParser parses server-sent events with all line ends, split at any byte.
#include "http/sse_parser.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fairlead::http {
namespace {

struct Parsed {
  std::vector<std::string> data;
  std::vector<std::string> types;
  std::string last_id;
  std::optional<std::chrono::milliseconds> retry;
  bool failed = false;

  bool operator==(const Parsed&) const = default;
};

Parsed parse_events(std::string_view text, std::size_t piece = std::string_view::npos,
                    std::size_t limit = 1000) {
  SseParser parser(limit);
  Parsed parsed;
  while (!text.empty() && !parsed.failed) {
    const std::string_view now = text.substr(0, piece);
    parsed.failed = !parser.feed(now, [&](SseEvent event) {
      parsed.data.push_back(event.data);
      parsed.types.push_back(event.type);
    });
    text.remove_prefix(now.size());
  }
  parsed.last_id = parser.last_event_id();
  parsed.retry = parser.retry();
  return parsed;
}

TEST(SseParserTest, AllLineEndsAreEquivalent) {
  const Parsed expected{{"one\ntwo", "three"}, {"", "x"}, "7", std::nullopt};
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    std::string text;
    for (const char* line : {"data: one", "data:two", "", "event: x", "id: 7", "data: three", ""})
      text += line + end;
    EXPECT_EQ(parse_events(text), expected) << "with end "
                                            << (end == "\n"   ? "LF"
                                                : end == "\r" ? "CR"
                                                              : "CRLF");
  }
}

TEST(SseParserTest, MixedLineEndsAreEquivalent) {
  EXPECT_EQ(parse_events("data: a\rdata: b\r\ndata: c\n\rdata: d\r\n\r\n").data,
            (std::vector<std::string>{"a\nb\nc", "d"}));
}

// A \r\n that is split into two pieces is one line end.
TEST(SseParserTest, ResultDoesNotDependOnSplit) {
  const std::string text =
      "\xef\xbb\xbf: hello\r\nid: 1\r\ndata: one\r\ndata: more\r\n\r\nretry: 500\rdata: two\r\rdata: "
      "three\n\n";
  const Parsed whole = parse_events(text);
  EXPECT_EQ(whole.data, (std::vector<std::string>{"one\nmore", "two", "three"}));
  for (std::size_t piece = 1; piece < text.size(); ++piece)
    EXPECT_EQ(parse_events(text, piece), whole) << "in pieces of " << piece;
}

TEST(SseParserTest, ByteOrderMarkIsSkippedAtStartOnly) {
  EXPECT_EQ(parse_events("\xef\xbb\xbf"
                         "data: a\n\n")
                .data,
            std::vector<std::string>{"a"});
  EXPECT_EQ(parse_events("data: a\n\n\xef\xbb\xbf"
                         "data: b\n\n")
                .data,
            std::vector<std::string>{"a"});
}

TEST(SseParserTest, CommentsAndUnknownFieldsAreIgnored) {
  EXPECT_EQ(parse_events(": keepalive\n\n:\n\nnonsense: 1\ndata: a\n\nwithout\n\n").data,
            std::vector<std::string>{"a"});
}

TEST(SseParserTest, OneSpaceAfterColonIsRemoved) {
  EXPECT_EQ(parse_events("data:  a\n\ndata:b\n\n").data, (std::vector<std::string>{" a", "b"}));
}

TEST(SseParserTest, EventWithoutDataIsNotDeliveredButItsIdCounts) {
  const Parsed parsed = parse_events("id: event-1\nretry: 500\ndata: \n\n");
  EXPECT_TRUE(parsed.data.empty());
  EXPECT_EQ(parsed.last_id, "event-1");
  EXPECT_EQ(parsed.retry, std::chrono::milliseconds(500));
}

TEST(SseParserTest, IdCountsWhenEventIsComplete) {
  EXPECT_EQ(parse_events("id: 1\ndata: a\n\nid: 2\ndata: b\n").last_id, "1");
}

TEST(SseParserTest, IdWithNulIsIgnored) {
  EXPECT_EQ(parse_events(std::string_view("id: 1\n\nid: 2\0x\n\n", 17)).last_id, "1");
}

TEST(SseParserTest, NonNumericRetryIsIgnored) {
  EXPECT_FALSE(parse_events("retry: 5s\n\nretry:\n\nretry: -1\n\nretry: 99999999999999999999\n\n").retry);
}

TEST(SseParserTest, IncompleteEventIsNotDelivered) {
  EXPECT_TRUE(parse_events("data: a\n").data.empty());
}

TEST(SseParserTest, EventOverLimitIsRejectedBeforeBuffering) {
  EXPECT_TRUE(parse_events("data: " + std::string(2000, 'x'), 100).failed);
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "data: 0123456789\n";
  EXPECT_TRUE(parse_events(lines, 7).failed);
  EXPECT_FALSE(
      parse_events("data: " + std::string(900, 'x') + "\n\n" + "data: " + std::string(900, 'x') + "\n\n")
          .failed);
}

}  // namespace
}  // namespace fairlead::http
