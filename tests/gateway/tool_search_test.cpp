#include "gateway/tool_search.hpp"

#include <gtest/gtest.h>

#include <sqlite3.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <set>

#include "fairlead/loop/loop.hpp"
#include "gateway/tool_items.hpp"
#include "support/turns.hpp"

namespace fairlead::gateway {
namespace {

std::shared_ptr<const ServerLists> make_tool_lists(const std::string& server, int count,
                                                   const std::string& description = "") {
  auto lists = std::make_shared<ServerLists>();
  for (int i = 0; i < count; ++i) {
    lists->add_entry(server, ListKind::tools,
                     *json::Raw::parse(R"({"name":"tool)" + std::to_string(i) + R"(","description":")" +
                                       description + R"(","inputSchema":{"type":"object"}})"),
                     mcp::ListLimits());
  }
  return lists;
}

ServerPolicyPtr policy_with_domain(const std::string& domain) {
  auto policy = std::make_shared<ServerPolicy>();
  policy->domain = domain;
  return policy;
}

TEST(ToolDocumentsTest, EachToolOfAListHasADocument) {
  ToolDocuments documents;
  const auto a = make_tool_lists("a", 2);
  const auto b = make_tool_lists("b", 3);
  const ServerPolicyPtr policy = policy_with_domain("");
  documents.add(a, policy);
  documents.add(b, policy);
  std::set<search::DocumentNumber> numbers(documents.find(a)->begin(), documents.find(a)->end());
  numbers.insert(documents.find(b)->begin(), documents.find(b)->end());
  EXPECT_EQ(numbers.size(), 5u);
  EXPECT_EQ(&documents.tool(documents.find(b)->at(2)), &b->entries(ListKind::tools)[2]);
  EXPECT_FALSE(documents.find(make_tool_lists("a", 2)));
}

TEST(ToolDocumentsTest, ListsWithAnotherPolicyKeepTheirDocuments) {
  ToolDocuments documents;
  const auto lists = make_tool_lists("a", 2);
  const ServerPolicyPtr before = policy_with_domain("one");
  const ServerPolicyPtr after = policy_with_domain("two");
  const ToolDocuments::Numbers numbers = *documents.add(lists, before);
  EXPECT_TRUE(documents.has(lists, before));
  EXPECT_FALSE(documents.has(lists, after));
  EXPECT_EQ(*documents.add(lists, after), numbers);
  EXPECT_TRUE(documents.has(lists, after));
}

TEST(ToolDocumentsTest, DocumentsOfListsThatNoLongerExistAreRemovedAndUsedAgain) {
  ToolDocuments documents;
  const ServerPolicyPtr policy = policy_with_domain("");
  auto lists = make_tool_lists("a", 3);
  const ToolDocuments::Numbers numbers = *documents.add(lists, policy);
  EXPECT_TRUE(documents.remove_unused().empty());
  lists = nullptr;
  EXPECT_EQ(documents.remove_unused().size(), 3u);
  EXPECT_TRUE(documents.remove_unused().empty());
  const auto others = make_tool_lists("b", 3);
  const ToolDocuments::Numbers& reused = *documents.add(others, policy);
  EXPECT_EQ(std::set(reused.begin(), reused.end()), std::set(numbers.begin(), numbers.end()));
}

TEST(ToolDocumentsTest, ListsBeyondTheLimitAreNotAddedUntilThereIsRoom) {
  ToolDocuments documents(4);
  const ServerPolicyPtr policy = policy_with_domain("");
  auto first = make_tool_lists("a", 3);
  const auto second = make_tool_lists("b", 2);
  ASSERT_TRUE(documents.add(first, policy));
  EXPECT_FALSE(documents.add(second, policy));
  EXPECT_FALSE(documents.has(second, policy));
  EXPECT_FALSE(documents.find(second));
  first = nullptr;
  EXPECT_EQ(documents.remove_unused().size(), 3u);
  EXPECT_TRUE(documents.add(second, policy));
}

TEST(ToolDocumentsTest, TextOfAToolHasItsDomainTagsAndSchema) {
  ServerPolicy policy;
  policy.domain = "storage";
  policy.tags = {"disk"};
  policy.title = "Files";
  const auto lists = make_tool_lists("a", 1, "Reads");
  const search::ToolText text = tool_text(lists->entries(ListKind::tools)[0], policy);
  EXPECT_EQ(text.server, "a");
  EXPECT_EQ(text.name, "tool0");
  EXPECT_EQ(text.description, "Reads");
  EXPECT_EQ(text.domain, "storage");
  EXPECT_EQ(text.tags, (std::vector<std::string>{"disk", "Files"}));
  EXPECT_EQ(text.input_schema, R"({"type":"object"})");
}

class ToolSearchTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const Catalogue> catalogue_of(const std::string& server,
                                                       std::shared_ptr<const ServerLists> lists) {
    ListsByServer all;
    all[server] = std::move(lists);
    return std::make_shared<const Catalogue>(all);
  }
  Result<ToolSearch::Matches> search(const std::shared_ptr<const Catalogue>& catalogue,
                                     const std::string& text,
                                     std::optional<std::string> domain = std::nullopt) {
    ToolSearch::Request request;
    request.catalogue = catalogue;
    request.text = text;
    request.domain = std::move(domain);
    return loop_.block_on(search_->find(std::move(request)));
  }
  static std::vector<std::string> names(const Result<ToolSearch::Matches>& matches) {
    if (!matches) return {matches.error().message()};
    std::vector<std::string> found;
    for (const ToolSearch::Match& match : matches->tools) found.push_back(match.tool->public_name);
    return found;
  }
  // Also expects that all tools have been searched.
  std::vector<std::string> find(const std::shared_ptr<const Catalogue>& catalogue, const std::string& text) {
    const Result<ToolSearch::Matches> matches = search(catalogue, text);
    EXPECT_TRUE(!matches || (matches->complete && matches->all_indexed));
    return names(matches);
  }
  // Returns the least CPU time of several equal searches.
  std::clock_t time_of_search(const std::shared_ptr<const Catalogue>& catalogue, const std::string& text,
                              const std::optional<std::string>& domain) {
    std::clock_t least = std::numeric_limits<std::clock_t>::max();
    for (int i = 0; i < 10; ++i) {
      const std::clock_t begin = std::clock();
      EXPECT_TRUE(search(catalogue, text, domain));
      least = std::min(least, std::clock() - begin);
    }
    return least;
  }

  Loop loop_;
  std::shared_ptr<ServerTable> servers_ = std::make_shared<ServerTable>(pool::Pool::create(loop_));
  std::shared_ptr<ToolSearch> search_ = std::make_shared<ToolSearch>(loop_, servers_);
};

TEST_F(ToolSearchTest, SearchFindsToolsOfTheCatalogueOnly) {
  const auto ours = catalogue_of("ours", make_tool_lists("ours", 1, "alpha"));
  const auto others = catalogue_of("others", make_tool_lists("others", 1, "alpha beta"));
  EXPECT_EQ(find(ours, "alpha"), std::vector<std::string>{"ours__tool0"});
  EXPECT_EQ(find(others, "alpha"), std::vector<std::string>{"others__tool0"});
  EXPECT_EQ(find(ours, "beta"), std::vector<std::string>());
}

TEST_F(ToolSearchTest, NewListsReplaceFormerOnes) {
  auto catalogue = catalogue_of("s", make_tool_lists("s", 1, "alpha"));
  EXPECT_EQ(find(catalogue, "alpha").size(), 1u);
  for (int i = 0; i < 20; ++i) {
    catalogue = catalogue_of("s", make_tool_lists("s", 1, "beta" + std::to_string(i)));
    EXPECT_EQ(find(catalogue, "beta" + std::to_string(i)).size(), 1u);
    EXPECT_TRUE(find(catalogue, "alpha").empty());
  }
}

TEST_F(ToolSearchTest, ConcurrentSearchesOfDifferentCataloguesWaitForTheirTools) {
  std::vector<std::shared_ptr<const Catalogue>> catalogues;
  std::vector<std::size_t> found;
  for (int i = 0; i < 20; ++i) {
    const std::string server = "s" + std::to_string(i);
    catalogues.push_back(catalogue_of(server, make_tool_lists(server, 300, "alpha")));
  }
  const auto search_all = [](ToolSearch& in, std::shared_ptr<const Catalogue> catalogue,
                             std::vector<std::size_t>& counts) -> Task<void> {
    ToolSearch::Request request;
    request.catalogue = std::move(catalogue);
    request.text = "alpha";
    request.limit = 1'000;
    const Result<ToolSearch::Matches> matches = co_await in.find(std::move(request));
    counts.push_back(matches ? matches->tools.size() : 0);
  };
  for (const auto& catalogue : catalogues) loop_.spawn(search_all(*search_, catalogue, found));
  loop_.run_until([&] { return found.size() == catalogues.size(); });
  EXPECT_EQ(found, std::vector<std::size_t>(20, 300));
}

