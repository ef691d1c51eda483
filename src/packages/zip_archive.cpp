#include "packages/zip_archive.hpp"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/printable.hpp"
#include "packages/entry_names.hpp"
#include "packages/zip_format.hpp"

namespace fairlead::packages {

namespace {

Error zip_error(std::string message) {
  return Error(ErrorKind::validation, std::move(message));
}

std::string quoted(std::string_view name) {
  return "`" + shortened(printable_line(name), 200) + "`";
}

Error entry_error(std::string_view name, std::string_view problem) {
  return zip_error("the entry " + quoted(name) + " " + std::string(problem));
}

Error over_limit(std::string_view what, std::string_view limit, std::size_t value) {
  return zip_error(std::string(what) + " more than " + std::string(limit) + " (" + std::to_string(value) +
                   ")");
}

// ---- the end of the archive ------------------------------------------------------------------------------

// The record at the end, whose comment ends with the archive, or claims the bytes that follow it.
Result<ZipEnd> find_end(std::string_view bytes, std::size_t trailing) {
  const std::size_t longest = ZipEnd::kBytes + 0xffff;
  const std::size_t first = bytes.size() > longest ? bytes.size() - longest : 0;
  const std::size_t at = bytes.rfind(ZipEnd::kMagic);
  if (at == std::string_view::npos || at < first || bytes.size() - at < ZipEnd::kBytes)
    return zip_error("is not a ZIP archive: the record at its end is missing");
  const ZipEnd end = read_zip_end(bytes, at);
  const std::size_t comment = bytes.size() - at - ZipEnd::kBytes;
  const bool claims_trailing = trailing > 0 && comment == 0 && end.comment_size == trailing;
  if (end.comment_size != comment && !claims_trailing)
    return zip_error("is damaged: bytes follow the record at its end");
  return end;
}

Result<ZipEnd> checked_end(std::string_view bytes, std::size_t trailing, const ZipLimits& limits) {
  if (bytes.size() > limits.max_bundle_bytes)
    return over_limit("has", "max_bundle_bytes", limits.max_bundle_bytes);
  Result<ZipEnd> end = find_end(bytes, trailing);
  if (!end) return end;
  if (end->disk != 0 || end->directory_disk != 0 || end->disk_entries != end->entries)
    return zip_error("is one part of an archive of several files");
  if (end->entries == 0xffff || end->directory_offset == 0xffffffff || end->directory_size == 0xffffffff)
    return zip_error("is a Zip64 archive, which is not supported");
  if (end->entries > limits.max_bundle_entries)
    return over_limit("has", "max_bundle_entries", limits.max_bundle_entries);
  if (end->directory_offset + end->directory_size != end->position)
    return zip_error("is damaged: the directory does not end where the record at the end begins");
  return end;
}

// ---- entries ---------------------------------------------------------------------------------------------

Result<void> check_kind(const DirectoryRecord& record) {
  constexpr std::uint16_t kEncrypted = 1u << 0 | 1u << 6 | 1u << 13;
  if (record.flags & kEncrypted) return entry_error(record.name, "is encrypted");
  if (record.method != kStored && record.method != kDeflated)
    return entry_error(record.name,
                       "is compressed by the unsupported method " + std::to_string(record.method));
  if (record.packed_size == 0xffffffff || record.size == 0xffffffff || record.header_offset == 0xffffffff)
    return entry_error(record.name, "needs Zip64, which is not supported");
  if (record.disk != 0) return entry_error(record.name, "is in another file");
  if (record.method == kStored && record.packed_size != record.size)
    return entry_error(record.name, "is not compressed, but has two sizes");
  return {};
}

// Of the Unix permissions, if the archive was made on Unix.
Result<void> check_mode(const DirectoryRecord& record, ZipEntry& entry) {
  const bool by_unix = record.made_by >> 8 == 3;
  const std::uint32_t mode = by_unix ? record.attributes >> 16 : 0;
  const std::uint32_t kind = mode & S_IFMT;
  entry.is_directory = record.name.ends_with('/');
  if (kind == S_IFLNK) return entry_error(record.name, "is a link");
  if (kind != 0 && kind != S_IFREG && kind != S_IFDIR)
    return entry_error(record.name, "is neither a file nor a directory");
  if (kind != 0 && (kind == S_IFDIR) != entry.is_directory)
    return entry_error(record.name, "is both a file and a directory");
  if (entry.is_directory && record.size != 0) return entry_error(record.name, "is a directory with content");
  entry.is_executable = !entry.is_directory && (mode & 0111) != 0;
  return {};
}

Result<ZipEntry> to_entry(const DirectoryRecord& record, const ZipLimits& limits) {
  ZipEntry entry;
  if (Result<void> checked = check_kind(record); !checked) return checked.error();
  if (Result<void> checked = check_mode(record, entry); !checked) return checked.error();
  entry.name = record.name.substr(0, record.name.size() - (entry.is_directory ? 1 : 0));
  if (record.name.size() > limits.max_bundle_path_bytes)
    return over_limit("an entry has a path of", "max_bundle_path_bytes", limits.max_bundle_path_bytes);
  if (const std::optional<std::string> problem = entry_name_problem(entry.name))
    return entry_error(record.name, *problem);
  entry.is_deflated = record.method == kDeflated;
  entry.crc = record.crc;
  entry.packed_size = record.packed_size;
  entry.size = record.size;
  entry.header_offset = record.header_offset;
  return entry;
}

// The local header must say what the directory says: other readers believe it.
Result<void> check_local_header(std::string_view archive, const DirectoryRecord& record, ZipEntry& entry,
                                std::size_t data_end) {
  const std::optional<LocalRecord> local =
      read_local_record(archive.substr(0, data_end), entry.header_offset);
  if (!local) return entry_error(record.name, "has no header where the directory says");
  entry.data_offset = local->data_offset;
  const bool sizes_follow = (record.flags & kSizesFollow) != 0;
  const auto agrees = [&](std::uint32_t header, std::uint32_t directory) {
    return header == directory || (sizes_follow && header == 0);
  };
  const bool same = local->name == record.name && local->method == record.method &&
                    local->flags == record.flags && agrees(local->crc, record.crc) &&
                    agrees(local->packed_size, record.packed_size) && agrees(local->size, record.size);
  if (!same) return entry_error(record.name, "has a header that contradicts the directory");
  if (entry.packed_size > data_end - entry.data_offset) return entry_error(record.name, "is truncated");
  return {};
}

Result<void> check_sizes(const std::vector<ZipEntry>& entries, std::size_t archive_bytes,
                         const ZipLimits& limits) {
  constexpr std::size_t kAlwaysAllowed = 1u << 20;
  std::size_t total = 0;
  for (const ZipEntry& entry : entries) total += entry.size;
  if (total > limits.max_bundle_unpacked_bytes)
    return over_limit("is unpacked to", "max_bundle_unpacked_bytes", limits.max_bundle_unpacked_bytes);
  if (total > kAlwaysAllowed && total / limits.max_bundle_ratio > archive_bytes)
    return over_limit("is unpacked to a multiple of its size of", "max_bundle_ratio",
                      limits.max_bundle_ratio);
  return {};
}

Result<void> check_overlaps(const std::vector<ZipEntry>& entries) {
  std::vector<const ZipEntry*> by_offset;
  for (const ZipEntry& entry : entries) by_offset.push_back(&entry);
  std::ranges::sort(by_offset, {}, [](const ZipEntry* entry) { return entry->header_offset; });
  std::size_t end = 0;
  for (const ZipEntry* const entry : by_offset) {
    if (entry->header_offset < end) return entry_error(entry->name, "overlaps another entry");
    end = entry->data_offset + entry->packed_size;
  }
  return {};
}

// ---- unpacking -------------------------------------------------------------------------------------------

class Inflater {
 public:
  Inflater() { ready_ = ::inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }
  ~Inflater() {
    if (ready_) ::inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;

  // Returns false if the data is damaged, or has another size than `size`.
  Result<bool> run(std::string_view packed, std::size_t size, const ZipArchive::Sink& sink);

 private:
  z_stream stream_{};
  bool ready_ = false;
};

Result<bool> Inflater::run(std::string_view packed, std::size_t size, const ZipArchive::Sink& sink) {
  std::array<char, 64u << 10> buffer;
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream_.avail_in = static_cast<uInt>(packed.size());
  std::size_t produced = 0;
  int status = ready_ ? Z_OK : Z_MEM_ERROR;
  while (status == Z_OK) {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream_.avail_out = static_cast<uInt>(buffer.size());
    status = ::inflate(&stream_, Z_NO_FLUSH);
    const std::size_t count = buffer.size() - stream_.avail_out;
    produced += count;
    if (produced > size || (status != Z_OK && status != Z_STREAM_END)) return false;
    if (const Result<void> sunk = sink(std::string_view(buffer.data(), count)); !sunk) return sunk.error();
  }
  return status == Z_STREAM_END && produced == size && stream_.avail_in == 0;
}

}  // namespace

Result<ZipArchive> ZipArchive::open(std::string_view bytes, std::size_t trailing, const ZipLimits& limits) {
  const Result<ZipEnd> end = checked_end(bytes, trailing, limits);
  if (!end) return end.error();
  ZipArchive archive(bytes);
  std::size_t at = end->directory_offset;
  for (std::size_t i = 0; i < end->entries; ++i) {
    const std::optional<DirectoryRecord> record = read_directory_record(bytes.substr(0, end->position), at);
    if (!record) return zip_error("is damaged: its directory has fewer entries than it claims");
    at += record->record_size;
    Result<ZipEntry> entry = to_entry(*record, limits);
    if (!entry) return entry.error();
    const Result<void> header = check_local_header(bytes, *record, *entry, end->directory_offset);
    if (!header) return header.error();
    archive.entries_.push_back(std::move(*entry));
  }
  if (at != end->position) return zip_error("is damaged: its directory has more entries than it claims");
  if (Result<void> checked = check_sizes(archive.entries_, bytes.size(), limits); !checked)
    return checked.error();
  if (Result<void> checked = check_overlaps(archive.entries_); !checked) return checked.error();
  if (const std::optional<NameCollision> collision = find_collision(archive.entries_))
    return entry_error(collision->name, collision->problem);
  return archive;
}

const ZipEntry* ZipArchive::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(entries_, name, &ZipEntry::name);
  return found == entries_.end() ? nullptr : &*found;
}

Result<void> ZipArchive::unpack(const ZipEntry& entry, const Sink& sink) const {
  uLong crc = ::crc32(0, nullptr, 0);
  const Sink checked = [&](std::string_view piece) -> Result<void> {
    crc = ::crc32(crc, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size()));
    return sink(piece);
  };
  const std::string_view packed = bytes_.substr(entry.data_offset, entry.packed_size);
  Result<bool> intact = true;
  if (entry.is_deflated) {
    intact = Inflater().run(packed, entry.size, checked);
  } else if (const Result<void> sunk = checked(packed); !sunk) {
    return sunk;
  }
  if (!intact) return intact.error();
  if (!*intact || crc != entry.crc) return entry_error(entry.name, "is damaged");
  return {};
}

Result<std::string> ZipArchive::read(const ZipEntry& entry, std::size_t max_bytes) const {
  if (entry.size > max_bytes)
    return entry_error(entry.name, "has more than " + std::to_string(max_bytes) + " bytes");
  std::string content;
  const Result<void> unpacked = unpack(entry, [&](std::string_view piece) -> Result<void> {
    content += piece;
    return {};
  });
  if (!unpacked) return unpacked.error();
  return content;
}

}  // namespace fairlead::packages
