// Every error that a client of the gateway is sent has a stable code and a remedy. R10.5.
#include "gateway/failure.hpp"

#include "fairlead/process/failure.hpp"
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

std::string member(const Error& error, std::string_view key) {
  return json::View(error.detail().rpc_data)[key].as_string().value_or("");
}

TEST(GatewayFailure, EveryKindHasCodeAndRemedyInItsData) {
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::validation); ++kind) {
    const Error told = failure_of("files", Error(static_cast<ErrorKind>(kind), "why"), true);
    EXPECT_EQ(told.detail().rpc_code, rpc::kInternalError);
    EXPECT_EQ(member(told, "server"), "files");
    EXPECT_EQ(member(told, "kind"), to_string(static_cast<ErrorKind>(kind)));
    EXPECT_NE(member(told, "code"), "") << kind;
    EXPECT_EQ(member(told, "remedy"), remedy_for(member(told, "code"))) << kind;
  }
}

TEST(GatewayFailure, ACodeOfTheErrorItselfIsKept) {
  const Error told =
      failure_of("files", with_failure_code(Error(ErrorKind::closed, "why"), failure::draining), true);
  EXPECT_EQ(member(told, "code"), failure::draining);
}

TEST_F(GatewayTest, AnUnknownToolIsRefusedWithCodeAndRemedy) {
  add("s", Sharing::shared);
  const auto client = enter();
  const Result<mcp::ToolResult> result = loop.block_on(client->client->call_tool("s__no", raw("{}")));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().detail().rpc_code, rpc::kInvalidParams);
  EXPECT_EQ(member(result.error(), "code"), failure::unknown_name);
  EXPECT_EQ(member(result.error(), "remedy"), remedy_for(failure::unknown_name));
}

}  // namespace
}  // namespace fairlead::gateway
