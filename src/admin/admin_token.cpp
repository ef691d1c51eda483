#include "admin/admin_token.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/read_file.hpp"
#include "fairlead/http/authenticator.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "process/child_error_context.hpp"
#include "registry/tokens.hpp"

namespace fairlead::admin {

namespace {

constexpr FileLimit kTokenFileLimit{"max_token_file_bytes", 4096};

Error token_file_error(const std::string& path, const std::string& reason) {
  return Error(ErrorKind::validation, "the token file " + path + " " + reason);
}

Error token_file_error(const std::string& path, std::string_view operation, int os_error) {
  return Error::from_errno(ErrorKind::io, std::string(operation) + " " + path, os_error);
}

// Returns why other users could read or replace the token; nullopt if they cannot.
std::optional<std::string> exposure(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "is not a regular file";
  if (status.st_uid != ::geteuid()) return "belongs to another user";
  if ((status.st_mode & 077) != 0)
    return "is accessible for other users; run: chmod 600 " + process::shell_quoted(path);
  return std::nullopt;
}

std::string without_line_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0;
}

// Creates the file under a temporary name and links it to `path`, so that `path` never has half a token. An
// existing file is not replaced.
Result<void> create_token_file(const std::string& path, const std::string& token) {
  std::string temporary = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!fd) return token_file_error(path, "cannot create", errno);
  const bool written = write_all(fd.get(), token + "\n");
  const bool linked = written && (::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int os_error = errno;
  ::unlink(temporary.c_str());
  if (!linked) return token_file_error(path, "cannot write", os_error);
  return {};
}

Result<std::string> home_directory() {
  if (const char* const home = std::getenv("HOME"); home && *home == '/') return std::string(home);
  std::array<char, 16'384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found &&
      *found->pw_dir == '/')
    return std::string(found->pw_dir);
  return Error(
      ErrorKind::validation,
      "this user has no home directory; set XDG_STATE_HOME to the directory for the state of programs");
}

// `hint` is added to the error of a file without a token.
Result<std::string> read_token(const std::string& path, const std::string& hint) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return token_file_error(path, "cannot read", errno);
  if (const auto reason = exposure(path, status)) return token_file_error(path, *reason);
  Result<std::string> text = read_regular_file(path, kTokenFileLimit);
  if (!text) return token_file_error(path, "cannot be read: " + text.error().message());
  std::string token = without_line_end(std::move(*text));
  if (token.size() < http::StaticTokenAuthenticator::kMinTokenBytes)
    return token_file_error(path, "has no token of at least 16 characters" + hint);
  return token;
}

}  // namespace

Result<std::string> state_directory() {
  // The XDG specification requires that a relative path is ignored.
  if (const char* const state = std::getenv("XDG_STATE_HOME"); state && *state == '/')
    return std::string(state) + "/fairlead";
  const Result<std::string> home = home_directory();
  if (!home) return home;
  return *home + "/.local/state/fairlead";
}

Result<void> create_private_directory(const std::string& path) {
  std::string parent;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    parent = (std::filesystem::path(parent) / part).string();
    if (::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST)
      return Error::from_errno(ErrorKind::io, "cannot create the directory " + parent, errno);
  }
  return {};
}

Result<std::string> read_admin_token(const std::string& path) {
  return read_token(path, std::string());
}

Result<std::string> read_or_create_admin_token(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 && errno == ENOENT) {
    const Result<void> directory =
        create_private_directory(std::filesystem::path(path).parent_path().string());
    if (!directory) return directory.error();
    const Result<std::string> token = registry::generate_token();
    if (!token) return token.error();
    const Result<void> created = create_token_file(path, *token);
    if (!created) return created.error();
  }
  return read_token(path, "; remove the file to get a new one");
}

}  // namespace fairlead::admin
