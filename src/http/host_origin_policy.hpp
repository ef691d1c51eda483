// HostOriginPolicy: decides which values of Host and Origin a server accepts. It protects against DNS
// rebinding: an attacker makes the host name of a web page resolve to the address of this server; requests of
// that page then have the attacker's host name in Host and Origin.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/http/server.hpp"

namespace fairlead::http {

// From where clients can connect to a server.
enum class ListenerKind : std::uint8_t { loopback, unix_socket, network };

class HostOriginPolicy {
 public:
  // `kind` determines the allowed hosts if ServerOptions::allowed_hosts is unset.
  HostOriginPolicy(const ServerOptions& options, ListenerKind kind);

  // Returns why a request for `authority` (as in Host) with these headers is rejected; nullopt if it is
  // allowed.
  std::optional<std::string_view> rejection_reason(std::string_view authority, const Headers& headers,
                                                   std::string_view path) const;
  // Returns whether web pages of every origin may read `path` (ServerOptions::public_paths).
  bool is_public(std::string_view path) const noexcept;

  // Returns whether `request` is a CORS preflight request of a browser; preflight_response() is the response
  // to it.
  static bool is_preflight(const Request& request);
  static Response preflight_response(const Request& request);

 private:
  bool allows_origin(std::string_view origin, std::string_view authority) const;
  bool allows_host(std::string_view host) const;

  // Which hosts are allowed: any; those in allowed_hosts_; or every IP address and localhost, which a browser
  // does not send in Host after DNS rebinding.
  enum class HostRule : std::uint8_t { any, listed, ip_addresses };

  HostRule host_rule_;
  std::vector<std::string> allowed_hosts_;  // for HostRule::listed
  std::vector<std::string> allowed_origins_;
  std::vector<std::string> public_paths_;
};

}  // namespace fairlead::http
