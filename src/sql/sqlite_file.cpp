#include "sql/sqlite_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

#include "sql/driver.hpp"

namespace fairlead::sql {

namespace {

constexpr int kLockAttempts = 4;
constexpr std::chrono::milliseconds kLockRetryDelay{5};

Error file_error(const std::string& operation, int os_error) {
  const bool full = os_error == ENOSPC || os_error == EDQUOT;
  return Error::from_errno(ErrorKind::io, operation, os_error).with([&](ErrorDetail& detail) {
    detail.failure_code = full ? kDatabaseFull : kDatabaseUnavailable;
  });
}

Result<void> create_missing_directories(const std::filesystem::path& directory) {
  std::error_code ignored;  // mkdir() reports it
  if (directory.empty() || std::filesystem::exists(directory, ignored)) return {};
  if (const Result<void> parent = create_missing_directories(directory.parent_path()); !parent) return parent;
  if (::mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return file_error("cannot create the directory " + directory.string() + " of the database", errno);
}

// Never opens an existing file: closing it would release the locks that SQLite has on it in this process.
Result<void> create_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file) return {};
  struct stat status {};
  if ((errno != EEXIST && errno != EISDIR) || ::stat(path.c_str(), &status) < 0)
    return file_error("cannot open the database " + path, errno);
  if (S_ISREG(status.st_mode)) return {};
  return Error(ErrorKind::validation, path + " is not a regular file");
}

// Returns " (process 123)" if the process that holds the lock has written its id.
std::string lock_holder(int fd) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size() - 1, 0);
  const long pid = size > 0 ? std::strtol(text.data(), nullptr, 10) : 0;
  return pid > 0 ? " (process " + std::to_string(pid) + ")" : "";
}

// Another program may hold a shared lock for a moment, to see whether the database is in use.
bool lock_exclusively(int fd) {
  for (int attempt = 1; ::flock(fd, LOCK_EX | LOCK_NB) < 0; ++attempt) {
    if (errno != EWOULDBLOCK || attempt == kLockAttempts) return false;
    std::this_thread::sleep_for(kLockRetryDelay);
  }
  return true;
}

Result<UniqueFd> lock_file(const std::string& database) {
  const std::string path = database + ".lock";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
  if (!file) return file_error("cannot open " + path, errno);
  if (!lock_exclusively(file.get())) {
    if (errno != EWOULDBLOCK) return file_error("cannot lock " + path, errno);
    return database_error(ErrorKind::io,
                          "the database " + database + " is in use by another gateway" +
                              lock_holder(file.get()) + ", which has locked " + path,
                          kDatabaseInUse);
  }
  // The process id is information for the message above only, so a full disk is no failure.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file.get(), 0) == 0 && ::pwrite(file.get(), pid.data(), pid.size(), 0) < 0) return file;
  return file;
}

}  // namespace

Result<SqliteFile> open_sqlite_file(const std::string& path) {
  if (path.empty() || path.starts_with(':') || path.find('\0') != std::string::npos)
    return Error(ErrorKind::validation, "the address of an SQLite database is sqlite:PATH");
  const Result<void> created = create_missing_directories(std::filesystem::path(path).parent_path());
  if (!created) return created.error();
  if (const Result<void> file = create_file(path); !file) return file.error();
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (!real) return file_error("cannot open the database " + path, errno);
  SqliteFile opened;
  opened.path = real.get();
  Result<UniqueFd> lock = lock_file(opened.path);
  if (!lock) return lock.error();
  opened.lock = std::move(*lock);
  return opened;
}

}  // namespace fairlead::sql
