// A client of MCP over HTTP and the scripted servers that it is tested against.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fairlead/loop/event.hpp"
#include "fairlead/peer/peer.hpp"
#include "fairlead/transport/connect.hpp"
#include "http/script_server.hpp"
#include "support/support.hpp"

namespace fairlead::transport {

using namespace std::chrono_literals;
using test::Asked;
using test::Reply;
using test::ScriptServer;

inline const std::string kModern =
    R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}})";
inline const std::string kHello =
    R"({"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}})";

inline std::string event(std::string_view data, std::string_view id = {}) {
  return (id.empty() ? std::string() : "id: " + std::string(id) + "\n") + "data: " + std::string(data) +
         "\n\n";
}
inline std::string result_of(const Asked& asked, std::string_view result = R"({"ok":true})") {
  return R"({"jsonrpc":"2.0","id":)" + asked.id() + R"(,"result":)" + std::string(result) + "}";
}

class StreamableTest : public ::testing::Test {
 public:
  Loop loop;
  ConnectOptions options;
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Peer> peer;
  std::shared_ptr<Methods> methods = std::make_shared<Methods>();
  std::vector<std::string> notified;
  std::function<void()> on_notified = [] {};

  void connect(const std::string& url) {
    methods->otherwise([this](fairlead::Request request) { return serve(std::move(request)); });
    connection = loop.block_on(transport::connect(loop, url, options)).value();
    PeerOptions peer_options;
    peer_options.noise = Noise::skip;
    peer_options.dialect.cancel_method = "notifications/cancelled";
    peer_options.dialect.cancel_id_key = "requestId";
    peer = Peer::start(connection, methods, peer_options);
  }
  Task<Answer> serve(fairlead::Request request) {
    if (request.is_notification()) {
      notified.push_back(std::string(request.method()));
      on_notified();
    }
    co_return test::raw(R"({"asked":true})");
  }
  void TearDown() override {
    if (!connection) return;
    loop.block_on(close());
    loop.run_until([&] { return peer->finished().is_set(); });
  }
  Task<void> close() {
    connection->close();
    Task<void> settling = connection->settled();
    co_await settling;
  }

  Task<Result<json::Raw>> calling(std::string method, json::Raw params, CallOptions call_options) {
    Result<json::Raw> answer = co_await peer->call(method, std::move(params), std::move(call_options));
    co_return answer;
  }
  Result<json::Raw> call(const std::string& method, const std::string& params = "{}",
                         CallOptions call_options = CallOptions()) {
    return loop.block_on(calling(method, test::raw(params), std::move(call_options)));
  }
  Task<Result<void>> notifying(std::string method) {
    Result<void> sent = co_await peer->notify(method);
    co_return sent;
  }
  Result<void> notify(const std::string& method) { return loop.block_on(notifying(method)); }
  // The legacy handshake.
  void shake_hands() {
    ASSERT_TRUE(call(
        "initialize",
        R"({"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}})"));
    ASSERT_TRUE(notify("notifications/initialized"));
  }
  template <class Condition>
  bool eventually(Condition condition) {
    return loop.block_on(test::eventually(loop, condition));
  }
};

// A legacy server with a session; the rest is told to `otherwise`.
inline ScriptServer::Script legacy(ScriptServer::Script otherwise, bool stream = false) {
  return [otherwise, stream](const Asked& asked, Reply& reply) {
    if (asked.has("\"initialize\"")) return reply.result(asked, kHello, "Mcp-Session-Id: one\r\n");
    if (asked.has("notifications/initialized")) return reply.answer(202, "", "");
    if (asked.method == "GET" && !asked.headers.has("Last-Event-ID") && !stream)
      return reply.answer(405, "", "");
    if (asked.method == "DELETE") return reply.answer(200, "", "");
    otherwise(asked, reply);
  };
}

}  // namespace fairlead::transport
