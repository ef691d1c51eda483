// ZipArchive: a strict reader of ZIP archives in memory. It accepts what packers of bundles write and rejects
// everything that two readers could understand differently: Zip64, encryption, several disks, links, entries
// that overlap, local headers that contradict the directory, paths that leave the target or collide. Private
// to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/base/result.hpp"

namespace fairlead::packages {

// Limits of archives (docs/limits.md). Error messages name them.
struct ZipLimits {
  ZipLimits() {}  // NOLINT: not an aggregate, see StreamConnectOptions

  std::size_t max_bundle_bytes = 256u << 20;
  std::size_t max_bundle_entries = 50'000;
  std::size_t max_bundle_unpacked_bytes = 1u << 30;  // of all entries
  std::size_t max_bundle_ratio = 200;                // unpacked bytes for each byte of the archive
  std::size_t max_bundle_path_bytes = 1'024;
};

struct ZipEntry {
  std::string name;  // a relative path with `/`; that of a directory without the `/` at its end
  bool is_directory = false;
  bool is_executable = false;
  bool is_deflated = false;
  std::uint32_t crc = 0;
  std::size_t packed_size = 0;
  std::size_t size = 0;
  std::size_t header_offset = 0;  // of the local header
  std::size_t data_offset = 0;
};

class ZipArchive {
 public:
  // Reads the directory and all headers, and checks them. `trailing` bytes follow the archive in the file;
  // its comment may claim them. REQUIRES: `bytes` outlives the archive.
  static Result<ZipArchive> open(std::string_view bytes, std::size_t trailing = 0,
                                 const ZipLimits& limits = ZipLimits());

  const std::vector<ZipEntry>& entries() const noexcept { return entries_; }
  const ZipEntry* find(std::string_view name) const noexcept;

  // Passes the content of a file to `sink`, in pieces, and checks size and CRC. Stops at the first error of
  // `sink`.
  using Sink = std::function<Result<void>(std::string_view piece)>;
  Result<void> unpack(const ZipEntry& entry, const Sink& sink) const;
  // Returns the content of a file of at most `max_bytes`.
  Result<std::string> read(const ZipEntry& entry, std::size_t max_bytes) const;

 private:
  explicit ZipArchive(std::string_view bytes) : bytes_(bytes) {}

  std::string_view bytes_;
  std::vector<ZipEntry> entries_;
};

}  // namespace fairlead::packages
