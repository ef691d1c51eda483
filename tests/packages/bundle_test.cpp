#include "packages/bundle.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "clients/fill_inputs.hpp"
#include "packages/read_package.hpp"
#include "packages/signing.hpp"
#include "packages/zip_writer.hpp"

namespace fairlead::packages {
namespace {

namespace fs = std::filesystem;
using test::make_zip;
using test::message_of;
using test::ZipFile;

constexpr std::string_view kManifest = R"({
  "manifest_version": "0.3", "name": "notes", "display_name": "My notes", "version": "1.2.0", "description": "Keeps notes",
  "author": {"name": "Ada"},
  "server": {"type": "node", "entry_point": "server/index.js", "mcp_config": {
    "command": "node",
    "args": ["${__dirname}/server/index.js", "--price=$5", "${user_config.folders}", "--mode=${user_config.mode}"],
    "env": {"KEY": "${user_config.api_key}", "HOME_DIR": "${HOME}${/}x", "LEVEL": "${user_config.level}", "ODD": "${NOBODY}"},
    "platform_overrides": {"win32": {"command": "node.exe"}, "linux": {"env": {"KEY": "${user_config.api_key}", "LEVEL": "${user_config.level}"}}}}},
  "tools": [{"name": "add_note"}, {"name": "find_note"}],
  "user_config": {
    "folders": {"type": "directory", "title": "Folders", "description": "to read", "multiple": true, "required": true, "default": ["${HOME}/notes"]},
    "mode": {"type": "string", "title": "Mode", "description": "ro or rw", "default": "ro"},
    "level": {"type": "number", "title": "Level", "description": "of detail", "min": 1, "max": 3},
    "api_key": {"type": "string", "title": "Key", "description": "of the service", "sensitive": true, "required": true}
  }})";

std::string bundle_of(std::string_view manifest) {
  return make_zip({ZipFile("manifest.json", std::string(manifest)), ZipFile("server/", "", 0040755),
                   ZipFile("server/index.js", "console.log(1)"),
                   ZipFile("server/run", "#!/bin/sh\n", 0100755)});
}

Result<clients::ImportedServer> server_in(std::string_view manifest) {
  const Result<BundleManifest> read = read_manifest(manifest);
  if (!read) return read.error();
  return server_of(*read, {"/b/notes", "/users/ada"}, json::Raw());
}

std::string manifest_with(std::string_view server, std::string_view more = "") {
  return R"({"manifest_version":"0.4","name":"n","version":"1.0.0","description":"d","author":{"name":"a"},"server":)" +
         std::string(server) + std::string(more) + "}";
}

class BundleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) / ("bundle-" + std::to_string(::getpid()));
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string write(std::string_view name, std::string_view bytes) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  PackageOptions options() const {
    PackageOptions options;
    options.bundles_directory = (directory_ / "bundles").string();
    options.certificates_directory = directory_.string();
    return options;
  }

  fs::path directory_;
};

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(BundleManifest, BecomesARowOfThisPlatformWithInputs) {
  const Result<clients::ImportedServer> server = server_in(kManifest);
  ASSERT_TRUE(server) << server.error().message();
  EXPECT_EQ(server->row.text(),
            R"({"name":"notes","title":"My notes","description":"Keeps notes","config":{"command":"node",)"
            R"("args":["/b/notes/server/index.js","--price=$$5","${input:folders}","--mode=${input:mode}"],)"
            R"("env":{"KEY":"${secret:api_key}","LEVEL":"${input:level}"}}})");
  ASSERT_EQ(server->inputs.size(), 4u);
  EXPECT_EQ(server->inputs[0].default_values, std::vector<std::string>{"/users/ada/notes"});
  EXPECT_TRUE(server->inputs[0].multiple);
  EXPECT_EQ(server->inputs[1].default_value, "ro");
  EXPECT_TRUE(server->inputs[2].secret);
  EXPECT_EQ(server->inputs[3].description, "Level: of detail (1 to 3)");
}

