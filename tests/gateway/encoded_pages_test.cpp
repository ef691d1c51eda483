// The stored pages of a catalogue: what they depend on, and their limits.
#include "gateway/encoded_pages.hpp"

#include <gtest/gtest.h>

#include "fairlead/json/writer.hpp"
#include "gateway/catalogue.hpp"

namespace fairlead::gateway {
namespace {

EncodedPages::Key key_of(std::string cursor = {}, std::shared_ptr<const mcp::Catalogue> own_tools = nullptr) {
  EncodedPages::Key key;
  key.scope = 1;
  key.own_tools = std::move(own_tools);
  key.cursor = std::move(cursor);
  return key;
}

json::Raw page_of(std::size_t bytes) {
  return json::string(std::string(bytes - 2, 'p'));
}

class EncodedPagesTest : public ::testing::Test {
 protected:
  // Requests a page twice, which stores it.
  void store(EncodedPages& pages, const EncodedPages::Key& key, const json::Raw& page) const {
    pages.add(key, page, budget);
    pages.add(key, page, budget);
  }

  std::shared_ptr<EncodedPages::Budget> budget = std::make_shared<EncodedPages::Budget>();
};

TEST_F(EncodedPagesTest, PageIsStoredWhenItIsRequestedAgain) {
  EncodedPages pages;
  const json::Raw page = page_of(100);
  pages.add(key_of(), page, budget);
  EXPECT_TRUE(pages.find(key_of()).absent());
  EXPECT_EQ(budget->used_bytes, 0U);
  pages.add(key_of(), page, budget);
  EXPECT_EQ(pages.find(key_of()).text().data(), page.text().data()) << "the bytes are shared";
  EXPECT_EQ(budget->used_bytes, 100U);
}

TEST_F(EncodedPagesTest, PageIsFoundOnlyByItsWholeKey) {
  const auto tools = std::make_shared<const mcp::Catalogue>();
  auto other_tools = std::make_shared<const mcp::Catalogue>();
  EncodedPages pages;
  store(pages, key_of("c", tools), page_of(10));
  EXPECT_FALSE(pages.find(key_of("c", tools)).absent());
  EXPECT_TRUE(pages.find(key_of("d", tools)).absent());
  EXPECT_TRUE(pages.find(key_of("c", other_tools)).absent());
  EXPECT_TRUE(pages.find(key_of("c")).absent());
  EncodedPages::Key key = key_of("c", tools);
  key.scope = 2;
  EXPECT_TRUE(pages.find(key).absent());
  key = key_of("c", tools);
  key.revision = mcp::kNewestLegacyRevision;
  EXPECT_TRUE(pages.find(key).absent());
  key = key_of("c", tools);
  key.kind = ListKind::prompts;
  EXPECT_TRUE(pages.find(key).absent());
  // A destroyed object is not mistaken for a later one at the same address.
  const EncodedPages::Key former = key_of("e", other_tools);
  store(pages, former, page_of(10));
  other_tools = nullptr;
  EXPECT_TRUE(pages.find(key_of("e", std::make_shared<const mcp::Catalogue>())).absent());
}

TEST_F(EncodedPagesTest, LeastRecentlyRequestedPageIsEvicted) {
  EncodedPages pages;
  for (std::size_t i = 0; i < EncodedPages::kMaxPages; ++i)
    store(pages, key_of(std::to_string(i)), page_of(10));
  EXPECT_FALSE(pages.find(key_of("0")).absent());
  store(pages, key_of("new"), page_of(10));
  EXPECT_FALSE(pages.find(key_of("0")).absent());
  EXPECT_TRUE(pages.find(key_of("1")).absent());
  EXPECT_EQ(budget->used_bytes, 10 * EncodedPages::kMaxPages);
}

TEST_F(EncodedPagesTest, BudgetOfAllCataloguesIsKept) {
  budget->max_bytes = 1000;
  EncodedPages first;
  {
    EncodedPages second;
    store(first, key_of("a"), page_of(400));
    store(second, key_of("b"), page_of(400));
    store(second, key_of("c"), page_of(500));  // evicts `b`
    EXPECT_TRUE(second.find(key_of("b")).absent());
    EXPECT_FALSE(second.find(key_of("c")).absent());
    store(second, key_of("d"), page_of(700));  // does not fit beside `a`
    EXPECT_TRUE(second.find(key_of("d")).absent());
    EXPECT_LE(budget->used_bytes, 1000U);
    EXPECT_FALSE(first.find(key_of("a")).absent());
  }
  EXPECT_EQ(budget->used_bytes, 400U) << "pages are freed with their catalogue";
}

}  // namespace
}  // namespace fairlead::gateway
