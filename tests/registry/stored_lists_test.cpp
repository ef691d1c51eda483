// Stored lists and drift, on both databases. list_merger_test.cpp has the rules.
#include "registry/fixture.hpp"

namespace fairlead::registry::test {
namespace {

class StoredListsTest : public RegistryTest {
 protected:
  StoredListsPtr store(Registry& registry, const ServerPtr& server, std::vector<json::Raw> entries) {
    Result<StoredListsPtr> stored = wait(registry.store_lists(server->id, tools(std::move(entries))));
    if (!stored) throw std::runtime_error(stored.error().to_string());
    return *stored;
  }
  ServerPtr add_quarantined(Registry& registry, std::string_view name) {
    const ServerPtr server = add_server(registry, name);
    return *patch_server(registry, server, R"({"drift":"quarantine"})");
  }
  static bool is_quarantined(const Registry& registry, const ServerPtr& server) {
    return registry.state().lists.at(server->id)->tools.at(0).quarantined;
  }
  Result<DriftPtr> resolve_newest(Registry& registry, DriftStatus resolution) {
    return wait(registry.resolve_drift(admin, registry.state().drift.rbegin()->first, resolution));
  }
};

INSTANTIATE_TEST_SUITE_P(Databases, StoredListsTest, testing::Values(Kind::sqlite, Kind::postgresql),
                         kind_name);

TEST_P(StoredListsTest, ListsSurviveARestart) {
  RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "files");
  const StoredListsPtr stored = store(*registry, server, {tool("read", "1"), tool("write", "1")});
  ASSERT_EQ(stored->tools.size(), 2u);
  registry = reopen(std::move(registry));
  const StoredListsPtr read = registry->state().lists.at(server->id);
  ASSERT_EQ(read->tools.size(), 2u);
  EXPECT_EQ(read->tools[1].entry.text(), tool("write", "1").text());
  EXPECT_EQ(read->tools[1].first_seen, stored->tools[1].first_seen);
  EXPECT_EQ(read->fetched_at, stored->fetched_at);
}

TEST_P(StoredListsTest, UnchangedListsAreNoChange) {
  const RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "files");
  int changes = 0;
  const auto subscription = registry->on_lists_change([&](const ListsChange& change) {
    EXPECT_EQ(change.server_id, server->id);
    ++changes;
  });
  const StoredListsPtr stored = store(*registry, server, {tool("read", "1")});
  const std::int64_t revision = registry->state().revision;
  EXPECT_EQ(store(*registry, server, {tool("read", "1")}), stored);
  EXPECT_EQ(registry->state().revision, revision);
  EXPECT_EQ(changes, 1);
  store(*registry, server, {tool("read", "2")});
  EXPECT_EQ(changes, 2);
}

TEST_P(StoredListsTest, QuarantineSurvivesRestartRenamesDisablingAndVanishing) {
  RegistryHandle registry = open();
  const ServerPtr server = add_quarantined(*registry, "files");
  store(*registry, server, {tool("read", "1")});
  EXPECT_TRUE(store(*registry, server, {tool("read", "2")})->tools[0].quarantined);
  registry = reopen(std::move(registry));
  EXPECT_TRUE(is_quarantined(*registry, server));
  ASSERT_TRUE(patch_server(*registry, server, R"({"tools":{"rename":{"read":"get"}}})"));
  ASSERT_TRUE(patch_server(*registry, server, R"({"name":"documents"})"));
  ASSERT_TRUE(patch_server(*registry, server, R"({"enabled":false})"));
  ASSERT_TRUE(patch_server(*registry, server, R"({"enabled":true})"));
  store(*registry, server, {tool("read", "2")});
  EXPECT_TRUE(is_quarantined(*registry, server));
  store(*registry, server, {});
  registry = reopen(std::move(registry));
  ASSERT_TRUE(patch_server(*registry, server, R"({"drift":"flag"})"));
  store(*registry, server, {tool("read", "2")});
  EXPECT_TRUE(is_quarantined(*registry, server));
  EXPECT_EQ(registry->state().drift.size(), 1u);
}

