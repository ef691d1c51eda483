// Two principals at one server over HTTP: what belongs to one of them is not the other's.
#include "fairlead/http/authenticator.hpp"
#include "http/raw_client.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;
using test::RawClient;

const std::string kAnn = "ann-0123456789abcdef";
const std::string kBob = "bob-0123456789abcdef";
const std::string kAnnElsewhere = "other-issuer-0123456789";  // another issuer's Ann

Principal of_issuer(const std::string& issuer, const std::string& user) {
  Principal made;
  made.issuer = issuer;
  made.subject = user;
  made.user = user;
  return made;
}

http::ServerOptions with_three_tokens() {
  auto tokens = std::make_shared<http::StaticTokenAuthenticator>();
  EXPECT_TRUE(tokens->add(kAnn, of_issuer("a", "ann")));
  EXPECT_TRUE(tokens->add(kBob, of_issuer("a", "bob")));
  EXPECT_TRUE(tokens->add(kAnnElsewhere, of_issuer("b", "ann")));
  http::ServerOptions options;
  options.authenticator = std::move(tokens);
  return options;
}

class IdentityTest : public ::testing::Test {
 public:
  // Served at two paths, as two servers that share their keys.
  Server server{"one", "1"};
  Server other{"two", "1"};
  test::HttpServer listener{with_three_tokens()};
  std::vector<std::shared_ptr<transport::Endpoint>> endpoints;

  static Task<Result<ToolResult>> ask(Context context, json::Raw) {
    Task<Result<std::vector<Root>>> asking = context.roots();
    const Result<std::vector<Root>> roots = co_await asking;
    if (!roots) co_return roots.error();
    co_return ToolResult::text("roots for " + context.principal()->issuer + "/" +
                               std::string(context.user()));
  }
  void offer(Server& at, const std::string& path) {
    at.state_keys({std::string(32, 'k')});
    for (const char* name : {"ask", "ask_too"}) {
      ToolSpec spec;
      spec.name = name;
      ASSERT_TRUE(at.add_tool(spec, Server::CoroutineTool(&ask)));
    }
    listener.thread().run([&] {
      endpoints.push_back(transport::Endpoint::create(listener.thread().loop(), http_application(at)));
    });
    listener.route(path, endpoints.back()->handler());
  }
  void SetUp() override {
    offer(server, "/one");
    offer(other, "/two");
  }
  void TearDown() override {
    listener.thread().run([&] {
      for (const auto& endpoint : endpoints) endpoint->close();
      endpoints.clear();
    });
  }

  RawClient::Answer send(const std::string& method, const std::string& path, const std::string& token,
                         const std::string& fields, const std::string& body = "") {
    RawClient client = listener.client();
    return client.ask(
        method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
        "\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n" + fields +
        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  // A modern call of a tool that asks for the client's roots; with `state` the second round.
  std::string call(const std::string& token, const std::string& state = "", const std::string& path = "/one",
                   const std::string& tool = "ask") {
    const std::string round =
        state.empty() ? "" : R"("inputResponses":{"q1":{"roots":[]}},"requestState":")" + state + "\",";
    const std::string body = R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" + tool +
                             R"(","arguments":{},)" + round +
                             R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                             R"("io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}})";
    return send("POST", path, token,
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: " + tool + "\r\n",
                body)
        .body;
  }
  static std::string state_of(const std::string& answer) {
    const std::size_t at = answer.find(R"("requestState":")") + 16;
    return answer.substr(at, answer.find('"', at) - at);
  }
};

constexpr std::string_view kRefused = R"("data":{"reason":"invalid_request_state"})";

TEST_F(IdentityTest, HandlerSeesThePrincipalOfTheRequest) {
  EXPECT_NE(call(kAnn, state_of(call(kAnn))).find("roots for a/ann"), std::string::npos);
  EXPECT_NE(call(kAnnElsewhere, state_of(call(kAnnElsewhere))).find("roots for b/ann"), std::string::npos);
}

TEST_F(IdentityTest, StateSealedForOnePrincipalIsRefusedForAnother) {
  const std::string state = state_of(call(kAnn));
  EXPECT_NE(call(kBob, state).find(kRefused), std::string::npos) << call(kBob, state);
  EXPECT_NE(call(kAnnElsewhere, state).find(kRefused), std::string::npos);
  EXPECT_NE(call(kAnn, state).find("roots for"), std::string::npos);
}

TEST_F(IdentityTest, StateSealedForOneToolIsRefusedForAnother) {
  const std::string state = state_of(call(kAnn));
  EXPECT_NE(call(kAnn, state, "/one", "ask_too").find(kRefused), std::string::npos);
}

TEST_F(IdentityTest, StateSealedAtOneEndpointIsRefusedAtAnother) {
  const std::string state = state_of(call(kAnn));
  EXPECT_NE(call(kAnn, state, "/two").find(kRefused), std::string::npos) << call(kAnn, state, "/two");
}

TEST_F(IdentityTest, SessionOfOnePrincipalIsNotFoundByAnother) {
  const auto begun = send("POST", "/one", kAnn, "",
                          R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":)"
                          R"({"protocolVersion":"2025-11-25","capabilities":{}}})");
  const std::size_t at = begun.head.find("Mcp-Session-Id: ");
  ASSERT_NE(at, std::string::npos) << begun.head;
  const std::string session = begun.head.substr(at, begun.head.find("\r\n", at) + 2 - at);
  const std::string ping = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";
  for (const std::string& token : {kBob, kAnnElsewhere}) {
    EXPECT_EQ(send("POST", "/one", token, session, ping).status, 404);
    EXPECT_EQ(send("GET", "/one", token, session + "MCP-Protocol-Version: 2025-11-25\r\n").status, 404);
    EXPECT_EQ(send("DELETE", "/one", token, session + "MCP-Protocol-Version: 2025-11-25\r\n").status, 404);
  }
  EXPECT_EQ(send("POST", "/one", kAnn, session, ping).status, 200);
}

}  // namespace
}  // namespace fairlead::mcp
