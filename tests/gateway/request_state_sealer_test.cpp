// A server's requestState is accepted only from the principal and for the tool it was issued for.
#include "gateway/request_state_sealer.hpp"

#include "fairlead/process/failure.hpp"
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

PrincipalPtr principal_named(const std::string& user) {
  auto principal = std::make_shared<Principal>();
  principal->issuer = "test";
  principal->subject = principal->user = user;
  return principal;
}

std::string code_of(const Error& error) {
  return json::View(error.detail().rpc_data)["code"].as_string().value_or("");
}

// ---- RequestStateSealer ----

class RequestStateSealerTest : public ::testing::Test {
 protected:
  static mcp::Server front_at(const std::string& endpoint) {
    mcp::Server front("front", "1");
    front.request_state_keys({std::string(32, 'k')}).endpoint_name(endpoint);
    return front;
  }
  const RequestStateSealer states{front_at("/one")};
  const PrincipalPtr ann = principal_named("ann");
  const std::string server = "files";

  static rpc::Message request(const std::string& method, const std::string& tool, const std::string& state) {
    const std::string member = state.empty() ? "" : R"(,"requestState":)" + state;
    return rpc::Message::parse(Bytes::copy_of(R"({"jsonrpc":"2.0","id":1,"method":")" + method +
                                              R"(","params":{"name":")" + tool + R"(","arguments":{})" +
                                              member + "}}"));
  }
  static rpc::Message answer(const std::string& state) {
    return rpc::Message::parse(Bytes::copy_of(
        R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":)" + state + "}}"));
  }
  // Returns the sealed state as a client receives it, as JSON.
  std::string sealed(const std::string& state) const {
    const rpc::Message first = request("tools/call", "files__read", "");
    const auto facts = mcp::CallFacts::of(first);
    const Result<json::Raw> result = states.seal(answer(state), StateBinding{*ann, server, *facts});
    EXPECT_TRUE(result) << result.error().message();
    return result ? std::string(json::View(*result)["requestState"].text()) : "";
  }
  // Returns the state as the server receives it, or the code of the error.
  static std::string opened(const RequestStateSealer& by, const Principal& principal, const std::string& at,
                            const rpc::Message& message) {
    const auto facts = mcp::CallFacts::of(message);
    const Result<json::Raw> state = by.open(StateBinding{principal, at, *facts});
    if (!state) {
      EXPECT_EQ(state.error().detail().rpc_code, rpc::kInvalidParams);
      return code_of(state.error());
    }
    return std::string(state->text());
  }
};

const std::string kInvalidStateCode(failure::invalid_request_state);

TEST_F(RequestStateSealerTest, OpenReturnsStateAsServerSentIt) {
  for (const std::string state : {R"("")", R"("plain")", R"("\u0000 \" \/ {}")"}) {
    const std::string given = sealed(state);
    EXPECT_NE(given, state);
    EXPECT_EQ(opened(states, *ann, server, request("tools/call", "files__read", given)), state);
  }
  EXPECT_EQ(opened(states, *ann, server, request("tools/call", "files__read", "")), "");
}

TEST_F(RequestStateSealerTest, StateIsRejectedWithDifferentBinding) {
  const rpc::Message again = request("tools/call", "files__read", sealed(R"("s")"));
  EXPECT_EQ(opened(states, *principal_named("bob"), server, again), kInvalidStateCode);
  EXPECT_EQ(opened(states, *Principal::anonymous(), server, again), kInvalidStateCode);
  EXPECT_EQ(opened(states, *ann, "mail", again), kInvalidStateCode);
  EXPECT_EQ(opened(RequestStateSealer(front_at("/two")), *ann, server, again), kInvalidStateCode);
  EXPECT_EQ(opened(states, *ann, server, request("tools/call", "files__write", sealed(R"("s")"))),
            kInvalidStateCode);
  EXPECT_EQ(opened(states, *ann, server, request("prompts/get", "files__read", sealed(R"("s")"))),
            kInvalidStateCode);
}

TEST_F(RequestStateSealerTest, StateNotSealedByGatewayIsRejected) {
  std::string changed = sealed(R"("s")");
  changed.at(changed.size() / 2) = changed.at(changed.size() / 2) == 'A' ? 'B' : 'A';
  for (const std::string& foreign : {std::string(R"("s")"), std::string(R"("")"), std::string("7"),
                                     std::string("null"), std::string(R"({"a":[]})"), changed})
    EXPECT_EQ(opened(states, *ann, server, request("tools/call", "files__read", foreign)), kInvalidStateCode)
        << foreign;
}

TEST_F(RequestStateSealerTest, StateOverLimitFailsWithLimitName) {
  const rpc::Message first = request("tools/call", "files__read", "");
  const auto facts = mcp::CallFacts::of(first);
  const std::string longest = "\"" + std::string(kMaxRequestStateBytes - 2, 's') + "\"";
  EXPECT_EQ(opened(states, *ann, server, request("tools/call", "files__read", sealed(longest))), longest);
  const Result<json::Raw> given =
      states.seal(answer("\"" + std::string(kMaxRequestStateBytes, 's') + "\""), {*ann, server, *facts});
  ASSERT_FALSE(given);
  EXPECT_NE(given.error().message().find("max_request_state_bytes (1048576)"), std::string::npos);
  const rpc::Message again =
      request("tools/call", "files__read", "\"" + std::string(2 * kMaxRequestStateBytes, 's') + "\"");
  const auto too_long = mcp::CallFacts::of(again);
  const Result<json::Raw> back = states.open({*ann, server, *too_long});
  ASSERT_FALSE(back);
  EXPECT_NE(back.error().message().find("max_request_state_bytes (1048576)"), std::string::npos);
}

