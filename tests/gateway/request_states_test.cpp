// A server's requestState comes back to it only from the principal, and for the tool, that it was given to.
#include "gateway/request_states.hpp"

#include "fairlead/process/failure.hpp"
#include "gateway/harness.hpp"

namespace fairlead::gateway {
namespace {

PrincipalPtr principal_named(const std::string& user) {
  auto made = std::make_shared<Principal>();
  made->issuer = "test";
  made->subject = made->user = user;
  return made;
}

std::string code_of(const Error& error) {
  return json::View(error.detail().rpc_data)["code"].as_string().value_or("");
}

// ---- the unit ----

class StatesTest : public ::testing::Test {
 protected:
  static mcp::Server front_at(const std::string& endpoint) {
    mcp::Server front("front", "1");
    front.state_keys({std::string(32, 'k')}).endpoint(endpoint);
    return front;
  }
  const RequestStates states{front_at("/one")};
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
  // The state as a client gets it, as JSON.
  std::string sealed(const std::string& state) const {
    const rpc::Message first = request("tools/call", "files__read", "");
    const auto facts = mcp::CallFacts::of(first);
    const Result<json::Raw> result = states.seal(answer(state), StateBinding{*ann, server, *facts});
    EXPECT_TRUE(result) << result.error().message();
    return result ? std::string(json::View(*result)["requestState"].text()) : "";
  }
  // What the server gets, or the code of the refusal.
  static std::string opened(const RequestStates& by, const Principal& principal, const std::string& at,
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

const std::string kRefusedState(failure::invalid_request_state);

TEST_F(StatesTest, ServerGetsItsStateBackByteByByte) {
  for (const std::string state : {R"("")", R"("plain")", R"("\u0000 \" \/ {}")"}) {
    const std::string given = sealed(state);
    EXPECT_NE(given, state);
    EXPECT_EQ(opened(states, *ann, server, request("tools/call", "files__read", given)), state);
  }
  EXPECT_EQ(opened(states, *ann, server, request("tools/call", "files__read", "")), "");
}

TEST_F(StatesTest, StateIsRefusedWithAnythingElseThatItIsBoundTo) {
  const rpc::Message again = request("tools/call", "files__read", sealed(R"("s")"));
  EXPECT_EQ(opened(states, *principal_named("bob"), server, again), kRefusedState);
  EXPECT_EQ(opened(states, *Principal::anonymous(), server, again), kRefusedState);
  EXPECT_EQ(opened(states, *ann, "mail", again), kRefusedState);
  EXPECT_EQ(opened(RequestStates(front_at("/two")), *ann, server, again), kRefusedState);
  EXPECT_EQ(opened(states, *ann, server, request("tools/call", "files__write", sealed(R"("s")"))),
            kRefusedState);
  EXPECT_EQ(opened(states, *ann, server, request("prompts/get", "files__read", sealed(R"("s")"))),
            kRefusedState);
}

TEST_F(StatesTest, StateThatTheGatewayDidNotSealIsRefused) {
  std::string changed = sealed(R"("s")");
  changed.at(changed.size() / 2) = changed.at(changed.size() / 2) == 'A' ? 'B' : 'A';
  for (const std::string& foreign : {std::string(R"("s")"), std::string(R"("")"), std::string("7"),
                                     std::string("null"), std::string(R"({"a":[]})"), changed})
    EXPECT_EQ(opened(states, *ann, server, request("tools/call", "files__read", foreign)), kRefusedState)
        << foreign;
}

TEST_F(StatesTest, StateOverItsLimitIsRefusedByName) {
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

TEST_F(StatesTest, ServerWhoseStateIsNoStringIsNamed) {
  const rpc::Message first = request("tools/call", "files__read", "");
  const auto facts = mcp::CallFacts::of(first);
  const Result<json::Raw> given = states.seal(answer("{}"), StateBinding{*ann, server, *facts});
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().message(), "server `files` answered with a requestState that is not a string");
}

// ---- through the gateway ----

class ServerStateTest : public GatewayTest {
 protected:
  std::vector<std::shared_ptr<Peer>> peers;
  std::vector<std::string> received;  // the states that the server was sent

  // A modern server whose tools `one` and `two` ask for input with a state, and end when they get one.
  void SetUp() override {
    furnish = [this](Instance& instance) {
      auto scripted = std::make_shared<Scripted>(loop);
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
    add("a", Sharing::shared, mcp::kNewest);
    enter();
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

TEST_F(ServerStateTest, StateOfOnePrincipalOrToolIsRefusedForAnother) {
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
        EXPECT_EQ(code_of(refused.error()), kRefusedState);
      }
      EXPECT_TRUE(received.empty());
      EXPECT_TRUE(second_round(owner, tool, state));
      EXPECT_EQ(received, std::vector<std::string>{R"("plain")"}) << "the server's own spelling";
      received.clear();
    }
  }
}

// A legacy client has no requestState; what it calls so is not the server's.
TEST_F(ServerStateTest, StateOfALegacyClientDoesNotReachTheServer) {
  answers = [](Request) -> Task<Answer> { co_return raw(R"({"roots":[]})"); };
  const auto client = enter();
  const Result<json::Raw> answer = loop.block_on(client->client->request(
      "tools/call", raw(R"({"name":"a__one","arguments":{},"requestState":"forged","inputResponses":{}})")));
  EXPECT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(received, std::vector<std::string>{R"("plain")"});
}

// ---- headers that repeat arguments ----

TEST_F(GatewayTest, HeaderParamsAreThoseOfThePrincipalsOwnServer) {
  config.authenticated = true;
  furnish = [](Instance& instance) {
    mcp::ToolSpec spec;
    spec.name = "put";
    spec.input_schema = raw(R"({"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Of)" +
                            std::to_string(instance.number) + R"("}}})");
    ASSERT_TRUE(instance.server.add_tool(spec, [](mcp::Context, json::Raw) -> Task<Result<mcp::ToolResult>> {
      co_return mcp::ToolResult::text("put");
    }));
  };
  add("a", Sharing::per_user, mcp::kNewest);
  for (const std::string user : {"ann", "bob"}) {
    const auto client = enter(mcp::kNewest, user);
    const std::string header = "Mcp-Param-Of" + call(client, "a__which");
    Principal principal;
    principal.user = user;
    EXPECT_TRUE(comes_true([&] {
      const mcp::HeaderParams params = front->header_params("a__put", principal);
      return params && params->at(0).header == header;
    })) << user;
  }
}

}  // namespace
}  // namespace fairlead::gateway
