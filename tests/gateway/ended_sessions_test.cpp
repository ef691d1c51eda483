// The release of sessions that have ended.
#include "gateway/ended_sessions.hpp"

#include "gateway/store_fixture.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

using pool::Sharing;

class EndedSessionsTest : public StoreTest {
 protected:
  static std::string session(int number) { return "session " + std::to_string(number); }
  // Adds unshared lists of `count` sessions.
  static void add_unshared_lists(ServerEntry& entry, int count) {
    for (int i = 0; i < count; ++i) entry.unshared.emplace(session(i), std::make_shared<ListCache>());
  }
  // Ends `count` sessions in one turn, and returns when all of them are released.
  void end(int count) {
    for (int i = 0; i < count; ++i) ended->add(session(i));
    const auto released = [&] { return last->unshared.empty(); };
    EXPECT_TRUE(loop.block_on(test::eventually(loop, released)));
  }

  std::shared_ptr<EndedSessions> ended = std::make_shared<EndedSessions>(loop, pool, servers, catalogue);
  std::shared_ptr<ServerEntry> last;  // the last of the servers in the order of names
};

TEST_F(EndedSessionsTest, ListsOfEndedSessionsOnlyAreRemoved) {
  last = add("z", Sharing::per_session);
  const auto per_user = add("a", Sharing::per_user);
  const auto longer = add("b", Sharing::per_session);
  add_unshared_lists(*last, 2);
  add_unshared_lists(*per_user, 2);
  add_unshared_lists(*longer, 5);
  end(2);
  EXPECT_EQ(per_user->unshared.size(), 2u) << "its keys are users, even if they equal names of sessions";
  EXPECT_EQ(longer->unshared.size(), 3u);
  EXPECT_TRUE(longer->unshared.contains(session(2)));
}

TEST_F(EndedSessionsTest, SessionThatEndsDuringPassIsReleasedByNextPass) {
  for (int i = 0; i < 1'500; ++i) add("s" + std::to_string(i));  // more than one slice
  last = add("z", Sharing::per_session);
  add_unshared_lists(*last, 2);
  ended->add(session(0));
  bool during = false;
  loop.post([&] { loop.post([&] { during = last->unshared.size() == 2; }); });
  loop.post([&] { ended->add(session(1)); });
  EXPECT_TRUE(loop.block_on(test::eventually(loop, [&] { return last->unshared.empty(); })));
  EXPECT_TRUE(during);
}

TEST_F(EndedSessionsTest, SessionsThatEndTogetherAreReleasedInOnePass) {
  constexpr int kSessions = 200;
  for (int i = 0; i < 1'000; ++i) add("s" + std::to_string(i), Sharing::per_session);
  last = add("z", Sharing::per_session);
  const auto end_together = [&](int count) {
    return test::cpu_time([&] {
      add_unshared_lists(*last, count);
      end(count);
    });
  };
  const auto one = end_together(1);
  EXPECT_LT(end_together(kSessions), kSessions / 5 * one);
}

TEST_F(EndedSessionsTest, NothingIsReleasedAfterDestruction) {
  last = add("z", Sharing::per_session);
  add_unshared_lists(*last, 1);
  ended->add(session(0));
  ended.reset();
  bool reached = false;
  loop.post([&] { reached = true; });
  loop.run_until([&] { return reached; });
  EXPECT_EQ(last->unshared.size(), 1u);
}

}  // namespace
}  // namespace fairlead::gateway
