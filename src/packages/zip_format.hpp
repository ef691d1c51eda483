// The records of a ZIP archive, as they are in the file. Private to the layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fairlead::packages {

inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;
inline constexpr std::uint16_t kSizesFollow = 1u << 3;  // flag: CRC and sizes are also behind the data

// The record at the end of the archive.
struct ZipEnd {
  static constexpr std::size_t kBytes = 22;
  static constexpr std::string_view kMagic{"PK\x05\x06", 4};

  std::size_t position = 0;
  std::uint16_t disk = 0;
  std::uint16_t directory_disk = 0;
  std::uint16_t disk_entries = 0;
  std::uint16_t entries = 0;
  std::size_t directory_size = 0;
  std::size_t directory_offset = 0;
  std::uint16_t comment_size = 0;
};
// REQUIRES: at least ZipEnd::kBytes follow `at`.
ZipEnd read_zip_end(std::string_view bytes, std::size_t at) noexcept;

// A record of the directory.
struct DirectoryRecord {
  std::uint16_t made_by = 0;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint32_t packed_size = 0;
  std::uint32_t size = 0;
  std::uint16_t disk = 0;
  std::uint32_t attributes = 0;
  std::uint32_t header_offset = 0;
  std::string_view name;
  std::size_t record_size = 0;
};
// Returns nullopt if `bytes` has no complete record at `at`.
std::optional<DirectoryRecord> read_directory_record(std::string_view bytes, std::size_t at) noexcept;

// The header before the data of an entry.
struct LocalRecord {
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint32_t packed_size = 0;
  std::uint32_t size = 0;
  std::string_view name;
  std::size_t data_offset = 0;
};
std::optional<LocalRecord> read_local_record(std::string_view bytes, std::size_t at) noexcept;

}  // namespace fairlead::packages
