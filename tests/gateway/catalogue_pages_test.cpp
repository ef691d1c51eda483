// Pages of lists, and cursors that outlive the catalogue they come from.
#include "gateway/catalogue_pages.hpp"

#include <gtest/gtest.h>

#include "fairlead/base/base64.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead::gateway {
namespace {

std::string tool_json(const std::string& name, std::size_t padding = 0) {
  return R"({"name":")" + name + R"(","inputSchema":{"type":"object"},"description":")" +
         std::string(padding, 'd') + R"("})";
}

std::shared_ptr<Listed> part_of_tools(const std::string& server, const std::vector<std::string>& entries) {
  auto made = std::make_shared<Listed>();
  for (const std::string& entry : entries) {
    made->of(Kind::tools).push_back(*json::Raw::parse(entry));
    made->add_offer(server, Kind::tools, made->of(Kind::tools).back(), mcp::ListLimits());
  }
  return made;
}

std::shared_ptr<Listed> named_tools(const std::string& server, const std::string& names) {
  std::vector<std::string> entries;
  for (const char name : names) entries.push_back(tool_json(std::string(1, name)));
  return part_of_tools(server, entries);
}

PageLimits entries_a_page(std::size_t count) {
  PageLimits limits;
  limits.max_page_entries = count;
  return limits;
}

Result<Cursor> parsed(Kind kind, const std::string& text) {
  return Cursor::parse(kind, json::View(json::string(text)));
}

// One page as "a__x b__y"; `cursor` becomes that of the next.
std::string page_names(const Catalogue& catalogue, std::string& cursor, const PageLimits& limits) {
  const Result<Cursor> from =
      cursor.empty() ? Cursor::parse(Kind::tools, json::View()) : parsed(Kind::tools, cursor);
  EXPECT_TRUE(from);
  if (!from) return "";
  const Page page = page_of(catalogue, *from, mcp::kNewest, limits);
  std::string names;
  for (const json::Raw& entry : page.entries)
    names += (names.empty() ? "" : " ") + json::View(entry)["name"].as_string().value_or("");
  cursor = page.next_cursor;
  return names;
}

TEST(CataloguePages, PagesCoverAllServersWithoutGapsOrRepetitions) {
  const Catalogue catalogue(
      {{"a", named_tools("a", "xyz")}, {"b", named_tools("b", "")}, {"c", named_tools("c", "xy")}});
  std::string cursor;
  EXPECT_EQ(page_names(catalogue, cursor, entries_a_page(2)), "a__x a__y");
  EXPECT_EQ(page_names(catalogue, cursor, entries_a_page(2)), "a__z c__x");
  EXPECT_EQ(page_names(catalogue, cursor, entries_a_page(2)), "c__y");
  EXPECT_EQ(cursor, "");
}

TEST(CataloguePages, ListThatFillsAPageExactlyHasNoFurtherPage) {
  const Catalogue catalogue({{"a", named_tools("a", "xy")}});
  std::string cursor;
  EXPECT_EQ(page_names(catalogue, cursor, entries_a_page(2)), "a__x a__y");
  EXPECT_EQ(cursor, "");
}

TEST(CataloguePages, EmptyCatalogueHasOneEmptyPageOfEachKind) {
  for (const Kind kind : kKinds) {
    const Page page = page_of(Catalogue(), Cursor{kind, {}, 0, 0}, mcp::kNewestLegacy);
    EXPECT_TRUE(page.entries.empty());
    EXPECT_EQ(page.next_cursor, "");
  }
}

TEST(CataloguePages, PageEndsBeforeTheEntryThatExceedsMaxPageBytes) {
  const Catalogue catalogue({{"a", part_of_tools("a", {tool_json("x", 400), tool_json("y", 400),
                                                       tool_json("z", 5000), tool_json("w")})}});
  PageLimits limits;
  limits.max_page_bytes = 1000;
  std::string cursor;
  EXPECT_EQ(page_names(catalogue, cursor, limits), "a__x a__y");
  EXPECT_EQ(page_names(catalogue, cursor, limits), "a__z") << "one entry is always in a page";
  EXPECT_EQ(page_names(catalogue, cursor, limits), "a__w");
}

