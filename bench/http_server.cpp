// http::Server with a handler that returns a constant response. Prints its address; exits at the end of its
// input.
#include <unistd.h>

#include <cstdio>

#include "fairlead/http/server.hpp"
#include "fairlead/loop/descriptor.hpp"

namespace {

constexpr const char* kResponse =
    R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}})";

}  // namespace

int main() {
  using namespace fairlead;
  Loop loop;
  auto server = http::Server::listen(loop, "127.0.0.1:0");
  if (!server) return 1;
  (*server)->route("/mcp", [](std::shared_ptr<http::Exchange> exchange) {
    exchange->respond(http::Response::json(200, Bytes::constant(kResponse)));
  });
  std::printf("%s\n", (*server)->address().c_str());
  std::fflush(stdout);
  auto input = Descriptor::adopt(loop, UniqueFd(dup(STDIN_FILENO)));
  if (!input) return 1;
  input->when_readable([&] { loop.stop(); });
  loop.run();
}
