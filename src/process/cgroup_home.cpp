#include "process/cgroup_home.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <ranges>
#include <vector>

#include "process/files.hpp"
#include "process/keeper/cgroup.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::process {

namespace {

constexpr time_t kStaleAfterSeconds = 60;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, at)) parts.emplace_back(part.begin(), part.end());
  return parts;
}

// Blanks and the like are written as \040 in mountinfo.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// A cgroup we are in, as seen through one mount: "36 25 0:30 ROOT MOUNTPOINT options … - cgroup2 …".
std::string seen_through(std::string_view mount, std::string_view cgroup) {
  const std::size_t type = mount.find(" - cgroup2 ");
  const std::vector<std::string_view> fields = split(mount, ' ');
  if (type == std::string_view::npos || fields.size() < 6) return {};
  const std::string root = unescaped(fields[3]);
  std::string directory = unescaped(fields[4]);
  if (root != "/") {
    if (!cgroup.starts_with(root)) return {};
    cgroup.remove_prefix(root.size());
  }
  while (cgroup.ends_with('/')) cgroup.remove_suffix(1);
  if (cgroup.contains("/..")) return {};  // outside of what we can see
  return directory += cgroup;
}

bool writable(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

bool marked_delegated(const std::string& directory) {
  for (const char* name : {"trusted.delegate", "user.delegate"}) {
    char value = 0;
    if (::getxattr(directory.c_str(), name, &value, 1) == 1 && value == '1') return true;
  }
  return false;
}

bool is_root_of_view(const std::string& directory) {
  struct stat here {};
  struct stat above {};
  return ::stat(directory.c_str(), &here) == 0 && ::stat((directory + "/..").c_str(), &above) == 0 &&
         here.st_dev != above.st_dev;
}

bool has_word(std::string_view words, std::string_view word) {
  if (words.ends_with('\n')) words.remove_suffix(1);
  return std::ranges::any_of(split(words, ' '), [&](std::string_view one) { return one == word; });
}

// Without symbolic links, as a manifest's reader wants it.
std::string canonical(const std::string& directory) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(directory.c_str(), nullptr), ::free);
  return real ? real.get() : directory;
}

// None if there is a symbolic link on the way, or it is no directory of a cgroup v2 hierarchy.
UniqueFd open_cgroup_directory(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  UniqueFd directory(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  struct statfs system {};
  const bool is_cgroup =
      directory && ::fstatfs(directory.get(), &system) == 0 && system.f_type == CGROUP2_SUPER_MAGIC;
  return is_cgroup ? std::move(directory) : UniqueFd();
}

// Of a directory named `fairlead-<keeper pid>-<token>`.
bool keeper_is_gone(std::string_view name) {
  const std::string pid(name.substr(name.find('-') + 1));
  const int number = std::atoi(pid.c_str());
  return number > 0 && ::kill(number, 0) < 0 && errno == ESRCH;
}

}  // namespace

std::string own_cgroup(std::string_view cgroup, std::string_view mountinfo) {
  for (const std::string_view line : split(cgroup, '\n')) {
    if (!line.starts_with("0::")) continue;
    for (const std::string_view mount : split(mountinfo, '\n')) {
      std::string directory = seen_through(mount, line.substr(3));
      if (!directory.empty()) return directory;
    }
  }
  return {};
}

CgroupHome check_cgroup_home(const std::string& directory) {
  if (::access((directory + "/cgroup.procs").c_str(), F_OK) != 0) return {{}, directory + " is not a cgroup"};
  if (!writable(directory) || !writable(directory + "/cgroup.procs"))
    return {{}, "the cgroup " + directory + " has not been delegated to this user"};
  return {directory, {}};
}

CgroupHome find_cgroup_home(const std::string& parent) {
  if (!parent.empty()) return check_cgroup_home(canonical(parent));
  const std::string own = own_cgroup(read_whole("/proc/self/cgroup"), read_whole("/proc/self/mountinfo"));
  if (own.empty()) return {{}, "there is no cgroup v2 here"};
  // A manager that puts us into a cgroup below the one it has delegated means us to use that. One that was
  // made for us as a child of another gateway holds us, and what we start.
  const std::string above = own.substr(0, own.rfind('/'));
  const bool confined = own.substr(above.size() + 1).starts_with(keeper::kCgroupPrefix);
  if (!confined && !marked_delegated(own) && marked_delegated(above) &&
      check_cgroup_home(above).why_not.empty())
    return {above, {}};
  if (::geteuid() == 0 && !marked_delegated(own) && !is_root_of_view(own))
    return {{}, "the cgroup " + own + " has not been delegated (systemd: Delegate=yes)"};
  return check_cgroup_home(own);
}

Result<void> enable_controller(const std::string& directory, std::string_view controller) {
  const std::string control = directory + "/cgroup.subtree_control";
  if (has_word(read_whole(control), controller)) return {};
  const std::string what = "the controller `" + std::string(controller) + "` of " + directory;
  if (!has_word(read_whole(directory + "/cgroup.controllers"), controller))
    return Error(ErrorKind::spawn, what + " is not available");
  const int error = write_whole(control, '+' + std::string(controller));
  if (error == EBUSY)
    return Error(ErrorKind::spawn, what +
                                       " cannot be switched on while processes are in that very cgroup "
                                       "(systemd: DelegateSubgroup=)");
  if (error) return Error::from_errno(ErrorKind::spawn, what + " cannot be switched on", error);
  return {};
}

OwnCgroup::OwnCgroup(const ManifestFacts& facts) {
  const std::string name = own_cgroup_name(facts);
  if (name.empty()) return;
  parent_ = open_cgroup_directory(facts.cgroup.substr(0, facts.cgroup.size() - name.size()));
  path_ = "/proc/self/fd/" + std::to_string(parent_.get()) + '/' + name;
}

void kill_cgroups_of(const std::string& directory, int keeper, std::uint64_t some_token) {
  const std::string prefix = keeper::kCgroupPrefix + std::to_string(keeper) + '-';
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
    const std::string name(entry->d_name);
    if (!name.starts_with(prefix)) continue;
    if (std::strtoull(name.c_str() + prefix.size(), nullptr, 10) >> 32 != some_token >> 32) continue;
    const std::string path = directory + '/' + name;
    keeper::kill_cgroup(path.c_str());
    keeper::remove_cgroup(path.c_str());  // where the dead are not gone yet, whoever comes next does it
  }
}

void remove_stale_cgroups(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
    const std::string_view name(entry->d_name);
    if (!name.starts_with(keeper::kCgroupPrefix) || !keeper_is_gone(name)) continue;
    struct stat info {};
    const std::string path = directory + '/' + entry->d_name;
    // One that is not empty is not removed by this.
    if (::stat(path.c_str(), &info) == 0 && ::time(nullptr) - info.st_mtime > kStaleAfterSeconds)
      keeper::remove_cgroup(path.c_str());
  }
}

}  // namespace fairlead::process
