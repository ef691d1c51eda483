// R3.6 for MCP: blocking::Client against a server process.
#include "fairlead/mcp/blocking.hpp"

#include <gtest/gtest.h>

#include "support/support.hpp"

namespace fairlead {
namespace {

// A server that implements the legacy handshake and one tool.
const char* const kServer =
    R"(while read l; do case "$l" in *initialize\"*) echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}';; *discover*) echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}';; *tools/call*) echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"hi"}]}}';; esac; done)";

TEST(BlockingClientTest, CallsToolOfChildProcess) {
  auto client = blocking::Client::connect("stdio:sh -c " + percent_encode_word(kServer));
  ASSERT_TRUE(client) << client.error().to_string();
  EXPECT_EQ(client->server_info()["name"].as_string(), "sh");
  EXPECT_EQ(client->revision(), mcp::Revision::r2025_11_25);
  const auto result = client->call_tool("greet", R"({"to":"you"})");
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->content.front().text(), "hi");
}

TEST(BlockingClientTest, FailuresAreReturnedAsErrors) {
  EXPECT_EQ(blocking::Client::connect("stdio:no-such-program-here").error().kind(), ErrorKind::spawn);
  const Error exited = blocking::Client::connect("stdio:sh -c exit%204").error();
  EXPECT_EQ(exited.kind(), ErrorKind::process_exited) << exited.to_string();
  EXPECT_EQ(exited.detail().exit_status, 4);
  auto client = blocking::Client::connect("stdio:sh -c " + percent_encode_word(kServer));
  ASSERT_TRUE(client);
  EXPECT_EQ(client->call_tool("greet", "{not json").error().kind(), ErrorKind::serialize);
}

TEST(BlockingClientTest, DestructorLeavesNoDescriptorsOrThreads) {
  // The first connection is not counted: sanitizers start a background thread with the first thread.
  ASSERT_TRUE(blocking::Client::connect("stdio:sh -c " + percent_encode_word(kServer)));
  const std::size_t descriptors = test::open_descriptor_count();
  const std::size_t threads = test::thread_count();
  for (int i = 0; i < 3; ++i) {
    auto client = blocking::Client::connect("stdio:sh -c " + percent_encode_word(kServer));
    ASSERT_TRUE(client);
  }
  EXPECT_EQ(test::open_descriptor_count(), descriptors);
  EXPECT_EQ(test::thread_count(), threads);
}

}  // namespace
}  // namespace fairlead
