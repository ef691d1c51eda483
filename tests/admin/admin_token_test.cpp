#include "admin/admin_token.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "registry/tokens.hpp"

namespace fairlead::admin {
namespace {

class AdminTokenTest : public ::testing::Test {
 public:
  AdminTokenTest() {
    std::string pattern = ::testing::TempDir() + "admin_token_XXXXXX";
    directory = ::mkdtemp(pattern.data());
    path = directory + "/state/fairlead/admin.token";
  }
  ~AdminTokenTest() override { std::filesystem::remove_all(directory); }

  void write(const std::string& text, unsigned mode) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
  }
  unsigned mode_of(const std::string& file) {
    struct stat status {};
    EXPECT_EQ(::stat(file.c_str(), &status), 0) << file;
    return status.st_mode & 07777;
  }

  std::string directory;
  std::string path;
};

TEST_F(AdminTokenTest, FirstReadCreatesPrivateFile) {
  const Result<std::string> token = read_or_create_admin_token(path);
  ASSERT_TRUE(token) << token.error().message();
  EXPECT_TRUE(registry::is_token_text(*token));
  EXPECT_EQ(mode_of(path), 0600u);
  EXPECT_EQ(mode_of(directory + "/state/fairlead"), 0700u);
  EXPECT_EQ(read_or_create_admin_token(path).value(), *token);
  EXPECT_EQ(read_admin_token(path).value(), *token);
  const auto entries = std::filesystem::directory_iterator(directory + "/state/fairlead");
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "a temporary file was left";
}

TEST_F(AdminTokenTest, GatewaysThatStartTogetherGetTheSameToken) {
  std::vector<std::string> tokens(8);
  {
    std::vector<std::jthread> threads;
    for (std::string& token : tokens)
      threads.emplace_back([&token, this] { token = read_or_create_admin_token(path).value_or("failed"); });
  }
  for (const std::string& token : tokens) EXPECT_EQ(token, tokens.front());
  EXPECT_TRUE(registry::is_token_text(tokens.front()));
}

TEST_F(AdminTokenTest, FileThatOtherUsersCanAccessIsRejected) {
  for (const unsigned mode : {0644u, 0640u, 0620u, 0602u}) {
    write("a-token-of-sufficient-length\n", mode);
    const Result<std::string> token = read_or_create_admin_token(path);
    ASSERT_FALSE(token) << mode;
    EXPECT_NE(token.error().message().find("run: chmod 600 " + path), std::string::npos)
        << token.error().message();
    EXPECT_EQ(token.error().message().find("administrator"), std::string::npos) << "it may be that of a user";
  }
}

TEST_F(AdminTokenTest, SymbolicLinkAndDirectoryAreRejected) {
  write("a-token-of-sufficient-length\n", 0600);
  const std::string link = directory + "/link";
  std::filesystem::create_symlink(path, link);
  EXPECT_FALSE(read_admin_token(link));
  EXPECT_FALSE(read_admin_token(directory));
}

TEST_F(AdminTokenTest, ShortTokenIsRejectedAndNotReplaced) {
  write("short\n", 0600);
  EXPECT_FALSE(read_or_create_admin_token(path));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "short\n");
}

TEST_F(AdminTokenTest, MissingFileIsAnErrorForReaders) {
  const Result<std::string> token = read_admin_token(path);
  ASSERT_FALSE(token);
  EXPECT_NE(token.error().message().find(path), std::string::npos);
}

TEST_F(AdminTokenTest, StateDirectoryFollowsTheEnvironment) {
  const char* const before = std::getenv("XDG_STATE_HOME");
  const std::optional<std::string> saved = before ? std::optional<std::string>(before) : std::nullopt;
  ::setenv("XDG_STATE_HOME", directory.c_str(), 1);
  EXPECT_EQ(state_directory().value(), directory + "/fairlead");
  ::setenv("XDG_STATE_HOME", "relative", 1);
  EXPECT_TRUE(state_directory().value().ends_with("/.local/state/fairlead"));
  ::unsetenv("XDG_STATE_HOME");
  EXPECT_TRUE(state_directory().value().ends_with("/.local/state/fairlead"));
  if (saved) ::setenv("XDG_STATE_HOME", saved->c_str(), 1);
}

}  // namespace
}  // namespace fairlead::admin
