#include "gateway/server_table.hpp"

#include <gtest/gtest.h>

#include "fairlead/loop/loop.hpp"

namespace fairlead::gateway {
namespace {

class ServerTableTest : public ::testing::Test {
 protected:
  static pool::ServerSpec spec(const std::string& name) {
    pool::ServerSpec made;
    made.name = name;
    return made;
  }
  Loop loop;
  std::shared_ptr<pool::Pool> pool = pool::Pool::create(loop);
  ServerTable table{pool};
};

TEST_F(ServerTableTest, FindReturnsNullForUnknownNamesAndInsertsNothing) {
  EXPECT_EQ(table.find("a"), nullptr);
  EXPECT_EQ(table.owner_of("a__tool"), nullptr);
  EXPECT_TRUE(table.all().empty());
}

TEST_F(ServerTableTest, OwnerIsTheServerNamedBeforeTheFirstDoubleUnderscore) {
  ASSERT_TRUE(table.add(spec("a")));
  ASSERT_TRUE(table.add(spec("a-b")));
  EXPECT_EQ(table.owner_of("a__b__c"), table.find("a"));
  EXPECT_EQ(table.owner_of("a-b__c"), table.find("a-b"));
  EXPECT_EQ(table.owner_of("ab__c"), nullptr);
}

TEST_F(ServerTableTest, AddRefusesTakenAndUnusableNamesAndPerUserWithoutAuthentication) {
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

TEST_F(ServerTableTest, UpdateRetiresTheFormerEntryAndKeepsItsLists) {
  const auto former = *table.add(spec("a"));
  former->shared.listed = std::make_shared<const Listed>();
  former->listing.attempted = true;
  const auto updated = table.update(spec("a"));
  ASSERT_TRUE(updated);
  EXPECT_TRUE(former->retired);
  EXPECT_FALSE((*updated)->retired);
  EXPECT_EQ(table.find("a"), *updated);
  EXPECT_EQ((*updated)->shared.listed, former->shared.listed);
  EXPECT_TRUE((*updated)->unlisted(Kind::tools)) << "what it lists now is not known yet";
}

TEST_F(ServerTableTest, ChangesOfUnknownServersAreRefused) {
  for (const auto& refused :
       {table.update(spec("a")), table.remove("a"), table.enable("a"), table.disable("a")}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::validation);
    EXPECT_NE(refused.error().message().find("a"), std::string::npos);
  }
}

TEST_F(ServerTableTest, DisabledServerHasNoListsAndStaysDisabledWhenUpdated) {
  const auto former = *table.add(spec("a"));
  former->shared.listed = std::make_shared<const Listed>();
  const auto disabled = table.disable("a");
  ASSERT_TRUE(disabled);
  EXPECT_TRUE(former->retired);
  EXPECT_FALSE((*disabled)->enabled);
  EXPECT_EQ((*disabled)->shared.listed, nullptr);
  const auto updated = table.update(spec("a"));
  ASSERT_TRUE(updated);
  EXPECT_FALSE((*updated)->enabled);
  const auto enabled = table.enable("a");
  ASSERT_TRUE(enabled);
  EXPECT_TRUE((*enabled)->enabled);
  EXPECT_EQ(*table.enable("a"), *enabled) << "enabling it again changes nothing";
}

TEST_F(ServerTableTest, RemovedServerIsRetiredAndItsNameFree) {
  const auto former = *table.add(spec("a"));
  const auto waiter = std::make_shared<pool::Waiter>(loop);
  former->listing.waiters.push_back(waiter);
  ASSERT_TRUE(table.remove("a"));
  EXPECT_TRUE(former->retired);
  EXPECT_TRUE(waiter->called()) << "those who wait for its lists look again";
  EXPECT_EQ(table.find("a"), nullptr);
  EXPECT_TRUE(table.add(spec("a")));
}

}  // namespace
}  // namespace fairlead::gateway
