#include "base/ip_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace fairlead {

namespace {

struct Ipv4Network {
  std::uint32_t base;
  unsigned prefix;
};

constexpr std::uint32_t ipv4(unsigned a, unsigned b, unsigned c, unsigned d) {
  return a << 24 | b << 16 | c << 8 | d;
}

// The networks of the IANA IPv4 special-purpose registry that are not globally reachable, and multicast.
constexpr std::array kReservedIpv4 = {
    Ipv4Network{ipv4(0, 0, 0, 0), 8},       Ipv4Network{ipv4(10, 0, 0, 0), 8},
    Ipv4Network{ipv4(100, 64, 0, 0), 10},   Ipv4Network{ipv4(127, 0, 0, 0), 8},
    Ipv4Network{ipv4(169, 254, 0, 0), 16},  Ipv4Network{ipv4(172, 16, 0, 0), 12},
    Ipv4Network{ipv4(192, 0, 0, 0), 24},    Ipv4Network{ipv4(192, 0, 2, 0), 24},
    Ipv4Network{ipv4(192, 31, 196, 0), 24}, Ipv4Network{ipv4(192, 52, 193, 0), 24},
    Ipv4Network{ipv4(192, 88, 99, 0), 24},  Ipv4Network{ipv4(192, 168, 0, 0), 16},
    Ipv4Network{ipv4(192, 175, 48, 0), 24}, Ipv4Network{ipv4(198, 18, 0, 0), 15},
    Ipv4Network{ipv4(198, 51, 100, 0), 24}, Ipv4Network{ipv4(203, 0, 113, 0), 24},
    Ipv4Network{ipv4(224, 0, 0, 0), 4},     Ipv4Network{ipv4(240, 0, 0, 0), 4},
};

bool is_public_ipv4(std::uint32_t address) noexcept {
  return std::ranges::none_of(kReservedIpv4, [&](const Ipv4Network& network) {
    const std::uint32_t mask = ~std::uint32_t{0} << (32 - network.prefix);
    return (address & mask) == network.base;
  });
}

using Ipv6Bytes = std::array<std::uint8_t, 16>;

bool begins_with(const Ipv6Bytes& address, std::span<const std::uint8_t> prefix) noexcept {
  return std::equal(prefix.begin(), prefix.end(), address.begin());
}

std::uint32_t ipv4_at(const Ipv6Bytes& address, std::size_t offset) noexcept {
  return ipv4(address[offset], address[offset + 1], address[offset + 2], address[offset + 3]);
}

// Only 2000::/3 is allocated as global unicast; the exceptions in it are listed.
bool is_public_ipv6(const Ipv6Bytes& address) noexcept {
  constexpr std::array<std::uint8_t, 12> kNat64 = {0x00, 0x64, 0xff, 0x9b};
  constexpr std::array<std::uint8_t, 2> k6to4 = {0x20, 0x02};
  constexpr std::array<std::uint8_t, 4> kDocumentation = {0x20, 0x01, 0x0d, 0xb8};
  constexpr std::array<std::uint8_t, 2> kDocumentation2 = {0x3f, 0xff};  // 3fff::/20
  if (begins_with(address, kNat64)) return is_public_ipv4(ipv4_at(address, 12));
  if ((address[0] & 0xe0) != 0x20) return false;
  if (begins_with(address, k6to4)) return is_public_ipv4(ipv4_at(address, 2));
  // 2001::/23 has Teredo (2001::/32), benchmarking (2001:2::/48) and ORCHID (2001:10::/28, 2001:20::/28).
  if (address[0] == 0x20 && address[1] == 0x01 && address[2] < 0x02) return false;
  if (begins_with(address, kDocumentation)) return false;
  return !(begins_with(address, kDocumentation2) && address[2] < 0x10);
}

}  // namespace

bool is_public_address(const sockaddr& address) noexcept {
  if (address.sa_family == AF_INET) {
    sockaddr_in ipv4_address;
    std::memcpy(&ipv4_address, &address, sizeof ipv4_address);
    return is_public_ipv4(ntohl(ipv4_address.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 ipv6_address;
  std::memcpy(&ipv6_address, &address, sizeof ipv6_address);
  Ipv6Bytes bytes;
  std::memcpy(bytes.data(), &ipv6_address.sin6_addr, bytes.size());
  return is_public_ipv6(bytes);
}

bool is_public_address(const std::string& numeric) {
  in_addr ipv4_address;
  if (::inet_pton(AF_INET, numeric.c_str(), &ipv4_address) == 1)
    return is_public_ipv4(ntohl(ipv4_address.s_addr));
  Ipv6Bytes bytes;
  return ::inet_pton(AF_INET6, numeric.c_str(), bytes.data()) == 1 && is_public_ipv6(bytes);
}

}  // namespace fairlead
