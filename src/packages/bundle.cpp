#include "packages/bundle.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/random_bytes.hpp"
#include "packages/hexadecimal.hpp"
#include "registry/tokens.hpp"

namespace fairlead::packages {

namespace {

namespace fs = std::filesystem;

// Text of a manifest as part of the name of a directory.
std::string file_name_part(std::string_view text) {
  std::string part;
  for (const char c : text.substr(0, 64)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    part += plain ? c : '-';
  }
  while (part.starts_with('.')) part.front() = '-';
  return part;
}

Error unpack_error(const std::string& path, const std::error_code& failure) {
  return Error(ErrorKind::io, "cannot write " + path + ": " + failure.message());
}

// Does nothing if the directory exists.
Result<void> make_directory(const std::string& path, fs::perms permissions) {
  std::error_code failure;
  const bool created = fs::create_directories(path, failure);
  if (!failure && created) fs::permissions(path, permissions, failure);
  if (failure) return unpack_error(path, failure);
  return {};
}

Result<void> write_all(int file, std::string_view piece, const std::string& path) {
  while (!piece.empty()) {
    const ssize_t written = ::write(file, piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Error::from_errno(ErrorKind::io, "cannot write " + path, errno);
    piece.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// Creates the file; nothing exists at `path`, because the names in an archive differ.
Result<void> write_file(const ZipArchive& archive, const ZipEntry& entry, const std::string& path) {
  const mode_t mode = entry.is_executable ? 0755 : 0644;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (file < 0) return Error::from_errno(ErrorKind::io, "cannot create " + path, errno);
  Result<void> written =
      archive.unpack(entry, [&](std::string_view piece) { return write_all(file, piece, path); });
  if (written && ::fchmod(file, mode) != 0)
    written = Error::from_errno(ErrorKind::io, "cannot write " + path, errno);
  if (::close(file) != 0 && written)
    written = Error::from_errno(ErrorKind::io, "cannot write " + path, errno);
  return written;
}

// Writes the files to the disk, so that a power failure leaves no incomplete bundle.
Result<void> sync_directory(const std::string& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return Error::from_errno(ErrorKind::io, "cannot open " + path, errno);
  const int status = ::syncfs(directory);
  const int failure = errno;
  ::close(directory);
  if (status != 0) return Error::from_errno(ErrorKind::io, "cannot write " + path, failure);
  return {};
}

void remove_all(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

}  // namespace

Result<std::shared_ptr<const Bundle>> Bundle::open(std::string bytes,
                                                   const std::string& certificates_directory,
                                                   const ZipLimits& limits) {
  std::shared_ptr<Bundle> bundle(new Bundle());
  bundle->bytes_ = std::move(bytes);
  const SignedBytes parts = split_signature(bundle->bytes_);
  Result<ZipArchive> archive = ZipArchive::open(parts.content, parts.block.size(), limits);
  if (!archive) return archive.error();
  const ZipEntry* const entry = archive->find("manifest.json");
  if (!entry || entry->is_directory)
    return Error(ErrorKind::validation, "is not a bundle: it has no manifest.json at its root");
  const Result<std::string> text = archive->read(*entry, kMaxManifestBytes);
  if (!text) return text.error();
  Result<BundleManifest> manifest = read_manifest(*text);
  if (!manifest) return manifest.error();
  bundle->manifest_ = std::move(*manifest);
  bundle->archive_ = std::make_unique<const ZipArchive>(std::move(*archive));
  bundle->signature_ = verify_signature(parts, certificates_directory);
  bundle->sha256_ = registry::sha256_hex(bundle->bytes_);
  return std::shared_ptr<const Bundle>(std::move(bundle));
}

std::string Bundle::directory_name() const {
  return file_name_part(manifest_.name) + "-" + file_name_part(manifest_.version) + "-" +
         sha256_.substr(0, 16);
}

Result<void> Bundle::unpack_into(const std::string& directory) const {
  if (Result<void> made = make_directory(directory, fs::perms(0755)); !made) return made;
  for (const ZipEntry& entry : archive_->entries()) {
    const std::string path = directory + "/" + entry.name;
    const std::string parent = entry.is_directory ? path : path.substr(0, path.rfind('/'));
    if (Result<void> made = make_directory(parent, fs::perms(0755)); !made) return made;
    if (entry.is_directory) continue;
    if (Result<void> written = write_file(*archive_, entry, path); !written) return written;
  }
  return {};
}

Result<void> Bundle::unpack(const std::string& directory) const {
  std::error_code failure;
  if (fs::is_directory(fs::symlink_status(directory, failure))) return {};
  const Result<std::string> random = random_bytes(8);
  if (!random) return random.error();
  const std::string parent = directory.substr(0, directory.rfind('/'));
  if (Result<void> made = make_directory(parent, fs::perms(0700)); !made) return made;
  const std::string temporary = directory + ".tmp-" + hexadecimal(*random);
  Result<void> unpacked = unpack_into(temporary);
  if (unpacked) unpacked = sync_directory(temporary);
  // Another process may have unpacked the same bundle meanwhile; rename() does not replace its directory.
  if (unpacked && ::rename(temporary.c_str(), directory.c_str()) != 0 &&
      !fs::is_directory(fs::symlink_status(directory, failure)))
    unpacked = Error::from_errno(ErrorKind::io, "cannot create " + directory, errno);
  remove_all(temporary);
  return unpacked;
}

}  // namespace fairlead::packages
