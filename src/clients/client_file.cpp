#include "clients/client_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "base/read_file.hpp"
#include "base/replace_file.hpp"
#include "clients/read.hpp"

namespace fairlead::clients {

namespace {

namespace fs = std::filesystem;

constexpr FileLimit kTextLimit{"max_client_file_bytes", kMaxClientFileBytes};
constexpr int kMaxEditAttempts = 5;
constexpr std::string_view kBackupInfix = ".before-fairlead-";

Error file_problem(const std::string& path, const Error& cause) {
  return Error(cause.kind(), path + ": " + cause.message()).with([&](ErrorDetail& detail) {
    detail = cause.detail();
  });
}

// The time in UTC with microseconds: backups sort by their names.
std::string backup_stamp() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count() % 1'000'000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%Y%m%dT%H%M%S", &utc);
  const std::string fraction = std::to_string(1'000'000 + micros).substr(1);
  return std::string(text, size) + "." + fraction + "Z";
}

// Files that end with other letters are those of replace_file() in a process that was killed.
std::vector<std::string> backups_of(const std::string& path) {
  std::vector<std::string> found;
  const fs::path file(path);
  const std::string prefix = file.filename().string() + std::string(kBackupInfix);
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(file.parent_path(), failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with('Z')) found.push_back(entry.path().string());
  }
  std::ranges::sort(found);
  return found;
}

Result<std::string> write_backup(const ClientFileText& file) {
  struct stat status {};
  const unsigned mode = ::stat(file.path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0600;
  std::string backup = file.path + std::string(kBackupInfix) + backup_stamp();
  const Result<void> written = replace_file(backup, file.text, mode);
  if (!written) return written.error();
  std::vector<std::string> all = backups_of(file.path);
  for (std::size_t i = 0; i + kMaxClientFileBackups < all.size(); ++i) ::unlink(all[i].c_str());
  return backup;
}

}  // namespace

Result<ClientFileText> read_client_file_text(const std::string& path) {
  ClientFileText file;
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (!real) {
    struct stat status {};
    if (errno == ENOENT && ::lstat(path.c_str(), &status) != 0) {
      file.path = path;
      return file;
    }
    return Error(ErrorKind::io, path + " is a symbolic link to a file that does not exist");
  }
  file.path = real.get();
  file.exists = true;
  Result<std::string> text = read_regular_file(file.path, kTextLimit);
  if (!text) return file_problem(file.path, text.error());
  file.text = std::move(*text);
  return file;
}

Result<ClientFileChange> change_client_file(const std::string& path,
                                            const std::function<Result<std::string>(std::string_view)>& edit,
                                            bool dry_run) {
  for (int attempt = 0; attempt < kMaxEditAttempts; ++attempt) {
    Result<ClientFileText> file = read_client_file_text(path);
    if (!file) return file.error();
    Result<std::string> after = edit(file->text);
    if (!after) return file_problem(file->path, after.error());
    ClientFileChange change;
    change.path = file->path;
    change.before = file->text;
    change.after = std::move(*after);
    if (dry_run || change.after == change.before) return change;
    if (file->exists) {
      Result<std::string> backup = write_backup(*file);
      if (!backup) return backup.error();
      change.backup = std::move(*backup);
    }
    const Result<ClientFileText> now = read_client_file_text(path);
    if (now && (now->text != file->text || now->exists != file->exists)) continue;
    const Result<void> replaced = replace_file(file->path, change.after, 0600);
    if (!replaced) return replaced.error();
    return change;
  }
  return Error(ErrorKind::io, path +
                                  " is changed by another program again and again: end the client and "
                                  "try again");
}

std::string newest_backup(const std::string& path) {
  const std::vector<std::string> all = backups_of(path);
  return all.empty() ? std::string() : all.back();
}

}  // namespace fairlead::clients
