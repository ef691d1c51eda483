// ServerTest: a server on one end of a channel. The other end belongs to the test, which sends raw JSON, or
// to a Client.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fairlead/connection/channel.hpp"
#include "fairlead/mcp/client.hpp"
#include "fairlead/mcp/serve.hpp"
#include "fairlead/mcp/typed.hpp"
#include "support/support.hpp"

namespace fairlead::mcp {

inline const std::string kEnvelope =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";
inline const std::string kServerMeta =
    R"("_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}})";

struct EchoArgs {
  std::string message;
  std::optional<int> times;
};
BOOST_DESCRIBE_STRUCT(EchoArgs, (), (message, times))

struct Sum {
  double sum;
};
BOOST_DESCRIBE_STRUCT(Sum, (), (sum))

struct AddArgs {
  double a;
  double b;
};
BOOST_DESCRIBE_STRUCT(AddArgs, (), (a, b))

class ServerTest : public ::testing::Test {
 public:
  Loop loop;
  Server server{"test", "1"};
  std::shared_ptr<Connection> test_end;  // the end of the channel that belongs to the test
  std::shared_ptr<Peer> peer;

  void SetUp() override {
    tool(server, "echo", "Echoes", [](const EchoArgs& in) { return in.message; });
    tool(server, "add", "Adds", [](const AddArgs& in) { return Sum{in.a + in.b}; });
    tool(server, "half", "A number", [](const AddArgs& in) { return in.a / 2; });
  }

  void start() {
    auto [near_end, far_end] = make_channel(loop, loop);
    test_end = far_end;
    peer = serve(server, near_end);
  }
  void TearDown() override {
    if (test_end) test_end->close();
    if (peer) loop.run_until([&] { return peer->finished().is_set(); });
  }

  // Sends one message to the server.
  void send(const std::string& text) {
    auto body = [](std::shared_ptr<Connection> c, std::string t) -> Task<Result<void>> {
      Result<void> sent = co_await c->send(test::rope(t));
      co_return sent;
    };
    ASSERT_TRUE(loop.block_on(body(test_end, text)));
  }
  // Returns the next message of the server, or the error.
  std::string receive() {
    auto body = [](std::shared_ptr<Connection> c) -> Task<Result<rpc::Message>> {
      Result<rpc::Message> got = co_await c->receive();
      co_return got;
    };
    const Result<rpc::Message> got = loop.block_on(body(test_end));
    return got ? std::string(got->frame().view()) : got.error().to_string();
  }
  // Sends a message and returns the next message of the server.
  std::string round_trip(const std::string& text) {
    send(text);
    return receive();
  }
  // Send a request with id 1, in the legacy era or (with the envelope) in the modern one, and return the next
  // message.
  std::string legacy(const std::string& method, const std::string& params = "{}") {
    return round_trip(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}");
  }
  std::string modern(const std::string& method, const std::string& members = "") {
    return round_trip(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":{)" +
                      (members.empty() ? "" : members + ",") + kEnvelope + "}}");
  }
  std::string initialize(const std::string& revision, const std::string& capabilities = "{}") {
    return legacy("initialize", R"({"protocolVersion":")" + revision + R"(","capabilities":)" + capabilities +
                                    R"(,"clientInfo":{"name":"t","version":"1"}})");
  }
};

// ---- entries of every kind -------------------------------------------------------------------------------

inline Task<Result<std::vector<ResourceContents>>> read_city(Context, std::string uri,
                                                             Server::Variables variables) {
  co_return std::vector<ResourceContents>(
      1, ResourceContents{uri, "text/plain", "city=" + variables["city"], {}});
}
inline Task<Result<PromptResult>> greet(Context, Server::Variables arguments) {
  PromptResult prompt;
  prompt.messages.push_back({"user", Content::text("Hello " + arguments["who"])});
  co_return prompt;
}
// Returns more values than may be sent.
inline CompletionResult complete_150(const std::string& argument, const std::string& value,
                                     const Server::Variables&) {
  CompletionResult completion;
  for (int i = 0; i < 150; ++i) completion.values.push_back(argument + value + std::to_string(i));
  return completion;
}
inline Task<Result<std::string>> elicit_form(Context context, EchoArgs) {
  Task<Result<ElicitResult>> input_request = context.elicit("Who?", test::raw(R"({"type":"object"})"));
  const Result<ElicitResult> who = co_await input_request;
  if (!who) co_return who.error();
  co_return std::string("answered");
}

// A server with a resource, a template, a prompt, completion for both, and a tool with an input request.
class FullServerTest : public ServerTest {
 public:
  void SetUp() override {
    ServerTest::SetUp();
    ResourceSpec fixed;
    fixed.uri = "test://fixed";
    fixed.name = "fixed";
    ASSERT_TRUE(server.add_resource(fixed, read_city));
    ResourceSpec pattern;
    pattern.uri = "test://{city}/now";
    pattern.name = "now";
    ASSERT_TRUE(server.add_resource_template(pattern, read_city, complete_150));
    PromptSpec hello;
    hello.name = "hello";
    hello.arguments = {{"who", "", "", false}};
    ASSERT_TRUE(server.add_prompt(hello, greet, complete_150));
    tool(server, "ask", "", &elicit_form);
  }
};

// Return a response with id 1, as the server sends it.
inline std::string result(const std::string& body) {
  return R"({"jsonrpc":"2.0","id":1,"result":)" + body + "}";
}
inline std::string error(int code, const std::string& rest) {
  return R"({"jsonrpc":"2.0","id":1,"error":{"code":)" + std::to_string(code) + "," + rest + "}}";
}

}  // namespace fairlead::mcp