TEST(BundleManifest, ExpandsListsAndLeavesOutWhatHasNoValue) {
  const Result<clients::ImportedServer> server = server_in(kManifest);
  ASSERT_TRUE(server);
  const Result<json::Raw> row =
      clients::fill_inputs(*server, {{"folders", {"/a b", "/c$"}}, {"mode", {"${HOME}"}}});
  ASSERT_TRUE(row) << row.error().message();
  EXPECT_NE(
      row->text().find(
          R"("args":["/b/notes/server/index.js","--price=$$5","/a b","/c$$","--mode=$${HOME}"],"env":{"KEY":"${secret:api_key}"}})"),
      std::string_view::npos)
      << row->text();
  EXPECT_EQ(message_of(clients::fill_inputs(*server, {{"level", {"much"}}})),
            "the input `level` of the server `notes` must be a number");
  EXPECT_EQ(message_of(clients::fill_inputs(*server, {{"level", {"4"}}})),
            "the input `level` of the server `notes` must be at most 3");
  EXPECT_EQ(message_of(clients::fill_inputs(*server, {{"level", {"0.5"}}})),
            "the input `level` of the server `notes` must be at least 1");
  EXPECT_TRUE(clients::fill_inputs(*server, {{"level", {"3"}}}));
  EXPECT_EQ(message_of(clients::fill_inputs(*server, {{"mode", {"a", "b"}}})),
            "the input `mode` of the server `notes` can have only one value");
}

TEST(BundleManifest, OfUvNeedsNoCommand) {
  const Result<clients::ImportedServer> server =
      server_in(manifest_with(R"({"type":"uv","entry_point":"src/s.py"})"));
  ASSERT_TRUE(server) << server.error().message();
  EXPECT_EQ(
      server->row.text(),
      R"({"name":"n","description":"d","config":{"command":"uv","args":["run","--directory","/b/notes","src/s.py"]}})");
}

TEST(BundleManifest, ForAnotherPlatformIsSkipped) {
  constexpr std::string_view kServer =
      R"({"type":"binary","entry_point":"s","mcp_config":{"command":"${__dirname}/s"}})";
  EXPECT_NE(server_in(manifest_with(kServer, R"(,"compatibility":{"platforms":["win32"]})"))->skip_reason,
            "");
  const auto here = server_in(manifest_with(kServer, R"(,"compatibility":{"platforms":["win32","linux"]})"));
  EXPECT_EQ(here->skip_reason, "");
  EXPECT_NE(here->row.text().find(R"("command":"/b/notes/s")"), std::string_view::npos);
}

TEST(BundleManifest, KeepsUnknownReferencesAsTextAndSaysSo) {
  const Result<clients::ImportedServer> server = server_in(manifest_with(
      R"({"type":"node","mcp_config":{"command":"node","args":["${env:SECRET}","${user_config.x}"]}})"));
  ASSERT_TRUE(server);
  EXPECT_NE(server->row.text().find(R"(["$${env:SECRET}","$${user_config.x}"])"), std::string_view::npos)
      << server->row.text();
  EXPECT_EQ(server->remarks.size(), 2u);
}

TEST(BundleManifest, RejectsWhatItCannotUnderstand) {
  EXPECT_EQ(message_of(read_manifest("{")).substr(0, 25), "manifest.json is not JSON");
  EXPECT_EQ(message_of(read_manifest("[]")), "manifest.json is not a JSON object");
  EXPECT_EQ(message_of(read_manifest(R"({"name":"n"})")), "manifest.json has no `manifest_version`");
  EXPECT_EQ(message_of(read_manifest(R"({"manifest_version":"1.0"})")),
            "manifest.json has the version `1.0`; versions 0.1 to 0.4 are supported");
  EXPECT_EQ(message_of(read_manifest(R"({"dxt_version":"0.1","name":"n","version":"1"})")),
            "manifest.json has no `server`");
  EXPECT_EQ(message_of(server_in(manifest_with(R"({"type":"node"})"))),
            "manifest.json has no `server.mcp_config.command`");
  EXPECT_EQ(
      message_of(server_in(manifest_with(R"({"mcp_config":{"command":"c","args":["-d=${user_config.l}"]}})",
                                         R"(,"user_config":{"l":{"type":"string","multiple":true}})"))),
      "manifest.json has a value that may be a list inside of the text `-d=${input:l}`");
}

