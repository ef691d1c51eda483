// Client::forward(): a request from elsewhere, under an id and a progress token of our own.
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

Task<void> forward_one(std::shared_ptr<Client> client, rpc::Message request, CallOptions options,
                       bool& answered) {
  const VerbatimRequest outgoing(std::move(request));
  const Result<rpc::Message> answer = co_await client->forward(outgoing, std::move(options));
  answered = answer.has_value();
}

class ForwardingTest : public ServerTest {
 public:
  std::shared_ptr<Client> client;
  std::vector<std::string> progress;

  void SetUp() override {
    auto [near_end, far_end] = make_channel(loop, loop);
    far = far_end;
    ClientOptions options;
    options.pinned = kNewest;
    options.probe = false;
    const Result<std::shared_ptr<Client>> made = loop.block_on(Client::on(near_end, options));
    ASSERT_TRUE(made);
    client = *made;
  }
  void TearDown() override {
    loop.block_on(client->close());
    ServerTest::TearDown();
  }
  // The request as the server gets it. Its progress and its answer follow; `id` is ours.
  std::string forwarded_as(const std::string& request, bool listens, const std::string& id) {
    CallOptions options;
    if (listens) {
      options.on_progress = [this](const json::Raw& params) { progress.emplace_back(params.text()); };
    }
    bool answered = false;
    loop.spawn(
        forward_one(client, rpc::Message::parse(Bytes::copy_of(request)), std::move(options), answered));
    std::string sent = hear();
    say(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" + id +
        R"(,"progress":1}})");
    say(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{}})");
    loop.run_until([&] { return answered; });
    return sent;
  }
};

TEST_F(ForwardingTest, RequestHasAProgressTokenOfOurOwnWhereProgressIsListenedFor) {
  EXPECT_EQ(forwarded_as(R"({"jsonrpc":"2.0","id":"x","method":"m"})", true, "1"),
            R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1}}})");
  EXPECT_EQ(forwarded_as(R"({"jsonrpc":"2.0","id":"x","method":"m","params":{ }})", true, "2"),
            R"({"jsonrpc":"2.0","id":2,"method":"m","params":{"_meta":{"progressToken":2} }})");
  EXPECT_EQ(forwarded_as(R"({"id":"x","params":{"a":1.0,"_meta":{"b": 2}},"method":"m","jsonrpc":"2.0"})",
                         true, "3"),
            R"({"id":3,"params":{"a":1.0,"_meta":{"b": 2,"progressToken":3}},"method":"m","jsonrpc":"2.0"})");
  EXPECT_EQ(progress, (std::vector<std::string>{R"({"progressToken":1,"progress":1})",
                                                R"({"progressToken":2,"progress":1})",
                                                R"({"progressToken":3,"progress":1})"}));
}

TEST_F(ForwardingTest, TokenOfTheRequestComesBackWithItsProgress) {
  EXPECT_EQ(
      forwarded_as(R"({"jsonrpc":"2.0","id":"x","method":"m","params":{"_meta":{"progressToken":"mine"}}})",
                   true, "1"),
      R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1}}})");
  EXPECT_EQ(progress, std::vector<std::string>{R"({"progressToken":"mine","progress":1})"});
}

// There is no place for a token.
TEST_F(ForwardingTest, ParamsThatAreNoObjectStayAsTheyAre) {
  EXPECT_EQ(forwarded_as(R"({"jsonrpc":"2.0","id":"x","method":"m","params":[1]})", true, "1"),
            R"({"jsonrpc":"2.0","id":1,"method":"m","params":[1]})");
  EXPECT_EQ(forwarded_as(R"({"jsonrpc":"2.0","id":"x","method":"m","params":{"_meta":[]}})", true, "2"),
            R"({"jsonrpc":"2.0","id":2,"method":"m","params":{"_meta":[]}})");
}

TEST_F(ForwardingTest, RequestStaysAsItIsWhereNobodyListensForProgress) {
  EXPECT_EQ(forwarded_as(R"({"jsonrpc":"2.0","id":"x","method":"m","params":{}})", false, "1"),
            R"({"jsonrpc":"2.0","id":1,"method":"m","params":{}})");
}

}  // namespace
}  // namespace fairlead::mcp