TEST_P(StoredListsTest, ApprovalAndRejectionChangeTheStoredEntry) {
  RegistryHandle registry = open();
  const ServerPtr server = add_quarantined(*registry, "files");
  store(*registry, server, {tool("read", "1")});
  store(*registry, server, {tool("read", "2")});
  std::vector<DriftStatus> seen;
  int list_changes = 0;
  const auto lists = registry->on_lists_change([&](const ListsChange&) { ++list_changes; });
  const auto rows = registry->on_change([&](const Change& change) {
    if (const auto* const drift = std::get_if<RowChange<Drift>>(&change))
      seen.push_back(drift->after->status);
  });
  ASSERT_TRUE(resolve_newest(*registry, DriftStatus::rejected));
  EXPECT_TRUE(is_quarantined(*registry, server));
  const Result<DriftPtr> approved = resolve_newest(*registry, DriftStatus::approved);
  ASSERT_TRUE(approved) << approved.error().to_string();
  EXPECT_EQ((*approved)->resolved_by, admin->user);
  EXPECT_TRUE((*approved)->resolved_at);
  EXPECT_FALSE(is_quarantined(*registry, server));
  EXPECT_EQ(seen, (std::vector{DriftStatus::rejected, DriftStatus::approved}));
  EXPECT_EQ(list_changes, 1) << "the rejection of a quarantined entry changes no list";
  registry = reopen(std::move(registry));
  EXPECT_FALSE(is_quarantined(*registry, server));
  EXPECT_EQ(registry->state().drift.begin()->second->status, DriftStatus::approved);
  EXPECT_FALSE(resolve_newest(*registry, DriftStatus::rejected)) << "it is resolved";
  EXPECT_FALSE(resolve_newest(*registry, DriftStatus::open));
}

TEST_P(StoredListsTest, PreviewTellsWhatStoringDoes) {
  const RegistryHandle registry = open();
  const ServerPtr server = add_quarantined(*registry, "files");
  EXPECT_FALSE(registry->preview_lists(server->id, tools({tool("read", "1")}))->tools[0].quarantined);
  store(*registry, server, {tool("read", "1")});
  EXPECT_TRUE(registry->preview_lists(server->id, tools({tool("read", "2")}))->tools[0].quarantined);
  EXPECT_FALSE(registry->preview_lists(server->id, tools({tool("read", "1")}))->tools[0].quarantined);
  EXPECT_FALSE(registry->preview_lists("none", tools({})));
  const ServerPtr flagged = add_server(*registry, "flagged");
  store(*registry, flagged, {tool("read", "1")});
  EXPECT_FALSE(registry->preview_lists(flagged->id, tools({tool("read", "2")})));
  EXPECT_TRUE(registry->state().drift.empty());
}

