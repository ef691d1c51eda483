#include "registry/secret_cipher.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "fairlead/base/base64.hpp"
#include "registry/secret_key_file.hpp"
#include "registry/secret_keyring.hpp"
#include "support/support.hpp"

namespace fairlead::registry {
namespace {

SecretKey key_of(char c) {
  return SecretKey::from_bytes(std::string(SecretKey::kBytes, c)).value();
}

TEST(SecretCipherTest, SealedTextOpensWithItsKeyAndIdentityOnly) {
  const SealedText sealed = seal(key_of('a'), "the value", "row 1").value();
  EXPECT_EQ(sealed.ciphertext.find("the value"), std::string::npos);
  EXPECT_EQ(open_sealed(key_of('a'), sealed, "row 1").value().view(), "the value");
  EXPECT_FALSE(open_sealed(key_of('b'), sealed, "row 1"));
  EXPECT_FALSE(open_sealed(key_of('a'), sealed, "row 2"));
}

TEST(SecretCipherTest, EveryChangedByteIsNoticed) {
  const SealedText sealed = seal(key_of('a'), "value", "row").value();
  for (std::size_t i = 0; i < sealed.ciphertext.size(); ++i) {
    SealedText changed = sealed;
    changed.ciphertext[i] = static_cast<char>(changed.ciphertext[i] ^ 1);
    EXPECT_FALSE(open_sealed(key_of('a'), changed, "row")) << i;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{15}, sealed.ciphertext.size() - 1}) {
    SealedText shorter = sealed;
    shorter.ciphertext.resize(size);
    EXPECT_FALSE(open_sealed(key_of('a'), shorter, "row")) << size;
  }
  SealedText other_nonce = sealed;
  other_nonce.nonce.clear();
  EXPECT_FALSE(open_sealed(key_of('a'), other_nonce, "row"));
}

TEST(SecretCipherTest, EqualValuesHaveDifferentCiphertexts) {
  const SealedText a = seal(key_of('a'), "value", "row").value();
  const SealedText b = seal(key_of('a'), "value", "row").value();
  EXPECT_NE(a.nonce, b.nonce);
  EXPECT_NE(a.ciphertext, b.ciphertext);
}

TEST(SecretCipherTest, KeyIsReadInBase64AndHexadecimal) {
  const std::string bytes(SecretKey::kBytes, '\xfb');
  const std::string id = SecretKey::from_bytes(bytes).value().id();
  std::string hex;
  for (std::size_t i = 0; i < SecretKey::kBytes; ++i) hex += "fB";
  EXPECT_EQ(SecretKey::parse(base64_encode(bytes)).value().id(), id);
  EXPECT_EQ(SecretKey::parse(base64url_encode(bytes)).value().id(), id);
  EXPECT_EQ(SecretKey::parse(hex).value().id(), id);
  EXPECT_EQ(id.size(), 16u);
  EXPECT_NE(key_of('a').id(), key_of('b').id());
  for (const std::string& bad : {std::string(), std::string("hunter22"), hex.substr(2), hex + "fb",
                                 base64_encode(bytes).substr(1), "g" + hex.substr(1)}) {
    const Result<SecretKey> key = SecretKey::parse(bad);
    ASSERT_FALSE(key) << bad;
    if (!bad.empty()) {
      EXPECT_EQ(key.error().message().find(bad), std::string::npos);
    }
  }
}

TEST(SecretCipherTest, WipedTextLeavesNothing) {
  std::string text = "a secret that is longer than the buffer inside a string";
  const char* const data = text.data();
  const std::size_t size = text.size();
  wipe(text);
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(std::string(data, size), std::string(size, '\0'));
}

TEST(SecretKeyTextTest, LinesAreKeysAndBlankLinesAreSkipped) {
  const std::string a = base64_encode(key_of('a').bytes());
  const std::string b = base64_encode(key_of('b').bytes());
  const std::vector<SecretKey> keys = parse_secret_keys("\n " + a + " \r\n\n" + b).value();
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].id(), key_of('a').id());
  EXPECT_EQ(keys[1].id(), key_of('b').id());
  EXPECT_FALSE(parse_secret_keys(""));
  EXPECT_FALSE(parse_secret_keys("\n\n"));
  const Result<std::vector<SecretKey>> bad = parse_secret_keys(a + "\nhunter22");
  EXPECT_TRUE(bad.error().message().starts_with("line 2 ")) << bad.error().message();
  std::string many;
  for (int i = 0; i < 17; ++i) many += a + "\n";
  EXPECT_FALSE(parse_secret_keys(many));
}

class SecretKeyFileTest : public testing::Test {
 protected:
  fairlead::test::TempDir directory;
  SecretKeyFile file{directory / "secret.key"};

  void write(const std::string& path, const SecretKey& key, mode_t mode = 0600) {
    std::ofstream(path) << base64_encode(key.bytes()) << "\n";
    ::chmod(path.c_str(), mode);
  }
  std::string id_in(const std::string& path) {
    const Result<std::vector<SecretKey>> keys = SecretKeyFile(path).read();
    return keys && !keys->empty() ? keys->front().id() : "none";
  }
};

