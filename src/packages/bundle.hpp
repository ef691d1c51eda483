// Bundle: an MCP bundle (.mcpb, formerly .dxt): a ZIP archive with a server and its manifest. Private to the
// library.
#pragma once

#include <memory>
#include <string>

#include "fairlead/base/result.hpp"
#include "packages/bundle_manifest.hpp"
#include "packages/bundle_signature.hpp"
#include "packages/zip_archive.hpp"

namespace fairlead::packages {

class Bundle {
 public:
  // Opens the bundle in `bytes` and checks everything but the content of its files. Fails with `validation`.
  static Result<std::shared_ptr<const Bundle>> open(std::string bytes,
                                                    const std::string& certificates_directory = {},
                                                    const ZipLimits& limits = ZipLimits());

  const ZipArchive& archive() const noexcept { return *archive_; }
  const BundleManifest& manifest() const noexcept { return manifest_; }
  const Signature& signature() const noexcept { return signature_; }
  const std::string& sha256() const noexcept { return sha256_; }  // of the file, in lower-case hexadecimal
  // "name-version-hash": the name of the directory for this bundle.
  std::string directory_name() const;

  // Unpacks the files into `directory`, which appears complete or not at all. Does nothing if it exists: its
  // name has the hash of the bundle. The parent directory is created.
  Result<void> unpack(const std::string& directory) const;

 private:
  Bundle() = default;
  Result<void> unpack_into(const std::string& directory) const;

  std::string bytes_;
  std::unique_ptr<const ZipArchive> archive_;
  BundleManifest manifest_;
  Signature signature_;
  std::string sha256_;
};

}  // namespace fairlead::packages
