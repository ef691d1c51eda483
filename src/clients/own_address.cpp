#include "clients/own_address.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/lower_case.hpp"
#include "base/uri.hpp"

namespace fairlead::clients {

namespace {

// The parts of a URL that say which listener it leads to.
struct Listener {
  bool tls = false;
  std::string host;  // in lower case
  std::uint16_t port = 0;
  std::string path;  // without the query

  bool same_as(const Listener& other) const {
    return tls == other.tls && host == other.host && port == other.port;
  }
};

// Returns one name for all names of this machine.
std::string host_name(std::string host) {
  while (host.ends_with('.')) host.pop_back();
  const bool is_loopback =
      host == "localhost" || host == "::1" || host == "0.0.0.0" || host == "::" ||
      (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
  return is_loopback ? "localhost" : host;
}

std::optional<Listener> listener_of(std::string_view url) {
  const UriParts parts = split_uri(url);
  const std::string scheme = lower_case(parts.scheme);
  Listener listener;
  listener.tls = scheme == "https:" || scheme == "wss:";
  if ((!listener.tls && scheme != "http:" && scheme != "ws:") || parts.authority.empty()) return std::nullopt;
  std::string_view authority = parts.authority.substr(2);
  authority.remove_prefix(authority.rfind('@') + 1);
  const Result<HostAndPort> parsed = split_host_and_port(authority);
  if (!parsed) return std::nullopt;
  listener.host = host_name(lower_case(parsed->host));
  listener.port = parsed->port.value_or(listener.tls ? 443 : 80);
  listener.path = parts.path;
  return listener;
}

// Returns the path before that of MCP: empty unless a reverse proxy adds one.
std::string_view prefix_of(std::string_view path) {
  path = path.substr(0, path.find("/mcp"));
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

bool is_mcp_path(std::string_view path) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"/mcp", "/sse", "/messages"}, [&](std::string_view own) {
        return path.starts_with(own) && (path.size() == own.size() || path[own.size()] == '/');
      });
}

}  // namespace

bool is_own_url(const std::string& url, const std::vector<std::string>& own_urls) {
  const std::optional<Listener> listener = listener_of(url);
  if (!listener) return false;
  return std::ranges::any_of(own_urls, [&](const std::string& text) {
    const std::optional<Listener> own = listener_of(text);
    if (!own || !own->same_as(*listener)) return false;
    const std::string_view prefix = prefix_of(own->path);
    return listener->path.starts_with(prefix) &&
           is_mcp_path(std::string_view(listener->path).substr(prefix.size()));
  });
}

}  // namespace fairlead::clients
