#include "registry/tokens.hpp"

#include <gtest/gtest.h>

#include <set>

namespace fairlead::registry {
namespace {

TEST(TokensTest, GeneratedTokenHasPrefixAndChecksum) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string token = generate_token().value();
    EXPECT_EQ(token.size(), 52U);
    EXPECT_TRUE(token.starts_with("fl_"));
    EXPECT_TRUE(is_token_text(token));
    EXPECT_TRUE(seen.insert(token).second);
  }
}

TEST(TokensTest, ChangedTokenFailsTheChecksum) {
  const std::string token = generate_token().value();
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(is_token_text(changed)) << i;
  }
  EXPECT_FALSE(is_token_text(token.substr(1)));
  EXPECT_FALSE(is_token_text(token + "A"));
  EXPECT_FALSE(is_token_text(""));
}

TEST(TokensTest, ChecksumIsCrc32) {
  EXPECT_TRUE(
      is_token_text("fl_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                    "DCtZhg"));
}

TEST(TokensTest, DigestIsSha256InHexadecimal) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(TokensTest, PrefixRevealsOnlyTheFirstCharacters) {
  const std::string token = generate_token().value();
  EXPECT_EQ(token_prefix(token), token.substr(0, 11));
}

}  // namespace
}  // namespace fairlead::registry
