// The lists of several servers as one: public names, owners of resources, and unchanged bytes (R12.1).
#include "gateway/catalogue.hpp"

#include <gtest/gtest.h>

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/catalogue_pages.hpp"
#include "gateway/names.hpp"

namespace fairlead::gateway {
namespace {

std::shared_ptr<ServerLists> make_lists(const std::string& server, ListKind kind,
                                        const std::vector<std::string>& entries) {
  auto lists = std::make_shared<ServerLists>();
  for (const std::string& entry : entries) {
    lists->raw_entries(kind).push_back(*json::Raw::parse(entry));
    lists->add_entry(server, kind, lists->raw_entries(kind).back(), mcp::ListLimits());
  }
  return lists;
}

std::string list_of(const Catalogue& catalogue, ListKind kind,
                    mcp::Revision revision = mcp::kNewestRevision) {
  const Page page = make_page(catalogue, Cursor{kind, {}, 0, 0}, revision);
  EXPECT_EQ(page.next_cursor, "");
  json::Writer out;
  out.begin_array();
  for (const json::Raw& entry : page.entries) out.raw(entry);
  out.end_array();
  return out.text();
}

std::string tools_of(const Catalogue& catalogue, mcp::Revision revision = mcp::kNewestRevision) {
  return list_of(catalogue, ListKind::tools, revision);
}

TEST(GatewayCatalogueTest, RenamedEntryKeepsAllOtherBytes) {
  const Catalogue catalogue(
      {{"s",
        make_lists(
            "s", ListKind::tools,
            {R"({ "x":1.50e3, "name" : "tool","inputSchema":{"type":"object","a":12345678901234567890} })"})}});
  EXPECT_EQ(
      tools_of(catalogue),
      R"([{ "x":1.50e3, "name" : "s__tool","inputSchema":{"type":"object","a":12345678901234567890} }])");
}

TEST(GatewayCatalogueTest, ToolIsFoundByPublicNameOnly) {
  const Catalogue catalogue(
      {{"a", make_lists("a", ListKind::tools, {R"({"name":"t","inputSchema":{"type":"object"}})"})},
       {"b", make_lists("b", ListKind::tools, {R"({"name":"t","inputSchema":{"type":"object"}})"})}});
  ASSERT_NE(catalogue.find_tool("b__t"), nullptr);
  EXPECT_EQ(catalogue.find_tool("b__t")->server, "b");
  EXPECT_EQ(catalogue.find_tool("b__t")->name, "t");
  EXPECT_EQ(catalogue.find_tool("t"), nullptr);
  EXPECT_EQ(catalogue.find_tool("b__"), nullptr);
  EXPECT_EQ(catalogue.find_tool("c__t"), nullptr);
}

TEST(GatewayCatalogueTest, RejectedEntriesAreOmittedAndReported) {
  const auto lists =
      make_lists("s", ListKind::tools,
                 {R"({"name":"t","inputSchema":{"type":"object"}})",
                  R"({"name":"t","inputSchema":{"type":"object"}})", R"({"title":"x"})", R"({"name":7})"});
  EXPECT_EQ(lists->entries(ListKind::tools).size(), 1U);
  EXPECT_EQ(lists->problems(),
            (std::set<std::string>{"s: one of its tools is omitted: `s__t` is already in use",
                                   "s: one of its tools is omitted: it has no name"}));
}

// A client that validates a list rejects all of it for one such entry.
TEST(GatewayCatalogueTest, EntryThatViolatesMcpSchemaIsOmitted) {
  const auto problem_with = [](ListKind kind, const std::string& entry) {
    const auto lists = make_lists("s", kind, {entry});
    EXPECT_TRUE(lists->entries(kind).empty()) << entry;
    const std::string problem = lists->problems().empty() ? "" : *lists->problems().begin();
    return problem.substr(problem.find("omitted: ") + 9);
  };
  EXPECT_EQ(problem_with(ListKind::tools, R"({"name":"t"})"), "its `inputSchema` is not an object (`t`)");
  EXPECT_EQ(problem_with(ListKind::tools, R"({"name":"t","inputSchema":{}})"),
            "its `inputSchema.type` is not `object` (`t`)");
  const std::string tool = R"({"name":"t","inputSchema":{"type":"object"},)";
  EXPECT_EQ(problem_with(ListKind::tools, tool + R"("description":null})"),
            "its `description` is not a string (`t`)");
  EXPECT_EQ(problem_with(ListKind::tools, tool + R"("annotations":null})"),
            "its `annotations` is not an object (`t`)");
  EXPECT_EQ(problem_with(ListKind::tools, tool + R"("annotations":{"readOnlyHint":"yes"}})"),
            "its `readOnlyHint` is not a boolean (`t`)");
  EXPECT_EQ(problem_with(ListKind::tools, tool + R"("icons":[{}]})"), "its `src` is not a string (`t`)");
  EXPECT_EQ(problem_with(ListKind::resources, R"({"uri":"u"})"), "its `name` is not a string (`u`)");
  EXPECT_EQ(problem_with(ListKind::templates, R"({"uriTemplate":"u","name":"n","mimeType":null})"),
            "its `mimeType` is not a string (`u`)");
  EXPECT_EQ(problem_with(ListKind::prompts, R"({"name":"p","arguments":null})"),
            "its `arguments` is not an array (`p`)");
  EXPECT_EQ(problem_with(ListKind::prompts, R"({"name":"p","arguments":[{}]})"),
            "its `name` is not a string (`p`)");
}

TEST(GatewayCatalogueTest, ToolWithModernSchemaIsHiddenFromLegacyClients) {
  const std::string entry = R"({"name":"t","inputSchema":{"type":"object","properties":{"any":true}}})";
  const auto lists = make_lists("s", ListKind::tools, {entry});
  const Catalogue catalogue({{"s", lists}});
  EXPECT_NE(tools_of(catalogue), "[]");
  EXPECT_EQ(tools_of(catalogue, mcp::kNewestLegacyRevision), "[]");
  ASSERT_EQ(lists->problems().size(), 1U);
  EXPECT_EQ(*lists->problems().begin(),
            "s: one of its tools is omitted: for clients before revision 2026-07-28 its "
            "`inputSchema.properties.any` is "
            "not an object (`t`)");
}

TEST(GatewayCatalogueTest, ResourceBelongsToServerThatListsItOrHasMatchingTemplate) {
  auto one = make_lists("files", ListKind::resources, {R"({"uri":"file:///a","name":"a"})"});
  auto two = make_lists("db", ListKind::templates, {R"({"uriTemplate":"db://{table}/rows","name":"rows"})"});
  const Catalogue catalogue({{"files", one}, {"db", two}});
  EXPECT_EQ(**catalogue.server_of_resource("file:///a"), "files");
  EXPECT_EQ(**catalogue.server_of_resource("db://users/rows"), "db");
  EXPECT_EQ(**catalogue.server_of_resource("db://{table}/rows"), "db");
  EXPECT_EQ(*catalogue.server_of_resource("file:///b"), nullptr);
  // A URI that no server lists belongs to the only server that has resources.
  const Catalogue alone({{"files", one}});
  EXPECT_EQ(**alone.server_of_resource("file:///b"), "files");
}

std::shared_ptr<ServerLists> with_templates(const std::string& server,
                                            std::initializer_list<std::string> uri_templates) {
  auto lists = std::make_shared<ServerLists>();
  for (const std::string& uri_template : uri_templates) {
    lists->raw_entries(ListKind::templates)
        .push_back(*json::Raw::parse(R"({"uriTemplate":")" + uri_template + R"(","name":"n"})"));
    lists->add_entry(server, ListKind::templates, lists->raw_entries(ListKind::templates).back(),
                     mcp::ListLimits());
  }
  return lists;
}

std::string server_of(const Catalogue& catalogue, std::string_view uri) {
  const Result<const std::string*> found = catalogue.server_of_resource(uri);
  if (found) return *found ? **found : "";
  EXPECT_EQ(found.error().detail().rpc_code, rpc::kInvalidParams);
  return found.error().message();
}

TEST(GatewayCatalogueTest, UriThatMatchesTemplatesOfSeveralServersIsRejected) {
  const Catalogue catalogue({{"a", with_templates("a", {"file:///{+path}"})},
                             {"b", with_templates("b", {"file:///srv/{name}"})},
                             {"c", with_templates("c", {"db://{table}"})}});
  EXPECT_EQ(server_of(catalogue, "file:///srv/x"),
            "Resource is ambiguous: the templates of several servers match `file:///srv/x` (`a`, `b`)");
  EXPECT_EQ(server_of(catalogue, "file:///etc/x"), "a");
  EXPECT_EQ(server_of(catalogue, "db://x"), "c");
}

TEST(GatewayCatalogueTest, CatchAllTemplateIsAmbiguousWhenOtherServersHaveResources) {
  const auto greedy = with_templates("greedy", {"{+uri}", "greedy://{x}"});
  const auto files = make_lists("files", ListKind::resources, {R"({"uri":"file:///a","name":"a"})"});
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

TEST(GatewayCatalogueTest, CatchAllTemplateOfOnlyServerWithResourcesMatchesAnyUri) {
  const auto tools =
      make_lists("tools", ListKind::tools, {R"({"name":"t","inputSchema":{"type":"object"}})"});
  const Catalogue catalogue({{"greedy", with_templates("greedy", {"{scheme}:{+rest}"})}, {"tools", tools}});
  EXPECT_EQ(server_of(catalogue, "file:///b"), "greedy");
}

TEST(GatewayCatalogueTest, CatchAllTemplateMatchesNothingInIncompleteCatalogue) {
  const Catalogue catalogue({{"greedy", with_templates("greedy", {"{+uri}"})}});
  EXPECT_EQ(*catalogue.server_of_resource("file:///b", false), nullptr);
}

std::shared_ptr<ServerLists> templates(const std::string& server, const std::vector<std::string>& schemes) {
  std::vector<std::string> entries;
  for (const std::string& scheme : schemes)
    entries.push_back(R"({"name":"n","uriTemplate":")" + scheme + R"(://{x}"})");
  return make_lists(server, ListKind::templates, entries);
}
constexpr std::size_t kPerTemplate = mcp::MatchBudget::kStepsPerTemplate;

TEST(GatewayCatalogueTest, LookupFailsWhenTemplateStepsAreExhausted) {
  mcp::ListLimits limits;
  limits.max_template_steps = 3 * kPerTemplate;
  const Catalogue catalogue({{"a", templates("a", {"p", "q", "r", "s"})}, {"b", templates("b", {"t"})}},
                            limits);
  const Result<const std::string*> found = catalogue.server_of_resource("s://1");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message(),
            "Resource not found: comparing the uri with all templates of server `a` needs more than its "
            "share of max_template_steps (384)");
}

TEST(GatewayCatalogueTest, UnusedTemplateStepsAreSharedByNextServers) {
  mcp::ListLimits limits;
  limits.max_template_steps = 9 * kPerTemplate;  // the equal share of a server is enough for three templates
  const Catalogue catalogue({{"a", templates("a", {"p"})},
                             {"b", templates("b", {"q"})},
                             {"c", templates("c", {"r", "s", "t", "u", "v"})}},
                            limits);
  const Result<const std::string*> found = catalogue.server_of_resource("v://1");
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_NE(*found, nullptr);
  EXPECT_EQ(**found, "c");
}

TEST(GatewayCatalogueTest, EntriesAreAdaptedToEraOfClient) {
  const Catalogue catalogue(
      {{"s",
        make_lists(
            "s", ListKind::tools,
            {R"({"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"},"outputSchema":{"type":"array"}})"})}});
  EXPECT_EQ(tools_of(catalogue, mcp::kNewestRevision),
            R"([{"name":"s__t","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}])");
  EXPECT_EQ(tools_of(catalogue, mcp::kNewestLegacyRevision),
            R"([{"name":"s__t","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}])");
}

TEST(GatewayCatalogueTest, ToolWithTruncatedNameIsFoundByPublicName) {
  const std::string server(kMaxServerNameBytes, 's');
  const std::string name(200, 't');
  const Catalogue catalogue(
      {{server, make_lists(server, ListKind::tools,
                           {R"({"name":")" + name + R"(","inputSchema":{"type":"object"}})"})}});
  const CatalogueEntry* const entry = catalogue.find_tool(public_name(server, name));
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->name, name);
}

TEST(GatewayCatalogueTest, DuplicateUriBelongsToFirstServerByName) {
  const auto list = [](const std::string& server) {
    return make_lists(server, ListKind::resources,
                      {R"({"uri":"x://shared","name":")" + server + R"("})",
                       R"({"uri":"x://)" + server + R"(","name":"own"})"});
  };
  const Catalogue both({{"b", list("b")}, {"a", list("a")}});
  EXPECT_EQ(list_of(both, ListKind::resources),
            R"([{"uri":"x://shared","name":"a"},{"uri":"x://a","name":"own"},{"uri":"x://b","name":"own"}])");
  EXPECT_EQ(**both.server_of_resource("x://shared"), "a");
  const Catalogue one({{"b", list("b")}});
  EXPECT_EQ(list_of(one, ListKind::resources),
            R"([{"uri":"x://shared","name":"b"},{"uri":"x://b","name":"own"}])");
}

TEST(GatewayCatalogueTest, NewCatalogueSharesListsOfUnchangedServers) {
  ListsByServer lists;
  lists["a"] = make_lists("a", ListKind::tools, {R"({"name":"x","inputSchema":{"type":"object"}})"});
  lists["b"] = make_lists("b", ListKind::tools, {R"({"name":"x","inputSchema":{"type":"object"}})"});
  const Catalogue before(lists);
  lists["b"] = make_lists("b", ListKind::tools, {R"({"name":"y","inputSchema":{"type":"object"}})"});
  const Catalogue after(lists);
  EXPECT_EQ(before.find_tool("a__x"), after.find_tool("a__x"));
  EXPECT_EQ(before.find_tool("b__y"), nullptr);
  EXPECT_NE(after.find_tool("b__y"), nullptr);
  EXPECT_EQ(after.find_tool("b__x"), nullptr);
}

TEST(GatewayCatalogueTest, OrderOfServersDoesNotDependOnOrderOfFetching) {
  ListsByServer lists;
  lists["b"] = make_lists("b", ListKind::tools, {R"({"name":"y","inputSchema":{"type":"object"}})"});
  lists["a"] = make_lists(
      "a", ListKind::tools,
      {R"({"name":"z","inputSchema":{"type":"object"}})", R"({"name":"x","inputSchema":{"type":"object"}})"});
  EXPECT_EQ(
      tools_of(Catalogue(lists)),
      R"([{"name":"a__z","inputSchema":{"type":"object"}},{"name":"a__x","inputSchema":{"type":"object"}},{"name":"b__y","inputSchema":{"type":"object"}}])");
}

}  // namespace
}  // namespace fairlead::gateway
