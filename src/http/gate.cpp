#include "http/gate.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "http/syntax.hpp"

namespace fairlead::http {

namespace {

bool is_port(std::string_view text) {
  return text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "host:port", "[::1]:port" or without port: the host; absent when it is neither.
std::optional<std::string_view> host_of(std::string_view authority) {
  std::size_t end = authority.starts_with('[') ? authority.find(']') : authority.find(':');
  if (authority.starts_with('[')) {
    if (end == std::string_view::npos) return std::nullopt;
    ++end;
  }
  const std::string_view host = authority.substr(0, end);
  const std::string_view port = authority.substr(host.size());
  if (host.empty() || host.find_first_of("/@?#\\ ") != std::string_view::npos) return std::nullopt;
  if (!port.empty() && (port.front() != ':' || !is_port(port.substr(1)))) return std::nullopt;
  return host;
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
  const std::size_t colon = origin.find("://");
  if (colon == std::string_view::npos) return false;
  const std::string_view scheme = origin.substr(0, colon);
  const std::string_view rest = origin.substr(colon + 3);
  if (!same_name(scheme, "http") && !same_name(scheme, "https")) return false;
  const std::optional<std::string_view> host = host_of(rest);
  if (!host) return false;
  // Without a list of names, a page may ask the server it came from.
  return names_ == Names::listed ? allows_host(*host) : same_name(rest, authority);
}

bool Gate::is_preflight(const Request& request) {
  return request.method == "OPTIONS" && request.headers.has("Origin") &&
         request.headers.has("Access-Control-Request-Method");
}

Response Gate::preflight(const Request& request) {
  Response response(204);
  response.headers.add("Access-Control-Allow-Methods", std::string(kMethods));
  // Names of tools' own header fields cannot be known here: those that are asked for are allowed.
  std::string fields(kFields);
  each_list_element(request.headers.get("Access-Control-Request-Headers"), [&](std::string_view name) {
    if (is_token(name) && same_name(name.substr(0, kParameterField.size()), kParameterField)) {
      fields.append(", ").append(name);
    }
  });
  response.headers.add("Access-Control-Allow-Headers", std::move(fields));
  response.headers.add("Access-Control-Max-Age", "600");
  return response;
}

}  // namespace fairlead::http
