#include "gateway/server_entry.hpp"

#include "gateway/store_fixture.hpp"

namespace fairlead::gateway {
namespace {

std::shared_ptr<ListCache> empty_list_cache() {
  auto cache = std::make_shared<ListCache>();
  cache->lists = std::make_shared<const ServerLists>();
  return cache;
}

class ServerEntryTest : public StoreTest {};

TEST_F(ServerEntryTest, UnsharedListsAreFoundBySessionOrUserDependingOnSharing) {
  const auto per_session = add("a", pool::Sharing::per_session);
  const auto per_user = add("b", pool::Sharing::per_user);
  for (const auto& entry : {per_session, per_user}) entry->unshared["key"] = empty_list_cache();
  EXPECT_NE(per_session->unshared_lists("key", "ann"), nullptr);
  EXPECT_EQ(per_session->unshared_lists("1", "key"), nullptr);
  EXPECT_NE(per_user->unshared_lists("1", "key"), nullptr);
  EXPECT_EQ(per_user->unshared_lists("key", "ann"), nullptr);
  per_session->unshared["user ann"] = empty_list_cache();
  EXPECT_NE(per_session->unshared_lists("", "ann"), nullptr) << "a client without a session";
  EXPECT_EQ(per_session->unshared_lists("1", "ann"), nullptr);
  EXPECT_EQ(per_session->unshared_lists("", "bob"), nullptr);
  per_user->unshared["key"]->lists = nullptr;
  EXPECT_EQ(per_user->unshared_lists("1", "key"), nullptr) << "its lists have not been fetched";
}

TEST_F(ServerEntryTest, DisabledServerHasNoUnlistedEntries) {
  pool::ServerSpec spec;
  spec.name = "a";
  spec.enabled = false;
  EXPECT_FALSE(ServerEntry(spec).may_have_unlisted_entries(ListKind::tools));
  spec.enabled = true;
  EXPECT_TRUE(ServerEntry(spec).may_have_unlisted_entries(ListKind::tools));
}

TEST_F(ServerEntryTest, StopFetchingWakesWaitersAndCancelsRetry) {
  const auto entry = add("a");
  const auto waiter = std::make_shared<pool::Waiter>(loop);
  entry->fetch_state.waiters.push_back(waiter);
  entry->fetch_state.retry_timer.emplace(loop);
  entry->stop_fetching();
  EXPECT_TRUE(waiter->woken());
  EXPECT_TRUE(entry->fetch_state.waiters.empty());
  EXPECT_FALSE(entry->fetch_state.retry_timer) << "fetching is not retried";
}

}  // namespace
}  // namespace fairlead::gateway
