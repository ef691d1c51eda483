// Every error response of the gateway has a stable code and a remedy. R10.5.
#include "gateway/failure.hpp"

#include "fairlead/process/failure.hpp"
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

std::string member(const Error& error, std::string_view key) {
  return json::View(error.detail().rpc_data)[key].as_string().value_or("");
}

TEST(GatewayFailureTest, EveryErrorKindHasCodeAndRemedy) {
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::validation); ++kind) {
    const Error error = server_failure_error("files", Error(static_cast<ErrorKind>(kind), "why"), true);
    EXPECT_EQ(error.detail().rpc_code, rpc::kInternalError);
    EXPECT_EQ(member(error, "server"), "files");
    EXPECT_EQ(member(error, "kind"), to_string(static_cast<ErrorKind>(kind)));
    EXPECT_NE(member(error, "code"), "") << kind;
    EXPECT_EQ(member(error, "remedy"), remedy_for(member(error, "code"))) << kind;
  }
}

TEST(GatewayFailureTest, CodeOfErrorIsKept) {
  const Error error = server_failure_error(
      "files", with_failure_code(Error(ErrorKind::closed, "why"), failure::draining), true);
  EXPECT_EQ(member(error, "code"), failure::draining);
}

TEST_F(GatewayTest, UnknownToolIsRejectedWithCodeAndRemedy) {
  add("s", Sharing::shared);
  const auto client = connect_client();
  const Result<mcp::ToolResult> result = loop.block_on(client->client->call_tool("s__no", raw("{}")));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().detail().rpc_code, rpc::kInvalidParams);
  EXPECT_EQ(member(result.error(), "code"), failure::unknown_name);
  EXPECT_EQ(member(result.error(), "remedy"), remedy_for(failure::unknown_name));
}

}  // namespace
}  // namespace fairlead::gateway
