#include "http/host_origin_policy.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/uri.hpp"
#include "http/syntax.hpp"

namespace fairlead::http {

namespace {

constexpr bool is_invalid_in_host(char c) noexcept {
  return c == '/' || c == '@' || c == '?' || c == '#' || c == '\\' || c == ' ';
}

// Returns the host in "host:port" or "[::1]:port"; an IPv6 address keeps its brackets. Returns nullopt if
// `authority` has neither form.
std::optional<std::string_view> host_of(std::string_view authority) {
  const Result<HostAndPort> parts = split_host_and_port(authority);
  if (!parts || std::ranges::any_of(parts->host, is_invalid_in_host)) return std::nullopt;
  return authority.starts_with('[') ? authority.substr(0, parts->host.size() + 2) : parts->host;
}

// Returns whether `host` has the form "192.0.2.1" or "[2001:db8::1]".
bool is_ip_address(std::string_view host) {
  const bool v6 = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  const std::string text(v6 ? host.substr(1, host.size() - 2) : host);
  std::array<unsigned char, 16> ignored;
  return ::inet_pton(v6 ? AF_INET6 : AF_INET, text.c_str(), ignored.data()) == 1;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::any_of(names,
                             [&](const std::string& entry) { return equals_ignore_case(entry, name); });
}

constexpr std::string_view kAllowedMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
constexpr std::string_view kAllowedHeaders =
    "Accept, Authorization, Content-Type, DPoP, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, "
    "Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name";
constexpr std::string_view kToolParameterPrefix = "mcp-param-";

}  // namespace

HostOriginPolicy::HostOriginPolicy(const ServerOptions& options, ListenerKind kind)
    : allowed_origins_(options.allowed_origins), public_paths_(options.public_paths) {
  if (options.allowed_hosts) {
    allowed_hosts_ = *options.allowed_hosts;
    host_rule_ = allowed_hosts_.empty() ? HostRule::any : HostRule::listed;
  } else if (kind == ListenerKind::loopback) {
    allowed_hosts_ = {"localhost", "127.0.0.1", "[::1]"};
    host_rule_ = HostRule::listed;
  } else {
    host_rule_ = kind == ListenerKind::unix_socket ? HostRule::any : HostRule::ip_addresses;
  }
}

std::optional<std::string_view> HostOriginPolicy::rejection_reason(std::string_view authority,
                                                                   const Headers& headers,
                                                                   std::string_view path) const {
  if (host_rule_ != HostRule::any) {
    const std::optional<std::string_view> host = host_of(authority);
    if (!host || !allows_host(*host))
      return "the host in the Host header is not allowed; add it to allowed_hosts";
  }
  if (!headers.has("Origin") || is_public(path)) return std::nullopt;
  if (headers.count("Origin") > 1 || !allows_origin(headers.get("Origin"), authority)) {
    return "requests from this Origin are not allowed; add it to allowed_origins";
  }
  return std::nullopt;
}

bool HostOriginPolicy::is_public(std::string_view path) const noexcept {
  return std::ranges::any_of(public_paths_, [&](const std::string& root) {
    return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
  });
}

bool HostOriginPolicy::allows_host(std::string_view host) const {
  if (host_rule_ == HostRule::ip_addresses)
    return is_ip_address(host) || equals_ignore_case(host, "localhost");
  return contains(allowed_hosts_, host);
}

bool HostOriginPolicy::allows_origin(std::string_view origin, std::string_view authority) const {
  if (contains(allowed_origins_, origin) || contains(allowed_origins_, "*")) return true;
  const UriParts parts = split_uri(origin);
  if (!equals_ignore_case(parts.scheme, "http:") && !equals_ignore_case(parts.scheme, "https:")) return false;
  if (parts.authority.empty() || parts.scheme.size() + parts.authority.size() != origin.size()) return false;
  const std::string_view origin_authority = parts.authority.substr(2);
  const std::optional<std::string_view> host = host_of(origin_authority);
  if (!host) return false;
  // If no hosts are listed, only the origin of the server itself is allowed: the one with the host and port
  // in Host.
  return host_rule_ == HostRule::listed ? allows_host(*host)
                                        : equals_ignore_case(origin_authority, authority);
}

bool HostOriginPolicy::is_preflight(const Request& request) {
  return request.method == "OPTIONS" && request.headers.has("Origin") &&
         request.headers.has("Access-Control-Request-Method");
}

Response HostOriginPolicy::preflight_response(const Request& request) {
  Response response(204);
  response.headers.add("Access-Control-Allow-Methods", kAllowedMethods);
  // The Mcp-Param-* headers depend on the tools, which are unknown here, so every such header that the
  // browser requests is allowed.
  std::string fields(kAllowedHeaders);
  for_each_list_element(request.headers.get("Access-Control-Request-Headers"), [&](std::string_view name) {
    if (is_token(name) &&
        equals_ignore_case(name.substr(0, kToolParameterPrefix.size()), kToolParameterPrefix)) {
      fields.append(", ").append(name);
    }
  });
  response.headers.add("Access-Control-Allow-Headers", fields);
  response.headers.add("Access-Control-Max-Age", "600");
  return response;
}

}  // namespace fairlead::http
