// The lists of servers are freed in slices.
#include "gateway/list_reclaimer.hpp"

#include <gtest/gtest.h>

#include "support/support.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

// Adds `count` resources that all refer to `block`.
void fill(ServerLists& lists, const Bytes& block, int count) {
  for (int i = 0; i < count; ++i) {
    lists.raw_entries(ListKind::resources).push_back(json::Raw::trusted(block));
    const json::Raw entry = *json::Raw::parse(R"({"uri":"x://)" + std::to_string(i) + R"(","name":"n"})");
    lists.add_entry("s", ListKind::resources, entry, mcp::ListLimits());
  }
}

// Returns whether another object refers to `block`. May leave `block` empty.
bool in_use(Bytes& block) {
  return block.reclaim().capacity() < 100;
}

Bytes long_block() {
  return Bytes::adopt("\"" + std::string(100, 'x') + "\"");
}

TEST(ListReclaimerTest, ReleasedListsAreFreedInShortTurns) {
  Loop loop;
  const auto reclaimer = std::make_shared<ListReclaimer>(loop);
  Bytes block = long_block();
  std::vector<std::shared_ptr<ServerLists>> all_lists;
  for (int i = 0; i < 10; ++i) {
    all_lists.push_back(reclaimer->make_lists());
    fill(*all_lists.back(), block, 10'000);
  }
  loop.turn_meter().reset();
  all_lists.clear();
  EXPECT_TRUE(in_use(block)) << "releasing frees nothing yet";
  EXPECT_TRUE(loop.block_on(test::eventually(
      loop, [&] { return !in_use(block); }, std::chrono::seconds(20))));
  test::expect_short_turns(loop);
}

TEST(ListReclaimerTest, ListsThatOutliveReclaimerAreFreedAtOnce) {
  Loop loop;
  auto reclaimer = std::make_shared<ListReclaimer>(loop);
  Bytes block = long_block();
  std::shared_ptr<ServerLists> lists = reclaimer->make_lists();
  fill(*lists, block, 10);
  reclaimer.reset();
  lists.reset();
  EXPECT_FALSE(in_use(block));
}

}  // namespace
}  // namespace fairlead::gateway
