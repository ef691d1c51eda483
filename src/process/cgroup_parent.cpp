#include "process/cgroup_parent.hpp"

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

// remove_stale_cgroups() removes empty cgroups that are older than this.
constexpr time_t kStaleAfterSeconds = 60;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, separator)) parts.emplace_back(part.begin(), part.end());
  return parts;
}

// Decodes the octal escapes of mountinfo, such as \040 for a blank.
std::string unescape(std::string_view text) {
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

// Returns the directory of `cgroup` below the mount point of one line of mountinfo ("36 25 0:30 ROOT
// MOUNTPOINT options … - cgroup2 …"), or an empty text if that mount does not contain it.
std::string directory_in_mount(std::string_view mount, std::string_view cgroup) {
  const std::size_t type = mount.find(" - cgroup2 ");
  const std::vector<std::string_view> fields = split(mount, ' ');
  if (type == std::string_view::npos || fields.size() < 6) return {};
  const std::string root = unescape(fields[3]);
  std::string directory = unescape(fields[4]);
  if (root != "/") {
    if (!cgroup.starts_with(root)) return {};
    cgroup.remove_prefix(root.size());
  }
  while (cgroup.ends_with('/')) cgroup.remove_suffix(1);
  if (cgroup.contains("/..")) return {};  // the cgroup is outside the hierarchy that this process can see
  return directory += cgroup;
}

bool is_writable(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

bool is_marked_delegated(const std::string& directory) {
  for (const char* name : {"trusted.delegate", "user.delegate"}) {
    char value = 0;
    if (::getxattr(directory.c_str(), name, &value, 1) == 1 && value == '1') return true;
  }
  return false;
}

bool is_mount_root(const std::string& directory) {
  struct stat current {};
  struct stat parent {};
  return ::stat(directory.c_str(), &current) == 0 && ::stat((directory + "/..").c_str(), &parent) == 0 &&
         current.st_dev != parent.st_dev;
}

bool has_word(std::string_view words, std::string_view word) {
  if (words.ends_with('\n')) words.remove_suffix(1);
  return std::ranges::any_of(split(words, ' '), [&](std::string_view item) { return item == word; });
}

// Returns the path with symbolic links resolved, because EntryCgroup rejects paths that contain them.
std::string canonical_path(const std::string& directory) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(directory.c_str(), nullptr), ::free);
  return real ? real.get() : directory;
}

// Returns an empty descriptor if the path contains a symbolic link or is not a directory of a cgroup v2
// hierarchy.
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

// Returns whether the keeper of a cgroup named `fairlead-<keeper pid>-<token>` has ended.
bool keeper_has_ended(std::string_view name) {
  const std::string pid(name.substr(name.find('-') + 1));
  const int number = std::atoi(pid.c_str());
  return number > 0 && ::kill(number, 0) < 0 && errno == ESRCH;
}

}  // namespace

std::string current_cgroup(std::string_view cgroup, std::string_view mountinfo) {
  for (const std::string_view line : split(cgroup, '\n')) {
    if (!line.starts_with("0::")) continue;
    for (const std::string_view mount : split(mountinfo, '\n')) {
      std::string directory = directory_in_mount(mount, line.substr(3));
      if (!directory.empty()) return directory;
    }
  }
  return {};
}

CgroupParent check_cgroup_parent(const std::string& directory) {
  if (::access((directory + "/cgroup.procs").c_str(), F_OK) != 0) return {{}, directory + " is not a cgroup"};
  if (!is_writable(directory) || !is_writable(directory + "/cgroup.procs"))
    return {{}, "the cgroup " + directory + " has not been delegated to this user"};
  return {directory, {}};
}

CgroupParent find_cgroup_parent(const std::string& parent) {
  if (!parent.empty()) return check_cgroup_parent(canonical_path(parent));
  const std::string own =
      current_cgroup(read_whole_file("/proc/self/cgroup"), read_whole_file("/proc/self/mountinfo"));
  if (own.empty()) return {{}, "no cgroup v2 hierarchy is available"};
  // If a service manager has delegated the cgroup above, and started this process in a cgroup below it, the
  // delegated one is meant for the children. But if a gateway has started this process, the children must
  // stay in the cgroup that the gateway created for it.
  const std::string above = own.substr(0, own.rfind('/'));
  const bool created_by_gateway = own.substr(above.size() + 1).starts_with(keeper::kCgroupPrefix);
  if (!created_by_gateway && !is_marked_delegated(own) && is_marked_delegated(above) &&
      check_cgroup_parent(above).reason.empty())
    return {above, {}};
  if (::geteuid() == 0 && !is_marked_delegated(own) && !is_mount_root(own))
    return {{}, "the cgroup " + own + " has not been delegated (systemd: Delegate=yes)"};
  return check_cgroup_parent(own);
}

Result<void> enable_controller(const std::string& directory, std::string_view controller) {
  const std::string control = directory + "/cgroup.subtree_control";
  if (has_word(read_whole_file(control), controller)) return {};
  const std::string name = "the controller `" + std::string(controller) + "` of " + directory;
  if (!has_word(read_whole_file(directory + "/cgroup.controllers"), controller))
    return Error(ErrorKind::spawn, name + " is not available");
  const int error = write_existing_file(control, '+' + std::string(controller));
  if (error == EBUSY)
    return Error(ErrorKind::spawn, name +
                                       " cannot be enabled while the cgroup itself contains processes "
                                       "(systemd: DelegateSubgroup=)");
  if (error) return Error::from_errno(ErrorKind::spawn, name + " cannot be enabled", error);
  return {};
}

EntryCgroup::EntryCgroup(const EntryFields& fields) {
  const std::string name = entry_cgroup_name(fields);
  if (name.empty()) return;
  parent_ = open_cgroup_directory(fields.cgroup.substr(0, fields.cgroup.size() - name.size()));
  path_ = "/proc/self/fd/" + std::to_string(parent_.get()) + '/' + name;
}

void kill_cgroups_of_keeper(const std::string& directory, int keeper, std::uint64_t run_token) {
  const std::string prefix = keeper::kCgroupPrefix + std::to_string(keeper) + '-';
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
    const std::string name(entry->d_name);
    if (!name.starts_with(prefix)) continue;
    if (std::strtoull(name.c_str() + prefix.size(), nullptr, 10) >> 32 != run_token >> 32) continue;
    const std::string path = directory + '/' + name;
    keeper::kill_cgroup(path.c_str());
    // remove_cgroup() fails while the killed processes still exist. Then remove_stale_cgroups() removes the
    // cgroup later.
    keeper::remove_cgroup(path.c_str());
  }
}

void remove_stale_cgroups(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
    const std::string_view name(entry->d_name);
    if (!name.starts_with(keeper::kCgroupPrefix) || !keeper_has_ended(name)) continue;
    struct stat info {};
    const std::string path = directory + '/' + entry->d_name;
    // remove_cgroup() does not remove a cgroup that contains processes.
    if (::stat(path.c_str(), &info) == 0 && ::time(nullptr) - info.st_mtime > kStaleAfterSeconds)
      keeper::remove_cgroup(path.c_str());
  }
}

}  // namespace fairlead::process
