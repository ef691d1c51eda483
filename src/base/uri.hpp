// URI parsing and resolution (RFC 3986), used for addresses, URLs and schema references. Does no I/O. Private
// to the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead {

// The components of a URI reference, each including its delimiter: concatenated in this order they yield the
// original text.
struct UriParts {
  std::string_view scheme;     // "http:"
  std::string_view authority;  // "//host"
  std::string_view path;
  std::string_view query;     // "?…"
  std::string_view fragment;  // "#…"
};
UriParts split_uri(std::string_view uri) noexcept;

// Resolves `reference` against `base`. The result has the fragment of `reference`. `base` is empty for a
// document without a URI.
std::string resolve_uri(std::string_view base, std::string_view reference);

struct UriAndFragment {
  std::string_view document;  // the URI before the #
  std::string_view fragment;  // without the #
  bool has_fragment;
};
UriAndFragment split_fragment(std::string_view uri) noexcept;

struct HostAndPort {
  std::string_view host;              // without the brackets of an IPv6 address
  std::optional<std::uint16_t> port;  // nullopt if there is no port, or no digit after the colon
};
// Parses "host", "host:port" or "[v6]:port", where v6 is an IPv6 address with or without a zone, as in
// fe80::1%eth0. Fails with `validation`; the message is the reason only and does not contain `text`.
Result<HostAndPort> split_host_and_port(std::string_view text);
// Returns "host:port", with brackets around an IPv6 address.
std::string join_host_and_port(std::string_view host, std::uint16_t port);
// Returns the network that a client address is counted under in per-client limits: the IPv4 address, or the
// /64 prefix of the IPv6 address, as in "2001:db8:0:1::/64". A client with one IPv6 address can usually use
// all addresses of that prefix. Text that is not host and port, such as "unix", is returned unchanged.
std::string client_network(const std::string& remote_address);

// Decodes %XX. Returns nullopt if a % is not followed by two hexadecimal digits.
std::optional<std::string> percent_decode_strict(std::string_view text);
// Decodes %XX. A % that is not followed by two hexadecimal digits is kept.
std::string percent_decode_lenient(std::string_view text);

}  // namespace fairlead
