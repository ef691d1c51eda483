// The server that the tests of this layer start. It serves `ping` and `echo` on stdin and stdout. The tests
// do not use the program `fairlead`, because it needs all layers above this one.
#include "fairlead/connection/connect.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/peer/peer.hpp"

using namespace fairlead;

int main() {
  auto methods = std::make_shared<Methods>();
  methods->on("ping", [](const Request&) { return json::string("pong"); });
  methods->on("echo", [](const Request& request) { return request.params(); });
  Loop loop;
  ConnectResult stdio = connect_own_stdio(loop);
  if (!stdio) return 1;
  const auto peer = Peer::start(*stdio, methods);
  loop.run_until([&] { return peer->finished().is_set(); });
}
