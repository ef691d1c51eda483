// Client and server declare their extensions, and each sees the extensions of the other.
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

Task<void> connect_into(std::shared_ptr<Connection> connection, ClientOptions options,
                        Result<std::shared_ptr<Client>>& out) {
  out = co_await Client::connect_over(connection, options);
}

class ExtensionsTest : public ServerTest, public ::testing::WithParamInterface<const char*> {
 public:
  Result<std::shared_ptr<Client>> client = Error(ErrorKind::closed, "not connected");

  void connect(ClientOptions options) {
    auto [near_end, far_end] = make_channel(loop, loop);
    peer = serve(server, near_end);
    options.pinned_revision = revision_named(GetParam());
    loop.block_on(connect_into(far_end, options, client));
  }
  void TearDown() override {
    if (client) loop.block_on((*client)->close());
    ServerTest::TearDown();
  }
};

TEST_P(ExtensionsTest, ClientAndServerSeeDeclaredExtensions) {
  server.extension("com.example/a").extension("com.example/b", test::raw(R"({"n":1})"));
  tool(server, "seen", "", [](const Context& context, const EchoArgs& in) {
    return std::string(context.client_extension(in.message).text());
  });
  ClientOptions options;
  options.extensions["com.example/c"] = test::raw(R"({"m":2})");
  connect(options);
  ASSERT_TRUE(client);
  EXPECT_EQ((*client)->server_extension("com.example/a").text(), "{}");
  EXPECT_EQ((*client)->server_extension("com.example/b").text(), R"({"n":1})");
  EXPECT_TRUE((*client)->server_extension("com.example/c").absent());
  const auto seen = [&](const char* id) {
    const Result<ToolResult> result =
        loop.block_on((*client)->call_tool("seen", test::raw(R"({"message":")" + std::string(id) + "\"}")));
    return result ? result->content.front().text() : result.error().to_string();
  };
  EXPECT_EQ(seen("com.example/c"), R"({"m":2})");
  EXPECT_EQ(seen("com.example/a"), "");
}

TEST_P(ExtensionsTest, InvalidExtensionIsRejectedBeforeConnecting) {
  EXPECT_THROW(server.extension("tasks"), std::invalid_argument);
  EXPECT_THROW(server.extension("com.example/a", test::raw("1")), std::invalid_argument);
  ClientOptions options;
  options.extensions["nothing"] = json::Raw();
  connect(options);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().kind(), ErrorKind::validation);
}

INSTANTIATE_TEST_SUITE_P(Revisions, ExtensionsTest, ::testing::Values("2025-11-25", "2026-07-28"),
                         [](const auto& tested) { return std::string(tested.param).substr(0, 4); });

}  // namespace
}  // namespace fairlead::mcp
