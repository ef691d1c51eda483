// The sockets a server listens on, from an address as people write it.
#pragma once

#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "http/gate.hpp"

namespace fairlead::http {

struct Listening {
  std::vector<UniqueFd> sockets;
  std::string address;  // with the real port
  ListenerKind kind = ListenerKind::network;
  std::string path;  // Unix socket: its file
};

// What a listener on this address would be, without opening one.
Result<ListenerKind> listener_kind(const std::string& address);
// `socket_mode` are the permissions of a Unix socket's file.
Result<Listening> open_listening(const std::string& address, unsigned socket_mode = 0600);

// A Unix socket's file, as long as it is the one that was made here and not somebody else's by now.
class SocketFile {
 public:
  SocketFile() = default;
  explicit SocketFile(std::string path);
  void remove() noexcept;

 private:
  std::string path_;
  unsigned long device_ = 0;
  unsigned long node_ = 0;
};

}  // namespace fairlead::http