TEST_F(RequestStateSealerTest, SealFailsWithServerNameWhenStateIsNotString) {
  const rpc::Message first = request("tools/call", "files__read", "");
  const auto facts = mcp::CallFacts::of(first);
  const Result<json::Raw> given = states.seal(answer("{}"), StateBinding{*ann, server, *facts});
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().message(), "server `files` responded with a requestState that is not a string");
}

// ---- through the gateway ----

class RequestStateForwardingTest : public GatewayTest {
 protected:
  std::vector<std::shared_ptr<Peer>> peers;
  std::vector<std::string> received;  // the states that the server was sent

  // A modern server whose tools `one` and `two` respond with input_required and a state, and complete when a
  // request has a state.
  void SetUp() override {
    customize = [this](Instance& instance) {
      auto scripted = std::make_shared<ScriptedServer>(loop);
      scripted->results["tools/list"] =
          R"({"tools":[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}],)"
          R"("resultType":"complete","ttlMs":0,"cacheScope":"private"})";
      scripted->call_result = [this](const mcp::BackendRequest& request) {
        const std::string state(request.facts->request_state.text());
        if (state.empty())
          return raw(
              R"({"resultType":"input_required","inputRequests":{"q":{"method":"roots/list","params":{}}},"requestState":"plain"})");
        received.push_back(state);
        return raw(R"({"resultType":"complete","content":[]})");
      };
      instance.server.backend(scripted);
    };
    add("a", Sharing::shared, mcp::kNewestRevision);
    connect_client();
  }
  void TearDown() override {
    for (const auto& peer : peers) peer->close();
    GatewayTest::TearDown();
  }
  std::shared_ptr<Peer> connect(const std::string& user) {
    auto [near_end, far_end] = make_channel(loop, loop);
    front->serve(far_end, principal_named(user));
    peers.push_back(Peer::start(near_end));
    return peers.back();
  }
  static Task<Answer> ask(std::shared_ptr<Peer> peer, json::Raw params) {
    Answer answer = co_await peer->call("tools/call", std::move(params));
    co_return answer;
  }
  Answer call_modern(const std::shared_ptr<Peer>& peer, const std::string& tool, const std::string& more) {
    return loop.block_on(ask(peer, raw(R"({"name":"a__)" + tool + R"(","arguments":{},)" + more +
                                       R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                                       R"("io.modelcontextprotocol/clientCapabilities":{"roots":{}}}})")));
  }
  std::string state_given(const std::shared_ptr<Peer>& peer, const std::string& tool) {
    const Answer answer = call_modern(peer, tool, "");
    EXPECT_TRUE(answer) << answer.error().message();
    return answer ? std::string(json::View(*answer)["requestState"].text()) : "";
  }
  Answer second_round(const std::shared_ptr<Peer>& peer, const std::string& tool, const std::string& state) {
    return call_modern(peer, tool, R"("inputResponses":{"q":{"roots":[]}},"requestState":)" + state + ",");
  }
};

TEST_F(RequestStateForwardingTest, StateIsRejectedForOtherPrincipalOrTool) {
  const auto ann = connect("ann");
  const auto bob = connect("bob");
  for (const std::string tool : {"one", "two"}) {
    for (const auto& [owner, other] : {std::pair(ann, bob), std::pair(bob, ann)}) {
      const std::string state = state_given(owner, tool);
      for (const Answer& refused :
           {second_round(other, tool, state), second_round(owner, tool == "one" ? "two" : "one", state),
            second_round(owner, tool, R"("plain")")}) {
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().detail().rpc_code, rpc::kInvalidParams);
        EXPECT_EQ(code_of(refused.error()), kInvalidStateCode);
      }
      EXPECT_TRUE(received.empty());
      EXPECT_TRUE(second_round(owner, tool, state));
      EXPECT_EQ(received, std::vector<std::string>{R"("plain")"}) << "the state as the server sent it";
      received.clear();
    }
  }
}

// The legacy era has no requestState; a member of this name in a request is not the server's state.
TEST_F(RequestStateForwardingTest, StateFromLegacyClientIsNotForwarded) {
  client_handler = [](Request) -> Task<Answer> { co_return raw(R"({"roots":[]})"); };
  const auto client = connect_client();
  const Result<json::Raw> answer = loop.block_on(client->client->request(
      "tools/call", raw(R"({"name":"a__one","arguments":{},"requestState":"forged","inputResponses":{}})")));
  EXPECT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(received, std::vector<std::string>{R"("plain")"});
}

// ---- header parameters ----

TEST_F(GatewayTest, HeaderParamsAreThoseOfPrincipalsUpstream) {
  config.authenticated = true;
  customize = [](Instance& instance) {
    mcp::ToolSpec spec;
    spec.name = "put";
    spec.input_schema = raw(R"({"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Of)" +
                            std::to_string(instance.number) + R"("}}})");
    ASSERT_TRUE(instance.server.add_tool(spec, [](mcp::Context, json::Raw) -> Task<Result<mcp::ToolResult>> {
      co_return mcp::ToolResult::text("put");
    }));
  };
  add("a", Sharing::per_user, mcp::kNewestRevision);
  for (const std::string user : {"ann", "bob"}) {
    const auto client = connect_client(mcp::kNewestRevision, user);
    const std::string header = "Mcp-Param-Of" + call(client, "a__which");
    Principal principal;
    principal.user = user;
    EXPECT_TRUE(wait_until([&] {
      const mcp::HeaderParams params = front->header_params("a__put", principal);
      return params && params->at(0).header == header;
    })) << user;
  }
}

}  // namespace
}  // namespace fairlead::gateway