TEST(CataloguePages, EntriesThatClientsDoNotSeeCountForAPage) {
  const std::string modern_only = R"({"name":"m","inputSchema":{"type":"object","properties":{"any":true}}})";
  const Catalogue catalogue({{"a", part_of_tools("a", {modern_only, tool_json("x")})}});
  const Page page = page_of(catalogue, Cursor{Kind::tools, {}, 0, 0}, mcp::kNewestLegacy, entries_a_page(1));
  EXPECT_TRUE(page.entries.empty());
  EXPECT_NE(page.next_cursor, "");
}

// ---- changes between two pages ---------------------------------------------------------------------------

struct Continued {
  const char* now;  // tools of server b; the cursor points behind its tool `y` of `xyz`
  const char* rest;
};

TEST(CataloguePages, CursorOfAnOlderCatalogueContinuesAfterTheEntryItNames) {
  for (const Continued& one : {Continued{"xyzw", "b__z b__w c__x"}, Continued{"vxyz", "b__z c__x"},
                               Continued{"yz", "b__z c__x"}, Continued{"zxy", "c__x"}}) {
    const Catalogue before({{"b", named_tools("b", "xyz")}, {"c", named_tools("c", "x")}});
    const Catalogue after({{"b", named_tools("b", one.now)}, {"c", named_tools("c", "x")}});
    std::string cursor;
    EXPECT_EQ(page_names(before, cursor, entries_a_page(2)), "b__x b__y");
    EXPECT_EQ(page_names(after, cursor, PageLimits()), one.rest) << one.now;
  }
}

TEST(CataloguePages, CursorWhoseEntryIsGoneContinuesAtItsPosition) {
  const Catalogue before({{"b", named_tools("b", "xyz")}});
  std::string cursor;
  page_names(before, cursor, entries_a_page(2));
  EXPECT_EQ(page_names(Catalogue({{"b", named_tools("b", "xuz")}}), cursor, PageLimits()), "b__z");
}

TEST(CataloguePages, CursorWhoseServerIsGoneContinuesWithTheNextServer) {
  const Catalogue before({{"b", named_tools("b", "xyz")}});
  const Catalogue after({{"a", named_tools("a", "x")}, {"c", named_tools("c", "xy")}});
  std::string cursor;
  page_names(before, cursor, entries_a_page(2));
  EXPECT_EQ(page_names(after, cursor, PageLimits()), "c__x c__y");
}

TEST(CataloguePages, CursorBeyondTheEndOfItsServerContinuesWithTheNextServer) {
  const Catalogue after({{"a", named_tools("a", "x")}, {"c", named_tools("c", "x")}});
  std::string cursor = Cursor{Kind::tools, "a", 1'000'000, 7}.text();
  EXPECT_EQ(page_names(after, cursor, PageLimits()), "c__x");
}

// ---- what is no cursor -----------------------------------------------------------------------------------

TEST(CataloguePages, WhatIsNoCursorOfThisListIsRefused) {
  const std::string good = Cursor{Kind::tools, "a", 1, 7}.text();
  EXPECT_TRUE(parsed(Kind::tools, good));
  EXPECT_FALSE(parsed(Kind::prompts, good)) << "of another list";
  for (const std::string& bad :
       {std::string(), std::string("x"), std::string("1"), good + "!", std::string(100'000, 'A'),
        base64url_encode("0.1.7"), base64url_encode("0.1.7."), base64url_encode("0.-1.7.a"),
        base64url_encode("0.99999999999999999999999.7.a"), base64url_encode("0.1.7.a b"),
        base64url_encode("9.1.7.a")}) {
    const Result<Cursor> cursor = parsed(Kind::tools, bad);
    ASSERT_FALSE(cursor) << bad;
    EXPECT_EQ(cursor.error().detail().rpc_code, rpc::kInvalidParams);
  }
  EXPECT_FALSE(Cursor::parse(Kind::tools, json::View("7"))) << "not a string";
}

}  // namespace
}  // namespace fairlead::gateway
