#include "mcp/seal.hpp"

#include <gtest/gtest.h>

#include "fairlead/base/base64.hpp"

namespace fairlead::mcp {
namespace {

using namespace std::chrono_literals;

const Sealer::Time kNow = std::chrono::system_clock::now();
const std::string kKey(32, 'k');
const std::string kOther(32, 'o');

TEST(SealerTest, OpensWhatItSealed) {
  const Sealer sealer({kKey}, 10min);
  const std::string sealed = sealer.seal(R"({"a":1})", "tools/call x", kNow);
  const Result<std::string> opened = sealer.open(sealed, "tools/call x", kNow);
  ASSERT_TRUE(opened);
  EXPECT_EQ(*opened, R"({"a":1})");
}

TEST(SealerTest, OpenFailsWhenAnyCharacterIsChanged) {
  const Sealer sealer({kKey}, 10min);
  const std::string sealed = sealer.seal("{}", "b", kNow);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string tampered = sealed;
    tampered[i] = tampered[i] == 'A' ? 'B' : 'A';
    const Result<std::string> opened = sealer.open(tampered, "b", kNow);
    ASSERT_FALSE(opened) << i;
    EXPECT_EQ(opened.error().detail().rpc_code, -32602);
    EXPECT_EQ(opened.error().detail().rpc_data, R"({"reason":"invalid_request_state"})");
  }
  for (const char* junk : {"", ".", "v1.", "v1..", "v1.e30.", "v2.x.y", "..."})
    EXPECT_FALSE(sealer.open(junk, "b", kNow)) << junk;
}

TEST(SealerTest, OpenFailsWithOtherBindingOrAfterExpiry) {
  const Sealer sealer({kKey}, 10min);
  const std::string sealed = sealer.seal("{}", "tools/call a", kNow);
  EXPECT_FALSE(sealer.open(sealed, "tools/call b", kNow));
  EXPECT_TRUE(sealer.open(sealed, "tools/call a", kNow + 9min));
  EXPECT_FALSE(sealer.open(sealed, "tools/call a", kNow + 11min));
}

TEST(SealerTest, OldKeyOpensUntilItIsRemoved) {
  const std::string old = Sealer({kKey}, 10min).seal("{}", "b", kNow);
  const Sealer rotated({kOther, kKey}, 10min);
  EXPECT_TRUE(rotated.open(old, "b", kNow));
  EXPECT_FALSE(Sealer({kOther}, 10min).open(old, "b", kNow));
  EXPECT_FALSE(Sealer({kKey}, 10min).open(rotated.seal("{}", "b", kNow), "b", kNow));
  EXPECT_NE(Sealer::random_key(), Sealer::random_key());
}

TEST(Base64Test, DecodesBothAlphabetsAndRejectsNonCanonicalText) {
  EXPECT_EQ(base64_encode("f"), "Zg==");
  EXPECT_EQ(base64_encode("fo\xff"), "Zm//");
  EXPECT_EQ(base64url_encode("fo\xff"), "Zm__");
  EXPECT_EQ(base64_decode("Zg=="), "f");
  EXPECT_EQ(base64url_decode("Zg"), "f");
  for (const char* bad : {"Zg", "Zg=", "Zh==", "Z===", "Zg==Zg==", "Z g=", "Zm__"})
    EXPECT_FALSE(base64_decode(bad)) << bad;
  EXPECT_FALSE(base64url_decode("Zh"));
  EXPECT_FALSE(base64url_decode("Z"));
}

}  // namespace
}  // namespace fairlead::mcp
