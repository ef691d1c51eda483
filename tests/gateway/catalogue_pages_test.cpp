// Pages of lists, and cursors that stay valid when the catalogue changes.
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

std::shared_ptr<ServerLists> make_tool_lists(const std::string& server,
                                             const std::vector<std::string>& entries) {
  auto lists = std::make_shared<ServerLists>();
  for (const std::string& entry : entries) {
    lists->raw_entries(ListKind::tools).push_back(*json::Raw::parse(entry));
    lists->add_entry(server, ListKind::tools, lists->raw_entries(ListKind::tools).back(), mcp::ListLimits());
  }
  return lists;
}

std::shared_ptr<ServerLists> named_tools(const std::string& server, const std::string& names) {
  std::vector<std::string> entries;
  for (const char name : names) entries.push_back(tool_json(std::string(1, name)));
  return make_tool_lists(server, entries);
}

PageLimits entries_per_page(std::size_t count) {
  PageLimits limits;
  limits.max_page_entries = count;
  return limits;
}

Result<Cursor> parsed(ListKind kind, const std::string& text) {
  return Cursor::parse(kind, json::View(json::string(text)));
}

// Returns the names of one page, such as "a__x b__y", and sets `cursor` to that of the next page.
std::string page_names(const Catalogue& catalogue, std::string& cursor, const PageLimits& limits) {
  const Result<Cursor> from =
      cursor.empty() ? Cursor::parse(ListKind::tools, json::View()) : parsed(ListKind::tools, cursor);
  EXPECT_TRUE(from);
  if (!from) return "";
  const Page page = make_page(catalogue, *from, mcp::kNewestRevision, limits);
  std::string names;
  for (const json::Raw& entry : page.entries)
    names += (names.empty() ? "" : " ") + json::View(entry)["name"].as_string().value_or("");
  cursor = page.next_cursor;
  return names;
}

TEST(CataloguePagesTest, PagesCoverAllServersWithoutGapsOrDuplicates) {
  const Catalogue catalogue(
      {{"a", named_tools("a", "xyz")}, {"b", named_tools("b", "")}, {"c", named_tools("c", "xy")}});
  std::string cursor;
  EXPECT_EQ(page_names(catalogue, cursor, entries_per_page(2)), "a__x a__y");
  EXPECT_EQ(page_names(catalogue, cursor, entries_per_page(2)), "a__z c__x");
  EXPECT_EQ(page_names(catalogue, cursor, entries_per_page(2)), "c__y");
  EXPECT_EQ(cursor, "");
}

TEST(CataloguePagesTest, ListThatFillsOnePageExactlyHasNoNextPage) {
  const Catalogue catalogue({{"a", named_tools("a", "xy")}});
  std::string cursor;
  EXPECT_EQ(page_names(catalogue, cursor, entries_per_page(2)), "a__x a__y");
  EXPECT_EQ(cursor, "");
}

TEST(CataloguePagesTest, EmptyCatalogueHasOneEmptyPageOfEachKind) {
  for (const ListKind kind : kListKinds) {
    const Page page = make_page(Catalogue(), Cursor{kind, {}, 0, 0}, mcp::kNewestLegacyRevision);
    EXPECT_TRUE(page.entries.empty());
    EXPECT_EQ(page.next_cursor, "");
  }
}

TEST(CataloguePagesTest, PageEndsBeforeEntryThatExceedsMaxPageBytes) {
  const Catalogue catalogue({{"a", make_tool_lists("a", {tool_json("x", 400), tool_json("y", 400),
                                                         tool_json("z", 5000), tool_json("w")})}});
  PageLimits limits;
  limits.max_page_bytes = 1000;
  std::string cursor;
  EXPECT_EQ(page_names(catalogue, cursor, limits), "a__x a__y");
  EXPECT_EQ(page_names(catalogue, cursor, limits), "a__z") << "a page has at least one entry";
  EXPECT_EQ(page_names(catalogue, cursor, limits), "a__w");
}

