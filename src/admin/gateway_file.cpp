#include "admin/gateway_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "base/read_file.hpp"
#include "base/replace_file.hpp"
#include "fairlead/json/raw.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/loop/descriptor.hpp"
#include "sql/database.hpp"

namespace fairlead::admin {

namespace {

constexpr FileLimit kGatewayFileLimit{"max_gateway_file_bytes", 16'384};
constexpr std::string_view kSqliteScheme = "sqlite:";

std::string gateway_file_of(const std::string& path) {
  return path + ".gateway";
}

// Returns `url` as a program on this machine can use it.
std::string local_url(std::string url) {
  if (url.starts_with("unix:")) return url.substr(0, url.rfind(" /"));
  for (const auto& [any, loopback] :
       {std::pair<std::string_view, std::string_view>("//0.0.0.0:", "//127.0.0.1:"),
        std::pair<std::string_view, std::string_view>("//[::]:", "//[::1]:")}) {
    const std::size_t at = url.find(any);
    if (at != std::string::npos) url.replace(at, any.size(), loopback);
  }
  return url;
}

bool is_private_file(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 022) == 0;
}

// Returns the process that has written its id into the lock file; 0 if there is none.
long lock_holder_of(int fd) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size() - 1, 0);
  return size > 0 ? std::strtol(text.data(), nullptr, 10) : 0;
}

UniqueFd open_lock(const std::string& path) {
  return UniqueFd(::open((path + ".lock").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

// Takes the lock for a moment if nobody has it. A gateway that starts meanwhile tries again.
bool is_locked(int fd) {
  if (::flock(fd, LOCK_SH | LOCK_NB) < 0) return errno == EWOULDBLOCK;
  ::flock(fd, LOCK_UN);
  return false;
}

}  // namespace

std::string sqlite_file_of(const std::string& address) {
  if (!address.starts_with(kSqliteScheme)) return {};
  const std::string path = address.substr(kSqliteScheme.size());
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : std::string();
}

Result<void> write_gateway_file(const std::string& path, std::string url) {
  json::Writer text;
  text.begin_object().key("url").string(local_url(std::move(url))).key("pid").integer(::getpid());
  text.end_object();
  return replace_file(gateway_file_of(path), std::string(text.text()) + "\n", 0600);
}

void remove_gateway_file(const std::string& path) {
  ::unlink(gateway_file_of(path).c_str());
}

bool is_database_in_use(const Error& error) {
  return error.detail().failure_code == sql::kDatabaseInUse;
}

bool is_database_locked(const std::string& path) {
  const UniqueFd lock = open_lock(path);
  return lock && is_locked(lock.get());
}

std::optional<ServingGateway> find_serving_gateway(const std::string& path) {
  const UniqueFd lock = open_lock(path);
  if (!lock || !is_locked(lock.get()) || !is_private_file(gateway_file_of(path))) return std::nullopt;
  const Result<std::string> text = read_regular_file(gateway_file_of(path), kGatewayFileLimit);
  if (!text) return std::nullopt;
  const Result<json::Raw> parsed = json::Raw::parse(*text);
  if (!parsed) return std::nullopt;
  const json::View content(parsed->text());
  ServingGateway found;
  found.url = content["url"].as_string().value_or("");
  found.pid = static_cast<long>(content["pid"].as_int().value_or(0));
  // Another process has the lock: the file is that of a gateway that has crashed.
  if (found.url.empty() || found.pid != lock_holder_of(lock.get())) return std::nullopt;
  return found;
}

}  // namespace fairlead::admin
