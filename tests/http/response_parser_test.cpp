// R8.3: ResponseParser parses responses in all framings of HTTP/1.1, in pieces of any size.
#include "http/response_parser.hpp"

#include <gtest/gtest.h>

namespace fairlead::http {
namespace {

struct ParseResult {
  int status = 0;
  std::string body;
  std::string rest;
  bool done = false;
  bool keep_alive = false;
  std::optional<ErrorKind> problem;

  bool operator==(const ParseResult&) const = default;
};

ParseResult parse(std::string_view text, std::size_t piece = std::string_view::npos, bool ends = false) {
  ResponseParser parser;
  ParseResult result;
  while (!text.empty() && !result.problem) {
    const std::string_view now = text.substr(0, piece);
    const Result<void> fed = parser.feed(now, result.body);
    if (!fed) result.problem = fed.error().kind();
    text.remove_prefix(now.size());
  }
  if (ends && !result.problem) {
    const Result<void> ended = parser.on_end_of_input();
    if (!ended) result.problem = ended.error().kind();
  }
  result.done = !result.problem && parser.done();
  result.status = parser.has_head() ? parser.head().status : 0;
  if (result.done) {
    result.keep_alive = parser.keep_alive();
    result.rest = parser.extract_rest();
  }
  return result;
}

TEST(ResponseParserTest, ParsesSizedAndChunkedBodiesInPiecesOfAnySize) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
  const std::string forms[] = {
      head + "Content-Length: 5\r\n\r\nhello",
      head + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: x\r\n\r\n"};
  for (const std::string& form : forms) {
    for (std::size_t piece = 1; piece <= form.size(); ++piece)
      EXPECT_EQ(parse(form, piece), (ParseResult{200, "hello", "", true, true, {}}))
          << form << " in pieces of " << piece;
  }
}

TEST(ResponseParserTest, BodyWithoutLengthEndsWithConnection) {
  const ParseResult result = parse("HTTP/1.1 200 OK\r\n\r\nhello", 1, true);
  EXPECT_EQ(result.body, "hello");
  EXPECT_TRUE(result.done);
  EXPECT_FALSE(result.keep_alive);
}

TEST(ResponseParserTest, TruncatedBodyFailsWithClosed) {
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", 99, true).problem, ErrorKind::closed);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 99, true).problem,
            ErrorKind::closed);
  EXPECT_EQ(parse("HTTP/1.1 200", 99, true).problem, ErrorKind::closed);
}

TEST(ResponseParserTest, InterimResponsesAreSkipped) {
  const ParseResult result = parse(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 202 OK\r\nContent-Length: "
      "0\r\n\r\n",
      3);
  EXPECT_EQ(result.status, 202);
  EXPECT_TRUE(result.done);
}

TEST(ResponseParserTest, BytesAfterUpgradeAreNotParsed) {
  const ParseResult result =
      parse("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x81\x01x");
  EXPECT_EQ(result.status, 101);
  EXPECT_EQ(result.rest, "\x81\x01x");
}

TEST(ResponseParserTest, KeepAliveIsFalseWhenConnectionCannotBeReused) {
  EXPECT_FALSE(parse("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").keep_alive);
  EXPECT_FALSE(parse("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").keep_alive);
  EXPECT_FALSE(parse("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore").keep_alive);
}

TEST(ResponseParserTest, MalformedResponseIsRejected) {
  for (const char* const text :
       {"SSH-2.0-OpenSSH\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}) {
    EXPECT_EQ(parse(text).problem, ErrorKind::parse) << text;
  }
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'a')).problem, ErrorKind::frame_too_large);
}

TEST(ResponseParserTest, AnnouncedSizeOverLimitIsRejectedAtOnce) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  for (const std::string& form : {head + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n",
                                  head + "Transfer-Encoding: chunked\r\n\r\n80000001\r\n",
                                  head + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nfffffffffffffff0;x\r\n",
                                  head + "Content-Length: 18446744073709551615\r\n\r\n"}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, form.size()})
      EXPECT_EQ(parse(form + "a", piece).problem, ErrorKind::frame_too_large) << form;
  }
  EXPECT_EQ(parse(head + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n").problem,
            ErrorKind::frame_too_large);
  EXPECT_EQ(parse(head + "Content-Length: 99999999999999999999\r\n\r\n").problem, ErrorKind::frame_too_large);
  EXPECT_EQ(parse(head + "Transfer-Encoding: chunked\r\n\r\n80000000\r\nab").body, "ab");
}

