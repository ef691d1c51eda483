#include "gateway/ended_sessions.hpp"

#include "gateway/units.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

using pool::Sharing;

class EndedSessionsTest : public UnitsTest {
 protected:
  static std::string session(int number) { return "session " + std::to_string(number); }
  // Lists of `count` sessions by their own upstreams.
  static void list_own(ServerEntry& entry, int count) {
    for (int i = 0; i < count; ++i) entry.own.emplace(session(i), std::make_shared<ListCache>());
  }
  // Ends `count` sessions in one turn, and returns when all of them are released.
  void end(int count) {
    for (int i = 0; i < count; ++i) ended->add(session(i));
    const auto released = [&] { return last->own.empty(); };
    EXPECT_TRUE(loop.block_on(test::eventually(loop, released)));
  }

  std::shared_ptr<EndedSessions> ended = std::make_shared<EndedSessions>(loop, pool, servers, catalogue);
  std::shared_ptr<ServerEntry> last;  // of the servers, by name
};

TEST_F(EndedSessionsTest, ListsOfEndedSessionsAreRemovedAndOthersAreKept) {
  last = add("z", Sharing::per_session);
  const auto per_user = add("a", Sharing::per_user);
  const auto longer = add("b", Sharing::per_session);
  list_own(*last, 2);
  list_own(*per_user, 2);
  list_own(*longer, 5);
  end(2);
  EXPECT_EQ(per_user->own.size(), 2u) << "of users who are named like sessions";
  EXPECT_EQ(longer->own.size(), 3u);
  EXPECT_TRUE(longer->own.contains(session(2)));
}

TEST_F(EndedSessionsTest, SessionThatEndsDuringAWalkIsReleasedByTheNext) {
  for (int i = 0; i < 1'500; ++i) add("s" + std::to_string(i));  // more than one slice
  last = add("z", Sharing::per_session);
  list_own(*last, 2);
  ended->add(session(0));
  bool during = false;
  loop.post([&] { loop.post([&] { during = last->own.size() == 2; }); });
  loop.post([&] { ended->add(session(1)); });
  EXPECT_TRUE(loop.block_on(test::eventually(loop, [&] { return last->own.empty(); })));
  EXPECT_TRUE(during);
}

TEST_F(EndedSessionsTest, CostOfSessionsThatEndTogetherIsNotThatOfAWalkForEach) {
  constexpr int kSessions = 200;
  for (int i = 0; i < 1'000; ++i) add("s" + std::to_string(i), Sharing::per_session);
  last = add("z", Sharing::per_session);
  const auto end_together = [&](int count) {
    return test::cpu_time([&] {
      list_own(*last, count);
      end(count);
    });
  };
  const auto one = end_together(1);
  EXPECT_LT(end_together(kSessions), kSessions / 5 * one);
}

TEST_F(EndedSessionsTest, NothingIsReleasedWhenTheObjectIsGone) {
  last = add("z", Sharing::per_session);
  list_own(*last, 1);
  ended->add(session(0));
  ended.reset();
  bool reached = false;
  loop.post([&] { reached = true; });
  loop.run_until([&] { return reached; });
  EXPECT_EQ(last->own.size(), 1u);
}

}  // namespace
}  // namespace fairlead::gateway
