// What several servers offer, as one list: names, whose is whose, and bytes untouched (R12.1).
#include "gateway/catalogue.hpp"

#include <gtest/gtest.h>

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/catalogue_pages.hpp"
#include "gateway/names.hpp"

namespace fairlead::gateway {
namespace {

std::shared_ptr<Listed> listed(const std::string& server, Kind kind,
                               const std::vector<std::string>& entries) {
  auto made = std::make_shared<Listed>();
  for (const std::string& entry : entries) {
    made->of(kind).push_back(*json::Raw::parse(entry));
    made->add_offer(server, kind, made->of(kind).back(), mcp::ListLimits());
  }
  return made;
}

std::string list_of(const Catalogue& catalogue, Kind kind, mcp::Revision revision = mcp::kNewest) {
  const Page page = page_of(catalogue, Cursor{kind, {}, 0, 0}, revision);
  EXPECT_EQ(page.next_cursor, "");
  json::Writer out;
  out.begin_array();
  for (const json::Raw& entry : page.entries) out.raw(entry);
  out.end_array();
  return out.text();
}

std::string tools_of(const Catalogue& catalogue, mcp::Revision revision = mcp::kNewest) {
  return list_of(catalogue, Kind::tools, revision);
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

TEST(GatewayCatalogue, AToolIsFoundByItsOfferedNameOnly) {
  const Catalogue catalogue(
      {{"a", listed("a", Kind::tools, {R"({"name":"t","inputSchema":{"type":"object"}})"})},
       {"b", listed("b", Kind::tools, {R"({"name":"t","inputSchema":{"type":"object"}})"})}});
  ASSERT_NE(catalogue.tool("b__t"), nullptr);
  EXPECT_EQ(catalogue.tool("b__t")->server, "b");
  EXPECT_EQ(catalogue.tool("b__t")->name, "t");
  EXPECT_EQ(catalogue.tool("t"), nullptr);
  EXPECT_EQ(catalogue.tool("b__"), nullptr);
  EXPECT_EQ(catalogue.tool("c__t"), nullptr);
}

TEST(GatewayCatalogue, WhatCannotBeOfferedIsLeftOutAndTold) {
  const auto part =
      listed("s", Kind::tools,
             {R"({"name":"t","inputSchema":{"type":"object"}})",
              R"({"name":"t","inputSchema":{"type":"object"}})", R"({"title":"x"})", R"({"name":7})"});
  EXPECT_EQ(part->offers_of(Kind::tools).size(), 1U);
  EXPECT_EQ(part->problems(), (std::set<std::string>{"s: one of its tools is left out: `s__t` is taken",
                                                     "s: one of its tools is left out: it has no name"}));
}

// A client that checks refuses a whole list for one such entry.
TEST(GatewayCatalogue, AnEntryThatIsNotAsMcpHasItIsLeftOut) {
  const auto problem_with = [](Kind kind, const std::string& entry) {
    const auto part = listed("s", kind, {entry});
    EXPECT_TRUE(part->offers_of(kind).empty()) << entry;
    const std::string told = part->problems().empty() ? "" : *part->problems().begin();
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
  const std::string entry = R"({"name":"t","inputSchema":{"type":"object","properties":{"any":true}}})";
  const auto part = listed("s", Kind::tools, {entry});
  const Catalogue catalogue({{"s", part}});
  EXPECT_NE(tools_of(catalogue), "[]");
  EXPECT_EQ(tools_of(catalogue, mcp::kNewestLegacy), "[]");
  ASSERT_EQ(part->problems().size(), 1U);
  EXPECT_EQ(
      *part->problems().begin(),
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

std::shared_ptr<Listed> with_templates(const std::string& server,
                                       std::initializer_list<std::string> uri_templates) {
  auto made = std::make_shared<Listed>();
  for (const std::string& one : uri_templates) {
    made->of(Kind::templates).push_back(*json::Raw::parse(R"({"uriTemplate":")" + one + R"(","name":"n"})"));
    made->add_offer(server, Kind::templates, made->of(Kind::templates).back(), mcp::ListLimits());
  }
  return made;
}

std::string server_of(const Catalogue& catalogue, std::string_view uri) {
  const Result<const std::string*> found = catalogue.server_of_resource(uri);
  if (found) return *found ? **found : "";
  EXPECT_EQ(found.error().detail().rpc_code, rpc::kInvalidParams);
  return found.error().message();
}

TEST(GatewayCatalogue, UriThatTemplatesOfSeveralServersFitIsRefusedNamingThem) {
  const Catalogue catalogue({{"a", with_templates("a", {"file:///{+path}"})},
                             {"b", with_templates("b", {"file:///srv/{name}"})},
                             {"c", with_templates("c", {"db://{table}"})}});
  EXPECT_EQ(server_of(catalogue, "file:///srv/x"),
            "Resource is ambiguous: the templates of several servers match `file:///srv/x` (`a`, `b`)");
  EXPECT_EQ(server_of(catalogue, "file:///etc/x"), "a");
  EXPECT_EQ(server_of(catalogue, "db://x"), "c");
}

TEST(GatewayCatalogue, CatchAllTemplateDoesNotTakeUrisThatOtherServersMayHave) {
  const auto greedy = with_templates("greedy", {"{+uri}", "greedy://{x}"});
  const auto files = listed("files", Kind::resources, {R"({"uri":"file:///a","name":"a"})"});
  const auto db = with_templates("db", {"db://{table}"});
  const Catalogue catalogue({{"greedy", greedy}, {"files", files}, {"db", db}});
  EXPECT_EQ(
      server_of(catalogue, "file:///b"),
      "Resource is ambiguous: no server lists `file:///b`, and only a template for any URI (of `greedy`) "
      "matches it; servers with resources are `db`, `files`, `greedy`");
  EXPECT_EQ(server_of(catalogue, "file:///a"), "files");
  EXPECT_EQ(server_of(catalogue, "db://users"), "db") << "a template that names the scheme wins";
  EXPECT_EQ(server_of(catalogue, "greedy://x"), "greedy");
}

TEST(GatewayCatalogue, CatchAllTemplateOfTheOnlyServerWithResourcesTakesAnyUri) {
  const auto tools = listed("tools", Kind::tools, {R"({"name":"t","inputSchema":{"type":"object"}})"});
  const Catalogue catalogue({{"greedy", with_templates("greedy", {"{scheme}:{+rest}"})}, {"tools", tools}});
  EXPECT_EQ(server_of(catalogue, "file:///b"), "greedy");
}

TEST(GatewayCatalogue, CatchAllTemplateWaitsForServersThatHaveNotListedYet) {
  const Catalogue catalogue({{"greedy", with_templates("greedy", {"{+uri}"})}});
  EXPECT_EQ(*catalogue.server_of_resource("file:///b", false), nullptr);
}

std::shared_ptr<Listed> templates(const std::string& server, const std::vector<std::string>& schemes) {
  std::vector<std::string> entries;
  for (const std::string& scheme : schemes)
    entries.push_back(R"({"name":"n","uriTemplate":")" + scheme + R"(://{x}"})");
  return listed(server, Kind::templates, entries);
}
constexpr std::size_t kPerTemplate = mcp::MatchBudget::kStepsPerTemplate;

TEST(GatewayCatalogue, TemplatesBeyondTheLimitOfALookupAreNotCompared) {
  mcp::ListLimits limits;
  limits.max_template_steps = 3 * kPerTemplate;
  const Catalogue catalogue({{"a", templates("a", {"p", "q", "r", "s"})}, {"b", templates("b", {"t"})}},
                            limits);
  const Result<const std::string*> found = catalogue.server_of_resource("s://1");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message(),
            "Resource not found: comparing the uri with all templates of server `a` takes more than its "
            "share of max_template_steps (384)");
}

TEST(GatewayCatalogue, LookupStepsThatServersLeaveOverGoToTheNextServers) {
  mcp::ListLimits limits;
  limits.max_template_steps = 9 * kPerTemplate;  // an equal share is that of three templates
  const Catalogue catalogue({{"a", templates("a", {"p"})},
                             {"b", templates("b", {"q"})},
                             {"c", templates("c", {"r", "s", "t", "u", "v"})}},
                            limits);
  const Result<const std::string*> found = catalogue.server_of_resource("v://1");
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_NE(*found, nullptr);
  EXPECT_EQ(**found, "c");
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

TEST(GatewayCatalogue, ToolWithACutNameIsFoundByItsOfferedName) {
  const std::string server(kMostServerNameBytes, 's');
  const std::string name(200, 't');
  const Catalogue catalogue(
      {{server,
        listed(server, Kind::tools, {R"({"name":")" + name + R"(","inputSchema":{"type":"object"}})"})}});
  const Offer* const offer = catalogue.tool(offered_name(server, name));
  ASSERT_NE(offer, nullptr);
  EXPECT_EQ(offer->name, name);
}

TEST(GatewayCatalogue, FirstServerByNameHasAUriThatSeveralList) {
  const auto list = [](const std::string& server) {
    return listed(server, Kind::resources,
                  {R"({"uri":"x://shared","name":")" + server + R"("})",
                   R"({"uri":"x://)" + server + R"(","name":"own"})"});
  };
  const Catalogue both({{"b", list("b")}, {"a", list("a")}});
  EXPECT_EQ(list_of(both, Kind::resources),
            R"([{"uri":"x://shared","name":"a"},{"uri":"x://a","name":"own"},{"uri":"x://b","name":"own"}])");
  EXPECT_EQ(**both.server_of_resource("x://shared"), "a");
  const Catalogue one({{"b", list("b")}});
  EXPECT_EQ(list_of(one, Kind::resources),
            R"([{"uri":"x://shared","name":"b"},{"uri":"x://b","name":"own"}])");
}

TEST(GatewayCatalogue, ChangeOfOneServerSharesThePartsOfTheOthers) {
  Lists lists;
  lists["a"] = listed("a", Kind::tools, {R"({"name":"x","inputSchema":{"type":"object"}})"});
  lists["b"] = listed("b", Kind::tools, {R"({"name":"x","inputSchema":{"type":"object"}})"});
  const Catalogue before(lists);
  lists["b"] = listed("b", Kind::tools, {R"({"name":"y","inputSchema":{"type":"object"}})"});
  const Catalogue after(lists);
  EXPECT_EQ(before.tool("a__x"), after.tool("a__x"));
  EXPECT_EQ(before.tool("b__y"), nullptr);
  EXPECT_NE(after.tool("b__y"), nullptr);
  EXPECT_EQ(after.tool("b__x"), nullptr);
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
