// A JSON-RPC server on stdin and stdout:
//   echo '{"jsonrpc":"2.0","id":1,"method":"add","params":{"a":2,"b":3}}' | rpc_server
#include <fairlead/connection/connect.hpp>
#include <fairlead/json/writer.hpp>
#include <fairlead/peer/peer.hpp>

using namespace fairlead;

int main() {
  auto methods = std::make_shared<Methods>();
  methods->on("add", [](const Request& request) -> Answer {
    const auto a = request.params_view()["a"].as_double();
    const auto b = request.params_view()["b"].as_double();
    if (!a || !b) return rpc::invalid_params("a and b must be numbers");
    return json::Writer().number(*a + *b).finish();
  });
  Loop loop;
  ConnectResult stdio = connect_own_stdio(loop);
  if (!stdio) return 1;
  const auto peer = Peer::start(*stdio, methods);
  loop.run_until([&] { return peer->finished().is_set(); });
}
