// Gate: which names this server answers to and which pages may ask it. A page of a stranger that a browser
// was led to by a lying name server (DNS rebinding) comes with the stranger's name in Host and Origin.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/http/server.hpp"

namespace fairlead::http {

class Gate {
 public:
  // `loopback`: all listeners are, which is what the default names are for.
  Gate(const ServerOptions& options, bool loopback);

  // Why a request for `authority` (as in Host) with these headers is refused; absent when it is let in.
  std::optional<std::string_view> refuses(std::string_view authority, const Headers& headers) const;

  // A browser's question whether a page may ask, and its answer.
  static bool is_preflight(const Request& request);
  static Response preflight(const Request& request);

 private:
  bool allows_origin(std::string_view origin, std::string_view authority) const;
  bool allows_host(std::string_view host) const;

  std::vector<std::string> hosts_;  // empty: any
  std::vector<std::string> origins_;
};

}  // namespace fairlead::http
