#include "gateway/server_table.hpp"

#include <gtest/gtest.h>

#include "fairlead/loop/loop.hpp"

namespace fairlead::gateway {
namespace {

class ServerTableTest : public ::testing::Test {
 protected:
  static pool::ServerSpec spec(const std::string& name) {
    pool::ServerSpec result;
    result.name = name;
    return result;
  }
  Loop loop;
  std::shared_ptr<pool::Pool> pool = pool::Pool::create(loop);
  ServerTable table{pool};
};

TEST_F(ServerTableTest, FindReturnsNullForUnknownNamesAndInsertsNothing) {
  EXPECT_EQ(table.find("a"), nullptr);
  EXPECT_EQ(table.owner_of_public_name("a__tool"), nullptr);
  EXPECT_TRUE(table.all().empty());
}

TEST_F(ServerTableTest, OwnerIsServerNamedBeforeFirstDoubleUnderscore) {
  ASSERT_TRUE(table.add(spec("a")));
  ASSERT_TRUE(table.add(spec("a-b")));
  EXPECT_EQ(table.owner_of_public_name("a__b__c"), table.find("a"));
  EXPECT_EQ(table.owner_of_public_name("a-b__c"), table.find("a-b"));
  EXPECT_EQ(table.owner_of_public_name("ab__c"), nullptr);
}

TEST_F(ServerTableTest, AddRejectsUsedAndInvalidNamesAndPerUserWithoutAuthentication) {
  const auto added = table.add(spec("a"));
  ASSERT_TRUE(added);
  const auto taken = table.add(spec("a"));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().kind(), ErrorKind::validation);
  EXPECT_EQ(table.find("a"), *added) << "nothing has changed";
  EXPECT_FALSE(table.add(spec("a__b")));
  pool::ServerSpec per_user = spec("b");
  per_user.sharing = pool::Sharing::per_user;
  EXPECT_FALSE(table.add(per_user));
  EXPECT_EQ(table.all().size(), 1u);
}

TEST_F(ServerTableTest, UpdateRetiresFormerEntryAndKeepsItsLists) {
  const auto former = *table.add(spec("a"));
  former->shared.lists = std::make_shared<const ServerLists>();
  former->fetch_state.attempted = true;
  const auto updated = table.update(spec("a"));
  ASSERT_TRUE(updated);
  EXPECT_TRUE(former->retired);
  EXPECT_FALSE((*updated)->retired);
  EXPECT_EQ(table.find("a"), *updated);
  EXPECT_EQ((*updated)->shared.lists, former->shared.lists);
  EXPECT_TRUE((*updated)->may_have_unlisted_entries(ListKind::tools))
      << "the lists have not been fetched since the update";
}

TEST_F(ServerTableTest, ChangesOfUnknownServerFail) {
  for (const auto& refused :
       {table.update(spec("a")), table.remove("a"), table.enable("a"), table.disable("a")}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
    EXPECT_NE(refused.error().message().find("a"), std::string::npos);
  }
}

TEST_F(ServerTableTest, DisabledServerHasNoListsAndStaysDisabledWhenUpdated) {
  const auto former = *table.add(spec("a"));
  former->shared.lists = std::make_shared<const ServerLists>();
  const auto disabled = table.disable("a");
  ASSERT_TRUE(disabled);
  EXPECT_TRUE(former->retired);
  EXPECT_FALSE((*disabled)->enabled);
  EXPECT_EQ((*disabled)->shared.lists, nullptr);
  const auto updated = table.update(spec("a"));
  ASSERT_TRUE(updated);
  EXPECT_FALSE((*updated)->enabled);
  const auto enabled = table.enable("a");
  ASSERT_TRUE(enabled);
  EXPECT_TRUE((*enabled)->enabled);
  EXPECT_EQ(*table.enable("a"), *enabled) << "enabling it again changes nothing";
}

TEST_F(ServerTableTest, RemoveRetiresEntryAndFreesItsName) {
  const auto former = *table.add(spec("a"));
  const auto waiter = std::make_shared<pool::Waiter>(loop);
  former->fetch_state.waiters.push_back(waiter);
  ASSERT_TRUE(table.remove("a"));
  EXPECT_TRUE(former->retired);
  EXPECT_TRUE(waiter->woken()) << "waiters for its lists are woken";
  EXPECT_EQ(table.find("a"), nullptr);
  EXPECT_TRUE(table.add(spec("a")));
}

}  // namespace
}  // namespace fairlead::gateway
