// StreamableTest: a client over HTTP, tested against scripted servers.
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
using test::ReceivedRequest;
using test::Reply;
using test::ScriptServer;

inline const std::string kModernParams =
    R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}})";
inline const std::string kInitializeResult =
    R"({"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}})";

inline std::string event(std::string_view data, std::string_view id = {}) {
  return (id.empty() ? std::string() : "id: " + std::string(id) + "\n") + "data: " + std::string(data) +
         "\n\n";
}
inline std::string result_of(const ReceivedRequest& request, std::string_view result = R"({"ok":true})") {
  return R"({"jsonrpc":"2.0","id":)" + request.id() + R"(,"result":)" + std::string(result) + "}";
}

class StreamableTest : public ::testing::Test {
 public:
  Loop loop;
  ConnectOptions options;
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Peer> peer;
  std::shared_ptr<Methods> methods = std::make_shared<Methods>();
  std::vector<std::string> notifications;
  std::function<void()> on_notification = [] {};

  void connect(const std::string& url) {
    methods->fallback([this](fairlead::Request request) { return serve(std::move(request)); });
    connection = loop.block_on(transport::connect(loop, url, options)).value();
    PeerOptions peer_options;
    peer_options.malformed_frames = MalformedFramePolicy::skip;
    peer_options.dialect.cancel_method = "notifications/cancelled";
    peer_options.dialect.cancel_id_key = "requestId";
    peer = Peer::start(connection, methods, peer_options);
  }
  Task<Answer> serve(fairlead::Request request) {
    if (request.is_notification()) {
      notifications.push_back(std::string(request.method()));
      on_notification();
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
    co_await connection->wait_closed();
  }

  Task<Result<json::Raw>> call_task(std::string method, json::Raw params, CallOptions call_options) {
    Result<json::Raw> response = co_await peer->call(method, std::move(params), std::move(call_options));
    co_return response;
  }
  Result<json::Raw> call(const std::string& method, const std::string& params = "{}",
                         CallOptions call_options = CallOptions()) {
    return loop.block_on(call_task(method, test::raw(params), std::move(call_options)));
  }
  Task<Result<void>> notify_task(std::string method) {
    Result<void> sent = co_await peer->notify(method);
    co_return sent;
  }
  Result<void> notify(const std::string& method) { return loop.block_on(notify_task(method)); }
  // Performs the handshake of the legacy era.
  void handshake() {
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

// Returns the script of a legacy server with a session. `otherwise` handles all requests that do not belong
// to the handshake or the end of the session; if `stream`, it also handles the GET of the standalone stream.
inline ScriptServer::Script legacy_script(ScriptServer::Script otherwise, bool stream = false) {
  return [otherwise, stream](const ReceivedRequest& request, Reply& reply) {
    if (request.has("\"initialize\""))
      return reply.result(request, kInitializeResult, "Mcp-Session-Id: one\r\n");
    if (request.has("notifications/initialized")) return reply.respond(202, "", "");
    if (request.method == "GET" && !request.headers.has("Last-Event-ID") && !stream)
      return reply.respond(405, "", "");
    if (request.method == "DELETE") return reply.respond(200, "", "");
    otherwise(request, reply);
  };
}

}  // namespace fairlead::transport
