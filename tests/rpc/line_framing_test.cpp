// Line framing (R2.1): one JSON value per line, possibly with other output of a program in between.
#include <gtest/gtest.h>

#include "decoding.hpp"
#include "fairlead/rpc/message.hpp"

namespace fairlead::rpc {
namespace {

using namespace decoding;

Events lines(std::string_view input, std::size_t max = 1000) {
  return at_once(Framing::line, input, limited_to(max));
}

TEST(LineFramingTest, DecodesManyFramesOfOneRead) {
  EXPECT_EQ(lines("{\"a\":1}\n{\"b\":2}\n[3]\n"),
            (Events{"frame {\"a\":1}", "frame {\"b\":2}", "frame [3]"}));
}

TEST(LineFramingTest, YieldsSameFramesAtEverySplit) {  // R2.4
  expect_same_at_every_split(Framing::line, "{\"a\":1}\n\r\n \n{\"b\":\"\xc3\xa9\"}\r\nbanner\n\n{\"c\":3}");
  expect_same_at_every_split(Framing::line, "\xef\xbb\xbf{\"a\":1}\r\n\xef\xbb\xbf{}\n");
}

TEST(LineFramingTest, YieldsSameFramesAtEverySplitNearFrameLimit) {  // R2.4, R2.5
  for (std::size_t length = 8; length <= 13; ++length) {
    const std::string line(length, 'x');
    expect_same_at_every_split(Framing::line, line + "\nok\n", limited_to(10));
    expect_same_at_every_split(Framing::line, line + "\r\nok\r\n", limited_to(10));
    expect_same_at_every_split(Framing::line, line + "\r\r\nok\r", limited_to(10));
    expect_same_at_every_split(Framing::line, line + "\r", limited_to(10));
    expect_same_at_every_split(Framing::line, "ok\n" + line, limited_to(10));
    expect_same_at_every_split(Framing::line, "\xef\xbb\xbf" + line + "\nok\n", limited_to(10));
    expect_same_at_every_split(Framing::line, std::string(length, ' ') + "\nok\n", limited_to(10));
  }
}

TEST(LineFramingTest, AcceptsCrLf) {  // R2.1
  EXPECT_EQ(lines("{}\r\n[]\r\n"), (Events{"frame {}", "frame []"}));
  EXPECT_EQ(lines("{}\r\r\n"), (Events{"frame {}\r"}));
}

TEST(LineFramingTest, SkipsBlankLines) {
  EXPECT_EQ(lines("\n\n  \n\t\r\n{}\n\n\r\n"), (Events{"frame {}"}));
  EXPECT_EQ(lines(""), Events{});
  EXPECT_EQ(lines("\n"), Events{});
  EXPECT_EQ(lines(" "), Events{});
}

TEST(LineFramingTest, DropsByteOrderMarkOnlyAtStart) {
  EXPECT_EQ(lines("\xef\xbb\xbf{}\n"), (Events{"frame {}"}));
  EXPECT_EQ(lines("\xef\xbb\xbf{}"), (Events{"frame {}"}));
  EXPECT_EQ(lines("\xef\xbb\xbf\n{}\n"), (Events{"frame {}"}));
  EXPECT_EQ(lines("{}\n\xef\xbb\xbf{}\n"), (Events{"frame {}", "frame \xef\xbb\xbf{}"}));
  EXPECT_EQ(lines("\n\xef\xbb\xbf{}\n"), (Events{"frame \xef\xbb\xbf{}"}));
  EXPECT_EQ(lines("\xef\xbb{}\n"), (Events{"frame \xef\xbb{}"}));
}

TEST(LineFramingTest, ContinuesAfterGarbageBetweenMessages) {  // R2.6
  EXPECT_EQ(lines("{}\nStarting server v1.0 ...\n[]\n"),
            (Events{"frame {}", "frame Starting server v1.0 ...", "frame []"}));
  using namespace std::string_literals;
  EXPECT_EQ(lines("{}\n\0\xff\n[]\n"s), (Events{"frame {}", "frame \0\xff"s, "frame []"}));
}

TEST(LineFramingTest, ReadsLastLineWithoutNewline) {
  EXPECT_EQ(lines("{}\n[1]"), (Events{"frame {}", "frame [1]"}));
  EXPECT_EQ(lines("{}\n[1]\r"), (Events{"frame {}", "frame [1]"}));
}

TEST(LineFramingTest, PassesTruncatedLastLineToParser) {
  const std::string line = "{\"jsonrpc\":\"2.0\"}";
  for (std::size_t cut = 1; cut < line.size(); ++cut) {
    EXPECT_EQ(lines(line.substr(0, cut)), (Events{"frame " + line.substr(0, cut)}));
  }
}

TEST(LineFramingTest, AcceptsFrameAtLimitAndRejectsLargerFrame) {  // R2.5
  EXPECT_EQ(lines(std::string(10, 'x') + "\n", 10), (Events{"frame xxxxxxxxxx"}));
  EXPECT_EQ(lines(std::string(10, 'x') + "\r\n", 10), (Events{"frame xxxxxxxxxx"}));
  EXPECT_EQ(lines(std::string(11, 'x') + "\n{}\n", 10), (Events{"rejected: frame too large", "frame {}"}));
  EXPECT_EQ(lines(std::string(11, 'x'), 10), (Events{"rejected: frame too large"}));
}

TEST(LineFramingTest, ErrorNamesLimitOfOversizedFrame) {  // R2.5
  DecoderFeed feed(Framing::line, limited_to(10));
  feed.bytes(std::string(11, 'x') + "\n");
  ASSERT_EQ(feed.error_messages().size(), 1u);
  EXPECT_EQ(feed.error_messages()[0], "a frame of 11 bytes is over max_frame_bytes (10)");
}

TEST(LineFramingTest, RecoversAfterElevenMegabyteLine) {  // R2.5
  DecoderFeed feed(Framing::line);
  feed.bytes("{\"before\":1}\n");
  const std::string piece(64u << 10, 'x');
  for (std::size_t sent = 0; sent < (11u << 20); sent += piece.size()) feed.bytes(piece);
  EXPECT_EQ(feed.buffered(), 0u);
  feed.bytes("\n{\"after\":1}\n").end();
  EXPECT_EQ(feed.events(),
            (Events{"frame {\"before\":1}", "rejected: frame too large", "frame {\"after\":1}"}));
  EXPECT_LE(feed.max_buffered(), Limits().max_frame_bytes);
}

TEST(LineFramingTest, ReportsEndlessLineOnceAndBuffersNothing) {  // R2.5
  DecoderFeed feed(Framing::line, limited_to(1000));
  for (int i = 0; i < 10'000; ++i) feed.bytes(std::string(100, 'x'));
  EXPECT_EQ(feed.end().events(), (Events{"rejected: frame too large"}));
  EXPECT_LE(feed.max_buffered(), 1000u);
}

TEST(LineFramingTest, KeepsIdOfOversizedMessage) {
  const std::string text = "\"" + std::string(5000, 'x') + "\"";
  for (const std::string& line : {R"({"jsonrpc":"2.0","id":7,"result":)" + text + "}\n",
                                  R"({"result":)" + text + ",\"jsonrpc\":\"2.0\",\"id\":7}\r\n"}) {
    for (const std::size_t piece : {std::size_t(1), std::size_t(300), line.size()}) {
      const auto decoder = make_decoder(Framing::line, limited_to(1000));
      std::string pending;
      std::vector<std::string> ids;
      for (std::size_t at = 0; at < line.size(); at += piece) {
        pending += line.substr(at, piece);
        const Decoder::Step step = decoder->next(pending);
        if (step.status == Decoder::Status::rejected)
          ids.emplace_back(Message::too_large(*step.error, step.frame).id());
        pending.erase(0, step.consumed);
      }
      EXPECT_EQ(ids, std::vector<std::string>{"7"}) << piece;
    }
  }
}

TEST(LineFramingTest, RejectsEachOversizedLine) {
  EXPECT_EQ(lines(std::string(11, 'x') + "\n" + std::string(12, 'y') + "\n{}\n", 10),
            (Events{"rejected: frame too large", "rejected: frame too large", "frame {}"}));
}

TEST(LineFramingTest, ScansLongLineOnce) {
  // Scanning in quadratic time would take minutes.
  const auto decoder = make_decoder(Framing::line, limited_to(8u << 20));
  const std::string line(4u << 20, 'x');
  for (std::size_t size = 1; size < line.size(); size += 16) {
    ASSERT_EQ(decoder->next(std::string_view(line).substr(0, size)).status, Decoder::Status::incomplete);
  }
}

TEST(LineFramingTest, WrittenFrameIsDecoded) {
  EXPECT_EQ(framed(Framing::line, "{}"), "{}\n");
  EXPECT_EQ(lines(framed(Framing::line, "{}")), (Events{"frame {}"}));
}

}  // namespace
}  // namespace fairlead::rpc
