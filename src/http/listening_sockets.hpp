// ListeningSockets: the sockets that a server listens on, for an address such as "localhost:8808".
#pragma once

#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "http/host_origin_policy.hpp"

namespace fairlead::http {

struct ListeningSockets {
  std::vector<UniqueFd> sockets;
  std::string address;  // the address, with the actual port
  ListenerKind kind = ListenerKind::network;
  std::string socket_path;  // path of the file of a Unix socket; empty for TCP
};

// Returns the kind of a listener on `address` without opening a socket. Fails with `validation` if the
// address is malformed.
Result<ListenerKind> listener_kind(const std::string& address);
// Opens the sockets for `address` and starts to listen. `socket_mode` has the permissions of the file of a
// Unix socket. Fails like Server::listen().
Result<ListeningSockets> open_listening_sockets(const std::string& address, unsigned socket_mode = 0600);

// The file of a Unix socket. remove() deletes the file only if it is still the one that existed at
// construction, and not one that another process has created at the same path since.
class SocketFile {
 public:
  SocketFile() = default;
  explicit SocketFile(std::string path);
  void remove() noexcept;

 private:
  std::string path_;
  unsigned long device_ = 0;
  unsigned long inode_ = 0;
};

}  // namespace fairlead::http
