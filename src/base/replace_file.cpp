#include "base/replace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

namespace fairlead {

namespace {

// Closes the descriptor, and removes the temporary file unless it was renamed.
struct TemporaryFile {
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd >= 0) ::close(fd);
    if (!path.empty()) ::unlink(path.c_str());
  }
  int fd = -1;
  std::string path;
};

Error replace_error(std::string_view action, const std::string& path) {
  return Error::from_errno(ErrorKind::io, std::string(action) + " " + path, errno);
}

bool write_completely(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// A failure to set the owner is ignored if the file would belong to this user anyway.
bool copy_attributes(int fd, const struct stat& existing) {
  struct stat created {};
  if (::fstat(fd, &created) != 0) return false;
  const bool same_owner = created.st_uid == existing.st_uid && created.st_gid == existing.st_gid;
  if (!same_owner && ::fchown(fd, existing.st_uid, existing.st_gid) != 0 && created.st_uid != existing.st_uid)
    return false;
  return ::fchmod(fd, existing.st_mode & 07777) == 0;
}

// Makes the rename durable. A file system that cannot sync a directory is no failure.
void sync_directory(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  static_cast<void>(::fsync(fd));
  ::close(fd);
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view content, unsigned mode) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  TemporaryFile temporary;
  std::string name = path + ".new-XXXXXX";
  temporary.fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (temporary.fd < 0) return replace_error("cannot create a file beside", path);
  temporary.path = name;
  struct stat existing {};
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  const bool prepared = exists ? copy_attributes(temporary.fd, existing) : ::fchmod(temporary.fd, mode) == 0;
  if (!prepared) return replace_error("cannot keep owner and permissions of", path);
  if (!write_completely(temporary.fd, content) || ::fsync(temporary.fd) != 0)
    return replace_error("cannot write", path);
  if (::rename(temporary.path.c_str(), path.c_str()) != 0) return replace_error("cannot replace", path);
  temporary.path.clear();
  sync_directory(directory);
  return {};
}

}  // namespace fairlead