TEST_F(ToolSearchTest, SearchIsRestrictedToADomain) {
  const auto catalogue = catalogue_of("s", make_tool_lists("s", 2, "alpha"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(names(search(catalogue, "alpha", "other")).size(), 2u);
    EXPECT_TRUE(names(search(catalogue, "alpha", "nowhere")).empty());
    EXPECT_EQ(names(search(catalogue, "alpha")).size(), 2u);
  }
}

TEST_F(ToolSearchTest, RepeatedSearchOfADomainIsAboutAsFastAsOneOfAllTools) {
  const auto catalogue = catalogue_of("s", make_tool_lists("s", 10'000, "alpha beta gamma delta"));
  const std::clock_t all = time_of_search(catalogue, "x", std::nullopt);
  EXPECT_LT(time_of_search(catalogue, "x", "other"), 4 * all);
}

TEST_F(ToolSearchTest, FailedIndexIsReportedAndBuiltAgain) {
  const auto first = catalogue_of("first", make_tool_lists("first", 1, "alpha"));
  const auto second = catalogue_of("second", make_tool_lists("second", 100, "beta"));
  EXPECT_EQ(find(first, "alpha").size(), 1u);
  const sqlite3_int64 former_limit = sqlite3_hard_heap_limit64(1);
  const Result<ToolSearch::Matches> failed = search(second, "beta");
  sqlite3_hard_heap_limit64(former_limit);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find("being built again"), std::string::npos)
      << failed.error().message();
  EXPECT_EQ(find(second, "beta").size(), 10u);
  EXPECT_EQ(find(first, "alpha").size(), 1u);
}

TEST_F(ToolSearchTest, ListsBeyondMaxIndexedToolsAreReportedAndIndexedWhenThereIsRoom) {
  search_ = std::make_shared<ToolSearch>(loop_, servers_, 4);
  ListsByServer lists;
  lists["a"] = make_tool_lists("a", 3, "alpha");
  lists["b"] = make_tool_lists("b", 2, "beta");
  auto catalogue = std::make_shared<const Catalogue>(lists);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(names(search(catalogue, "alpha")).size(), 3u);
    const Result<ToolSearch::Matches> matches = search(catalogue, "beta");
    EXPECT_TRUE(names(matches).empty());
    EXPECT_FALSE(matches && matches->all_indexed);
  }
  lists.erase("a");
  catalogue = std::make_shared<const Catalogue>(lists);
  EXPECT_TRUE(search(catalogue, "beta"));  // finds that the other lists are gone
  EXPECT_EQ(find(catalogue, "beta").size(), 2u);
}

TEST_F(ToolSearchTest, DomainsThatAreNotListedAreAnnounced) {
  ListsByServer lists;
  const auto add_domain = [&] {
    pool::ServerSpec spec;
    spec.name = "server" + std::to_string(lists.size());
    ASSERT_TRUE(servers_->add(spec));
    servers_->set_policy(*servers_->find(spec.name), policy_with_domain("domain of " + spec.name), nullptr);
    lists[spec.name] = make_tool_lists(spec.name, 1);
  };
  while (lists.size() < kMaxListedDomains) add_domain();
  const json::Raw all = tool_domains(Catalogue(lists), *servers_, true);
  EXPECT_EQ(json::View(all)["more"].as_bool(), false);
  EXPECT_TRUE(json::View(all)["note"].absent());
  add_domain();
  const json::Raw some = tool_domains(Catalogue(lists), *servers_, true);
  EXPECT_EQ(json::View(some)["more"].as_bool(), true);
  EXPECT_TRUE(json::View(some)["note"].as_string());
}

TEST_F(ToolSearchTest, ThousandsOfServersAreIndexedWithoutBlockingTheLoop) {
  const int count = test::kTurnFactor == 1 ? 10'000 : 1'000;
  ListsByServer lists;
  for (int i = 0; i < count; ++i) {
    const std::string server = "server" + std::to_string(i);
    lists[server] = make_tool_lists(server, 10, "Does thing number " + std::to_string(i));
    pool::ServerSpec spec;
    spec.name = server;
    ASSERT_TRUE(servers_->add(spec));
  }
  const auto catalogue = std::make_shared<const Catalogue>(lists);
  loop_.turn_meter().reset();
  EXPECT_EQ(find(catalogue, "number " + std::to_string(count - 7)).size(), 10u);
  test::expect_short_turns(loop_);
}

}  // namespace
}  // namespace fairlead::gateway
