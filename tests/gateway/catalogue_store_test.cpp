// The catalogue that clients see, the views of those with servers of their own, and whom changes are told to.
#include "gateway/catalogue_store.hpp"

#include "gateway/units.hpp"
#include "mcp/server_state.hpp"

namespace fairlead::gateway {
namespace {

Principal user_named(const std::string& name) {
  Principal made;
  made.user = name;
  return made;
}

// One client of the front server, which counts the changes of lists that it is told of.
class Listener final : public mcp::ChangeListener {
 public:
  Listener(std::string session, const std::string& user)
      : session_(std::move(session)), principal_(std::make_shared<Principal>(user_named(user))) {}
  std::string_view session() const noexcept override { return session_; }
  const PrincipalPtr& principal() const noexcept override { return principal_; }
  void list_changed(mcp::ListKind) override {
    ++changes;
    on_change();
  }
  void resource_updated(const std::string&) override {}

  int changes = 0;
  std::function<void()> on_change = [] {};

 private:
  std::string session_;
  PrincipalPtr principal_;
};

class CatalogueStoreTest : public UnitsTest {
 protected:
  std::shared_ptr<Listener> listen(const std::string& session, const std::string& user = "") {
    auto listener = std::make_shared<Listener>(session, user);
    front.state()->listen(listener);
    return listener;
  }
  // How many changes a client has been told of, when all of them have been.
  int told(const std::shared_ptr<Listener>& client) {
    bool reached = false;
    loop.post([&] { reached = true; });
    loop.run_until([&] { return reached; });
    return client->changes;
  }
  // The upstream that a session or user has for itself lists this.
  void list_own(const std::shared_ptr<ServerEntry>& entry, const std::string& key, const std::string& text) {
    const auto cache = entry->own[key] = std::make_shared<ListCache>();
    catalogue->publish_own(*entry, key, *cache, lists_of(entry->name(), Kind::tools, text));
  }
  bool sees(const std::string& tool, const std::string& session, const std::string& user = "") {
    return catalogue->view(session, user_named(user))->tool(tool) != nullptr;
  }
};

constexpr const char* kOwnToolText = R"({"name":"own","inputSchema":{"type":"object"}})";

TEST_F(CatalogueStoreTest, ClientsAreToldOfAChangeOnceAListHasBeenShown) {
  const auto client = listen("1");
  const auto entry = add("a");
  list(entry, Kind::tools, kToolText);
  EXPECT_TRUE(sees("a__t", "1"));
  EXPECT_EQ(told(client), 0) << "nobody has been shown a list yet";
  catalogue->complete().set();
  list(entry, Kind::tools, kOwnToolText);
  EXPECT_EQ(told(client), 1);
  EXPECT_FALSE(sees("a__t", "1"));
}

TEST_F(CatalogueStoreTest, ListsWithTheSameEntriesChangeNothing) {
  const auto client = listen("1");
  const auto entry = add("a");
  catalogue->complete().set();
  list(entry, Kind::tools, kToolText);
  const auto before = catalogue->current();
  list(entry, Kind::tools, kToolText);
  EXPECT_EQ(catalogue->current(), before);
  EXPECT_EQ(told(client), 1);
}

TEST_F(CatalogueStoreTest, CatalogueIsNotMadeUntilSomebodyLooks) {
  const auto first = add("a");
  const auto second = add("b");
  list(first, Kind::tools, kToolText);
  list(second, Kind::resources, R"({"uri":"memo://one","name":"one"})");
  EXPECT_EQ(first->shared.listed.use_count(), 1) << "a catalogue refers to it";
  catalogue->current();
  EXPECT_EQ(first->shared.listed.use_count(), 2);
}

TEST_F(CatalogueStoreTest, ReasonForAMissingListIsAChangeOfTheCatalogueThatNobodyIsToldOf) {
  const auto client = listen("1");
  const auto entry = add("a");
  catalogue->complete().set();
  list(entry, Kind::tools, kToolText);
  auto failed = lists_of("a", Kind::tools, kToolText);
  failed->set_missing(Kind::prompts, "timed out");
  const auto before = catalogue->current();
  catalogue->publish(*entry, failed);
  EXPECT_NE(catalogue->current(), before);
  EXPECT_EQ(told(client), 1);
}

TEST_F(CatalogueStoreTest, SessionWithAServerOfItsOwnSeesItsListsAndOthersDoNot) {
  const auto entry = add("a", pool::Sharing::per_session);
  list(entry, Kind::tools, kToolText);
  catalogue->complete().set();
  const auto one = listen("1");
  const auto other = listen("2");
  list_own(entry, "1", kOwnToolText);
  EXPECT_TRUE(sees("a__own", "1"));
  EXPECT_FALSE(sees("a__t", "1"));
  EXPECT_FALSE(sees("a__own", "2"));
  EXPECT_TRUE(sees("a__t", "2"));
  EXPECT_EQ(told(one), 1);
  EXPECT_EQ(told(other), 0);
  list(entry, Kind::tools, R"({"name":"new","inputSchema":{"type":"object"}})");
  EXPECT_EQ(told(one), 1) << "what all others see is not its own";
  EXPECT_EQ(told(other), 1);
}

TEST_F(CatalogueStoreTest, ViewOfAUserIsThatOfAllItsSessions) {
  const auto entry = add("a", pool::Sharing::per_user);
  list(entry, Kind::tools, kToolText);
  list_own(entry, "ann", kOwnToolText);
  EXPECT_TRUE(sees("a__own", "1", "ann"));
  EXPECT_TRUE(sees("a__own", "2", "ann"));
  EXPECT_FALSE(sees("a__own", "1", "bob"));
}

TEST_F(CatalogueStoreTest, OwnListsThatAreTheUsualOnesMakeNoViewOfTheirOwn) {
  const auto entry = add("a", pool::Sharing::per_session);
  list(entry, Kind::tools, kToolText);
  list_own(entry, "1", kToolText);
  EXPECT_EQ(catalogue->view("1", Principal()), catalogue->current());
  EXPECT_EQ(entry->own.at("1")->listed, entry->shared.listed) << "they are not kept twice";
}

TEST_F(CatalogueStoreTest, ViewIsGoneWhenItsSessionHasEnded) {
  const auto entry = add("a", pool::Sharing::per_session);
  list(entry, Kind::tools, kToolText);
  list_own(entry, "1", kOwnToolText);
  entry->own.erase("1");
  catalogue->drop_views();
  EXPECT_EQ(catalogue->view("1", Principal()), catalogue->current());
  ListCache late;  // of an upstream that lists after its session has ended
  catalogue->publish_own(*entry, "1", late, lists_of("a", Kind::tools, kOwnToolText));
  EXPECT_EQ(late.listed, nullptr);
}

TEST_F(CatalogueStoreTest, WithdrawnListsAreGoneAndTold) {
  const auto client = listen("1");
  const auto entry = add("a");
  list(entry, Kind::tools, kToolText);
  catalogue->complete().set();
  const auto before = entry->shared.listed;
  ASSERT_TRUE(servers->remove("a"));
  catalogue->withdraw(before);
  EXPECT_FALSE(sees("a__t", "1"));
  EXPECT_EQ(told(client), 1);
}

TEST_F(CatalogueStoreTest, ManyChangesInOneTurnAreToldOnce) {
  const auto client = listen("1");
  catalogue->complete().set();
  constexpr int kMany = 500;
  std::vector<std::shared_ptr<const Listed>> before;
  for (int i = 0; i < kMany; ++i) {
    const auto entry = add("s" + std::to_string(i));
    list(entry, Kind::tools, kToolText);
    before.push_back(entry->shared.listed);
  }
  EXPECT_EQ(told(client), 1);
  EXPECT_TRUE(sees("s0__t", "1") && sees("s499__t", "1"));
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(servers->remove("s" + std::to_string(i)));
    catalogue->withdraw(before.at(static_cast<std::size_t>(i)));
  }
  EXPECT_EQ(told(client), 2);
  EXPECT_FALSE(sees("s0__t", "1") || sees("s499__t", "1"));
}

TEST_F(CatalogueStoreTest, ClientThatLooksWhenItIsToldSeesTheNewList) {
  const auto client = listen("1");
  const auto entry = add("a");
  list(entry, Kind::tools, kToolText);
  catalogue->complete().set();
  bool seen = false;
  client->on_change = [&] { seen = sees("a__own", "1"); };
  list(entry, Kind::tools, kOwnToolText);
  EXPECT_EQ(told(client), 1);
  EXPECT_TRUE(seen);
}

TEST_F(CatalogueStoreTest, ChangesOfSeveralSessionsInOneTurnAreToldToThemAlone) {
  const auto entry = add("a", pool::Sharing::per_session);
  list(entry, Kind::tools, kToolText);
  catalogue->complete().set();
  const auto one = listen("1");
  const auto two = listen("2");
  const auto other = listen("3");
  list_own(entry, "1", kOwnToolText);
  list_own(entry, "2", kOwnToolText);
  EXPECT_EQ(told(one), 1);
  EXPECT_EQ(told(two), 1);
  EXPECT_EQ(told(other), 0);
}

TEST_F(CatalogueStoreTest, ChangesOfTooManySessionsInOneTurnAreToldToAll) {
  const auto entry = add("a", pool::Sharing::per_session);
  list(entry, Kind::tools, kToolText);
  catalogue->complete().set();
  const auto one = listen("0");
  const auto other = listen("other");
  for (std::size_t i = 0; i <= ListAnnouncer::kMaxConcerns; ++i)
    list_own(entry, std::to_string(i), kOwnToolText);
  EXPECT_EQ(told(one), 1);
  EXPECT_EQ(told(other), 1);
}

}  // namespace
}  // namespace fairlead::gateway
