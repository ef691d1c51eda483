// A fairlead server: a Peer on stdin and stdout with registered methods, written as a user would write it,
// with the public headers only.
#include "fairlead/connection/connect.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/peer/peer.hpp"

namespace {

using namespace fairlead;

Answer initialize(const Request&) {
  return json::Raw::trusted(Bytes::constant(R"({"protocolVersion":"2025-06-18","capabilities":{"tools":{}},)"
                                            R"("serverInfo":{"name":"peer_server","version":"1"}})"),
                            true);
}

// The text is returned as the slice that was received: no escape is decoded, nothing is parsed twice.
Answer call_tool(const Request& request) {
  const json::View message = request.params_view()["arguments"]["message"];
  if (!message.is(json::Type::string)) return rpc::invalid_params("message must be a string");
  constexpr std::string_view kBefore = R"({"content":[{"type":"text","text":)";
  return json::Raw::trusted(Bytes::join(kBefore, message.text(), "}]}"), true);
}

Answer ping(const Request&) {
  return json::Raw::trusted(Bytes::constant("{}"), true);
}

}  // namespace

int main() {
  Loop loop;
  auto connection = connect_own_stdio(loop);
  if (!connection) {
    std::fprintf(stderr, "%s\n", connection.error().to_string().c_str());
    return 3;
  }
  auto methods = std::make_shared<Methods>();
  methods->on("initialize", initialize).on("tools/call", call_tool).on("ping", ping);
  const auto peer = Peer::start(*connection, methods);
  loop.run_until([&] { return peer->finished().is_set(); });
}
