#include "clients/own_address.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace fairlead::clients {

namespace {

// The parts of a URL that say which listener it leads to.
struct Listener {
  bool tls = false;
  std::string host;  // in lower case
  std::string port;
  std::string path;  // without the query

  bool same_as(const Listener& other) const {
    return tls == other.tls && host == other.host && port == other.port;
  }
};

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
  return lower;
}

// Returns one name for all names of this machine.
std::string host_name(std::string host) {
  while (host.ends_with('.')) host.pop_back();
  const bool is_loopback =
      host == "localhost" || host == "[::1]" || host == "0.0.0.0" || host == "[::]" ||
      (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
  return is_loopback ? "localhost" : host;
}

std::optional<Listener> listener_of(std::string_view url) {
  const std::size_t separator = url.find("://");
  if (separator == std::string_view::npos) return std::nullopt;
  const std::string scheme = in_lower_case(url.substr(0, separator));
  Listener listener;
  listener.tls = scheme == "https" || scheme == "wss";
  if (!listener.tls && scheme != "http" && scheme != "ws") return std::nullopt;
  url.remove_prefix(separator + 3);
  const std::size_t end = std::min(url.find_first_of("/?#"), url.size());
  std::string_view authority = url.substr(0, end);
  authority.remove_prefix(authority.rfind('@') + 1);
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != std::string_view::npos && !authority.substr(colon).contains(']');
  listener.host = host_name(in_lower_case(authority.substr(0, has_port ? colon : authority.size())));
  listener.port = has_port ? std::string(authority.substr(colon + 1)) : std::string();
  if (listener.port.empty()) listener.port = listener.tls ? "443" : "80";
  listener.path = url.substr(end, url.find_first_of("?#", end) - end);
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
