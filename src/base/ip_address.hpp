// is_public_address(): tells addresses of the public internet from those of this machine and of private
// networks. Private to the library.
#pragma once

#include <string>
#include <string_view>

struct sockaddr;

namespace fairlead {

// Returns whether an address belongs to the public internet. It does not if it is a loopback, private, shared
// (CGNAT), link-local, multicast, documentation, benchmarking, reserved or unspecified address, or an IPv6
// address that stands for such an IPv4 address (mapped, 6to4, NAT64, Teredo). A Unix socket is not public.
bool is_public_address(const sockaddr& address) noexcept;
// The same for a numeric IPv4 or IPv6 address without brackets. Returns false for any other text.
bool is_public_address(const std::string& numeric);

}  // namespace fairlead
