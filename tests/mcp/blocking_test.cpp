// R3.6 for MCP: a client without an event loop, against a real server process.
#include "fairlead/mcp/blocking.hpp"

#include <gtest/gtest.h>

#include "support/support.hpp"

namespace fairlead {
namespace {

// A server that knows one answer; enough of the legacy handshake for any client.
const char* const kServer =
    R"(while read l; do case "$l" in *initialize\"*) echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}';; *discover*) echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}';; *tools/call*) echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"hi"}]}}';; esac; done)";

TEST(BlockingClient, CallsAToolOfAServerItStarts) {
  auto client = blocking::Client::connect("stdio:sh -c " + percent_encode_word(kServer));
  ASSERT_TRUE(client) << client.error().to_string();
  EXPECT_EQ(client->server_info()["name"].as_string(), "sh");
  EXPECT_EQ(client->revision(), mcp::Revision::r2025_11_25);
  const auto result = client->call_tool("greet", R"({"to":"you"})");
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->content.front().text(), "hi");
}

TEST(BlockingClient, ErrorsAreValues) {
  EXPECT_EQ(blocking::Client::connect("stdio:no-such-program-here").error().kind(), ErrorKind::spawn);
  const Error exited = blocking::Client::connect("stdio:sh -c exit%204").error();
  EXPECT_EQ(exited.kind(), ErrorKind::process_exited) << exited.to_string();
  EXPECT_EQ(exited.detail().exit_status, 4);
  auto client = blocking::Client::connect("stdio:sh -c " + percent_encode_word(kServer));
  ASSERT_TRUE(client);
  EXPECT_EQ(client->call_tool("greet", "{not json").error().kind(), ErrorKind::serialize);
}

TEST(BlockingClient, NothingIsLeftBehind) {
  // A sanitizer starts a thread of its own with the first one.
  ASSERT_TRUE(blocking::Client::connect("stdio:sh -c " + percent_encode_word(kServer)));
  const std::size_t descriptors = test::open_descriptors();
  const std::size_t threads = test::running_threads();
  for (int i = 0; i < 3; ++i) {
    auto client = blocking::Client::connect("stdio:sh -c " + percent_encode_word(kServer));
    ASSERT_TRUE(client);
  }
  EXPECT_EQ(test::open_descriptors(), descriptors);
  EXPECT_EQ(test::running_threads(), threads);
}

}  // namespace
}  // namespace fairlead
