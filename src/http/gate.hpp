// Gate: which names this server answers to and which pages may ask it. A page of a stranger that a browser
// was led to by a lying name server (DNS rebinding) comes with the stranger's name in Host and Origin.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/http/server.hpp"

namespace fairlead::http {

// Where a server's sockets can be reached from.
enum class ListenerKind : std::uint8_t { loopback, unix_socket, network };

class Gate {
 public:
  // `kind` decides which names are answered to when ServerOptions::allowed_hosts is unset.
  Gate(const ServerOptions& options, ListenerKind kind);

  // Why a request for `authority` (as in Host) with these headers is refused; absent when it is let in.
  std::optional<std::string_view> refuses(std::string_view authority, const Headers& headers) const;

  // A browser's question whether a page may ask, and its answer.
  static bool is_preflight(const Request& request);
  static Response preflight(const Request& request);

 private:
  bool allows_origin(std::string_view origin, std::string_view authority) const;
  bool allows_host(std::string_view host) const;

  // `addresses`: every IP address, and localhost. DNS rebinding cannot make a browser send those.
  enum class Names : std::uint8_t { any, listed, addresses };

  Names names_;
  std::vector<std::string> hosts_;  // listed
  std::vector<std::string> origins_;
};

}  // namespace fairlead::http
