// Bundles that the packer of the MCPB project has made and signed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "packages/read_package.hpp"

namespace fairlead::packages {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest =
    R"({"manifest_version":"0.3","name":"hello","version":"1.0.0","description":"Says hello","author":{"name":"Ada"},
  "server":{"type":"node","entry_point":"server/index.js",
    "mcp_config":{"command":"node","args":["${__dirname}/server/index.js"],"env":{"KEY":"${user_config.key}"}}},
  "user_config":{"key":{"type":"string","title":"Key","description":"A key","sensitive":true,"required":true}}})";

class PackedBundleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) / ("packed-" + std::to_string(::getpid()));
    fs::create_directories(directory_ / "source/server");
    std::ofstream(directory_ / "source/manifest.json") << kManifest;
    std::ofstream(directory_ / "source/server/index.js") << "console.log('hello')\n";
    std::ofstream(directory_ / "source/server/run.sh") << "#!/bin/sh\n";
    fs::permissions(directory_ / "source/server/run.sh", fs::perms(0755));
    bundle_ = (directory_ / "hello.mcpb").string();
    ASSERT_EQ(mcpb("pack '" + (directory_ / "source").string() + "' '" + bundle_ + "'"), 0);
  }
  void TearDown() override { fs::remove_all(directory_); }

  int mcpb(const std::string& arguments) const {
    const std::string directory = FAIRLEAD_INTEROP_DIR;
    const std::string command = "'" + directory + "/node' '" + directory +
                                "/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js' " + arguments +
                                " >/dev/null";
    return std::system(command.c_str());
  }
  Result<Package> read() const {
    PackageOptions options;
    options.bundles_directory = (directory_ / "bundles").string();
    return read_package(bundle_, options);
  }

  fs::path directory_;
  std::string bundle_;
};

TEST_F(PackedBundleTest, IsReadAndUnpacked) {
  const Result<Package> package = read();
  ASSERT_TRUE(package) << package.error().message();
  EXPECT_EQ(to_string(package->signature->state), "unsigned");
  EXPECT_EQ(package->signature->problem, "");
  const Result<void> installed = install(*package);
  ASSERT_TRUE(installed) << installed.error().message();
  EXPECT_EQ(fs::file_size(package->directory + "/server/index.js"), 21u);
  struct stat status {};
  ASSERT_EQ(::stat((package->directory + "/server/run.sh").c_str(), &status), 0);
  EXPECT_NE(status.st_mode & S_IXUSR, 0u);
  ASSERT_EQ(package->file.servers.size(), 1u);
  EXPECT_TRUE(package->file.servers.front().inputs.at(0).secret);
}

TEST_F(PackedBundleTest, IsSelfSignedAfterSigningItSo) {
  ASSERT_EQ(mcpb("sign --self-signed '" + bundle_ + "'"), 0);
  const Result<Package> package = read();
  ASSERT_TRUE(package) << package.error().message();
  EXPECT_EQ(to_string(package->signature->state), "self-signed") << package->signature->problem;
  EXPECT_NE(package->signature->publisher, "");
  EXPECT_TRUE(install(*package));
}

TEST_F(PackedBundleTest, IsUnsignedIfItIsChangedAfterSigning) {
  ASSERT_EQ(mcpb("sign --self-signed '" + bundle_ + "'"), 0);
  std::fstream file(bundle_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(12);  // the time of the first file, which nothing else compares
  file.put('\x01');
  file.close();
  const Result<Package> package = read();
  ASSERT_TRUE(package) << package.error().message();
  EXPECT_EQ(to_string(package->signature->state), "unsigned");
  EXPECT_NE(package->signature->problem, "");
}

}  // namespace
}  // namespace fairlead::packages
