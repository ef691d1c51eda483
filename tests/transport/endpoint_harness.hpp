// EndpointTest: an endpoint without sockets. Requests are passed to it as FakeExchange, which records the
// responses.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "fairlead/peer/peer.hpp"
#include "fairlead/transport/endpoint.hpp"
#include "http/byte_stream.hpp"

namespace fairlead::transport {

class FakeExchange final : public http::Exchange {
 public:
  FakeExchange(Loop& loop, http::Request request) : loop_(loop), request_(std::move(request)) {
    if (!request_.principal) request_.principal = Principal::anonymous();
  }

  const http::Request& request() const noexcept override { return request_; }
  Loop& loop() const noexcept override { return loop_; }
  void respond(http::Response response) override {
    ASSERT_FALSE(responded()) << "responded twice";
    record_head(response);
    record_body(response.body);
    finished = true;
  }
  void start(http::Response head) override {
    ASSERT_FALSE(responded()) << "responded twice";
    record_head(head);
    streaming = true;
  }
  void write(std::vector<Bytes> parts) override {
    ASSERT_TRUE(streaming && !finished);
    record_body(parts);
  }
  void finish() override {
    ASSERT_TRUE(streaming && !finished);
    finished = true;
  }
  void abort() override { finished = true; }
  std::size_t backlog() const noexcept override { return 0; }
  Upgraded upgrade(http::Response) override { return {}; }
  void when_disconnected(std::move_only_function<void()> callback) override {
    on_disconnect_ = std::move(callback);
  }
  bool disconnected() const noexcept override { return disconnected_; }
  std::shared_ptr<ByteAccount> account() const override { return charged; }

  // Simulates that the client disconnects.
  void disconnect() {
    disconnected_ = true;
    if (on_disconnect_ && !finished) std::exchange(on_disconnect_, nullptr)();
  }
  bool responded() const { return status != 0; }
  std::string header(std::string_view name) const { return std::string(headers.get(name)); }

  std::shared_ptr<ByteAccount> charged;
  int status = 0;
  http::Headers headers;
  std::string body;
  bool streaming = false;
  bool finished = false;

 private:
  void record_head(const http::Response& response) {
    status = response.status;
    headers = response.headers;
  }
  void record_body(const std::vector<Bytes>& parts) {
    for (const Bytes& part : parts) body += part.view();
  }

  Loop& loop_;
  http::Request request_;
  std::move_only_function<void()> on_disconnect_;
  bool disconnected_ = false;
};
using FakeExchangePtr = std::shared_ptr<FakeExchange>;

// An application with one method for each behaviour that the tests need, in both eras.
class TestApplication final : public Application {
 public:
  explicit TestApplication(Loop& loop) : loop_(loop) {}

  void serve(std::shared_ptr<Connection> connection, PrincipalPtr principal) override {
    users.push_back(principal->user);
    auto methods = std::make_shared<Methods>();
    methods->on("initialize", [](const fairlead::Request& r) -> Answer {
      if (r.params_view()["protocolVersion"].absent())
        return rpc::invalid_params("protocolVersion is missing");
      return *json::Raw::parse(R"({"protocolVersion":)" +
                               std::string(r.params_view()["protocolVersion"].text()) + "}");
    });
    methods->on("echo", [](const fairlead::Request& r) -> Answer { return r.params(); });
    methods->on("talk", [](fairlead::Request r) -> Task<Answer> {
      EXPECT_TRUE(r.peer().post_notification("notifications/message", r.params(), RelatedRequest{r.id()}));
      co_return r.params();
    });
    methods->on("ask", [](fairlead::Request r) -> Task<Answer> {
      CallOptions options;
      options.related_request_id = r.id();
      Result<json::Raw> response = co_await r.peer().call("roots/list", json::Raw(), std::move(options));
      co_return response;
    });
    methods->on("hang", [this](fairlead::Request r) { return hang(this, std::move(r)); });
    methods->on("notifications/initialized",
                [](const fairlead::Request&) -> Answer { return json::Raw::null(); });
    PeerOptions options;
    options.dialect.cancel_method = "notifications/cancelled";
    options.dialect.cancel_id_key = "requestId";
    options.dialect.respond_to_cancelled = false;
    options.ignore_request = [this](const rpc::Message&) {
      if (out_of_memory) throw std::bad_alloc();
      return false;
    };
    peers.push_back(Peer::start(std::move(connection), std::move(methods), std::move(options)));
  }

  Task<Answer> serve(std::shared_ptr<StatelessRequest> request) override {
    const std::string_view method = request->message().method();
    users.push_back(request->principal()->user);
    if (method == "throw") throw std::runtime_error("as told");
    if (method == "gone") co_return rpc::method_not_found(method);
    if (method == "capability") co_return Error::rpc(-32021, "Client capability required");
    if (method == "talk")
      request->notify(rpc::make_notification("notifications/message", *json::Raw::parse("{\n\"a\":1}")));
    if (method == "hang") {
      if (notify_first) request->notify(rpc::make_notification("notifications/message", json::Raw()));
      Event stopped;
      const std::stop_callback on_stop(request->stop(), [this] { ++stopped_; });
      co_await release_.wait(loop_);
    }
    co_return *json::Raw::parse(R"({"ok":true})");
  }

