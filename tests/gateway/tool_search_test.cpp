#include "gateway/tool_search.hpp"

#include <gtest/gtest.h>

#include <set>

#include "fairlead/loop/loop.hpp"
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
  std::set<search::DocumentNumber> numbers(documents.find(a).begin(), documents.find(a).end());
  numbers.insert(documents.find(b).begin(), documents.find(b).end());
  EXPECT_EQ(numbers.size(), 5u);
  EXPECT_EQ(&documents.tool(documents.find(b)[2]), &b->entries(ListKind::tools)[2]);
  EXPECT_TRUE(documents.find(make_tool_lists("a", 2)).empty());
}

TEST(ToolDocumentsTest, ListsWithAnotherPolicyKeepTheirDocuments) {
  ToolDocuments documents;
  const auto lists = make_tool_lists("a", 2);
  const ServerPolicyPtr before = policy_with_domain("one");
  const ServerPolicyPtr after = policy_with_domain("two");
  const ToolDocuments::Numbers numbers = documents.add(lists, before);
  EXPECT_TRUE(documents.has(lists, before));
  EXPECT_FALSE(documents.has(lists, after));
  EXPECT_EQ(documents.add(lists, after), numbers);
  EXPECT_TRUE(documents.has(lists, after));
}

TEST(ToolDocumentsTest, DocumentsOfListsThatNoLongerExistAreRemovedAndUsedAgain) {
  ToolDocuments documents;
  const ServerPolicyPtr policy = policy_with_domain("");
  auto lists = make_tool_lists("a", 3);
  const ToolDocuments::Numbers numbers = documents.add(lists, policy);
  EXPECT_TRUE(documents.remove_unused().empty());
  lists = nullptr;
  EXPECT_EQ(documents.remove_unused().size(), 3u);
  EXPECT_TRUE(documents.remove_unused().empty());
  const auto others = make_tool_lists("b", 3);
  const ToolDocuments::Numbers& reused = documents.add(others, policy);
  EXPECT_EQ(std::set(reused.begin(), reused.end()), std::set(numbers.begin(), numbers.end()));
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
  std::vector<std::string> find(const std::shared_ptr<const Catalogue>& catalogue, const std::string& text) {
    ToolSearch::Request request;
    request.catalogue = catalogue;
    request.text = text;
    const Result<ToolSearch::Matches> matches = loop_.block_on(search_->find(std::move(request)));
    std::vector<std::string> names;
    if (!matches) return {matches.error().message()};
    for (const ToolSearch::Match& match : matches->tools) names.push_back(match.tool->public_name);
    EXPECT_TRUE(matches->complete);
    return names;
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
  const auto search = [](ToolSearch& in, std::shared_ptr<const Catalogue> catalogue,
                         std::vector<std::size_t>& counts) -> Task<void> {
    ToolSearch::Request request;
    request.catalogue = std::move(catalogue);
    request.text = "alpha";
    request.limit = 1'000;
    const Result<ToolSearch::Matches> matches = co_await in.find(std::move(request));
    counts.push_back(matches ? matches->tools.size() : 0);
  };
  for (const auto& catalogue : catalogues) loop_.spawn(search(*search_, catalogue, found));
  loop_.run_until([&] { return found.size() == catalogues.size(); });
  EXPECT_EQ(found, std::vector<std::size_t>(20, 300));
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
