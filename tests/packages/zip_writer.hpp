// Writes ZIP archives for tests, also wrong ones.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::packages::test {

struct ZipFile {
  ZipFile(std::string file_name, std::string file_content, std::uint32_t unix_mode = 0100644)
      : name(std::move(file_name)), content(std::move(file_content)), mode(unix_mode) {}

  std::string name;
  std::string content;
  std::uint32_t mode;
  bool deflate = true;
  std::uint16_t flags = 0;
  // What the directory or the header says instead of the truth.
  std::optional<std::uint16_t> method;
  std::optional<std::uint32_t> size;
  std::optional<std::uint32_t> crc;
  std::optional<std::string> header_name;
  std::optional<std::uint32_t> header_offset;
};

inline std::string little_endian_bytes(std::uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

inline std::string deflated(const std::string& content) {
  std::string packed(::compressBound(static_cast<uLong>(content.size())) + 64, '\0');
  z_stream stream{};
  ::deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

// The numbers of the record at the end, which a test may change.
struct ZipEndNumbers {
  std::uint16_t entries = 0;
  std::uint32_t directory_size = 0;
  std::uint32_t directory_offset = 0;
  std::string comment;
};

inline std::string make_zip(const std::vector<ZipFile>& files,
                            const std::function<void(ZipEndNumbers&)>& change = {}) {
  std::string archive;
  std::string directory;
  for (const ZipFile& file : files) {
    const std::string packed = file.deflate ? deflated(file.content) : file.content;
    const auto true_crc = static_cast<std::uint32_t>(::crc32(
        0, reinterpret_cast<const Bytef*>(file.content.data()), static_cast<uInt>(file.content.size())));
    const std::string common =
        little_endian_bytes(file.flags, 2) +
        little_endian_bytes(file.method.value_or(file.deflate ? 8 : 0), 2) + little_endian_bytes(0, 4) +
        little_endian_bytes(file.crc.value_or(true_crc), 4) + little_endian_bytes(packed.size(), 4) +
        little_endian_bytes(file.size.value_or(file.content.size()), 4);
    const std::string header_name = file.header_name.value_or(file.name);
    directory +=
        std::string("PK\x01\x02", 4) + little_endian_bytes(3 << 8 | 20, 2) + little_endian_bytes(20, 2) +
        common + little_endian_bytes(file.name.size(), 2) + little_endian_bytes(0, 8) +
        little_endian_bytes(std::uint64_t{file.mode} << 16, 4) +
        little_endian_bytes(file.header_offset.value_or(static_cast<std::uint32_t>(archive.size())), 4) +
        file.name;
    archive += std::string("PK\x03\x04", 4) + little_endian_bytes(20, 2) + common +
               little_endian_bytes(header_name.size(), 2) + little_endian_bytes(0, 2) + header_name + packed;
  }
  ZipEndNumbers end;
  end.entries = static_cast<std::uint16_t>(files.size());
  end.directory_size = static_cast<std::uint32_t>(directory.size());
  end.directory_offset = static_cast<std::uint32_t>(archive.size());
  if (change) change(end);
  return archive + directory + std::string("PK\x05\x06", 4) + little_endian_bytes(0, 4) +
         little_endian_bytes(end.entries, 2) + little_endian_bytes(end.entries, 2) +
         little_endian_bytes(end.directory_size, 4) + little_endian_bytes(end.directory_offset, 4) +
         little_endian_bytes(end.comment.size(), 2) + end.comment;
}

// Returns the message of an error, or "" if there is none.
template <class T>
std::string message_of(const T& result) {
  return result ? std::string() : result.error().message();
}

}  // namespace fairlead::packages::test
