// A server on one end of a channel; on the other the test, speaking raw JSON, or a client of ours.
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
  std::shared_ptr<Connection> far;
  std::shared_ptr<Peer> peer;

  void SetUp() override {
    tool(server, "echo", "Echoes", [](const EchoArgs& in) { return in.message; });
    tool(server, "add", "Adds", [](const AddArgs& in) { return Sum{in.a + in.b}; });
    tool(server, "half", "A number", [](const AddArgs& in) { return in.a / 2; });
  }

  void start() {
    auto [near_end, far_end] = make_channel(loop, loop);
    far = far_end;
    peer = serve(server, near_end);
  }
  void TearDown() override {
    if (far) far->close();
    if (peer) loop.run_until([&] { return peer->finished().is_set(); });
  }

  void say(const std::string& text) {
    auto body = [](std::shared_ptr<Connection> c, std::string t) -> Task<Result<void>> {
      Result<void> sent = co_await c->send(test::rope(t));
      co_return sent;
    };
    ASSERT_TRUE(loop.block_on(body(far, text)));
  }
  std::string hear() {
    auto body = [](std::shared_ptr<Connection> c) -> Task<Result<rpc::Message>> {
      Result<rpc::Message> got = co_await c->receive();
      co_return got;
    };
    const Result<rpc::Message> got = loop.block_on(body(far));
    return got ? std::string(got->frame().view()) : got.error().to_string();
  }
  std::string ask(const std::string& text) {
    say(text);
    return hear();
  }
  // A request with this id-1 result or error, in the legacy era or (with the envelope) the modern one.
  std::string legacy(const std::string& method, const std::string& params = "{}") {
    return ask(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":)" + params + "}");
  }
  std::string modern(const std::string& method, const std::string& members = "") {
    return ask(R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":{)" +
               (members.empty() ? "" : members + ",") + kEnvelope + "}}");
  }
  std::string initialize(const std::string& revision, const std::string& capabilities = "{}") {
    return legacy("initialize", R"({"protocolVersion":")" + revision + R"(","capabilities":)" + capabilities +
                                    R"(,"clientInfo":{"name":"t","version":"1"}})");
  }
};

// ---- one of everything -----------------------------------------------------------------------------------

inline Task<Result<std::vector<ResourceContents>>> read_city(Context, std::string uri,
                                                             Server::Variables variables) {
  co_return std::vector<ResourceContents>(
      1, ResourceContents{uri, "text/plain", "city=" + variables["city"], {}});
}
inline Task<Result<PromptResult>> greet(Context, Server::Variables arguments) {
  PromptResult made;
  made.messages.push_back({"user", Content::text("Hello " + arguments["who"])});
  co_return made;
}
// More than may be sent.
inline CompletionResult complete_150(const std::string& argument, const std::string& value,
                                     const Server::Variables&) {
  CompletionResult made;
  for (int i = 0; i < 150; ++i) made.values.push_back(argument + value + std::to_string(i));
  return made;
}
inline Task<Result<std::string>> ask_form(Context context, EchoArgs) {
  Task<Result<ElicitResult>> asking = context.elicit("Who?", test::raw(R"({"type":"object"})"));
  const Result<ElicitResult> who = co_await asking;
  if (!who) co_return who.error();
  co_return std::string("answered");
}

// A server with a resource, a template, a prompt, completion of both, and a tool that asks.
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
    tool(server, "ask", "", &ask_form);
  }
};

inline std::string result(const std::string& body) {
  return R"({"jsonrpc":"2.0","id":1,"result":)" + body + "}";
}
inline std::string error(int code, const std::string& rest) {
  return R"({"jsonrpc":"2.0","id":1,"error":{"code":)" + std::to_string(code) + "," + rest + "}}";
}

}  // namespace fairlead::mcp