TEST_P(StoredListsTest, ChangedEntriesOfALargeListAreQuarantinedUntilItIsStored) {
  const RegistryHandle registry = open();
  const ServerPtr server = add_quarantined(*registry, "files");
  std::vector<json::Raw> entries;
  for (int i = 0; i < 60; ++i) entries.push_back(tool("t" + std::to_string(i), std::string(10'000, 'x')));
  EXPECT_FALSE(registry->preview_lists(server->id, tools(entries))->tools.back().quarantined);
  store(*registry, server, entries);
  entries[30] = raw("{ " + std::string(entries[30].text().substr(1)));
  entries.insert(entries.begin(), entries[3]);
  const StoredListsPtr preview = registry->preview_lists(server->id, tools(entries));
  ASSERT_EQ(preview->tools.size(), 61u);
  EXPECT_TRUE(preview->tools[0].quarantined) << "a second entry of this name";
  EXPECT_FALSE(preview->tools[1].quarantined);
  EXPECT_TRUE(preview->tools[31].quarantined);
  entries.erase(entries.begin());
  EXPECT_FALSE(store(*registry, server, entries)->tools[30].quarantined) << "it means the same";
  EXPECT_FALSE(registry->preview_lists(server->id, tools(entries))->tools.back().quarantined);
  EXPECT_TRUE(registry->state().drift.empty());
}

TEST_P(StoredListsTest, RemovingAServerRemovesListsAndDrift) {
  RegistryHandle registry = open();
  const ServerPtr server = add_quarantined(*registry, "files");
  store(*registry, server, {tool("read", "1")});
  store(*registry, server, {tool("read", "2")});
  ASSERT_EQ(registry->state().drift_by_server.size(), 1u);
  ASSERT_TRUE(wait(registry->remove_server(admin, server->id, std::nullopt)));
  EXPECT_TRUE(registry->state().lists.empty());
  EXPECT_TRUE(registry->state().drift.empty());
  EXPECT_TRUE(registry->state().drift_by_server.empty());
  registry = reopen(std::move(registry));
  EXPECT_TRUE(registry->state().lists.empty());
  EXPECT_TRUE(registry->state().drift.empty());
}

TEST_P(StoredListsTest, ResolvedDriftIsLimited) {
  options.max_stored_drift = 3;
  RegistryHandle registry = open();
  const ServerPtr server = add_quarantined(*registry, "files");
  for (int i = 0; i < 8; ++i) {
    store(*registry, server, {tool("read", std::to_string(i))});
    if (i != 0) {
      ASSERT_TRUE(resolve_newest(*registry, DriftStatus::approved));
    }
  }
  store(*registry, server, {tool("read", "changed")});
  EXPECT_EQ(registry->state().drift.size(), 4u);
  registry = reopen(std::move(registry));
  EXPECT_EQ(registry->state().drift.size(), 4u);
}

TEST_P(StoredListsTest, LastFetchedListsAreStoredAlsoIfTheyEqualThoseBefore) {
  const RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "files");
  store(*registry, server, {tool("read", "1")});
  int stored = 0;
  const auto store_later = [&](const char* description) {
    loop.spawn([](RegistryHandle to, std::string id, std::string text, int& count) -> Task<void> {
      FetchedEntries fetched = tools({tool("read", text)});
      const Result<StoredListsPtr> done = co_await to->store_lists(id, std::move(fetched));
      EXPECT_TRUE(done);
      ++count;
    }(registry, server->id, description, stored));
  };
  store_later("2");
  store_later("1");
  ASSERT_TRUE(eventually([&] { return stored == 2; }));
  EXPECT_EQ(registry->state().lists.at(server->id)->tools[0].entry.text(), tool("read", "1").text());
  store_later("3");
  const Result<StoredListsPtr> waited = wait(registry->store_lists(server->id, FetchedEntries()));
  ASSERT_TRUE(waited);
  EXPECT_EQ((*waited)->tools[0].entry.text(), tool("read", "3").text());
  ASSERT_TRUE(eventually([&] { return stored == 3; }));
}

TEST_P(StoredListsTest, WaitingForListsOfAServerWithoutAnyStoresNothing) {
  const RegistryHandle registry = open();
  const ServerPtr server = add_server(*registry, "files");
  EXPECT_TRUE(wait(registry->store_lists(server->id, FetchedEntries())));
  EXPECT_TRUE(registry->state().lists.empty());
}

// On one database only, because it takes seconds without optimization.
class LargeListsTest : public StoredListsTest {};
INSTANTIATE_TEST_SUITE_P(Databases, LargeListsTest, testing::Values(Kind::sqlite), kind_name);

TEST_P(LargeListsTest, AllListsThatTheGatewayAcceptsAreStored) {
  RegistryHandle registry = open();
  const ServerPtr server = add_quarantined(*registry, "files");
  std::vector<json::Raw> large = {tool("changed", "1")};
  for (int i = 0; i < 63; ++i) large.push_back(tool("t" + std::to_string(i), std::string(520'000, 'x')));
  store(*registry, server, large);
  large.front() = tool("changed", "2");
  EXPECT_TRUE(store(*registry, server, large)->tools[0].quarantined);
  EXPECT_EQ(registry->state().drift.size(), 1u);
  registry = reopen(std::move(registry));
  EXPECT_TRUE(is_quarantined(*registry, server));
}

TEST_P(StoredListsTest, TooLargeListsAreNotStoredButPreviewed) {
  options.max_stored_list_bytes = 2'000;
  const RegistryHandle registry = open();
  const ServerPtr server = add_quarantined(*registry, "files");
  store(*registry, server, {tool("read", "1")});
  const json::Raw large = tool("read", std::string(3'000, 'x'));
  const Result<StoredListsPtr> refused = wait(registry->store_lists(server->id, tools({large})));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("max_stored_list_bytes"), std::string::npos);
  EXPECT_TRUE(registry->preview_lists(server->id, tools({large}))->tools[0].quarantined);
  EXPECT_FALSE(is_quarantined(*registry, server));
}

TEST_P(StoredListsTest, ListsOfAllServersOfAUserHaveALimit) {
  options.max_user_list_characters = 5'000;
  const RegistryHandle registry = open();
  const PrincipalPtr ann = principal_of(*add_user(*registry, "ann"), nullptr, {});
  const auto add = [&](const std::string& name, const PrincipalPtr& actor) {
    const json::Raw body =
        raw(R"({"name":")" + name + R"(","transport":"http","config":{"url":"http://example.com/mcp"}})");
    const Result<ServerPtr> server = wait(registry->create_server(actor, body));
    return server ? (*server)->id : server.error().to_string();
  };
  const json::Raw large = tool("read", std::string(3'000, 'x'));
  const std::string first = add("first", ann);
  EXPECT_TRUE(wait(registry->store_lists(first, tools({large}))));
  const Result<StoredListsPtr> refused = wait(registry->store_lists(add("second", ann), tools({large})));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("max_user_list_characters"), std::string::npos);
  EXPECT_TRUE(wait(registry->store_lists(first, tools({tool("read", std::string(4'000, 'y'))}))));
  EXPECT_TRUE(wait(registry->store_lists(add("third", admin), tools({large}))));
}

TEST_P(StoredListsTest, ListsOfManyServersAreStoredTogether) {
  const RegistryHandle registry = open();
  std::vector<ServerPtr> servers;
  for (int i = 0; i < 30; ++i) servers.push_back(add_server(*registry, "s" + std::to_string(i)));
  const std::int64_t revision = registry->state().revision;
  int done = 0;
  for (const ServerPtr& server : servers) {
    loop.spawn([](RegistryHandle to, std::string id, int& count) -> Task<void> {
      FetchedEntries fetched = tools({tool("read", id)});
      const Result<StoredListsPtr> stored = co_await to->store_lists(id, std::move(fetched));
      EXPECT_TRUE(stored);
      ++count;
    }(registry, server->id, done));
  }
  ASSERT_TRUE(eventually([&] { return done == 30; }));
  EXPECT_EQ(registry->state().lists.size(), 30u);
  EXPECT_LE(registry->state().revision, revision + 3);
}

TEST_P(StoredListsTest, UserApprovesDriftOfTheirOwnServersOnly) {
  const RegistryHandle registry = open();
  const UserPtr ann = add_user(*registry, "ann");
  const ServerPtr server = add_quarantined(*registry, "files");
  store(*registry, server, {tool("read", "1")});
  store(*registry, server, {tool("read", "2")});
  const std::string id = registry->state().drift.begin()->first;
  const PrincipalPtr principal = principal_of(*ann, nullptr, {});
  EXPECT_FALSE(wait(registry->resolve_drift(principal, id, DriftStatus::approved)));
  EXPECT_TRUE(is_quarantined(*registry, server));
}

}  // namespace
}  // namespace fairlead::registry::test
