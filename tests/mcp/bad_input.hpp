// A server with one of everything, for what a client should not send to it.
#pragma once

#include "mcp/harness.hpp"

namespace fairlead::mcp {

inline Task<Result<std::vector<ResourceContents>>> read_one(Context, std::string uri, Server::Variables) {
  co_return std::vector<ResourceContents>(1, ResourceContents{uri, "", "text", {}});
}
inline Task<Result<PromptResult>> greet(Context, Server::Variables arguments) {
  PromptResult made;
  made.messages.push_back({"user", Content::text("Hello " + arguments["who"])});
  co_return made;
}
inline Task<Result<std::string>> ask_name(Context context, EchoArgs) {
  Task<Result<ElicitResult>> asking = context.elicit("Who?", test::raw(R"({"type":"object"})"));
  const Result<ElicitResult> who = co_await asking;
  if (!who) co_return who.error();
  co_return std::string("asked");
}

class BadInputTest : public ServerTest {
 public:
  void SetUp() override {
    ServerTest::SetUp();
    ResourceSpec fixed;
    fixed.uri = "test://fixed";
    fixed.name = "fixed";
    ASSERT_TRUE(server.add_resource(fixed, read_one));
    PromptSpec prompt;
    prompt.name = "hello";
    ASSERT_TRUE(server.add_prompt(prompt, greet));
    tool(server, "ask", "", &ask_name);
    tool(server, "step", "", [](const Context& context, const EchoArgs&) {
      context.progress(1);
      return std::string("done");
    });
  }
  void start_legacy(const std::string& revision = "2025-11-25") {
    start();
    initialize(revision, kOffered);
  }
  static constexpr const char* kOffered = R"({"elicitation":{"form":{}}})";
  std::string modern_with(const std::string& method, const std::string& members,
                          const std::string& meta = "") {
    return ask(
        R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":{)" + members +
        (members.empty() ? "" : ",") +
        R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":)" +
        kOffered + meta + "}}}");
  }
  bool serves() { return legacy("ping") == result("{}"); }
};

inline bool has_code(const std::string& answer, int code) {
  return answer.find(R"({"jsonrpc":"2.0","id":1,"error":{"code":)" + std::to_string(code) + ",") == 0;
}

}  // namespace fairlead::mcp