  mcp::HeaderParams header_params(std::string_view, const Principal&) const override { return nullptr; }
  void on_drain() override { drained = true; }

  // Makes all requests of the method "hang" finish.
  void release() { release_.set(); }
  int stopped() const { return stopped_; }

  std::vector<std::shared_ptr<Peer>> peers;
  std::vector<std::string> users;
  bool notify_first = false;
  bool drained = false;
  bool out_of_memory = false;  // peers throw std::bad_alloc when they handle a request

 private:
  static Task<Answer> hang(TestApplication* self, fairlead::Request r) {
    const std::stop_callback on_stop(r.stop(), [self] { ++self->stopped_; });
    co_await self->release_.wait(self->loop_);
    co_return r.params();
  }

  Loop& loop_;
  Event release_;
  int stopped_ = 0;
};

class EndpointTest : public ::testing::Test {
 public:
  Loop loop;
  std::shared_ptr<TestApplication> application = std::make_shared<TestApplication>(loop);
  EndpointOptions options;
  std::shared_ptr<Endpoint> endpoint;
  PrincipalPtr principal = Principal::anonymous();  // principal of the next request
  std::shared_ptr<ByteAccount> client;              // account of the next request

  EndpointTest() { options.retry = std::chrono::milliseconds(500); }
  void TearDown() override {
    application->release();
    if (endpoint) loop.post([this] { endpoint->close(); });
    run_pending_callbacks();
    for (const auto& peer : application->peers) EXPECT_TRUE(peer->finished().is_set());
  }

  void run_pending_callbacks() {
    for (int turn = 0; turn < 20; ++turn) {
      bool done = false;
      loop.post([&] { done = true; });
      loop.run_until([&] { return done; });
    }
  }
  // Runs `work` on the loop, and then the callbacks that it has posted.
  template <class Work>
  void on_loop(Work work) {
    loop.post([&] { work(); });
    run_pending_callbacks();
  }

  FakeExchangePtr send(const std::string& method, http::Headers headers, const std::string& body = {}) {
    if (!endpoint) endpoint = Endpoint::create(loop, application, options);
    http::Request request;
    request.method = method;
    request.target = "/mcp";
    request.headers = std::move(headers);
    request.principal = principal;
    request.body = Bytes::copy_of(body);
    auto exchange = std::make_shared<FakeExchange>(loop, std::move(request));
    exchange->charged = client;
    on_loop([&] {
      try {
        endpoint->handler()(exchange);
      } catch (const std::exception&) {  // as http::Server does
        exchange->respond(http::Response(500));
      }
    });
    return exchange;
  }

  // ---- legacy ----
  std::string session;
  http::Headers headers(const std::string& accept = "application/json, text/event-stream") const {
    http::Headers all{{"Content-Type", "application/json"}, {"Accept", accept}};
    if (!session.empty()) all.add("mcp-session-id", session);
    return all;
  }
  FakeExchangePtr post(const std::string& body) { return send("POST", headers(), body); }
  // Sends a request of a client that accepts only event streams, and waits until the stream has started.
  FakeExchangePtr post_for_events(const std::string& body) {
    FakeExchangePtr exchange = send("POST", headers("text/event-stream"), body);
    if (!exchange->streaming) loop.run_until([&] { return exchange->streaming; });
    return exchange;
  }
  FakeExchangePtr call(const std::string& id, const std::string& method, const std::string& params = "{}") {
    return post(request(id, method, params));
  }
  static std::string request(const std::string& id, const std::string& method,
                             const std::string& params = "{}") {
    return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":)" + params + "}";
  }
  static std::string result(const std::string& id, const std::string& value) {
    return R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":)" + value + "}";
  }
  void initialize(const std::string& revision) {
    session.clear();
    const FakeExchangePtr response = call("0", "initialize", R"({"protocolVersion":")" + revision + R"("})");
    ASSERT_EQ(response->status, 200);
    session = response->header("Mcp-Session-Id");
    ASSERT_GE(session.size(), 32u);
  }
  FakeExchangePtr get(const std::string& last_event = {}) {
    http::Headers all = headers("text/event-stream");
    if (!last_event.empty()) all.add("Last-Event-ID", last_event);
    return send("GET", std::move(all));
  }

  // ---- modern ----
  FakeExchangePtr modern(const std::string& method,
                         const std::string& accept = "application/json, text/event-stream") {
    const std::string meta =
        R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}})";
    return send("POST",
                http::Headers{{"Content-Type", "application/json"},
                              {"Accept", accept},
                              {"MCP-Protocol-Version", "2026-07-28"},
                              {"Mcp-Method", method}},
                request("7", method, meta));
  }
};

// Returns an event as the endpoint writes it.
inline std::string event(const std::string& id, const std::string& data) {
  return (id.empty() ? "" : "id: " + id + "\n") + "event: message\ndata: " + data + "\n\n";
}
inline std::string priming(const std::string& id) {
  return "id: " + id + "\nretry: 500\ndata: \n\n";
}

}  // namespace fairlead::transport