TEST_F(BundleTest, IsReadWithoutWritingAndUnpackedOnce) {
  const std::string path = write("notes.mcpb", bundle_of(kManifest));
  const Result<Package> package = read_package(path, options());
  ASSERT_TRUE(package) << package.error().message();
  EXPECT_EQ(package->file.format, "mcpb");
  EXPECT_EQ(package->tools, (std::vector<std::string>{"add_note", "find_note"}));
  EXPECT_EQ(to_string(package->signature->state), "unsigned");
  EXPECT_EQ(package->directory,
            options().bundles_directory + "/notes-1.2.0-" + package->sha256.substr(0, 16));
  EXPECT_FALSE(fs::exists(options().bundles_directory));
  EXPECT_NE(package->file.servers.at(0).row.text().find(package->directory + "/server/index.js"),
            std::string_view::npos);

  ASSERT_EQ(message_of(install(*package)), "");
  EXPECT_EQ(content_of(package->directory + "/server/index.js"), "console.log(1)");
  struct stat status {};
  ASSERT_EQ(::stat((package->directory + "/server/run").c_str(), &status), 0);
  EXPECT_NE(status.st_mode & S_IXUSR, 0u);
  ASSERT_EQ(::stat((package->directory + "/manifest.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0111, 0u);
  std::ofstream(package->directory + "/state.json") << "kept";
  ASSERT_EQ(message_of(install(*package)), "");
  EXPECT_EQ(content_of(package->directory + "/state.json"), "kept");
}

TEST_F(BundleTest, LeavesNothingBehindIfUnpackingFails) {
  ZipFile damaged("z", "some text");
  damaged.crc = 1;
  const std::string path =
      write("damaged.mcpb", make_zip({ZipFile("manifest.json", std::string(kManifest)), damaged}));
  const Result<Package> package = read_package(path, options());
  ASSERT_TRUE(package) << package.error().message();
  EXPECT_EQ(message_of(install(*package)), "the entry `z` is damaged");
  EXPECT_TRUE(fs::is_empty(options().bundles_directory));
}

TEST_F(BundleTest, DoesNotFollowLinksThatOthersPutInItsPlace) {
  const Result<Package> package = read_package(write("n.mcpb", bundle_of(kManifest)), options());
  ASSERT_TRUE(package);
  fs::create_directories(options().bundles_directory);
  fs::create_directories(directory_ / "elsewhere");
  fs::create_directory_symlink(directory_ / "elsewhere", package->directory);
  EXPECT_NE(message_of(install(*package)), "");
  EXPECT_TRUE(fs::is_empty(directory_ / "elsewhere"));
}

TEST_F(BundleTest, NamesTheFileInErrors) {
  const std::string path = write("x.mcpb", make_zip({ZipFile("readme", "x")}));
  EXPECT_EQ(message_of(read_package(path, options())),
            path + " is not a bundle: it has no manifest.json at its root");
  const std::string nothing = (directory_ / "nothing").string();
  EXPECT_EQ(message_of(read_package(nothing, options())).substr(0, nothing.size()), nothing);
}

// ---- signatures ------------------------------------------------------------------------------------------

TEST_F(BundleTest, IsSelfSignedIfTheCertificateHasNoOtherIssuer) {
  const test::Certificate certificate = test::make_certificate("Ada", nullptr);
  const std::string bytes = test::signed_bundle(bundle_of(kManifest), certificate);
  const Result<Package> package = read_package(write("s.mcpb", bytes), options());
  ASSERT_TRUE(package) << package.error().message();
  EXPECT_EQ(to_string(package->signature->state), "self-signed") << package->signature->problem;
  EXPECT_EQ(package->signature->publisher, "Ada");
  EXPECT_EQ(package->signature->issuer, "Ada");
  EXPECT_EQ(package->signature->fingerprint.size(), 64u);
  EXPECT_LT(package->signature->valid_from, package->signature->valid_until);
  EXPECT_EQ(message_of(install(*package)), "");
}

TEST_F(BundleTest, IsSignedIfTheIssuerIsTrustedAndTheCertificateIsForCode) {
  const test::Certificate issuer = test::make_certificate("Trusted", nullptr);
  test::trust(issuer, directory_.string());
  const test::Certificate for_code = test::make_certificate("Ada", &issuer, "codeSigning");
  const test::Certificate for_web = test::make_certificate("Ada", &issuer, "serverAuth");
  const auto signature_by = [&](const test::Certificate& certificate) {
    const std::string bytes = test::signed_bundle(bundle_of(kManifest), certificate);
    return *read_package(write("s.mcpb", bytes), options())->signature;
  };
  EXPECT_EQ(signature_by(for_code).state, Signature::State::trusted) << signature_by(for_code).problem;
  EXPECT_EQ(signature_by(for_code).issuer, "Trusted");
  EXPECT_EQ(signature_by(for_web).state, Signature::State::none);
  EXPECT_EQ(signature_by(for_web).problem, "the certificate is not for signing code");
  const test::Certificate stranger = test::make_certificate("Stranger", nullptr);
  const Signature by_stranger = signature_by(test::make_certificate("Ada", &stranger, "codeSigning"));
  EXPECT_EQ(by_stranger.state, Signature::State::none);
  EXPECT_EQ(by_stranger.problem.substr(0, 30), "the certificate is not trusted");
}

TEST_F(BundleTest, IsUnsignedIfItWasChangedAfterSigning) {
  const test::Certificate certificate = test::make_certificate("Ada", nullptr);
  std::string changed = bundle_of(kManifest);
  const std::string signed_bytes = test::signed_bundle(changed, certificate);
  const std::string block = signed_bytes.substr(changed.size());
  const std::string other =
      make_zip({ZipFile("manifest.json", std::string(kManifest)), ZipFile("evil.js", "1")});
  const Result<Package> package = read_package(write("s.mcpb", other + block), options());
  ASSERT_TRUE(package);
  EXPECT_EQ(package->signature->state, Signature::State::none);
  EXPECT_EQ(package->signature->publisher, "");
  EXPECT_EQ(package->signature->problem,
            "the signature does not belong to this content: the bundle was changed after signing");
}

TEST_F(BundleTest, SurvivesDamagedSignatures) {
  const test::Certificate certificate = test::make_certificate("Ada", nullptr);
  const std::string plain = bundle_of(kManifest);
  const std::string signed_bytes = test::signed_bundle(plain, certificate);
  for (std::size_t at = plain.size(); at < signed_bytes.size(); at += 7) {
    std::string damaged = signed_bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    const Result<std::shared_ptr<const Bundle>> bundle = Bundle::open(damaged, directory_.string());
    if (bundle) {
      EXPECT_LE((*bundle)->signature().problem.size(), 200u);
    }
  }
  const auto problem_with = [&](const std::string& block) {
    const Result<std::shared_ptr<const Bundle>> bundle = Bundle::open(plain + block, directory_.string());
    return bundle ? (*bundle)->signature().problem : bundle.error().message();
  };
  EXPECT_EQ(problem_with("MCPB_SIG_V1MCPB_SIG_END"), "the signature is damaged");
  EXPECT_EQ(problem_with(std::string("MCPB_SIG_V1\x01\0\0\0xyMCPB_SIG_END", 29)), "the signature is damaged");
  EXPECT_EQ(problem_with(std::string("MCPB_SIG_V1\x02\0\0\0xyMCPB_SIG_END", 29)),
            "the signature is not a PKCS#7 signature");
}

}  // namespace
}  // namespace fairlead::packages
