// The block cache: released blocks are cached per thread, up to a limit.
#include "fairlead/base/block_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "fairlead/loop/loop.hpp"
#include "fairlead/loop/timer.hpp"

namespace fairlead {
namespace {

using detail::allocate_block;
using detail::cached_block_bytes;
using detail::kMaxBlockCacheBytes;
using detail::release_block;

// Runs `test` on a new thread, whose cache is empty.
template <class Test>
void on_fresh_thread(Test test) {
  std::thread(test).join();
}

// Returns false under the address sanitizer, which must see every frame being freed.
bool caches_blocks() {
  release_block(allocate_block(2000), 2000);
  return cached_block_bytes() > 0;
}

TEST(BlockCacheTest, ReleasedBlockIsReusedForTheSameSize) {
  if (!caches_blocks()) GTEST_SKIP() << "blocks are not cached under the address sanitizer";
  on_fresh_thread([] {
    void* const first = allocate_block(2000);
    release_block(first, 2000);
    void* const second = allocate_block(1990);
    EXPECT_EQ(second, first);
    EXPECT_EQ(cached_block_bytes(), 0U);
    release_block(second, 1990);
  });
}

TEST(BlockCacheTest, EachSizeHasClassThatIsLargeEnough) {
  std::size_t last_index = 0;
  for (std::size_t size = 1; size <= detail::kMaxCachedBlockBytes; ++size) {
    ASSERT_TRUE(detail::is_cacheable_size(size));
    const detail::BlockSizeClass size_class = detail::block_size_class(size);
    ASSERT_GE(size_class.bytes, size);
    ASSERT_LE(size_class.index - last_index, 1U);
    ASSERT_EQ(size_class.index, detail::block_size_class(size_class.bytes).index);
    last_index = size_class.index;
  }
  EXPECT_FALSE(detail::is_cacheable_size(0));
  EXPECT_FALSE(detail::is_cacheable_size(detail::kMaxCachedBlockBytes + 1));
}

TEST(BlockCacheTest, BlocksInUseDoNotOverlap) {
  std::vector<std::pair<char*, std::size_t>> frames;
  for (const std::size_t size :
       {0UL, 8UL, 999UL, 1000UL, 1001UL, 1024UL, 1025UL, 8191UL, 8192UL, 8193UL, 100'000UL}) {
    for (int round = 0; round < 3; ++round) {
      release_block(allocate_block(size), size);
      frames.emplace_back(static_cast<char*>(allocate_block(size)), size);
      std::memset(frames.back().first, static_cast<int>(frames.size()), size);
    }
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto [frame, size] = frames[i];
    EXPECT_EQ(std::count(frame, frame + size, static_cast<char>(i + 1)), static_cast<std::ptrdiff_t>(size))
        << size;
    release_block(frame, size);
  }
}

TEST(BlockCacheTest, ThreadCachesAtMostMaxBlockCacheBytes) {
  on_fresh_thread([] {
    std::vector<void*> blocks(2 * kMaxBlockCacheBytes / 4000);
    for (void*& block : blocks) block = allocate_block(4000);
    for (void* const block : blocks) release_block(block, 4000);
    EXPECT_LE(cached_block_bytes(), kMaxBlockCacheBytes);
    if (caches_blocks()) {
      EXPECT_GT(cached_block_bytes(), kMaxBlockCacheBytes / 2);
    }
  });
}

TEST(BlockCacheTest, BlockIsCachedByTheThreadThatReleasesIt) {
  void* frame = nullptr;
  on_fresh_thread([&] { frame = allocate_block(3000); });
  on_fresh_thread([&] {
    const bool keeps = caches_blocks();
    const std::size_t before = cached_block_bytes();
    release_block(frame, 3000);
    EXPECT_EQ(cached_block_bytes() > before, keeps);
  });
}

Task<int> large_frame(Loop& loop) {
  std::array<char, 3000> local{};
  local.fill(1);
  co_await sleep_for(loop, Clock::duration::zero());
  co_return local[17];
}

TEST(BlockCacheTest, CoroutineFramesUseTheCache) {
  on_fresh_thread([] {
    const bool keeps = caches_blocks();
    const std::size_t before = cached_block_bytes();
    Loop loop;
    EXPECT_EQ(loop.block_on(large_frame(loop)), 1);
    EXPECT_EQ(cached_block_bytes() > before, keeps);
  });
}

}  // namespace
}  // namespace fairlead
