// Direct handlers: requests that a peer serves without a coroutine.
#include <stdexcept>
#include <vector>

#include "peer/harness.hpp"

namespace fairlead {
namespace {

// The requests that a direct handler has accepted.
struct DirectRequests {
  std::vector<std::shared_ptr<Responder>> responders;
  std::stop_token stop;

  // Returns a direct handler that accepts all requests but those of the method "declined".
  Methods::DirectHandler handler() {
    return [this](const rpc::Message& message, const std::stop_token& stop_of,
                  const std::shared_ptr<Responder>& responder) {
      if (message.method() == "declined") return false;
      if (message.method() == "throws") throw std::runtime_error("secret");
      responders.push_back(responder);
      stop = stop_of;
      return true;
    };
  }
};

class PeerDirectHandlerTest : public test::PeerTest {
 public:
  DirectRequests direct;

  void SetUp() override {
    methods->fallback([](Request) { return ready_task<Answer>(json::string("coroutine")); },
                      direct.handler());
    start();
  }
};

TEST_F(PeerDirectHandlerTest, AnswersAreSentInTheOrderInWhichTheHandlerResponds) {
  run(send(R"({"jsonrpc":"2.0","id":"a","method":"x"})"));
  run(send(R"({"jsonrpc":"2.0","id":"b","method":"x"})"));
  loop.run_until([&] { return direct.responders.size() == 2; });
  EXPECT_EQ(peer->requests_in_progress(), 2u);
  loop.post([&] {
    direct.responders[1]->respond(json::string("second"));
    direct.responders[0]->respond(json::string("first"));
  });
  run(expect(R"({"jsonrpc":"2.0","id":"b","result":"second"})"));
  run(expect(R"({"jsonrpc":"2.0","id":"a","result":"first"})"));
  EXPECT_EQ(peer->requests_in_progress(), 0u);
}

TEST_F(PeerDirectHandlerTest, DeclinedRequestIsServedByTheCoroutine) {
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"declined"})",
               R"({"jsonrpc":"2.0","id":1,"result":"coroutine"})"));
}

TEST_F(PeerDirectHandlerTest, ExceptionIsAnInternalErrorWithoutDetails) {
  run(exchange(R"({"jsonrpc":"2.0","id":1,"method":"throws"})",
               R"({"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}})"));
}

TEST_F(PeerDirectHandlerTest, SecondAnswerToARequestIsDropped) {
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"x"})"));
  loop.run_until([&] { return !direct.responders.empty(); });
  loop.post([&] {
    direct.responders[0]->respond(json::string("first"));
    direct.responders[0]->respond(json::string("again"));
  });
  run(expect(R"({"jsonrpc":"2.0","id":1,"result":"first"})"));
  run(exchange(R"({"jsonrpc":"2.0","id":2,"method":"declined"})",
               R"({"jsonrpc":"2.0","id":2,"result":"coroutine"})"));
}

TEST_F(PeerDirectHandlerTest, CancelledRequestIsStopped) {
  run(send(R"({"jsonrpc":"2.0","id":1,"method":"x"})"));
  run(send(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})"));
  loop.run_until([&] { return direct.stop.stop_requested(); });
  loop.post([&] { direct.responders[0]->respond(json::string("late")); });
  run(expect(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"the request was cancelled"}})"));
}

}  // namespace
}  // namespace fairlead
