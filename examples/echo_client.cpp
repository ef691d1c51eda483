// Starts a server written in another language as a child process, and calls a method of it.
#include <fairlead/blocking.hpp>

#include <iostream>

int main(int argc, char** argv) {
  const std::string script = argc > 1 ? argv[1] : "echo_server.py";
  auto peer = fairlead::blocking::Peer::connect("stdio:python3 " + fairlead::percent_encode_word(script));
  if (!peer) {
    std::cerr << peer.error().to_string()
              << "\n";  // for example: not found, or the exit status and the last lines of stderr
    return 1;
  }
  const auto answer = peer->call("echo", R"({"text": "héllo"})");
  if (!answer) {
    std::cerr << answer.error().to_string() << "\n";
    return 1;
  }
  std::cout << answer->text() << "\n";
}
