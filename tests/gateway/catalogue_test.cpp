// What several servers offer, as one list: names, whose is whose, and bytes untouched (R12.1, O7, O11).
#include "gateway/catalogue.hpp"

#include <gtest/gtest.h>

#include "fairlead/json/view.hpp"

namespace fairlead::gateway {
namespace {

std::shared_ptr<Listed> listed(const std::string& server, Kind kind,
                               std::initializer_list<std::string> entries) {
  auto made = std::make_shared<Listed>();
  for (const std::string& entry : entries) {
    made->of(kind).push_back(*json::Raw::parse(entry));
    made->add_offer(server, kind, made->of(kind).back(), mcp::ListLimits());
  }
  return made;
}

std::string tools_of(const Catalogue& catalogue, mcp::Revision revision = mcp::kNewest) {
  return std::string(catalogue.encoded(Kind::tools, revision).text());
}

TEST(GatewayCatalogue, EveryOtherByteOfAnEntrySurvivesItsNewName) {
  const Catalogue catalogue(
      {{"s",
        listed(
            "s", Kind::tools,
            {R"({ "x":1.50e3, "name" : "tool","inputSchema":{"type":"object","a":12345678901234567890} })"})}});
  EXPECT_EQ(
      tools_of(catalogue),
      R"([{ "x":1.50e3, "name" : "s__tool","inputSchema":{"type":"object","a":12345678901234567890} }])");
}

TEST(GatewayCatalogue, WithNothingInItTheListsAreEmptyAndNotAbsent) {
  for (const Kind kind : kKinds) {
    EXPECT_EQ(Catalogue().encoded(kind, mcp::kNewest).text(), "[]");
    EXPECT_EQ(Catalogue().encoded(kind, mcp::kNewestLegacy).text(), "[]");
  }
}

TEST(GatewayCatalogue, AToolIsFoundByItsOfferedNameOnly) {
  const Catalogue catalogue(
      {{"a", listed("a", Kind::tools, {R"({"name":"t","inputSchema":{"type":"object"}})"})},
       {"b", listed("b", Kind::tools, {R"({"name":"t","inputSchema":{"type":"object"}})"})}});
  ASSERT_NE(catalogue.tool("b__t"), nullptr);
  EXPECT_EQ(catalogue.tool("b__t")->server, "b");
  EXPECT_EQ(catalogue.tool("b__t")->name, "t");
  EXPECT_EQ(catalogue.tool("t"), nullptr);
  EXPECT_EQ(catalogue.size(Kind::tools), 2U);
}

TEST(GatewayCatalogue, WhatCannotBeOfferedIsLeftOutAndTold) {
  std::vector<std::string> problems;
  const Catalogue catalogue({{"s", listed("s", Kind::tools,
                                          {R"({"name":"t","inputSchema":{"type":"object"}})",
                                           R"({"name":"t","inputSchema":{"type":"object"}})",
                                           R"({"title":"x"})", R"({"name":7})"})}},
                            [&](std::string problem) { problems.push_back(std::move(problem)); });
  EXPECT_EQ(catalogue.size(Kind::tools), 1U);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0], "s: one of its tools is left out: `s__t` is taken");
}

