// Parts of catalogues are freed in slices.
#include "gateway/part_reaper.hpp"

#include <gtest/gtest.h>

#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

// Adds this many resources that all refer to `block`.
void fill(Listed& part, const Bytes& block, int count) {
  for (int i = 0; i < count; ++i) {
    part.of(Kind::resources).push_back(json::Raw::trusted(block));
    const json::Raw entry = *json::Raw::parse(R"({"uri":"x://)" + std::to_string(i) + R"(","name":"n"})");
    part.add_offer("s", Kind::resources, entry, mcp::ListLimits());
  }
}

// Whether something else refers to `block`; afterwards it may be empty.
bool in_use(Bytes& block) {
  return block.reclaim().capacity() < 100;
}

Bytes long_block() {
  return Bytes::adopt("\"" + std::string(100, 'x') + "\"");
}

TEST(PartReaper, FreesReleasedPartsInShortTurns) {
  Loop loop;
  const auto reaper = std::make_shared<PartReaper>(loop);
  Bytes block = long_block();
  std::vector<std::shared_ptr<Listed>> parts;
  for (int i = 0; i < 10; ++i) {
    parts.push_back(reaper->make_part());
    fill(*parts.back(), block, 10'000);
  }
  loop.turns().reset();
  parts.clear();
  EXPECT_TRUE(in_use(block)) << "releasing frees nothing yet";
  EXPECT_TRUE(loop.block_on(test::eventually(
      loop, [&] { return !in_use(block); }, std::chrono::seconds(20))));
  test::expect_short_turns(loop);
}

TEST(PartReaper, PartThatOutlivesItsReaperIsFreedAtOnce) {
  Loop loop;
  auto reaper = std::make_shared<PartReaper>(loop);
  Bytes block = long_block();
  std::shared_ptr<Listed> part = reaper->make_part();
  fill(*part, block, 10);
  reaper.reset();
  part.reset();
  EXPECT_FALSE(in_use(block));
}

}  // namespace
}  // namespace fairlead::gateway