TEST_F(SecretKeyFileTest, NewFileIsPrivateAndIsNotReplaced) {
  EXPECT_TRUE(file.read().value().empty());
  const std::string id = file.create().value().front().id();
  struct stat status {};
  ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(file.create().value().front().id(), id);
  EXPECT_EQ(id_in(file.path()), id);
}

TEST_F(SecretKeyFileTest, FileThatOthersCanReadIsRefused) {
  for (const mode_t mode : {0640u, 0604u, 0620u, 0666u}) {
    write(file.path(), key_of('a'), mode);
    const Result<std::vector<SecretKey>> keys = file.read();
    ASSERT_FALSE(keys) << mode;
    EXPECT_NE(keys.error().message().find("chmod 600"), std::string::npos);
  }
  write(file.path(), key_of('a'), 0400);
  EXPECT_TRUE(file.read());
}

TEST_F(SecretKeyFileTest, InterruptedChangeIsCompletedOrUndoneByTheKeyOfTheDatabase) {
  const std::string before = file.create().value().front().id();
  const std::string next = file.prepare_next(before).value().id();
  EXPECT_EQ(file.read().value().size(), 2u);
  EXPECT_EQ(file.prepare_next(before).value().id(), next) << "its transaction may have been committed";
  ASSERT_TRUE(file.settle(before));
  EXPECT_EQ(id_in(file.path()), before);
  EXPECT_EQ(id_in(file.path() + ".new"), "none");
  const std::string other = file.prepare_next(before).value().id();
  ASSERT_TRUE(file.settle(other));
  EXPECT_EQ(id_in(file.path()), other);
  EXPECT_EQ(id_in(file.path() + ".previous"), before);
  EXPECT_EQ(id_in(file.path() + ".new"), "none");
  EXPECT_NE(next, other);
}

TEST_F(SecretKeyFileTest, NextKeyIsPreparedAfterTheCurrentOneIsInstalled) {
  const std::string before = file.create().value().front().id();
  const std::string current = file.prepare_next(before).value().id();
  const std::string next = file.prepare_next(current).value().id();
  EXPECT_NE(next, current);
  EXPECT_EQ(id_in(file.path()), current);
  EXPECT_EQ(id_in(file.path() + ".previous"), before);
  EXPECT_EQ(id_in(file.path() + ".new"), next);
}

TEST_F(SecretKeyFileTest, UnknownKeyOfTheDatabaseChangesNoFile) {
  const std::string before = file.create().value().front().id();
  const std::string next = file.prepare_next(before).value().id();
  ASSERT_TRUE(file.settle("0123456789abcdef"));
  EXPECT_EQ(id_in(file.path()), before);
  EXPECT_EQ(id_in(file.path() + ".new"), next);
}

TEST(SecretKeyringTest, ValueOpensInItsOwnRowOnly) {
  SecretKeyring keyring({key_of('a')}, "the test");
  const SecretDataKey key = keyring.new_data_key("k1", Time(), key_of('a').id()).value();
  Secret row;
  row.id = "1";
  row.name = "TOKEN";
  row.server = "s";
  row.user = "u";
  ASSERT_TRUE(keyring.encrypt(key, "value", row));
  EXPECT_EQ(keyring.decrypt(key, row).value().view(), "value");
  for (std::string Secret::*member :
       {&Secret::id, &Secret::name, &Secret::server, &Secret::user, &Secret::data_key}) {
    Secret moved = row;
    moved.*member += "x";
    EXPECT_FALSE(keyring.decrypt(key, moved));
  }
  // The texts of an identity have their lengths, so that they cannot be shifted.
  Secret shifted = row;
  shifted.server = "su";
  shifted.user = "";
  EXPECT_FALSE(keyring.decrypt(key, shifted));
}

TEST(SecretKeyringTest, DataKeyNeedsItsKey) {
  SecretKeyring keyring({key_of('a')}, "the test");
  const SecretDataKey key = keyring.new_data_key("k1", Time(), key_of('a').id()).value();
  SecretKeyring other({key_of('b')}, "the test");
  const Result<void> refused = other.unlock(key);
  EXPECT_EQ(refused.error().detail().failure_code, "secret_key_mismatch");
  EXPECT_NE(refused.error().message().find(key_of('a').id()), std::string::npos);
  const Error lost = SecretKeyring({}, "").unlock(key).error();
  EXPECT_EQ(lost.detail().failure_code, "secret_key_missing");
  EXPECT_EQ(lost.detail().remedy.find("openssl"), std::string::npos)
      << "a new key cannot decrypt the data key";
  SecretDataKey forged = key;
  forged.key_id = key_of('b').id();
  EXPECT_FALSE(other.unlock(forged));
  SecretKeyring both({key_of('b'), key_of('a')}, "the test");
  EXPECT_TRUE(both.unlock(key));
  const SecretDataKey rewrapped = both.rewrapped(key, key_of('b').id()).value();
  EXPECT_TRUE(other.unlock(rewrapped));
}

}  // namespace
}  // namespace fairlead::registry
