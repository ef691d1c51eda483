// The buffer cache: reuses the memory of large texts, within its limits.
#include "fairlead/base/buffer_cache.hpp"

#include <gtest/gtest.h>

#include "fairlead/base/bytes.hpp"

namespace fairlead::detail {
namespace {

constexpr std::size_t kMiB = 1u << 20;

void keep(std::size_t capacity) {
  std::string text;
  text.reserve(capacity);
  release_buffer(text);
}

class BufferCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    keep(kMiB);
    if (cached_buffer_bytes() == 0) GTEST_SKIP() << "the address sanitizer: no buffer is kept";
    static_cast<void>(acquire_largest_buffer());
    ASSERT_EQ(cached_buffer_bytes(), 0u);
  }
  BufferCacheScope scope;
};

TEST_F(BufferCacheTest, KeptMemoryIsReusedForTextOfSimilarSize) {
  std::string text(kMiB, 'x');
  const char* const memory = text.data();
  release_large_buffer(text);
  EXPECT_TRUE(text.empty());
  EXPECT_GE(cached_buffer_bytes(), kMiB);
  const std::string again = allocate_buffer(kMiB - 1000);
  EXPECT_EQ(again.data(), memory);
  EXPECT_TRUE(again.empty());
  EXPECT_EQ(cached_buffer_bytes(), 0u);
}

TEST_F(BufferCacheTest, SmallTextDoesNotOccupyMuchLargerBuffer) {
  keep(kMiB);
  EXPECT_LT(allocate_buffer(100'000).capacity(), 200'000u);
  EXPECT_GE(cached_buffer_bytes(), kMiB);
}

TEST_F(BufferCacheTest, SmallestSufficientBufferIsTaken) {
  keep(3 * kMiB / 2);
  keep(kMiB);
  keep(kMiB / 2);
  const std::size_t capacity = allocate_buffer(kMiB).capacity();
  EXPECT_GE(capacity, kMiB);
  EXPECT_LT(capacity, 3 * kMiB / 2);
  EXPECT_GE(acquire_largest_buffer().capacity(), 3 * kMiB / 2);
}

TEST_F(BufferCacheTest, ReservePreservesTextAndKeepsPreviousMemory) {
  std::string text(100'000, 'a');
  reserve_buffer(text, kMiB);
  EXPECT_EQ(text, std::string(100'000, 'a'));
  EXPECT_GE(text.capacity(), kMiB);
  EXPECT_GE(cached_buffer_bytes(), 100'000u);
}

TEST_F(BufferCacheTest, KeptBuffersStayWithinLimit) {
  for (int i = 0; i < 100; ++i) keep(kMiB);
  EXPECT_GT(cached_buffer_bytes(), kMaxBufferCacheBytes / 2);
  EXPECT_LE(cached_buffer_bytes(), kMaxBufferCacheBytes);
}

TEST_F(BufferCacheTest, TooSmallAndTooLargeBuffersAreFreed) {
  keep(kMinCachedBufferBytes / 2);
  keep(2 * kMaxCachedBufferBytes);
  EXPECT_EQ(cached_buffer_bytes(), 0u);
}

TEST_F(BufferCacheTest, NewestBuffersReplaceOldest) {
  for (int i = 0; i < 100; ++i) keep(kMinCachedBufferBytes);
  keep(kMiB);
  EXPECT_GE(acquire_largest_buffer().capacity(), kMiB);
}

TEST_F(BufferCacheTest, TrimFreesBuffersThatWereNotUsedSincePreviousTrim) {
  keep(kMiB);
  trim_buffers();
  EXPECT_GE(cached_buffer_bytes(), kMiB);
  keep(kMiB / 2);
  trim_buffers();
  EXPECT_GE(cached_buffer_bytes(), kMiB / 2);
  EXPECT_LT(cached_buffer_bytes(), kMiB);
  trim_buffers();
  EXPECT_EQ(cached_buffer_bytes(), 0u);
}

TEST_F(BufferCacheTest, LastReferenceToLargeBytesKeepsTheirMemory) {
  Bytes whole = Bytes::copy_of(std::string(kMiB, 'x'));
  Bytes part = whole.part(whole.view().substr(5, 10));
  whole = Bytes();
  EXPECT_EQ(cached_buffer_bytes(), 0u);
  part = Bytes();
  EXPECT_GE(cached_buffer_bytes(), kMiB);
}

TEST(BufferCacheWithoutScopeTest, NothingIsKept) {
  { const BufferCacheScope scope; }
  keep(kMiB);
  EXPECT_EQ(cached_buffer_bytes(), 0u);
  EXPECT_GE(allocate_buffer(kMiB).capacity(), kMiB);
}

}  // namespace
}  // namespace fairlead::detail
