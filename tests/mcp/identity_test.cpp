// Several principals at one server over HTTP: the request state and the sessions of one principal are
// rejected for another.
#include "fairlead/http/authenticator.hpp"
#include "http/raw_client.hpp"
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;
using test::RawClient;

const std::string kAnn = "ann-0123456789abcdef";
const std::string kBob = "bob-0123456789abcdef";
const std::string kAnnElsewhere = "other-issuer-0123456789";  // a user "ann" of another issuer

Principal of_issuer(const std::string& issuer, const std::string& user) {
  Principal principal;
  principal.issuer = issuer;
  principal.subject = user;
  principal.user = user;
  return principal;
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
  // Two servers with the same state keys, served at two paths.
  Server server{"one", "1"};
  Server other{"two", "1"};
  test::HttpServer listener{with_three_tokens()};
  std::vector<std::shared_ptr<transport::Endpoint>> endpoints;

  static Task<Result<ToolResult>> request_roots(Context context, json::Raw) {
    const Result<std::vector<Root>> roots = co_await context.roots();
    if (!roots) co_return roots.error();
    co_return ToolResult::text("roots for " + context.principal()->issuer + "/" +
                               std::string(context.user()));
  }
  void add_endpoint(Server& served, const std::string& path) {
    served.request_state_keys({std::string(32, 'k')});
    for (const char* name : {"ask", "ask_too"}) {
      ToolSpec spec;
      spec.name = name;
      ASSERT_TRUE(served.add_tool(spec, Server::CoroutineTool(&request_roots)));
    }
    listener.thread().run([&] {
      endpoints.push_back(transport::Endpoint::create(listener.thread().loop(), http_application(served)));
    });
    listener.route(path, endpoints.back()->handler());
  }
  void SetUp() override {
    add_endpoint(server, "/one");
    add_endpoint(other, "/two");
  }
  void TearDown() override {
    listener.thread().run([&] {
      for (const auto& endpoint : endpoints) endpoint->close();
      endpoints.clear();
    });
  }

  RawClient::Response send(const std::string& method, const std::string& path, const std::string& token,
                           const std::string& fields, const std::string& body = "") {
    RawClient client = listener.client();
    return client.request(
        method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token +
        "\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n" + fields +
        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  // Sends a modern call of a tool that requests the roots of the client. If `state` is not empty, sends the
  // second round, with that request state.
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

constexpr std::string_view kRejected = R"("data":{"reason":"invalid_request_state"})";

TEST_F(IdentityTest, HandlerSeesThePrincipalOfTheRequest) {
  EXPECT_NE(call(kAnn, state_of(call(kAnn))).find("roots for a/ann"), std::string::npos);
  EXPECT_NE(call(kAnnElsewhere, state_of(call(kAnnElsewhere))).find("roots for b/ann"), std::string::npos);
}

TEST_F(IdentityTest, StateSealedForOnePrincipalIsRejectedForAnother) {
  const std::string state = state_of(call(kAnn));
  EXPECT_NE(call(kBob, state).find(kRejected), std::string::npos) << call(kBob, state);
  EXPECT_NE(call(kAnnElsewhere, state).find(kRejected), std::string::npos);
  EXPECT_NE(call(kAnn, state).find("roots for"), std::string::npos);
}

TEST_F(IdentityTest, StateSealedForOneToolIsRejectedForAnother) {
  const std::string state = state_of(call(kAnn));
  EXPECT_NE(call(kAnn, state, "/one", "ask_too").find(kRejected), std::string::npos);
}

TEST_F(IdentityTest, StateSealedAtOneEndpointIsRejectedAtAnother) {
  const std::string state = state_of(call(kAnn));
  EXPECT_NE(call(kAnn, state, "/two").find(kRejected), std::string::npos) << call(kAnn, state, "/two");
}

TEST_F(IdentityTest, SessionOfOnePrincipalIsNotFoundByAnother) {
  const auto initialized = send("POST", "/one", kAnn, "",
                                R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":)"
                                R"({"protocolVersion":"2025-11-25","capabilities":{}}})");
  const std::size_t at = initialized.head.find("Mcp-Session-Id: ");
  ASSERT_NE(at, std::string::npos) << initialized.head;
  const std::string session = initialized.head.substr(at, initialized.head.find("\r\n", at) + 2 - at);
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
