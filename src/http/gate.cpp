#include "http/gate.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/uri.hpp"
#include "http/syntax.hpp"

namespace fairlead::http {

namespace {

constexpr bool cannot_be_in_host(char c) noexcept {
  return c == '/' || c == '@' || c == '?' || c == '#' || c == '\\' || c == ' ';
}

// Returns the host of "host:port" or "[::1]:port", with its brackets; nullopt for anything else.
std::optional<std::string_view> host_of(std::string_view authority) {
  const Result<HostAndPort> parts = split_host_and_port(authority);
  if (!parts || std::ranges::any_of(parts->host, cannot_be_in_host)) return std::nullopt;
  return authority.starts_with('[') ? authority.substr(0, parts->host.size() + 2) : parts->host;
}

// "192.0.2.1" or "[2001:db8::1]".
bool is_address(std::string_view host) {
  const bool v6 = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  const std::string text(v6 ? host.substr(1, host.size() - 2) : host);
  std::array<unsigned char, 16> ignored;
  return ::inet_pton(v6 ? AF_INET6 : AF_INET, text.c_str(), ignored.data()) == 1;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::any_of(names, [&](const std::string& one) { return same_name(one, name); });
}

constexpr std::string_view kMethods = "GET, POST, DELETE, OPTIONS";
constexpr std::string_view kFields =
    "Accept, Authorization, Content-Type, DPoP, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, "
    "Mcp-Method, "
    "Mcp-Name";
constexpr std::string_view kParameterField = "mcp-param-";

}  // namespace

Gate::Gate(const ServerOptions& options, ListenerKind kind) : origins_(options.allowed_origins) {
  if (options.allowed_hosts) {
    hosts_ = *options.allowed_hosts;
    names_ = hosts_.empty() ? Names::any : Names::listed;
  } else if (kind == ListenerKind::loopback) {
    hosts_ = {"localhost", "127.0.0.1", "[::1]"};
    names_ = Names::listed;
  } else {
    names_ = kind == ListenerKind::unix_socket ? Names::any : Names::addresses;
  }
}

std::optional<std::string_view> Gate::refuses(std::string_view authority, const Headers& headers) const {
  if (names_ != Names::any) {
    const std::optional<std::string_view> host = host_of(authority);
    if (!host || !allows_host(*host))
      return "this server does not answer to the name in Host; allowed_hosts lists the names it answers to";
  }
  if (!headers.has("Origin")) return std::nullopt;
  if (headers.count("Origin") > 1 || !allows_origin(headers.get("Origin"), authority)) {
    return "pages of this Origin may not ask this server";
  }
  return std::nullopt;
}

bool Gate::allows_host(std::string_view host) const {
  if (names_ == Names::addresses) return is_address(host) || same_name(host, "localhost");
  return contains(hosts_, host);
}

bool Gate::allows_origin(std::string_view origin, std::string_view authority) const {
  if (contains(origins_, origin) || contains(origins_, "*")) return true;
  const UriParts parts = split_uri(origin);
  if (!same_name(parts.scheme, "http:") && !same_name(parts.scheme, "https:")) return false;
  if (parts.authority.empty() || parts.scheme.size() + parts.authority.size() != origin.size()) return false;
  const std::string_view own = parts.authority.substr(2);
  const std::optional<std::string_view> host = host_of(own);
  if (!host) return false;
  // Without a list of names, a page may ask the server it came from.
  return names_ == Names::listed ? allows_host(*host) : same_name(own, authority);
}

bool Gate::is_preflight(const Request& request) {
  return request.method == "OPTIONS" && request.headers.has("Origin") &&
         request.headers.has("Access-Control-Request-Method");
}

Response Gate::preflight(const Request& request) {
  Response response(204);
  response.headers.add("Access-Control-Allow-Methods", kMethods);
  // Names of tools' own header fields cannot be known here: those that are asked for are allowed.
  std::string fields(kFields);
  each_list_element(request.headers.get("Access-Control-Request-Headers"), [&](std::string_view name) {
    if (is_token(name) && same_name(name.substr(0, kParameterField.size()), kParameterField)) {
      fields.append(", ").append(name);
    }
  });
  response.headers.add("Access-Control-Allow-Headers", fields);
  response.headers.add("Access-Control-Max-Age", "600");
  return response;
}

}  // namespace fairlead::http
