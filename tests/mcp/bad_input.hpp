// BadInputTest: a server with one entry of every kind, to which the tests send invalid input.
#pragma once

#include "mcp/harness.hpp"

namespace fairlead::mcp {

class BadInputTest : public FullServerTest {
 public:
  void SetUp() override {
    FullServerTest::SetUp();
    tool(server, "step", "", [](const Context& context, const EchoArgs&) {
      context.report_progress(1);
      return std::string("done");
    });
  }
  void start_legacy(const std::string& revision = "2025-11-25") {
    start();
    initialize(revision, kCapabilities);
  }
  static constexpr const char* kCapabilities = R"({"elicitation":{"form":{}}})";
  std::string modern_with(const std::string& method, const std::string& members,
                          const std::string& meta = "") {
    return round_trip(
        R"({"jsonrpc":"2.0","id":1,"method":")" + method + R"(","params":{)" + members +
        (members.empty() ? "" : ",") +
        R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":)" +
        kCapabilities + meta + "}}}");
  }
  // Returns whether the server still responds, and has sent no other message before.
  bool still_serves() { return legacy("ping") == result("{}"); }
};

// Returns whether `answer` is an error response with id 1 and this code.
inline bool has_code(const std::string& answer, int code) {
  return answer.find(R"({"jsonrpc":"2.0","id":1,"error":{"code":)" + std::to_string(code) + ",") == 0;
}

}  // namespace fairlead::mcp
