// The syntax of URIs (RFC 3986), for everything that reads one: addresses, URLs, references of schemas.
// Sans I/O; nothing is fetched. Private to the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fairlead/base/result.hpp"

namespace fairlead {

// The parts of a URI or a reference, each with its delimiter: joined in this order they are the text again.
struct UriParts {
  std::string_view scheme;     // "http:"
  std::string_view authority;  // "//host"
  std::string_view path;
  std::string_view query;     // "?…"
  std::string_view fragment;  // "#…"
};
UriParts split_uri(std::string_view uri) noexcept;

// `reference` as seen from `base`, with its fragment. An empty base is a document without an address.
std::string resolve_uri(std::string_view base, std::string_view reference);

struct SplitUri {
  std::string_view document;
  std::string_view fragment;  // without the #
  bool has_fragment;
};
SplitUri split_fragment(std::string_view uri) noexcept;

struct HostAndPort {
  std::string_view host;              // without the brackets of an IPv6 address
  std::optional<std::uint16_t> port;  // absent when no digit follows the colon
};
// Reads "host", "host:port" or "[v6]:port". The error is of kind validation and says only what is wrong.
Result<HostAndPort> split_host_and_port(std::string_view text);
// The reverse: brackets around an IPv6 address, and always the port.
std::string join_host_and_port(std::string_view host, std::uint16_t port);
// What the clients of one network are counted as: an IPv4 address, or the first 64 bits of an IPv6 address,
// as in "2001:db8:0:1::/64". A client with one IPv6 address can use all addresses of that prefix.
std::string network_of_remote(const std::string& remote);

// Decodes %XX. nullopt if a % is not followed by two hexadecimal digits.
std::optional<std::string> percent_decode_strictly(std::string_view text);
// The same, but a % that begins no escape stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace fairlead