// Each could be understood differently by another program, or is obsolete.
TEST(ResponseParserTest, AmbiguousHeadIsRejectedInPiecesOfAnySize) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::string chunk = "\r\n1\r\na\r\n0\r\n\r\n";
  for (const std::string& text : {std::string("HTTP/2.0 200 OK\r\n\r\n"),
                                  std::string("HTTP/1.2 200 OK\r\n\r\n"),
                                  std::string("HTTP/1.1  200 OK\r\n\r\n"),
                                  std::string("HTTP/1.1 20 OK\r\n\r\n"),
                                  std::string("HTTP/1.1 2000 OK\r\n\r\n"),
                                  std::string("HTTP/1.1 099 OK\r\n\r\n"),
                                  std::string("HTTP/1.1 -20 OK\r\n\r\n"),
                                  std::string("HTTP/1.1 200_OK\r\n\r\n"),
                                  std::string("HTTP/1.1 200 O\x01K\r\n\r\n"),
                                  std::string("HTTP/1.1 200 OK\n\n"),
                                  std::string("HTTP/1.1 \r\n\r\n"),
                                  std::string("\r\nHTTP/1.1 200 OK\r\n\r\n"),
                                  ok + "A: b\n\r\n",
                                  ok + "A: b\r\r\n\r\n",
                                  ok + "A: b\r\n folded\r\n\r\n",
                                  ok + "A : b\r\n\r\n",
                                  ok + ": b\r\n\r\n",
                                  ok + "A: a\x7f\r\n\r\n",
                                  ok + std::string("A: a\0b\r\n\r\n", 11),
                                  ok + "Content-Length: 1, 1\r\n\r\na",
                                  ok + "Content-Length: +1\r\n\r\na",
                                  ok + "Content-Length: 0x1\r\n\r\na",
                                  ok + "Content-Length:\r\n\r\na",
                                  ok + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n" + chunk,
                                  ok + "Transfer-Encoding: gzip, chunked\r\n" + chunk,
                                  ok + "Transfer-Encoding: gzip\r\n" + chunk,
                                  ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" + chunk,
                                  "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n" + chunk,
                                  ok + "Transfer-Encoding: chunked\r\n\r\n1\na\r\n",
                                  ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
                                  ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nbad trailer\r\n\r\n"}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, text.size()})
      EXPECT_EQ(parse(text, piece).problem, ErrorKind::parse) << text << " in pieces of " << piece;
  }
}

TEST(ResponseParserTest, UncommonValidHeadsAreAccepted) {
  const ParseResult accepted{200, "a", "", true, true, {}};
  EXPECT_EQ(parse("HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na"), accepted);
  EXPECT_EQ(parse("HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\na"), accepted);
  EXPECT_EQ(parse("HTTP/1.1 200 \xc3\xa4\r\ncontent-LENGTH: \t1 \r\nContent-Length: 1\r\n\r\na"), accepted);
  EXPECT_EQ(parse("HTTP/1.0 200 OK\r\nConnection: x, Keep-Alive\r\nContent-Length: 1\r\n\r\na"), accepted);
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"), accepted);
  EXPECT_FALSE(parse("HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n").keep_alive);
  for (const char* const status : {"204", "304"})
    EXPECT_TRUE(parse("HTTP/1.1 " + std::string(status) + " X\r\nContent-Length: 5\r\n\r\n").done) << status;
}

TEST(ResponseParserTest, ServerOfOtherProtocolIsRejectedBeforeItsFirstLineEnds) {
  EXPECT_EQ(parse("SSH-2.0-").problem, ErrorKind::parse);
  EXPECT_EQ(parse("\x15\x03\x01", 1).problem, ErrorKind::parse);
  EXPECT_EQ(parse("HTT", 1).problem, std::nullopt);
}

TEST(ResponseParserTest, HeadAndTrailersAreLimitedInPiecesOfAnySize) {
  const std::string field = "A: " + std::string(1000, 'a') + "\r\n";
  std::string fields;
  for (int i = 0; i < 70; ++i) fields += field;
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
  for (const std::size_t piece : {std::size_t{1000}, std::size_t{100'000}}) {
    EXPECT_EQ(parse("HTTP/1.1 200 OK\r\n" + fields + "\r\n", piece).problem, ErrorKind::frame_too_large);
    EXPECT_EQ(parse(chunked + fields + "\r\n", piece).problem, ErrorKind::frame_too_large);
  }
  // A body is not part of the head, and each interim response has a head of its own.
  EXPECT_EQ(parse("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x')).problem,
            std::nullopt);
}

// The chunks before it do not count against the limit of a chunk: an event stream has no end.
TEST(ResponseParserTest, LimitOfAnnouncedSizeAppliesToEachChunk) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(parse(chunked + "2\r\nab\r\n80000000\r\nc").body, "abc");
}

TEST(ResponseParserTest, ErrorNamesLimitOfAnnouncedSize) {
  ResponseParser parser;
  std::string body;
  const Result<void> fed =
      parser.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n", body);
  ASSERT_FALSE(fed);
  EXPECT_NE(fed.error().message().find("max_announced_bytes (2147483648)"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::http
