#include "fairlead/base/principal.hpp"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

Principal identified(std::string issuer, std::string subject, std::string user) {
  Principal principal;
  principal.issuer = std::move(issuer);
  principal.subject = std::move(subject);
  principal.user = std::move(user);
  return principal;
}

TEST(PrincipalTest, AnonymousPrincipalHasOnlyAddress) {
  const PrincipalPtr client = Principal::anonymous("127.0.0.1:4711");
  EXPECT_TRUE(client->is_anonymous());
  EXPECT_EQ(client->client_address, "127.0.0.1:4711");
  EXPECT_FALSE(client->has_role(kAdminRole));
  EXPECT_EQ(identity_key(*client), "");
}

TEST(PrincipalTest, LocalPrincipalIsNamedAfterUserId) {
  const PrincipalPtr client = Principal::local(1000, "stdio");
  EXPECT_FALSE(client->is_anonymous());
  EXPECT_EQ(client->user, "uid:1000");
  EXPECT_EQ(*client, *Principal::local(1000, "stdio"));
  EXPECT_NE(*client, *Principal::local(1001, "stdio"));
}

TEST(PrincipalTest, IdentityIgnoresTokenRolesAndAddress) {
  Principal principal = identified("https://a", "s", "ann");
  Principal other = principal;
  other.token_id = "2";
  other.roles = {std::string(kAdminRole)};
  other.client_address = "elsewhere";
  EXPECT_NE(principal, other);
  EXPECT_TRUE(same_identity(principal, other));
  EXPECT_EQ(identity_key(principal), identity_key(other));
  EXPECT_TRUE(other.has_role(kAdminRole));
}

TEST(PrincipalTest, IdentityDiffersWhenIssuerSubjectOrUserDiffers) {
  const Principal principal = identified("https://a", "s", "ann");
  for (const Principal& other : {identified("https://b", "s", "ann"), identified("https://a", "t", "ann"),
                                 identified("https://a", "s", "bob")}) {
    EXPECT_FALSE(same_identity(principal, other));
    EXPECT_NE(identity_key(principal), identity_key(other));
  }
}

TEST(PrincipalTest, IdentityKeysDifferWhenConcatenatedPartsAreEqual) {
  EXPECT_NE(identity_key(identified("ab", "c", "")), identity_key(identified("a", "bc", "")));
  EXPECT_NE(identity_key(identified("1:a", "", "")), identity_key(identified("", "1:a", "")));
}

TEST(PrincipalTest, AnonymousClientsAreDistinguishedByAddressWithoutPort) {
  EXPECT_EQ(client_key(*Principal::anonymous("10.0.0.1:1")), client_key(*Principal::anonymous("10.0.0.1:2")));
  EXPECT_EQ(client_key(*Principal::anonymous("[::1]:1")), client_key(*Principal::anonymous("[::1]:2")));
  EXPECT_NE(client_key(*Principal::anonymous("10.0.0.1:1")), client_key(*Principal::anonymous("10.0.0.2:1")));
  Principal ann = identified("https://a", "s", "ann");
  ann.client_address = "10.0.0.1:1";
  Principal elsewhere = ann;
  elsewhere.client_address = "10.0.0.2:1";
  EXPECT_EQ(client_key(ann), client_key(elsewhere));
  EXPECT_NE(client_key(ann), client_key(*Principal::anonymous("10.0.0.1:1")));
}

}  // namespace
}  // namespace fairlead
