#include "gateway/server_entry.hpp"

#include "gateway/units.hpp"

namespace fairlead::gateway {
namespace {

std::shared_ptr<ListCache> listing_something() {
  auto made = std::make_shared<ListCache>();
  made->listed = std::make_shared<const Listed>();
  return made;
}

class ServerEntryTest : public UnitsTest {};

TEST_F(ServerEntryTest, OwnListsAreFoundBySessionOrByUserAsItIsShared) {
  const auto per_session = add("a", pool::Sharing::per_session);
  const auto per_user = add("b", pool::Sharing::per_user);
  for (const auto& entry : {per_session, per_user}) entry->own["key"] = listing_something();
  EXPECT_NE(per_session->own_lists("key", "ann"), nullptr);
  EXPECT_EQ(per_session->own_lists("1", "key"), nullptr);
  EXPECT_NE(per_user->own_lists("1", "key"), nullptr);
  EXPECT_EQ(per_user->own_lists("key", "ann"), nullptr);
  per_user->own["key"]->listed = nullptr;
  EXPECT_EQ(per_user->own_lists("1", "key"), nullptr) << "it has not listed";
}

TEST_F(ServerEntryTest, DisabledServerHasNothingLeftToTry) {
  pool::ServerSpec spec;
  spec.name = "a";
  spec.enabled = false;
  EXPECT_FALSE(ServerEntry(spec).unlisted(Kind::tools));
  spec.enabled = true;
  EXPECT_TRUE(ServerEntry(spec).unlisted(Kind::tools));
}

TEST_F(ServerEntryTest, ThoseWhoWaitAreCalledOnceWhenListingStops) {
  const auto entry = add("a");
  const auto waiter = std::make_shared<pool::Waiter>(loop);
  entry->listing.waiters.push_back(waiter);
  entry->listing.retry.emplace(loop);
  entry->stop_listing();
  EXPECT_TRUE(waiter->called());
  EXPECT_TRUE(entry->listing.waiters.empty());
  EXPECT_FALSE(entry->listing.retry) << "it is not asked again";
}

}  // namespace
}  // namespace fairlead::gateway
