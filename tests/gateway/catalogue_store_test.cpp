// The current catalogue, the views of clients with unshared upstreams, and which clients are notified of
// changes.
#include "gateway/catalogue_store.hpp"

#include "gateway/store_fixture.hpp"
#include "mcp/server_state.hpp"

namespace fairlead::gateway {
namespace {

Principal user_named(const std::string& name) {
  Principal principal;
  principal.user = name;
  return principal;
}

// A client of the front server, which counts its notifications of list changes.
class Listener final : public mcp::ChangeListener {
 public:
  Listener(std::string session, const std::string& user)
      : session_(std::move(session)), principal_(std::make_shared<Principal>(user_named(user))) {}
  std::string_view session() const noexcept override { return session_; }
  const PrincipalPtr& principal() const noexcept override { return principal_; }
  void on_list_changed(mcp::ListKind) override {
    ++changes;
    on_change();
  }
  void on_resource_updated(const std::string&) override {}

  int changes = 0;
  std::function<void()> on_change = [] {};

 private:
  std::string session_;
  PrincipalPtr principal_;
};

class CatalogueStoreTest : public StoreTest {
 protected:
  std::shared_ptr<Listener> listen(const std::string& session, const std::string& user = "") {
    auto listener = std::make_shared<Listener>(session, user);
    front.state()->add_listener(listener);
    return listener;
  }
  // Returns the number of notifications that a client has received, after all pending ones are delivered.
  int notifications(const std::shared_ptr<Listener>& client) {
    bool reached = false;
    loop.post([&] { reached = true; });
    loop.run_until([&] { return reached; });
    return client->changes;
  }
  // Publishes lists of the unshared upstream of the session or user `key`.
  void publish_unshared(const std::shared_ptr<ServerEntry>& entry, const std::string& key,
                        const std::string& text) {
    const auto cache = entry->unshared[key] = std::make_shared<ListCache>();
    catalogue->publish_unshared(*entry, key, *cache, lists_of(entry->name(), ListKind::tools, text));
  }
  bool sees(const std::string& tool, const std::string& session, const std::string& user = "") {
    return catalogue->view(session, user_named(user))->find_tool(tool) != nullptr;
  }
};

constexpr const char* kOwnToolText = R"({"name":"own","inputSchema":{"type":"object"}})";

TEST_F(CatalogueStoreTest, ClientsAreNotifiedOfChangesAfterFirstList) {
  const auto client = listen("1");
  const auto entry = add("a");
  publish_list(entry, ListKind::tools, kToolText);
  EXPECT_TRUE(sees("a__t", "1"));
  EXPECT_EQ(notifications(client), 0) << "no client has received a list yet";
  catalogue->initial_fetch_done().set();
  publish_list(entry, ListKind::tools, kOwnToolText);
  EXPECT_EQ(notifications(client), 1);
  EXPECT_FALSE(sees("a__t", "1"));
}

TEST_F(CatalogueStoreTest, ListsWithSameEntriesCauseNoChange) {
  const auto client = listen("1");
  const auto entry = add("a");
  catalogue->initial_fetch_done().set();
  publish_list(entry, ListKind::tools, kToolText);
  const auto before = catalogue->current();
  publish_list(entry, ListKind::tools, kToolText);
  EXPECT_EQ(catalogue->current(), before);
  EXPECT_EQ(notifications(client), 1);
}

TEST_F(CatalogueStoreTest, CatalogueIsBuiltOnFirstUse) {
  const auto first = add("a");
  const auto second = add("b");
  publish_list(first, ListKind::tools, kToolText);
  publish_list(second, ListKind::resources, R"({"uri":"memo://one","name":"one"})");
  EXPECT_EQ(first->shared.lists.use_count(), 1) << "a catalogue refers to it";
  catalogue->current();
  EXPECT_EQ(first->shared.lists.use_count(), 2);
}

TEST_F(CatalogueStoreTest, MissingListChangesCatalogueWithoutNotification) {
  const auto client = listen("1");
  const auto entry = add("a");
  catalogue->initial_fetch_done().set();
  publish_list(entry, ListKind::tools, kToolText);
  auto failed = lists_of("a", ListKind::tools, kToolText);
  failed->set_missing_reason(ListKind::prompts, "timed out");
  const auto before = catalogue->current();
  catalogue->publish_shared(*entry, failed);
  EXPECT_NE(catalogue->current(), before);
  EXPECT_EQ(notifications(client), 1);
}

TEST_F(CatalogueStoreTest, SessionWithUnsharedUpstreamSeesOnlyItsLists) {
  const auto entry = add("a", pool::Sharing::per_session);
  publish_list(entry, ListKind::tools, kToolText);
  catalogue->initial_fetch_done().set();
  const auto one = listen("1");
  const auto other = listen("2");
  publish_unshared(entry, "1", kOwnToolText);
  EXPECT_TRUE(sees("a__own", "1"));
  EXPECT_FALSE(sees("a__t", "1"));
  EXPECT_FALSE(sees("a__own", "2"));
  EXPECT_TRUE(sees("a__t", "2"));
  EXPECT_EQ(notifications(one), 1);
  EXPECT_EQ(notifications(other), 0);
  publish_list(entry, ListKind::tools, R"({"name":"new","inputSchema":{"type":"object"}})");
  EXPECT_EQ(notifications(one), 1) << "it does not see the shared lists";
  EXPECT_EQ(notifications(other), 1);
}

TEST_F(CatalogueStoreTest, AllSessionsOfUserShareItsView) {
  const auto entry = add("a", pool::Sharing::per_user);
  publish_list(entry, ListKind::tools, kToolText);
  publish_unshared(entry, "ann", kOwnToolText);
  EXPECT_TRUE(sees("a__own", "1", "ann"));
  EXPECT_TRUE(sees("a__own", "2", "ann"));
  EXPECT_FALSE(sees("a__own", "1", "bob"));
}

TEST_F(CatalogueStoreTest, UnsharedListsEqualToSharedOnesCreateNoView) {
  const auto entry = add("a", pool::Sharing::per_session);
  publish_list(entry, ListKind::tools, kToolText);
  publish_unshared(entry, "1", kToolText);
  EXPECT_EQ(catalogue->view("1", Principal()), catalogue->current());
  EXPECT_EQ(entry->unshared.at("1")->lists, entry->shared.lists) << "they are not stored twice";
}

TEST_F(CatalogueStoreTest, ViewIsDiscardedWhenSessionEnds) {
  const auto entry = add("a", pool::Sharing::per_session);
  publish_list(entry, ListKind::tools, kToolText);
  publish_unshared(entry, "1", kOwnToolText);
  entry->unshared.erase("1");
  catalogue->drop_views();
  EXPECT_EQ(catalogue->view("1", Principal()), catalogue->current());
  ListCache late;  // of an upstream whose lists are fetched after its session has ended
  catalogue->publish_unshared(*entry, "1", late, lists_of("a", ListKind::tools, kOwnToolText));
  EXPECT_EQ(late.lists, nullptr);
}

TEST_F(CatalogueStoreTest, ClientsAreNotifiedOfWithdrawnLists) {
  const auto client = listen("1");
  const auto entry = add("a");
  publish_list(entry, ListKind::tools, kToolText);
  catalogue->initial_fetch_done().set();
  ASSERT_TRUE(servers->remove("a"));
  catalogue->withdraw(*entry);
  EXPECT_FALSE(sees("a__t", "1"));
  EXPECT_EQ(notifications(client), 1);
}

TEST_F(CatalogueStoreTest, ManyChangesInOneTurnCauseOneNotification) {
  const auto client = listen("1");
  catalogue->initial_fetch_done().set();
  constexpr int kMany = 500;
  std::vector<std::shared_ptr<ServerEntry>> entries;
  for (int i = 0; i < kMany; ++i) {
    const auto entry = add("s" + std::to_string(i));
    publish_list(entry, ListKind::tools, kToolText);
    entries.push_back(entry);
  }
  EXPECT_EQ(notifications(client), 1);
  EXPECT_TRUE(sees("s0__t", "1") && sees("s499__t", "1"));
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(servers->remove("s" + std::to_string(i)));
    catalogue->withdraw(*entries.at(static_cast<std::size_t>(i)));
  }
  EXPECT_EQ(notifications(client), 2);
  EXPECT_FALSE(sees("s0__t", "1") || sees("s499__t", "1"));
}

TEST_F(CatalogueStoreTest, NotifiedClientSeesNewList) {
  const auto client = listen("1");
  const auto entry = add("a");
  publish_list(entry, ListKind::tools, kToolText);
  catalogue->initial_fetch_done().set();
  bool seen = false;
  client->on_change = [&] { seen = sees("a__own", "1"); };
  publish_list(entry, ListKind::tools, kOwnToolText);
  EXPECT_EQ(notifications(client), 1);
  EXPECT_TRUE(seen);
}

TEST_F(CatalogueStoreTest, ChangesOfSeveralSessionsInOneTurnNotifyOnlyThose) {
  const auto entry = add("a", pool::Sharing::per_session);
  publish_list(entry, ListKind::tools, kToolText);
  catalogue->initial_fetch_done().set();
  const auto one = listen("1");
  const auto two = listen("2");
  const auto other = listen("3");
  publish_unshared(entry, "1", kOwnToolText);
  publish_unshared(entry, "2", kOwnToolText);
  EXPECT_EQ(notifications(one), 1);
  EXPECT_EQ(notifications(two), 1);
  EXPECT_EQ(notifications(other), 0);
}

TEST_F(CatalogueStoreTest, ChangesOfTooManySessionsInOneTurnNotifyAllClients) {
  const auto entry = add("a", pool::Sharing::per_session);
  publish_list(entry, ListKind::tools, kToolText);
  catalogue->initial_fetch_done().set();
  const auto one = listen("0");
  const auto other = listen("other");
  for (std::size_t i = 0; i <= ListChangeNotifier::kMaxPredicates; ++i)
    publish_unshared(entry, std::to_string(i), kOwnToolText);
  EXPECT_EQ(notifications(one), 1);
  EXPECT_EQ(notifications(other), 1);
}

}  // namespace
}  // namespace fairlead::gateway
