#include "registry/secret_key_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "fairlead/loop/descriptor.hpp"

namespace fairlead::registry {

namespace {

constexpr std::size_t kMaxFileBytes = 4096;  // max_secret_key_file_bytes
constexpr std::size_t kMaxKeys = 16;         // in one file or text

Error key_file_error(const std::string& path, const std::string& reason) {
  return Error(ErrorKind::validation, "the key file " + path + " " + reason);
}
Error key_file_error(const std::string& path, std::string_view operation, int os_error) {
  return Error::from_errno(ErrorKind::io, std::string(operation) + " the key file " + path, os_error);
}

std::string next_path(const std::string& path) {
  return path + ".new";
}

// Returns why other users could read or replace the key; nullopt if they cannot. Container platforms mount
// files of root.
std::optional<std::string> key_file_exposure(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "is not a regular file";
  if (status.st_uid != ::geteuid() && status.st_uid != 0) return "belongs to another user";
  if ((status.st_mode & 077) != 0) return "is accessible for other users; run: chmod 600 " + path;
  return std::nullopt;
}

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
}

// Reads into memory that does not grow, so that wiping it leaves no copy.
Result<SecretText> read_content(const std::string& path, int fd) {
  SecretText text;
  text.text().resize(kMaxFileBytes + 1);
  std::size_t size = 0;
  while (size <= kMaxFileBytes) {
    const ssize_t count = ::read(fd, text.text().data() + size, kMaxFileBytes + 1 - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return key_file_error(path, "cannot read", errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > kMaxFileBytes)
    return key_file_error(
        path, "has more than max_secret_key_file_bytes (" + std::to_string(kMaxFileBytes) + ") bytes");
  text.text().resize(size);
  return text;
}

// Returns no key if the file does not exist.
Result<std::vector<SecretKey>> read_key_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    if (errno == ENOENT) return std::vector<SecretKey>();
    return key_file_error(path, "cannot read", errno);
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return key_file_error(path, "cannot read", errno);
  if (const auto reason = key_file_exposure(path, status)) return key_file_error(path, *reason);
  const Result<SecretText> content = read_content(path, fd.get());
  if (!content) return content.error();
  Result<std::vector<SecretKey>> keys = parse_secret_keys(content->view());
  if (!keys) return key_file_error(path, "cannot be used: " + keys.error().message());
  return keys;
}

Result<void> sync_directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const UniqueFd fd(::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return key_file_error(path, "cannot write", errno);
  return {};
}

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0;
}

// Writes a key to a temporary file in the same directory, and returns its path.
Result<std::string> write_temporary(const std::string& path, const SecretKey& key) {
  std::string temporary = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!fd) return key_file_error(path, "cannot create", errno);
  const SecretText text = key.line();
  if (write_whole(fd.get(), text.view())) return temporary;
  const int os_error = errno;
  ::unlink(temporary.c_str());
  return key_file_error(path, "cannot write", os_error);
}

}  // namespace

std::string SecretKeyOptions::description() const {
  if (text) return source;
  return file.empty() ? std::string() : "the key file " + file;
}

Result<std::vector<SecretKey>> parse_secret_keys(std::string_view text) {
  std::vector<SecretKey> keys;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    Result<SecretKey> key = SecretKey::parse(line);
    if (!key)
      return Error(ErrorKind::validation, "line " + std::to_string(number) + " " + key.error().message());
    if (keys.size() == kMaxKeys)
      return Error(ErrorKind::validation,
                   "there are more than max_secret_keys (" + std::to_string(kMaxKeys) + ") keys");
    keys.push_back(std::move(*key));
  }
  if (keys.empty()) return Error(ErrorKind::validation, "there is no key");
  return keys;
}

Result<std::vector<SecretKey>> SecretKeyFile::read() const {
  Result<std::vector<SecretKey>> keys = read_key_file(path_);
  if (!keys) return keys;
  Result<std::vector<SecretKey>> next = read_key_file(next_path(path_));
  if (!next) return next;
  keys->insert(keys->end(), next->begin(), next->end());
  return keys;
}

Result<std::vector<SecretKey>> SecretKeyFile::create() const {
  const Result<SecretKey> key = SecretKey::generate();
  if (!key) return key.error();
  const Result<std::string> temporary = write_temporary(path_, *key);
  if (!temporary) return temporary.error();
  const bool linked = ::link(temporary->c_str(), path_.c_str()) == 0 || errno == EEXIST;
  const int os_error = errno;
  ::unlink(temporary->c_str());
  if (!linked) return key_file_error(path_, "cannot create", os_error);
  if (Result<void> synced = sync_directory_of(path_); !synced) return synced.error();
  return read_key_file(path_);
}

Result<SecretKey> SecretKeyFile::prepare_next(std::string_view key_id) const {
  Result<std::vector<SecretKey>> next = read_key_file(next_path(path_));
  if (!next) return next.error();
  if (next->empty()) return write_next();
  if (next->front().id() != key_id) return std::move(next->front());
  if (Result<void> installed = install_next(); !installed) return installed.error();
  return write_next();
}

Result<SecretKey> SecretKeyFile::write_next() const {
  Result<SecretKey> key = SecretKey::generate();
  if (!key) return key;
  const Result<std::string> temporary = write_temporary(path_, *key);
  if (!temporary) return temporary.error();
  if (::rename(temporary->c_str(), next_path(path_).c_str()) != 0) {
    const int os_error = errno;
    ::unlink(temporary->c_str());
    return key_file_error(path_, "cannot write", os_error);
  }
  if (Result<void> synced = sync_directory_of(path_); !synced) return synced.error();
  return key;
}

Result<void> SecretKeyFile::install_next() const {
  const std::string previous = path_ + ".previous";
  ::unlink(previous.c_str());
  const bool kept = ::link(path_.c_str(), previous.c_str()) == 0 || errno == ENOENT;
  if (!kept || ::rename(next_path(path_).c_str(), path_.c_str()) != 0)
    return key_file_error(path_, "cannot replace", errno);
  return sync_directory_of(path_);
}

Result<void> SecretKeyFile::settle(std::string_view key_id) const {
  const Result<std::vector<SecretKey>> next = read_key_file(next_path(path_));
  if (!next) return next.error();
  if (next->empty()) return {};
  if (next->front().id() == key_id) return install_next();
  const Result<std::vector<SecretKey>> keys = read_key_file(path_);
  if (!keys) return keys.error();
  const bool is_current =
      std::ranges::any_of(*keys, [&](const SecretKey& key) { return key.id() == key_id; });
  if (is_current) ::unlink(next_path(path_).c_str());
  return {};
}

}  // namespace fairlead::registry
