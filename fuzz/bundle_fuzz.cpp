// Opens a ZIP archive and the signature behind it from arbitrary bytes, and reads all entries. No entry has a
// name that could leave its directory, and no entry is read beyond its size.
#include <cstdint>
#include <string>
#include <string_view>

#include "codec_checks.hpp"
#include "packages/bundle_signature.hpp"
#include "packages/zip_archive.hpp"

namespace {

using namespace fairlead;
using rpc::checks::require;

void check_entry(const packages::ZipArchive& archive, const packages::ZipEntry& entry) {
  require(!entry.name.empty() && entry.name.front() != '/' && entry.name.back() != '/');
  require(!("/" + entry.name + "/").contains("/../"));
  std::size_t unpacked = 0;
  const Result<void> result = archive.unpack(entry, [&](std::string_view piece) -> Result<void> {
    unpacked += piece.size();
    return {};
  });
  require(unpacked <= entry.size);
  require(!result || unpacked == entry.size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const packages::SignedBytes parts = packages::split_signature(bytes);
  const packages::Signature signature = packages::verify_signature(parts, "/nonexistent");
  require(signature.state != packages::Signature::State::trusted);
  packages::ZipLimits limits;
  limits.max_bundle_unpacked_bytes = 16u << 20;
  const Result<packages::ZipArchive> archive =
      packages::ZipArchive::open(parts.content, parts.block.size(), limits);
  if (!archive) return require(!archive.error().message().empty()), 0;
  for (const packages::ZipEntry& entry : archive->entries()) check_entry(*archive, entry);
  return 0;
}
