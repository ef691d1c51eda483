// The file by which other programs find the gateway that serves a database.
#include "admin/gateway_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "fairlead/loop/descriptor.hpp"
#include "support/support.hpp"

namespace fairlead::admin {
namespace {

class GatewayFileTest : public ::testing::Test {
 public:
  fairlead::test::TempDir directory;
  std::string database = directory / "a.db";
  UniqueFd lock;

  // Locks the database as the gateway with this process id does.
  void lock_as(long pid) {
    std::ofstream(database + ".lock") << pid << "\n";
    lock = UniqueFd(::open((database + ".lock").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  }
  std::string url() const {
    const std::optional<ServingGateway> found = find_serving_gateway(database);
    return found ? found->url : "none";
  }
};

TEST_F(GatewayFileTest, GatewayIsFoundWhileItHasLockedTheDatabase) {
  EXPECT_EQ(url(), "none");
  lock_as(::getpid());
  EXPECT_EQ(url(), "none");
  ASSERT_TRUE(write_gateway_file(database, "http://127.0.0.1:8808/mcp"));
  EXPECT_EQ(url(), "http://127.0.0.1:8808/mcp");
  EXPECT_EQ(find_serving_gateway(database)->pid, ::getpid());
  EXPECT_TRUE(is_database_locked(database));
  lock = UniqueFd();
  EXPECT_EQ(url(), "none");
  EXPECT_FALSE(is_database_locked(database));
}

TEST_F(GatewayFileTest, AddressesOfAllInterfacesBecomeLoopbackAddresses) {
  lock_as(::getpid());
  const std::pair<const char*, const char*> cases[] = {
      {"http://0.0.0.0:80/mcp", "http://127.0.0.1:80/mcp"},
      {"https://[::]:443/mcp", "https://[::1]:443/mcp"},
      {"unix:/run/a b.sock /mcp", "unix:/run/a b.sock"},
  };
  for (const auto& [written, expected] : cases) {
    ASSERT_TRUE(write_gateway_file(database, written));
    EXPECT_EQ(url(), expected);
  }
}

TEST_F(GatewayFileTest, FileOfAnotherProcessIsIgnored) {
  lock_as(1);
  ASSERT_TRUE(write_gateway_file(database, "http://127.0.0.1:8808/mcp"));
  EXPECT_EQ(url(), "none");
}

TEST_F(GatewayFileTest, FileThatOthersCanWriteIsIgnored) {
  lock_as(::getpid());
  ASSERT_TRUE(write_gateway_file(database, "http://127.0.0.1:8808/mcp"));
  ASSERT_EQ(::chmod((database + ".gateway").c_str(), 0622), 0);
  EXPECT_EQ(url(), "none");
}

TEST_F(GatewayFileTest, InvalidContentIsIgnored) {
  lock_as(::getpid());
  for (const std::string& content : {std::string(), std::string("[1]"), std::string("{\"url\":3}"),
                                     std::string("{"), std::string(100'000, ' ')}) {
    ASSERT_TRUE(write_gateway_file(database, "http://127.0.0.1:8808/mcp"));
    std::ofstream(database + ".gateway") << content;
    EXPECT_EQ(url(), "none") << content.substr(0, 20);
  }
}

}  // namespace
}  // namespace fairlead::admin
