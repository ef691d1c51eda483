// A server with one of everything, for what a client should not send to it.
#pragma once

#include "mcp/harness.hpp"

namespace fairlead::mcp {

class BadInputTest : public FullServerTest {
 public:
  void SetUp() override {
    FullServerTest::SetUp();
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