// A client that checks refuses a whole list for one such entry.
TEST(GatewayCatalogue, AnEntryThatIsNotAsMcpHasItIsLeftOut) {
  const auto problem_with = [](Kind kind, const std::string& entry) {
    std::string told;
    const Catalogue catalogue({{"s", listed("s", kind, {entry})}},
                              [&](std::string why) { told = std::move(why); });
    EXPECT_EQ(catalogue.size(kind), 0U) << entry;
    return told.substr(told.find("out: ") + 5);
  };
  EXPECT_EQ(problem_with(Kind::tools, R"({"name":"t"})"), "its `inputSchema` is not an object (`t`)");
  EXPECT_EQ(problem_with(Kind::tools, R"({"name":"t","inputSchema":{}})"),
            "its `inputSchema.type` is not `object` (`t`)");
  const std::string tool = R"({"name":"t","inputSchema":{"type":"object"},)";
  EXPECT_EQ(problem_with(Kind::tools, tool + R"("description":null})"),
            "its `description` is not a string (`t`)");
  EXPECT_EQ(problem_with(Kind::tools, tool + R"("annotations":null})"),
            "its `annotations` is not an object (`t`)");
  EXPECT_EQ(problem_with(Kind::tools, tool + R"("annotations":{"readOnlyHint":"yes"}})"),
            "its `readOnlyHint` is not a boolean (`t`)");
  EXPECT_EQ(problem_with(Kind::tools, tool + R"("icons":[{}]})"), "its `src` is not a string (`t`)");
  EXPECT_EQ(problem_with(Kind::resources, R"({"uri":"u"})"), "its `name` is not a string (`u`)");
  EXPECT_EQ(problem_with(Kind::templates, R"({"uriTemplate":"u","name":"n","mimeType":null})"),
            "its `mimeType` is not a string (`u`)");
  EXPECT_EQ(problem_with(Kind::prompts, R"({"name":"p","arguments":null})"),
            "its `arguments` is not an array (`p`)");
  EXPECT_EQ(problem_with(Kind::prompts, R"({"name":"p","arguments":[{}]})"),
            "its `name` is not a string (`p`)");
}

TEST(GatewayCatalogue, ASchemaThatOnlyModernClientsTakeIsForThem) {
  std::string told;
  const std::string entry = R"({"name":"t","inputSchema":{"type":"object","properties":{"any":true}}})";
  const Catalogue catalogue({{"s", listed("s", Kind::tools, {entry})}},
                            [&](std::string why) { told = std::move(why); });
  EXPECT_NE(tools_of(catalogue), "[]");
  EXPECT_EQ(tools_of(catalogue, mcp::kNewestLegacy), "[]");
  EXPECT_EQ(
      told,
      "s: one of its tools is left out: for clients before 2026-07-28 its `inputSchema.properties.any` is "
      "not an object (`t`)");
}

TEST(GatewayCatalogue, AResourceBelongsToWhoListsItOrWhoseTemplateItFits) {
  auto one = listed("files", Kind::resources, {R"({"uri":"file:///a","name":"a"})"});
  auto two = listed("db", Kind::templates, {R"({"uriTemplate":"db://{table}/rows","name":"rows"})"});
  const Catalogue catalogue({{"files", one}, {"db", two}});
  EXPECT_EQ(**catalogue.server_of_resource("file:///a"), "files");
  EXPECT_EQ(**catalogue.server_of_resource("db://users/rows"), "db");
  EXPECT_EQ(**catalogue.server_of_resource("db://{table}/rows"), "db");
  EXPECT_EQ(*catalogue.server_of_resource("file:///b"), nullptr);
  // With one server only there is nobody else to ask.
  const Catalogue alone({{"files", one}});
  EXPECT_EQ(**alone.server_of_resource("file:///b"), "files");
}

TEST(GatewayCatalogue, EachEraSeesWhatItMay) {
  const Catalogue catalogue(
      {{"s",
        listed(
            "s", Kind::tools,
            {R"({"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"},"outputSchema":{"type":"array"}})"})}});
  EXPECT_EQ(tools_of(catalogue, mcp::kNewest),
            R"([{"name":"s__t","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}])");
  EXPECT_EQ(tools_of(catalogue, mcp::kNewestLegacy),
            R"([{"name":"s__t","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}])");
}

TEST(GatewayCatalogue, TheOrderDoesNotDependOnWhoAnsweredFirst) {
  Lists lists;
  lists["b"] = listed("b", Kind::tools, {R"({"name":"y","inputSchema":{"type":"object"}})"});
  lists["a"] = listed(
      "a", Kind::tools,
      {R"({"name":"z","inputSchema":{"type":"object"}})", R"({"name":"x","inputSchema":{"type":"object"}})"});
  EXPECT_EQ(
      tools_of(Catalogue(lists)),
      R"([{"name":"a__z","inputSchema":{"type":"object"}},{"name":"a__x","inputSchema":{"type":"object"}},{"name":"b__y","inputSchema":{"type":"object"}}])");
}

}  // namespace
}  // namespace fairlead::gateway
