#include "gateway/router.hpp"

#include "fairlead/rpc/codes.hpp"
#include "gateway/store_fixture.hpp"

namespace fairlead::gateway {
namespace {

class RouterTest : public StoreTest {
 protected:
  static RequestTarget target(ListKind kind, std::string_view name) {
    RequestTarget result;
    result.kind = kind;
    result.name = name;
    return result;
  }
  Result<Route> route(ListKind kind, std::string_view name) {
    return router.route(target(kind, name), "", Principal());
  }
  static std::int64_t code(const Result<Route>& route) {
    return route ? 0 : *route.error().detail().rpc_code;
  }

  Router router{servers, catalogue, FailurePolicy(true)};
};

TEST_F(RouterTest, ListedToolIsRoutedToItsServerWithServersOwnName) {
  const auto entry = add("a");
  publish_list(entry, ListKind::tools, R"({"name":"t","inputSchema":{"type":"object"}})");
  const Result<Route> found = route(ListKind::tools, "a__t");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->server, entry);
  EXPECT_EQ(found->name_at_server, "t");
  EXPECT_EQ(code(route(ListKind::prompts, "a__t")), rpc::kInvalidParams);
  EXPECT_EQ(code(route(ListKind::tools, "b__t")), rpc::kInvalidParams);
}

TEST_F(RouterTest, OwnerWithMissingListIsReturnedUntilListOfThatKindIsFetched) {
  const auto entry = add("a");
  const RequestTarget tool = target(ListKind::tools, "a__t");
  EXPECT_EQ(router.owner_with_missing_list(tool, Principal()), entry) << "it has not tried yet";
  entry->fetch_state.attempted = true;
  EXPECT_EQ(router.owner_with_missing_list(tool, Principal()), nullptr);
  entry->fetch_state.errors_by_kind[static_cast<std::size_t>(ListKind::tools)] =
      Error(ErrorKind::remote, "no");
  EXPECT_EQ(router.owner_with_missing_list(tool, Principal()), entry);
  EXPECT_EQ(router.owner_with_missing_list(target(ListKind::prompts, "a__p"), Principal()), nullptr);
  entry->fetch_state.attempt_error = Error(ErrorKind::closed, "gone");
  EXPECT_EQ(router.owner_with_missing_list(target(ListKind::prompts, "a__p"), Principal()), entry);
  EXPECT_EQ(router.owner_with_missing_list(target(ListKind::tools, "b__t"), Principal()), nullptr);
  entry->enabled = false;
  EXPECT_EQ(router.owner_with_missing_list(tool, Principal()), nullptr);
}

TEST_F(RouterTest, ToolOfDisabledServerFailsWithDisabled) {
  add("a");
  ASSERT_TRUE(servers->disable("a"));
  const Result<Route> refused = route(ListKind::tools, "a__t");
  EXPECT_EQ(code(refused), rpc::kInternalError);
  EXPECT_NE(refused.error().message().find("disabled"), std::string::npos);
}

TEST_F(RouterTest, ResourceMayStillBeListedUntilFirstFetchOfEveryServerHasEnded) {
  const auto entry = add("a");
  const RequestTarget resource = target(ListKind::resources, "memo://1");
  EXPECT_TRUE(router.resource_may_still_be_listed(resource, Principal()));
  EXPECT_FALSE(router.resource_may_still_be_listed(target(ListKind::tools, "a__t"), Principal()));
  publish_list(entry, ListKind::resources, R"({"uri":"memo://1","name":"one"})");
  EXPECT_FALSE(router.resource_may_still_be_listed(resource, Principal()));
  ASSERT_TRUE(route(ListKind::resources, "memo://1"));
  EXPECT_EQ(route(ListKind::resources, "memo://1")->server, entry);
}

TEST_F(RouterTest, UnknownResourceFailsWithProblemOfServerWithoutLists) {
  publish_list(add("a"), ListKind::resources, R"({"uri":"memo://1","name":"one"})");
  publish_list(add("b"), ListKind::resources, R"({"uri":"memo://2","name":"two"})");
  EXPECT_EQ(code(route(ListKind::resources, "memo://3")), rpc::kInvalidParams);
  const auto broken = add("c");
  broken->fetch_state.attempted = true;
  broken->fetch_state.attempt_error = Error(ErrorKind::spawn, "no such program");
  const Result<Route> refused = route(ListKind::resources, "memo://3");
  EXPECT_EQ(code(refused), rpc::kInternalError);
  EXPECT_NE(refused.error().message().find("no such program"), std::string::npos);
}

TEST_F(RouterTest, RepeatedCallIsRoutedByCurrentCatalogueAndCurrentServer) {
  const auto entry = add("a");
  publish_list(entry, ListKind::tools, R"({"name":"t","inputSchema":{"type":"object"}})");
  ASSERT_TRUE(route(ListKind::tools, "a__t"));
  publish_list(entry, ListKind::tools, R"({"name":"t","title":"new","inputSchema":{"type":"object"}})");
  const Result<Route> relisted = route(ListKind::tools, "a__t");
  ASSERT_TRUE(relisted);
  EXPECT_EQ(relisted->tool_entry["title"].as_string(), "new");
  const auto updated = servers->update(entry->spec);
  ASSERT_TRUE(updated);
  ASSERT_NE(*updated, entry);
  EXPECT_EQ(route(ListKind::tools, "a__t")->server, *updated) << "the catalogue is the same";
  publish_list(*updated, ListKind::tools, R"({"name":"u","inputSchema":{"type":"object"}})");
  EXPECT_EQ(code(route(ListKind::tools, "a__t")), rpc::kInvalidParams);
  ASSERT_TRUE(route(ListKind::tools, "a__u"));
  ASSERT_TRUE(servers->remove("a"));
  EXPECT_EQ(code(route(ListKind::tools, "a__u")), rpc::kInvalidParams) << "the catalogue still lists it";
}

TEST_F(RouterTest, EachOfManyToolsIsRoutedAgainToItself) {
  // More tools than the cache has slots. Half of the names have the same first and last bytes and the same
  // length as another one, so that both are stored in one slot.
  const auto entry = add("a");
  auto lists = std::make_shared<ServerLists>();
  std::vector<std::string> names;
  for (char one = 'a'; one <= 'z'; ++one)
    for (const std::string middle : {"xxxxxxxx", "yyyyyyyy", ""})
      names.push_back("same_" + middle + "_same_" + std::string(1, one));
  for (const std::string& name : names)
    lists->raw_entries(ListKind::tools)
        .push_back(test::raw(R"({"name":")" + name + R"(","inputSchema":{"type":"object"}})"));
  for (const json::Raw& raw : lists->raw_entries(ListKind::tools))
    lists->add_entry("a", ListKind::tools, raw, mcp::ListLimits());
  entry->fetch_state.attempted = true;
  catalogue->publish_shared(*entry, lists);
  for (int round = 0; round < 2; ++round) {
    for (const std::string& name : names) {
      const Result<Route> found = route(ListKind::tools, "a__" + name);
      ASSERT_TRUE(found) << name;
      EXPECT_EQ(found->name_at_server, name);
      EXPECT_EQ(code(route(ListKind::tools, "b__" + name)), rpc::kInvalidParams);
    }
  }
}

mcp::CallFacts facts(const std::string& method, const std::string& params) {
  return mcp::CallFacts(rpc::Message::parse(
      Bytes::copy_of(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}")));
}

TEST(ParseRequestTargetTest, TargetIsReadFromParamsOfEachMethod) {
  const mcp::CallFacts call = facts("tools/call", R"({"name":"a__t"})");
  const auto tool = parse_request_target(call);
  ASSERT_TRUE(tool);
  EXPECT_EQ(tool->kind, ListKind::tools);
  EXPECT_EQ(tool->name, "a__t");
  const auto prompt =
      parse_request_target(facts("completion/complete", R"({"ref":{"type":"ref/prompt","name":"a__p"}})"));
  ASSERT_TRUE(prompt);
  EXPECT_EQ(prompt->kind, ListKind::prompts);
  const mcp::CallFacts completion =
      facts("completion/complete", R"({"ref":{"type":"ref/resource","uri":"memo://{x}"}})");
  const auto resource = parse_request_target(completion);  // refers to the text of the facts
  ASSERT_TRUE(resource);
  EXPECT_EQ(resource->kind, ListKind::resources);
  EXPECT_EQ(resource->name, "memo://{x}");
}

TEST(ParseRequestTargetTest, FailsWhenNameIsMissingNotStringOrTooLong) {
  for (const std::string params : {R"({})", R"({"name":1})", R"({"uri":"memo://1"})"}) {
    const auto refused = parse_request_target(facts("tools/call", params));
    ASSERT_FALSE(refused) << params;
    EXPECT_EQ(refused.error().detail().rpc_code, rpc::kInvalidParams);
  }
  const auto refused =
      parse_request_target(facts("tools/call", R"({"name":")" + std::string(2000, 'x') + R"("})"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("max_name_bytes"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::gateway
