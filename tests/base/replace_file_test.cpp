// Files that are replaced atomically.
#include "base/replace_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/support.hpp"

namespace fairlead {
namespace {

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

std::size_t entries_of(const std::string& directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()));
}

TEST(ReplaceFileTest, NewFileHasTheModeAndNothingElseIsLeft) {
  const test::TempDir directory;
  const std::string path = directory / "file";
  ASSERT_TRUE(replace_file(path, "one", 0640));
  EXPECT_EQ(content_of(path), "one");
  EXPECT_EQ(mode_of(path), 0640U);
  EXPECT_EQ(entries_of(directory / ""), 1U);
}

TEST(ReplaceFileTest, ExistingFileKeepsItsMode) {
  const test::TempDir directory;
  const std::string path = directory / "file";
  ASSERT_TRUE(replace_file(path, "one", 0600));
  ASSERT_EQ(::chmod(path.c_str(), 0664), 0);
  ASSERT_TRUE(replace_file(path, std::string(100'000, 'x'), 0600));
  EXPECT_EQ(content_of(path).size(), 100'000U);
  EXPECT_EQ(mode_of(path), 0664U);
  EXPECT_EQ(entries_of(directory / ""), 1U);
}

TEST(ReplaceFileTest, FailureNamesTheFileAndLeavesNothing) {
  const test::TempDir directory;
  const Result<void> missing = replace_file(directory / "no/file", "x");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("no/file"), std::string::npos);
  std::filesystem::create_directory(directory / "taken");
  EXPECT_FALSE(replace_file(directory / "taken", "x"));
  EXPECT_EQ(entries_of(directory / ""), 1U);
}

}  // namespace
}  // namespace fairlead
