#include <gtest/gtest.h>

#include "sql/database.hpp"
#include "sql/harness.hpp"
#include "sql/postgres_address.hpp"

namespace fairlead::sql::test {
namespace {

TEST(AddressTest, PasswordsAreRedacted) {
  EXPECT_EQ(redacted_address("postgresql://ann:secret@host/db"), "postgresql://ann:***@host/db");
  EXPECT_EQ(redacted_address("postgresql://ann:sec:r@et@host/db"), "postgresql://ann:***@host/db");
  EXPECT_EQ(redacted_address("postgres://host/db?user=ann&password=secret&sslpassword=key&port=1"),
            "postgres://host/db?user=ann&password=***&sslpassword=***&port=1");
  EXPECT_EQ(redacted_address("postgresql://ann@[::1]:5432/db"), "postgresql://ann@[::1]:5432/db");
  EXPECT_EQ(redacted_address("sqlite:/var/lib/fairlead.db"), "sqlite:/var/lib/fairlead.db");
}

TEST(AddressTest, SecretsAreDecoded) {
  const Result<PostgresAddress> address = parse_postgres_address("postgresql://ann:s%40cret@host/db");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->secrets, std::vector<std::string>{"s@cret"});
  EXPECT_EQ(without_secrets("wrong password \"s@cret\"\n\n", address->secrets), "wrong password \"***\"");
}

TEST(AddressTest, AddressThatCouldExposeThePasswordIsRejected) {
  for (const std::string_view uri :
       {"postgresql://ann:pa55@w0rd@host/db", "postgresql://ann:pa55/w0rd@host/db",
        "postgresql://ann:pa55w0rd/db", "postgresql://ann:pa55w0rd%zz@host/db",
        "postgresql://ann:pa55w0rd@host:x/db", "postgresql://ann:pa55/?w0rd@host/db"}) {
    const Result<PostgresAddress> address = parse_postgres_address(uri);
    ASSERT_FALSE(address) << uri;
    EXPECT_EQ(address.error().kind(), ErrorKind::validation);
    EXPECT_EQ(address.error().message().find("w0rd"), std::string::npos) << address.error().message();
    EXPECT_EQ(address.error().message().find("pa55"), std::string::npos) << address.error().message();
  }
}

TEST(AddressTest, UnknownSchemeIsRejectedWithoutQuotingTheAddress) {
  Loop loop;
  const Result<DatabasePtr> opened =
      loop.block_on(Database::open(loop, "mysql://ann:password@host/db", item_migrations()));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind(), ErrorKind::validation);
  EXPECT_NE(opened.error().message().find("postgresql://"), std::string::npos);
  EXPECT_EQ(opened.error().message().find("password"), std::string::npos);
}

TEST(AddressTest, PasswordIsNotInTheErrorOfAServerThatCannotBeReached) {
  Loop loop;
  const Result<DatabasePtr> opened = loop.block_on(
      Database::open(loop, "postgresql://ann:hunter2222@/hunter2222?host=/nonexistent", item_migrations()));
  ASSERT_FALSE(opened);
  EXPECT_EQ(failure_code(opened.error()), kDatabaseUnavailable);
  EXPECT_NE(opened.error().message().find("/nonexistent"), std::string::npos);
  EXPECT_EQ(opened.error().message().find("hunter2222"), std::string::npos);
}

}  // namespace
}  // namespace fairlead::sql::test
