#include "gateway/router.hpp"

#include "fairlead/rpc/codes.hpp"
#include "gateway/units.hpp"

namespace fairlead::gateway {
namespace {

class RouterTest : public UnitsTest {
 protected:
  static Requested requested(Kind kind, const std::string& name) {
    Requested made;
    made.kind = kind;
    made.name = name;
    return made;
  }
  Result<Route> route(Kind kind, const std::string& name) {
    return router.route(requested(kind, name), "", Principal());
  }
  static std::int64_t code(const Result<Route>& route) {
    return route ? 0 : *route.error().detail().rpc_code;
  }

  Router router{servers, catalogue, FailurePolicy(true)};
};

TEST_F(RouterTest, ListedToolIsRoutedToItsServerUnderItsOwnName) {
  const auto entry = add("a");
  list(entry, Kind::tools, R"({"name":"t","inputSchema":{"type":"object"}})");
  const Result<Route> found = route(Kind::tools, "a__t");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->server, entry);
  EXPECT_EQ(found->target, "t");
  EXPECT_EQ(code(route(Kind::prompts, "a__t")), rpc::kInvalidParams);
  EXPECT_EQ(code(route(Kind::tools, "b__t")), rpc::kInvalidParams);
}

TEST_F(RouterTest, OwnerIsUnlistedUntilItHasListedThatKind) {
  const auto entry = add("a");
  const Requested tool = requested(Kind::tools, "a__t");
  EXPECT_EQ(router.unlisted_owner(tool), entry) << "it has not tried yet";
  entry->listing.attempted = true;
  EXPECT_EQ(router.unlisted_owner(tool), nullptr);
  entry->listing.errors[static_cast<std::size_t>(Kind::tools)] = Error(ErrorKind::remote, "no");
  EXPECT_EQ(router.unlisted_owner(tool), entry);
  EXPECT_EQ(router.unlisted_owner(requested(Kind::prompts, "a__p")), nullptr);
  entry->listing.failure = Error(ErrorKind::closed, "gone");
  EXPECT_EQ(router.unlisted_owner(requested(Kind::prompts, "a__p")), entry);
  EXPECT_EQ(router.unlisted_owner(requested(Kind::tools, "b__t")), nullptr);
  entry->enabled = false;
  EXPECT_EQ(router.unlisted_owner(tool), nullptr);
}

TEST_F(RouterTest, ToolOfADisabledServerIsNotCalledUnknown) {
  add("a");
  ASSERT_TRUE(servers->disable("a"));
  const Result<Route> refused = route(Kind::tools, "a__t");
  EXPECT_EQ(code(refused), rpc::kInternalError);
  EXPECT_NE(refused.error().message().find("disabled"), std::string::npos);
}

TEST_F(RouterTest, ResourceMayBeListedYetWhileAServerHasNotTried) {
  const auto entry = add("a");
  const Requested resource = requested(Kind::resources, "memo://1");
  EXPECT_TRUE(router.may_be_listed_yet(resource));
  EXPECT_FALSE(router.may_be_listed_yet(requested(Kind::tools, "a__t")));
  list(entry, Kind::resources, R"({"uri":"memo://1","name":"one"})");
  EXPECT_FALSE(router.may_be_listed_yet(resource));
  ASSERT_TRUE(route(Kind::resources, "memo://1"));
  EXPECT_EQ(route(Kind::resources, "memo://1")->server, entry);
}

TEST_F(RouterTest, UnknownResourceFailsWithTheReasonOfTheServerThatCouldHaveIt) {
  list(add("a"), Kind::resources, R"({"uri":"memo://1","name":"one"})");
  list(add("b"), Kind::resources, R"({"uri":"memo://2","name":"two"})");
  EXPECT_EQ(code(route(Kind::resources, "memo://3")), rpc::kInvalidParams);
  const auto broken = add("c");
  broken->listing.attempted = true;
  broken->listing.failure = Error(ErrorKind::spawn, "no such program");
  const Result<Route> refused = route(Kind::resources, "memo://3");
  EXPECT_EQ(code(refused), rpc::kInternalError);
  EXPECT_NE(refused.error().message().find("no such program"), std::string::npos);
}

mcp::CallFacts facts(const std::string& method, const std::string& params) {
  return mcp::CallFacts(rpc::Message::parse(
      Bytes::copy_of(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}")));
}

TEST(RequestedName, IsReadFromTheParamsOfEachMethod) {
  const mcp::CallFacts call = facts("tools/call", R"({"name":"a__t"})");
  const auto tool = requested_in(call);
  ASSERT_TRUE(tool);
  EXPECT_EQ(tool->kind, Kind::tools);
  EXPECT_EQ(tool->name, "a__t");
  const auto prompt =
      requested_in(facts("completion/complete", R"({"ref":{"type":"ref/prompt","name":"a__p"}})"));
  ASSERT_TRUE(prompt);
  EXPECT_EQ(prompt->kind, Kind::prompts);
  const auto resource =
      requested_in(facts("completion/complete", R"({"ref":{"type":"ref/resource","uri":"memo://{x}"}})"));
  ASSERT_TRUE(resource);
  EXPECT_EQ(resource->kind, Kind::resources);
  EXPECT_EQ(resource->name, "memo://{x}");
}

TEST(RequestedName, IsRefusedWhenMissingNotAStringOrTooLong) {
  for (const std::string params : {R"({})", R"({"name":1})", R"({"uri":"memo://1"})"}) {
    const auto refused = requested_in(facts("tools/call", params));
    ASSERT_FALSE(refused) << params;
    EXPECT_EQ(refused.error().detail().rpc_code, rpc::kInvalidParams);
  }
  const auto refused = requested_in(facts("tools/call", R"({"name":")" + std::string(2000, 'x') + R"("})"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("max_name_bytes"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::gateway