TEST(CataloguePagesTest, HiddenEntriesCountTowardsPageLimit) {
  const std::string modern_only = R"({"name":"m","inputSchema":{"type":"object","properties":{"any":true}}})";
  const Catalogue catalogue({{"a", make_tool_lists("a", {modern_only, tool_json("x")})}});
  const Page page = make_page(catalogue, Cursor{ListKind::tools, {}, 0, 0}, mcp::kNewestLegacyRevision,
                              entries_per_page(1));
  EXPECT_TRUE(page.entries.empty());
  EXPECT_NE(page.next_cursor, "");
}

// ---- changes between two pages ---------------------------------------------------------------------------

struct ContinuationCase {
  const char* tools;  // of server b, after the change; the cursor is after tool `y` of `xyz`
  const char* rest;   // the names of the next page
};

TEST(CataloguePagesTest, CursorOfOlderCatalogueContinuesAfterItsEntry) {
  for (const ContinuationCase& test :
       {ContinuationCase{"xyzw", "b__z b__w c__x"}, ContinuationCase{"vxyz", "b__z c__x"},
        ContinuationCase{"yz", "b__z c__x"}, ContinuationCase{"zxy", "c__x"}}) {
    const Catalogue before({{"b", named_tools("b", "xyz")}, {"c", named_tools("c", "x")}});
    const Catalogue after({{"b", named_tools("b", test.tools)}, {"c", named_tools("c", "x")}});
    std::string cursor;
    EXPECT_EQ(page_names(before, cursor, entries_per_page(2)), "b__x b__y");
    EXPECT_EQ(page_names(after, cursor, PageLimits()), test.rest) << test.tools;
  }
}

TEST(CataloguePagesTest, CursorOfRemovedEntryContinuesAtItsPosition) {
  const Catalogue before({{"b", named_tools("b", "xyz")}});
  std::string cursor;
  page_names(before, cursor, entries_per_page(2));
  EXPECT_EQ(page_names(Catalogue({{"b", named_tools("b", "xuz")}}), cursor, PageLimits()), "b__z");
}

TEST(CataloguePagesTest, CursorOfRemovedServerContinuesWithNextServer) {
  const Catalogue before({{"b", named_tools("b", "xyz")}});
  const Catalogue after({{"a", named_tools("a", "x")}, {"c", named_tools("c", "xy")}});
  std::string cursor;
  page_names(before, cursor, entries_per_page(2));
  EXPECT_EQ(page_names(after, cursor, PageLimits()), "c__x c__y");
}

TEST(CataloguePagesTest, CursorBeyondEndOfServerContinuesWithNextServer) {
  const Catalogue after({{"a", named_tools("a", "x")}, {"c", named_tools("c", "x")}});
  std::string cursor = Cursor{ListKind::tools, "a", 1'000'000, 7}.encode();
  EXPECT_EQ(page_names(after, cursor, PageLimits()), "c__x");
}

// ---- invalid cursors
// ---------------------------------------------------------------------------------------

TEST(CataloguePagesTest, InvalidCursorIsRejected) {
  const std::string good = Cursor{ListKind::tools, "a", 1, 7}.encode();
  EXPECT_TRUE(parsed(ListKind::tools, good));
  EXPECT_FALSE(parsed(ListKind::prompts, good)) << "of another list";
  for (const std::string& bad :
       {std::string(), std::string("x"), std::string("1"), good + "!", std::string(100'000, 'A'),
        base64url_encode("0.1.7"), base64url_encode("0.1.7."), base64url_encode("0.-1.7.a"),
        base64url_encode("0.99999999999999999999999.7.a"), base64url_encode("0.1.7.a b"),
        base64url_encode("9.1.7.a")}) {
    const Result<Cursor> cursor = parsed(ListKind::tools, bad);
    ASSERT_FALSE(cursor) << bad;
    EXPECT_EQ(cursor.error().detail().rpc_code, rpc::kInvalidParams);
  }
  EXPECT_FALSE(Cursor::parse(ListKind::tools, json::View("7"))) << "not a string";
}

}  // namespace
}  // namespace fairlead::gateway
