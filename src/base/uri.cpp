#include "base/uri.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace fairlead {

namespace {

std::string_view split_off(std::string_view& text, std::size_t offset) {
  const std::string_view tail = text.substr(std::min(offset, text.size()));
  text.remove_suffix(tail.size());
  return tail;
}

std::size_t scheme_length(std::string_view text) {
  const std::size_t end = text.find_first_of(":/?#");
  if (end == std::string_view::npos || end == 0 || text[end] != ':') return 0;
  return end + 1;
}

std::string without_dot_segments(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t slash = path.find('/', path.front() == '/' ? 1 : 0);
    const std::string_view segment = path.substr(0, slash);
    path.remove_prefix(segment.size());
    const std::string_view name = segment.starts_with('/') ? segment.substr(1) : segment;
    if (name == "..") {
      const std::size_t parent = out.rfind('/');
      out.resize(parent == std::string::npos ? 0 : parent);
    } else if (name != ".") {
      out += segment;
    }
    if (name != "." && name != "..") continue;
    if (segment != name && path.empty()) out += '/';  // a dot segment at the end denotes a directory
    if (segment == name && !path.empty()) path.remove_prefix(1);
  }
  return out;
}

std::string merged_path(const UriParts& base, std::string_view path) {
  if (!base.authority.empty() && base.path.empty()) return "/" + std::string(path);
  const std::size_t slash = base.path.rfind('/');
  if (slash == std::string_view::npos) return std::string(path);
  return std::string(base.path.substr(0, slash + 1)) + std::string(path);
}

std::string join_uri(std::string_view scheme, std::string_view authority, const std::string& path,
                     std::string_view query, std::string_view fragment) {
  std::string uri(scheme);
  uri.append(authority).append(path).append(query).append(fragment);
  return uri;
}

std::optional<unsigned char> escaped_byte(std::string_view text, std::size_t offset) {
  unsigned char byte = 0;
  const char* const from = text.data() + offset + 1;
  if (text.size() - offset <= 2 || std::from_chars(from, from + 2, byte, 16).ptr != from + 2)
    return std::nullopt;
  return byte;
}

Error malformed(std::string_view reason) {
  return Error(ErrorKind::validation, std::string(reason));
}

// Returns whether `host` is an IPv6 address, with or without a zone as in fe80::1%eth0.
bool is_ipv6_address(std::string_view host) {
  const std::size_t zone = host.find('%');
  if (host.ends_with('%') || host.find('\0') != std::string_view::npos) return false;
  in6_addr address{};
  return ::inet_pton(AF_INET6, std::string(host.substr(0, zone)).c_str(), &address) == 1;
}

}  // namespace

UriParts split_uri(std::string_view uri) noexcept {
  UriParts parts;
  parts.fragment = split_off(uri, uri.find('#'));
  parts.query = split_off(uri, uri.find('?'));
  parts.scheme = uri.substr(0, scheme_length(uri));
  uri.remove_prefix(parts.scheme.size());
  if (uri.starts_with("//")) {
    parts.authority = uri.substr(0, uri.find('/', 2));
    uri.remove_prefix(parts.authority.size());
  }
  parts.path = uri;
  return parts;
}

std::string resolve_uri(std::string_view base, std::string_view reference) {
  const UriParts from = split_uri(base);
  const UriParts to = split_uri(reference);
  if (!to.scheme.empty())
    return join_uri(to.scheme, to.authority, without_dot_segments(to.path), to.query, to.fragment);
  if (!to.authority.empty())
    return join_uri(from.scheme, to.authority, without_dot_segments(to.path), to.query, to.fragment);
  if (to.path.empty()) {
    const std::string_view query = to.query.empty() ? from.query : to.query;
    return join_uri(from.scheme, from.authority, std::string(from.path), query, to.fragment);
  }
  const std::string path = to.path.starts_with('/') ? std::string(to.path) : merged_path(from, to.path);
  return join_uri(from.scheme, from.authority, without_dot_segments(path), to.query, to.fragment);
}

UriAndFragment split_fragment(std::string_view uri) noexcept {
  const std::size_t hash = uri.find('#');
  if (hash == std::string_view::npos) return {uri, {}, false};
  return {uri.substr(0, hash), uri.substr(hash + 1), true};
}

Result<HostAndPort> split_host_and_port(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const std::size_t bracket = bracketed ? text.find(']') : 0;
  if (bracket == std::string_view::npos) return malformed("the bracket of an IPv6 address is not closed");
  const std::size_t colon = bracketed ? bracket + 1 : std::min(text.rfind(':'), text.size());
  HostAndPort parts;
  parts.host = bracketed ? text.substr(1, bracket - 1) : text.substr(0, colon);
  std::string_view port = text.substr(colon);
  if (parts.host.empty()) return malformed("the host is missing");
  if (!bracketed && parts.host.find(':') != std::string_view::npos)
    return malformed("an IPv6 address needs brackets, as in [::1]:8080");
  const bool stray_bracket = !bracketed && parts.host.find_first_of("[]") != std::string_view::npos;
  if (stray_bracket || (bracketed && !is_ipv6_address(parts.host)))
    return malformed("brackets must enclose an IPv6 address, as in [::1]:8080");
  if (!port.empty() && port.front() != ':') return malformed("unexpected text between host and port");
  if (port.size() <= 1) return parts;
  port.remove_prefix(1);
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), parts.port.emplace());
  if (problem != std::errc() || end != port.data() + port.size())
    return malformed("the port is not a number from 0 to 65535");
  return parts;
}

std::string join_host_and_port(std::string_view host, std::uint16_t port) {
  const bool brackets = host.find(':') != std::string_view::npos;
  std::string text = brackets ? "[" + std::string(host) + "]" : std::string(host);
  return text + ":" + std::to_string(port);
}

std::string client_network(const std::string& remote_address) {
  const Result<HostAndPort> parts = split_host_and_port(remote_address);
  if (!parts) return remote_address;
  const std::string host(parts->host);
  in6_addr address{};
  if (::inet_pton(AF_INET6, host.c_str(), &address) != 1) return host;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return host.substr(host.rfind(':') + 1);
  std::fill_n(address.s6_addr + 8, 8, std::uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, &address, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

std::optional<std::string> percent_decode_strict(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%';
    const std::optional<unsigned char> byte = escape ? escaped_byte(text, i) : std::nullopt;
    if (escape && !byte) return std::nullopt;
    out += byte ? static_cast<char>(*byte) : text[i];
    if (byte) i += 2;
  }
  return out;
}

std::string percent_decode_lenient(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::optional<unsigned char> byte = text[i] == '%' ? escaped_byte(text, i) : std::nullopt;
    out += byte ? static_cast<char>(*byte) : text[i];
    if (byte) i += 2;
  }
  return out;
}

}  // namespace fairlead
