// WriteQueue (R2.4, R2.7): frames are gathered, written in pieces of any size, and their memory is freed.
#include "rpc/write_queue.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <string>
#include <vector>

#include "decoding.hpp"

namespace fairlead::rpc {
namespace {

constexpr std::array kFramings = {Framing::line, Framing::length, Framing::header};

Rope rope(std::string_view json) {
  return Rope(Bytes::copy_of(json));
}

std::string next_bytes(const WriteQueue& queue) {
  std::array<iovec, 64> parts;
  std::string all;
  const std::size_t used = queue.fill_iovecs(parts);
  for (std::size_t i = 0; i < used; ++i) {
    EXPECT_GT(parts[i].iov_len, 0u);
    all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  }
  return all;
}

// Writes the queue as a connection does, at most `max_bytes` at a time. Returns the bytes written.
std::string drain(WriteQueue& queue, std::size_t max_bytes) {
  std::string all;
  while (!queue.empty()) {
    const std::string next = next_bytes(queue).substr(0, max_bytes);
    EXPECT_FALSE(next.empty());
    if (next.empty()) break;
    all += next;
    queue.advance(next.size());
  }
  return all;
}

// Small and large messages, and their bytes on the stream.
struct Traffic {
  explicit Traffic(Framing framing) {
    const std::string large = "[\"" + std::string(6000, 'x') + "\"]";
    for (const std::string& text :
         {std::string("{}"), large, std::string("[1,2]"), large, large, std::string("3")}) {
      messages.push_back(text);
      bytes += decoding::framed(framing, text);
    }
  }
  std::vector<std::string> messages;
  std::string bytes;
};

TEST(WriteQueueTest, FramesEachMessage) {
  for (const Framing framing : kFramings) {
    const Traffic traffic(framing);
    WriteQueue queue(framing);
    for (const std::string& message : traffic.messages) ASSERT_TRUE(queue.push(rope(message)));
    EXPECT_EQ(queue.unwritten_bytes(), traffic.bytes.size());
    EXPECT_EQ(next_bytes(queue), traffic.bytes) << to_string(framing);
  }
}

TEST(WriteQueueTest, CopiesManySmallMessagesIntoOnePart) {  // R2.7
  WriteQueue queue(Framing::line);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(queue.push(rope("{\"n\":1}")));
  std::array<iovec, 64> parts;
  EXPECT_EQ(queue.fill_iovecs(parts), 1u);
  EXPECT_EQ(parts[0].iov_len, 800u);
}

TEST(WriteQueueTest, SplitsCopiedPartsIntoSmallBuffers) {  // written buffers are freed one by one
  WriteQueue queue(Framing::line);
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(queue.push(rope("{\"n\":1}")));
  std::array<iovec, 64> parts;
  const std::size_t used = queue.fill_iovecs(parts);
  EXPECT_GT(used, 1u);
  for (std::size_t i = 0; i < used; ++i) EXPECT_LE(parts[i].iov_len, 72u << 10);
}

TEST(WriteQueueTest, ContinuesAfterPartialWriteOfAnySize) {  // R2.4
  for (const Framing framing : kFramings) {
    const Traffic traffic(framing);
    for (const std::size_t piece : {1u, 2u, 7u, 4095u, 4096u, 4097u, 100'000u}) {
      WriteQueue queue(framing);
      for (const std::string& message : traffic.messages) ASSERT_TRUE(queue.push(rope(message)));
      EXPECT_EQ(drain(queue, piece), traffic.bytes) << to_string(framing) << " in pieces of " << piece;
      EXPECT_TRUE(queue.empty());
      EXPECT_EQ(queue.unwritten_bytes(), 0u);
    }
  }
}

TEST(WriteQueueTest, ContinuesAfterPartialWriteAtEveryByte) {  // R2.4
  const Traffic traffic(Framing::length);
  for (std::size_t at = 0; at <= traffic.bytes.size(); ++at) {
    WriteQueue queue(Framing::length);
    for (const std::string& message : traffic.messages) ASSERT_TRUE(queue.push(rope(message)));
    queue.advance(at);
    ASSERT_EQ(next_bytes(queue), traffic.bytes.substr(at)) << at;
    ASSERT_EQ(queue.written_position(), at);
    ASSERT_EQ(queue.unwritten_bytes(), traffic.bytes.size() - at);
  }
}

TEST(WriteQueueTest, AcceptsMessagesDuringPartialWrite) {
  for (const std::size_t piece : {1u, 3u, 50u, 5000u}) {
    const Traffic traffic(Framing::line);
    WriteQueue queue(Framing::line);
    std::string out;
    for (const std::string& message : traffic.messages) {
      ASSERT_TRUE(queue.push(rope(message)));
      const std::string next = next_bytes(queue).substr(0, piece);
      out += next;
      queue.advance(next.size());
    }
    EXPECT_EQ(out + drain(queue, piece), traffic.bytes);
  }
}

TEST(WriteQueueTest, FillsOnlyGivenNumberOfParts) {
  const Traffic traffic(Framing::line);
  WriteQueue queue(Framing::line);
  for (const std::string& message : traffic.messages) ASSERT_TRUE(queue.push(rope(message)));
  std::string out;
  while (!queue.empty()) {
    std::array<iovec, 2> parts;
    const std::size_t used = queue.fill_iovecs(parts);
    ASSERT_LE(used, 2u);
    for (std::size_t i = 0; i < used; ++i) {
      out.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
      queue.advance(parts[i].iov_len);
    }
  }
  EXPECT_EQ(out, traffic.bytes);
}

TEST(WriteQueueTest, HasNoPartsWhenEmpty) {
  WriteQueue queue(Framing::line);
  EXPECT_EQ(next_bytes(queue), "");
  ASSERT_TRUE(queue.push(rope("{}")));
  EXPECT_EQ(drain(queue, 100), "{}\n");
  std::array<iovec, 4> parts;
  EXPECT_EQ(queue.fill_iovecs(parts), 0u);
  const std::string large = "\"" + std::string(10'000, 'x') + "\"";
  ASSERT_TRUE(queue.push(rope(large)));
  EXPECT_EQ(drain(queue, 777), large + "\n");
}

TEST(WriteQueueTest, SharesLargeParts) {  // R2.7
  const Bytes large = Bytes::adopt("\"" + std::string(1u << 20, 'x') + "\"");
  WriteQueue queue(Framing::length);
  ASSERT_TRUE(queue.push(Rope(large, true)));
  std::array<iovec, 8> parts;
  ASSERT_EQ(queue.fill_iovecs(parts), 3u);
  EXPECT_EQ(parts[0].iov_len, 4u);
  EXPECT_EQ(parts[1].iov_base, large.data());
  EXPECT_EQ(parts[2].iov_len, 1u);
}

TEST(WriteQueueTest, ReportsPositionOfWrittenMessages) {  // R3.4
  WriteQueue queue(Framing::line);
  ASSERT_TRUE(queue.push(rope("{}")));
  const std::uint64_t first = queue.queued_position();
  ASSERT_TRUE(queue.push(rope("[1]")));
  const std::uint64_t second = queue.queued_position();
  EXPECT_EQ(first, 3u);
  EXPECT_EQ(second, 7u);
  queue.advance(2);
  EXPECT_LT(queue.written_position(), first);
  queue.advance(1);
  EXPECT_EQ(queue.written_position(), first);
  queue.advance(4);
  EXPECT_EQ(queue.written_position(), second);
}

// ---- line breaks -----------------------------------------------------------------------------------------

TEST(WriteQueueTest, ReplacesLineBreaksOnlyInLineFraming) {  // R2.1
  const std::string pretty = "{\r\n  \"a\": [1,\n 2], \"s\": \" \\n \"\n}";
  WriteQueue line(Framing::line);
  ASSERT_TRUE(line.push(rope(pretty)));
  EXPECT_EQ(next_bytes(line), "{    \"a\": [1,  2], \"s\": \" \\n \" }\n");
  EXPECT_EQ(line.unwritten_bytes(), next_bytes(line).size());
  for (const Framing framing : {Framing::length, Framing::header}) {
    WriteQueue other(framing);
    ASSERT_TRUE(other.push(rope(pretty)));
    EXPECT_EQ(next_bytes(other), decoding::framed(framing, pretty));
  }
}

TEST(WriteQueueTest, ReplacesLoneCarriageReturn) {  // some readers treat it as the end of a line
  WriteQueue queue(Framing::line);
  ASSERT_TRUE(queue.push(rope("[1,\r2]")));
  EXPECT_EQ(next_bytes(queue), "[1, 2]\n");
}

TEST(WriteQueueTest, KeepsMessageWithoutLineBreaksUnchanged) {  // R1.6
  const std::string spaced = "{ \"a\" :\t[ 1.0 , 2 ] }";
  WriteQueue queue(Framing::line);
  ASSERT_TRUE(queue.push(rope(spaced)));
  EXPECT_EQ(next_bytes(queue), spaced + "\n");
}

TEST(WriteQueueTest, ReplacesLineBreaksInAllPartsOfRope) {
  const std::string filler(10'000, 'x');
  const Message message = Message::parse(Bytes::copy_of(
      "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"m\",\"params\":[ \"" + filler + "\",\n1]}"));
  WriteQueue queue(Framing::line);
  ASSERT_TRUE(queue.push(with_id(message, "22")));
  EXPECT_EQ(next_bytes(queue),
            "{\"jsonrpc\":\"2.0\", \"id\":22,\"method\":\"m\",\"params\":[ \"" + filler + "\", 1]}\n");
}

// R2.1: a pretty-printed HTTP body that is forwarded to the stdin of a child process.
TEST(WriteQueueTest, ReplacesLineBreaksInMessageOfPrettyPrintedBatch) {
  const Message batch = Message::parse(
      Bytes::copy_of("[\n  {\n    \"jsonrpc\": \"2.0\",\n    \"id\": 1,\n    \"method\": \"m\"\n  }\n]"));
  ASSERT_EQ(batch.kind(), Kind::batch);
  WriteQueue queue(Framing::line);
  ASSERT_TRUE(queue.push(with_id(batch.batch()[0], "5")));
  EXPECT_EQ(next_bytes(queue), "{     \"jsonrpc\": \"2.0\",     \"id\": 5,     \"method\": \"m\"   }\n");
}

// ---- limits ----------------------------------------------------------------------------------------------

TEST(WriteQueueTest, RejectsMessageTooLargeForLengthPrefix) {
  const Bytes piece = Bytes::adopt(std::string(1u << 20, 'x'));
  const Rope four_gibibytes(std::vector<Bytes>(4096, piece), true);
  WriteQueue queue(Framing::length);
  const Result<void> pushed = queue.push(four_gibibytes);
  ASSERT_FALSE(pushed);
  EXPECT_EQ(pushed.error().kind(), ErrorKind::serialize);
  EXPECT_EQ(pushed.error().message(), "a message of 4294967296 bytes does not fit into a length frame");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(next_bytes(queue), "");
  EXPECT_TRUE(WriteQueue(Framing::header).push(four_gibibytes));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAIRLEAD_COUNTS_HEAP 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FAIRLEAD_COUNTS_HEAP 0
#endif
#endif
#ifndef FAIRLEAD_COUNTS_HEAP
#define FAIRLEAD_COUNTS_HEAP 1
#endif

std::size_t heap_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(WriteQueueTest, FreesMemoryAfterWrite) {  // R2.7
  if (!FAIRLEAD_COUNTS_HEAP) GTEST_SKIP() << "a sanitizer's heap cannot be counted";
  WriteQueue queue(Framing::line);
  const Rope small = rope("{\"n\":1}");
  const std::size_t before = heap_in_use();
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(queue.push(small));
  ASSERT_TRUE(queue.push(rope("\"" + std::string(8u << 20, 'x') + "\"")));
  EXPECT_GT(heap_in_use() - before, 8u << 20);
  EXPECT_EQ(queue.unwritten_bytes(), 800'000u + (8u << 20) + 3);
  while (!queue.empty()) {
    std::array<iovec, 64> parts;
    const std::size_t used = queue.fill_iovecs(parts);
    std::size_t size = 0;
    for (std::size_t i = 0; i < used; ++i) size += parts[i].iov_len;
    queue.advance(size);
  }
  EXPECT_LE(heap_in_use(), before + (8u << 10));
}

TEST(WriteQueueTest, KeepsNoLargeBufferWhileIdle) {
  if (!FAIRLEAD_COUNTS_HEAP) GTEST_SKIP() << "a sanitizer's heap cannot be counted";
  WriteQueue queue(Framing::line);
  const Rope small = rope("{\"n\":1}");
  const std::size_t before = heap_in_use();
  for (int i = 0; i < 7000; ++i) ASSERT_TRUE(queue.push(small));
  queue.advance(queue.unwritten_bytes());
  EXPECT_TRUE(queue.empty());
  EXPECT_LE(heap_in_use(), before + (8u << 10));
}

TEST(WriteQueueTest, ReleasesSharedPartsAsTheyAreWritten) {
  if (!FAIRLEAD_COUNTS_HEAP) GTEST_SKIP() << "a sanitizer's heap cannot be counted";
  WriteQueue queue(Framing::line);
  const std::size_t before = heap_in_use();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(queue.push(rope("\"" + std::string(1u << 20, 'x') + "\"")));
  for (std::size_t left = 8; left > 0; --left) {
    EXPECT_LE(heap_in_use(), before + (left << 20) + (64u << 10));
    queue.advance((1u << 20) + 3);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(WriteQueueTest, EmptyQueueReleasesItsSpareMemory) {
  if (!FAIRLEAD_COUNTS_HEAP) GTEST_SKIP() << "a sanitizer's heap cannot be counted";
  const std::string message = "\"" + std::string(1500, 'x') + "\"";
  WriteQueue queue(Framing::line);
  ASSERT_TRUE(queue.push(rope(message)));
  queue.release_spare_memory();  // has no effect: bytes are queued
  EXPECT_EQ(next_bytes(queue), message + "\n");
  queue.advance(message.size() + 1);
  const std::size_t used = heap_in_use();
  queue.release_spare_memory();
  EXPECT_LE(heap_in_use() + 1500, used);
  ASSERT_TRUE(queue.push(rope("{\"n\":2}")));
  EXPECT_EQ(next_bytes(queue), "{\"n\":2}\n");
  EXPECT_EQ(queue.written_position(), message.size() + 1);
}

}  // namespace
}  // namespace fairlead::rpc
