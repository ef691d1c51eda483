#include "packages/zip_format.hpp"

namespace fairlead::packages {

namespace {

constexpr std::string_view kDirectoryMagic("PK\x01\x02", 4);
constexpr std::size_t kDirectoryBytes = 46;
constexpr std::string_view kLocalMagic("PK\x03\x04", 4);
constexpr std::size_t kLocalBytes = 30;

// Little-endian numbers. REQUIRES: the bytes exist.
std::uint32_t number(std::string_view bytes, std::size_t at, std::size_t size) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = size; i-- > 0;)
    value = value << 8 | static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i]));
  return value;
}
std::uint16_t u16(std::string_view bytes, std::size_t at) noexcept {
  return static_cast<std::uint16_t>(number(bytes, at, 2));
}
std::uint32_t u32(std::string_view bytes, std::size_t at) noexcept {
  return number(bytes, at, 4);
}

// Returns the record that begins at `at`, to the end of `bytes`; empty if there is none.
std::string_view record_at(std::string_view bytes, std::size_t at, std::string_view magic,
                           std::size_t size) noexcept {
  if (at > bytes.size() || bytes.size() - at < size) return {};
  const std::string_view record = bytes.substr(at);
  return record.starts_with(magic) ? record : std::string_view();
}

}  // namespace

ZipEnd read_zip_end(std::string_view bytes, std::size_t at) noexcept {
  const std::string_view record = bytes.substr(at);
  ZipEnd end;
  end.position = at;
  end.disk = u16(record, 4);
  end.directory_disk = u16(record, 6);
  end.disk_entries = u16(record, 8);
  end.entries = u16(record, 10);
  end.directory_size = u32(record, 12);
  end.directory_offset = u32(record, 16);
  end.comment_size = u16(record, 20);
  return end;
}

std::optional<DirectoryRecord> read_directory_record(std::string_view bytes, std::size_t at) noexcept {
  const std::string_view record = record_at(bytes, at, kDirectoryMagic, kDirectoryBytes);
  if (record.empty()) return std::nullopt;
  DirectoryRecord read;
  const std::size_t name_size = u16(record, 28);
  read.record_size = kDirectoryBytes + name_size + u16(record, 30) + u16(record, 32);
  if (read.record_size > record.size()) return std::nullopt;
  read.made_by = u16(record, 4);
  read.flags = u16(record, 8);
  read.method = u16(record, 10);
  read.crc = u32(record, 16);
  read.packed_size = u32(record, 20);
  read.size = u32(record, 24);
  read.disk = u16(record, 34);
  read.attributes = u32(record, 38);
  read.header_offset = u32(record, 42);
  read.name = record.substr(kDirectoryBytes, name_size);
  return read;
}

std::optional<LocalRecord> read_local_record(std::string_view bytes, std::size_t at) noexcept {
  const std::string_view record = record_at(bytes, at, kLocalMagic, kLocalBytes);
  if (record.empty()) return std::nullopt;
  LocalRecord read;
  const std::size_t name_size = u16(record, 26);
  const std::size_t header_size = kLocalBytes + name_size + u16(record, 28);
  if (header_size > record.size()) return std::nullopt;
  read.flags = u16(record, 6);
  read.method = u16(record, 8);
  read.crc = u32(record, 14);
  read.packed_size = u32(record, 18);
  read.size = u32(record, 22);
  read.name = record.substr(kLocalBytes, name_size);
  read.data_offset = at + header_size;
  return read;
}

}  // namespace fairlead::packages
