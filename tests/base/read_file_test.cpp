// Reading files named by the operator, which can be of any type and size.
#include "base/read_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "support/support.hpp"

namespace fairlead {
namespace {

constexpr FileLimit kLimit{"max_test_bytes", 20'000};

class ReadFileTest : public testing::Test {
 protected:
  std::string write(std::size_t size) {
    const std::string path = directory / "file";
    std::ofstream(path) << std::string(size, 'x');
    return path;
  }
  static std::string problem_of(const std::string& path) {
    const Result<std::string> read = read_regular_file(path, kLimit);
    return read ? "read" : read.error().message();
  }

  test::TempDir directory;
};

TEST_F(ReadFileTest, FileWithinLimitIsRead) {
  for (const std::size_t size : {0u, 1u, 16'384u, 16'385u, 20'000u}) {
    const Result<std::string> read = read_regular_file(write(size), kLimit);
    ASSERT_TRUE(read) << size;
    EXPECT_EQ(*read, std::string(size, 'x'));
  }
}

TEST_F(ReadFileTest, FileOverLimitIsRejectedAndLimitNamed) {
  EXPECT_EQ(problem_of(write(20'001)), "it has more than max_test_bytes (20000)");
  const std::string sparse = write(1);
  ASSERT_EQ(::truncate(sparse.c_str(), off_t{1} << 33), 0);
  EXPECT_EQ(problem_of(sparse), "it has more than max_test_bytes (20000)");
}

TEST_F(ReadFileTest, FifoWithoutWriterIsRejectedWithoutBlocking) {
  const std::string fifo = directory / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(problem_of(fifo), "it is a FIFO, not a regular file");
}

TEST_F(ReadFileTest, DirectoryAndDeviceAreRejected) {
  EXPECT_EQ(problem_of(directory / ""), "it is a directory, not a regular file");
  EXPECT_EQ(problem_of("/dev/zero"), "it is a device, not a regular file");
}

TEST_F(ReadFileTest, MissingFileFailsWithOsError) {
  const Result<std::string> read = read_regular_file(directory / "none", kLimit);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message(), std::strerror(ENOENT));
  EXPECT_EQ(read.error().detail().os_error, ENOENT);
}

}  // namespace
}  // namespace fairlead
