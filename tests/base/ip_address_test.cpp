#include "base/ip_address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>
#include <string>

namespace fairlead {
namespace {

TEST(IpAddressTest, PublicAddressesArePublic) {
  for (const char* const address :
       {"1.1.1.1", "8.8.8.8", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "192.167.1.1",
        "198.17.255.255", "223.255.255.255", "2606:4700:4700::1111", "2001:4860:4860::8888",
        "64:ff9b::808:808", "2002:808:808::1"})
    EXPECT_TRUE(is_public_address(std::string(address))) << address;
}

TEST(IpAddressTest, AddressesOfThisMachineAndPrivateNetworksAreNotPublic) {
  for (const char* const address : {"127.0.0.1",
                                    "127.255.255.254",
                                    "0.0.0.0",
                                    "0.1.2.3",
                                    "10.0.0.1",
                                    "172.16.0.1",
                                    "172.31.255.255",
                                    "192.168.0.1",
                                    "169.254.169.254",
                                    "100.64.0.1",
                                    "100.127.255.255",
                                    "192.0.2.1",
                                    "198.18.0.1",
                                    "198.19.255.255",
                                    "203.0.113.9",
                                    "224.0.0.1",
                                    "239.1.1.1",
                                    "240.0.0.1",
                                    "255.255.255.255",
                                    "::",
                                    "::1",
                                    "fe80::1",
                                    "fec0::1",
                                    "fc00::1",
                                    "fd12:3456::1",
                                    "ff02::1",
                                    "2001:db8::1",
                                    "2001::1",
                                    "2001:10::1",
                                    "3fff::1",
                                    "100::1"})
    EXPECT_FALSE(is_public_address(std::string(address))) << address;
}

TEST(IpAddressTest, Ipv6AddressThatStandsForPrivateIpv4AddressIsNotPublic) {
  for (const char* const address :
       {"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b::169.254.169.254", "64:ff9b:1::a00:1", "2002:7f00:1::1", "2002:a00:1::1", "2002:c0a8:1::"})
    EXPECT_FALSE(is_public_address(std::string(address))) << address;
}

TEST(IpAddressTest, TextThatIsNoNumericAddressIsNotPublic) {
  for (const char* const text :
       {"", "localhost", "example.com", "8.8.8", "0x7f.1", "2130706433", "[::1]", "1.1.1.1 "})
    EXPECT_FALSE(is_public_address(std::string(text))) << text;
}

TEST(IpAddressTest, SocketAddressesAreClassifiedByTheirFamily) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ASSERT_EQ(::inet_pton(AF_INET, "8.8.8.8", &ipv4.sin_addr), 1);
  EXPECT_TRUE(is_public_address(reinterpret_cast<const sockaddr&>(ipv4)));
  ASSERT_EQ(::inet_pton(AF_INET, "10.1.2.3", &ipv4.sin_addr), 1);
  EXPECT_FALSE(is_public_address(reinterpret_cast<const sockaddr&>(ipv4)));
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  ASSERT_EQ(::inet_pton(AF_INET6, "2606:4700:4700::1111", &ipv6.sin6_addr), 1);
  EXPECT_TRUE(is_public_address(reinterpret_cast<const sockaddr&>(ipv6)));
  sockaddr_un unix_socket{};
  unix_socket.sun_family = AF_UNIX;
  EXPECT_FALSE(is_public_address(reinterpret_cast<const sockaddr&>(unix_socket)));
}

}  // namespace
}  // namespace fairlead
