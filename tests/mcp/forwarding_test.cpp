// Client::forward(): sends a request of another peer with an id and a progress token of this client.
#include "mcp/harness.hpp"

namespace fairlead::mcp {
namespace {

Task<void> forward_one(std::shared_ptr<Client> client, rpc::Message request, CallOptions options,
                       bool& answered) {
  const VerbatimRequest forwarded(std::move(request));
  const Result<rpc::Message> answer = co_await client->forward(forwarded, std::move(options));
  answered = answer.has_value();
}

class ForwardingTest : public ServerTest {
 public:
  std::shared_ptr<Client> client;
  std::vector<std::string> progress;

  void SetUp() override {
    auto [near_end, far_end] = make_channel(loop, loop);
    test_end = far_end;
    ClientOptions options;
    options.pinned_revision = kNewestRevision;
    options.probe = false;
    const Result<std::shared_ptr<Client>> connected = loop.block_on(Client::connect_over(near_end, options));
    ASSERT_TRUE(connected);
    client = *connected;
  }
  void TearDown() override {
    loop.block_on(client->close());
    ServerTest::TearDown();
  }
  // Returns the request as the server receives it. The server then sends progress and a response; `id` is the
  // id that the client uses.
  std::string forwarded_as(const std::string& request, bool wants_progress, const std::string& id) {
    CallOptions options;
    if (wants_progress) {
      options.on_progress = [this](const json::Raw& params) { progress.emplace_back(params.text()); };
    }
    bool answered = false;
    loop.spawn(
        forward_one(client, rpc::Message::parse(Bytes::copy_of(request)), std::move(options), answered));
    std::string sent = receive();
    send(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" + id +
         R"(,"progress":1}})");
    send(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{}})");
    loop.run_until([&] { return answered; });
    return sent;
  }
};

TEST_F(ForwardingTest, ForwardedRequestHasOwnProgressTokenWhenCallerListensForProgress) {
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

TEST_F(ForwardingTest, ProgressCarriesTheTokenOfTheOriginalRequest) {
  EXPECT_EQ(
      forwarded_as(R"({"jsonrpc":"2.0","id":"x","method":"m","params":{"_meta":{"progressToken":"mine"}}})",
                   true, "1"),
      R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1}}})");
  EXPECT_EQ(progress, std::vector<std::string>{R"({"progressToken":"mine","progress":1})"});
}

// A progress token cannot be added to such params.
TEST_F(ForwardingTest, ParamsThatAreNotObjectsAreForwardedUnchanged) {
  EXPECT_EQ(forwarded_as(R"({"jsonrpc":"2.0","id":"x","method":"m","params":[1]})", true, "1"),
            R"({"jsonrpc":"2.0","id":1,"method":"m","params":[1]})");
  EXPECT_EQ(forwarded_as(R"({"jsonrpc":"2.0","id":"x","method":"m","params":{"_meta":[]}})", true, "2"),
            R"({"jsonrpc":"2.0","id":2,"method":"m","params":{"_meta":[]}})");
}

TEST_F(ForwardingTest, RequestHasNoProgressTokenWhenCallerDoesNotListenForProgress) {
  EXPECT_EQ(forwarded_as(R"({"jsonrpc":"2.0","id":"x","method":"m","params":{}})", false, "1"),
            R"({"jsonrpc":"2.0","id":1,"method":"m","params":{}})");
}

}  // namespace
}  // namespace fairlead::mcp
