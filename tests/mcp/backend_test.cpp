// A backend answers in the place of what is registered: a gateway stands on this.
#include "fairlead/mcp/backend.hpp"

#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

class Recording final : public Backend {
 public:
  std::vector<std::string> seen;
  std::string session;

  bool has_capability(std::string_view capability) const override {
    return capability == "tools" || capability == "resources";
  }
  Task<Answer> serve(BackendRequest request) override {
    seen.push_back("serve " + std::string(request.message.method()));
    session = request.context.session();
    request.context.notify("notifications/progress",
                           *json::Raw::parse(R"({"progressToken":7,"progress":1})"));
    co_return request.message.params();
  }
  json::Raw input_schema(std::string_view) const override { return json::Raw(); }
  void subscribed(const std::string& uri, bool on) override {
    seen.push_back((on ? "subscribed " : "unsubscribed ") + uri);
  }
  void session_ended(std::string_view ended) override { seen.push_back("ended " + std::string(ended)); }
};

class BackendTest : public ServerTest {
 public:
  std::shared_ptr<Recording> backend = std::make_shared<Recording>();

  void SetUp() override {
    ServerTest::SetUp();
    server.backend(backend);
    start();
    greeting = ask(
        R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
  }
  std::string greeting;
};

TEST_F(BackendTest, ItsCapabilitiesAreAdvertisedAndNoOthers) {
  EXPECT_NE(greeting.find(R"("tools":{)"), std::string::npos) << greeting;
  EXPECT_EQ(greeting.find("prompts"), std::string::npos) << greeting;
  EXPECT_EQ(greeting.find("logging"), std::string::npos) << greeting;
  EXPECT_NE(ask(R"({"jsonrpc":"2.0","id":2,"method":"prompts/list"})").find("-32601"), std::string::npos);
}

TEST_F(BackendTest, ARequestReachesItWholeAndItsAnswerIsTheResultByteForByte) {
  say(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo", "arguments":{"n":1.50e1}}})");
  EXPECT_EQ(
      hear(),
      R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}})");
  EXPECT_EQ(hear(), R"({"jsonrpc":"2.0","id":2,"result":{"name":"echo", "arguments":{"n":1.50e1}}})");
  EXPECT_FALSE(backend->session.empty());
}

TEST_F(BackendTest, ItHearsOfTheFirstSubscriberAndOfTheLast) {
  for (const char* id : {"2", "3"})
    ask(R"({"jsonrpc":"2.0","id":)" + std::string(id) +
        R"(,"method":"resources/subscribe","params":{"uri":"a:b"}})");
  say(R"({"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:b"]},)" +
      kEnvelope + "}}");
  hear();
  ask(R"({"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"a:b"}})");
  EXPECT_EQ(backend->seen, std::vector<std::string>({"subscribed a:b"}));
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}})");
  ask(R"({"jsonrpc":"2.0","id":5,"method":"ping"})");
  loop.run_until([&] { return backend->seen.size() == 2; });
  EXPECT_EQ(backend->seen.back(), "unsubscribed a:b");
}

TEST_F(BackendTest, ItHearsThatASessionHasEnded) {
  ask(R"({"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:b"}})");
  TearDown();
  peer.reset();
  far.reset();
  loop.run_until([&] { return backend->seen.size() == 3; });
  EXPECT_EQ(backend->seen[1].substr(0, 6), "ended ");
  EXPECT_EQ(backend->seen[2], "unsubscribed a:b");
}

}  // namespace
}  // namespace fairlead::mcp
