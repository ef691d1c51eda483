// Kills a process that writes to the registry, and compares what it has reported with the database.
#include <algorithm>
#include <map>
#include <random>
#include <sstream>

#include "registry/fixture.hpp"
#include "registry/writer_process.hpp"

namespace fairlead::registry::test {
namespace {

// The lines of one run: the changes that were acknowledged for each server, and the one in progress.
struct Reported {
  std::map<std::string, std::vector<std::string>> done;
  std::string begun_change;
  std::string begun_name;

  bool has(const std::string& name, const std::string& change) const {
    const auto found = done.find(name);
    return found != done.end() && std::ranges::find(found->second, change) != found->second.end();
  }
  bool may_have(const std::string& name, const std::string& change) const {
    return has(name, change) || (begun_name == name && begun_change == change);
  }
};

Reported parse_report(const std::string& text) {
  Reported reported;
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
  std::string state;
  std::string change;
  std::string name;
  while (lines >> state >> change >> name) {
    if (state == "done") reported.done[name].push_back(change);
    reported.begun_change = state == "begin" ? change : "";
    reported.begun_name = state == "begin" ? name : "";
  }
  return reported;
}

void expect_server(const State& state, const Reported& reported, const std::string& name) {
  const ServerPtr server = state.servers.find_by_name(name);
  if (!server) {
    EXPECT_TRUE(reported.may_have(name, "remove")) << name << " is lost";
    return;
  }
  EXPECT_FALSE(reported.has(name, "remove")) << name << " is back";
  if (reported.has(name, "change")) {
    EXPECT_EQ(server->title, "v2") << name;
  }
  if (reported.has(name, "list")) {
    EXPECT_TRUE(state.lists.contains(server->id)) << name;
  }
}

void expect_whole_rows(const State& state) {
  for (const auto& [id, server] : state.servers.by_id()) {
    EXPECT_EQ(server->title, "v" + std::to_string(server->version));
    EXPECT_EQ(server->description, server->title);
  }
  for (const auto& [id, lists] : state.lists) {
    EXPECT_TRUE(state.servers.find(id)) << "lists without a server";
    EXPECT_EQ(lists->tools.size(), 2u);
    EXPECT_EQ(lists->prompts.size(), 1u);
  }
  for (const auto& [id, token] : state.tokens.by_id())
    EXPECT_TRUE(state.users.find(token->user)) << "a token without a user";
  for (const auto& [id, group] : state.groups.by_id()) {
    for (const std::string& member : group->members)
      EXPECT_TRUE(state.users.find(member)) << "a member that does not exist";
  }
}

// The writer of the same database may still be ending: PostgreSQL notices that its client is gone.
class CrashTest : public RegistryTest {
 protected:
  void kill_once(int number, std::mt19937& random) {
    const int changes = static_cast<int>(random() % 20);
    const std::chrono::microseconds delay(random() % 3'000);
    WriterProcess writer(address(), std::to_string(number));
    const Reported reported = parse_report(writer.kill_after(changes, delay));
    ASSERT_TRUE(writer.was_killed());
    const RegistryHandle registry = open();
    const State& state = registry->state();
    for (const auto& [name, done] : reported.done) {
      if (reported.has(name, "create")) expect_server(state, reported, name);
      if (reported.has(name, "user")) {
        EXPECT_TRUE(state.users.find_by_name(name) || reported.may_have(name, "leave")) << name;
      }
      if (reported.has(name, "leave")) {
        EXPECT_FALSE(state.users.find_by_name(name)) << name;
      }
      if (reported.has(name, "group")) {
        EXPECT_TRUE(state.groups.find_by_name(name)) << name;
      }
    }
    expect_whole_rows(state);
    close(registry);
  }
};

INSTANTIATE_TEST_SUITE_P(Databases, CrashTest, testing::Values(Kind::sqlite, Kind::postgresql), kind_name);

TEST_P(CrashTest, KilledWriterLosesNoAcknowledgedChangeAndLeavesNoHalfOne) {
  const bool is_long = std::getenv("FAIRLEAD_TEST_LONG") != nullptr;
  const int kills = is_long ? 500 : 25;
  std::mt19937 random(GetParam() == Kind::sqlite ? 1 : 2);
  for (int number = 0; number < kills && !HasFailure(); ++number) {
    if (number % 50 == 49) use_new_database();
    kill_once(number, random);
  }
}

}  // namespace
}  // namespace fairlead::registry::test
