#include "process/keeper/cgroup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "process/keeper/proc.hpp"

namespace fairlead::keeper {

namespace {

int write_text(int cgroup, const char* file, const char* text) {
  const int fd = openat(cgroup, file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = write(fd, text, strlen(text)) < 0 ? errno : 0;
  close(fd);
  return error;
}

int open_directory(const char* directory) {
  return open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// Also removes the cgroups below it. The child creates such cgroups if it is a gateway itself.
bool remove_at(int parent, const char* name) {
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  if (errno != EBUSY) return false;
  const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = fd < 0 ? nullptr : fdopendir(fd);
  if (!entries) {
    if (fd >= 0) close(fd);
    return false;
  }
  bool has_children = false;
  bool all_removed = true;
  while (const dirent* entry = all_removed ? readdir(entries) : nullptr) {
    if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    has_children = true;
    all_removed = remove_at(fd, entry->d_name);
  }
  closedir(entries);
  return has_children && all_removed && unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

}  // namespace

int create_cgroup(const char* directory) {
  if (mkdir(directory, 0755) < 0) return -1;
  const int cgroup = open_directory(directory);
  // Before Linux 5.14 a cgroup cannot be killed as a whole (cgroup.kill). Such a cgroup is useless to the
  // keeper.
  if (cgroup >= 0 && faccessat(cgroup, "cgroup.kill", W_OK, AT_EACCESS) == 0) return cgroup;
  const int error = errno == ENOENT ? EOPNOTSUPP : errno;
  if (cgroup >= 0) close(cgroup);
  rmdir(directory);
  errno = error;
  return -1;
}

int write_cgroup_file(int cgroup, const char* file, std::uint64_t value) {
  return write_text(cgroup, file, TextBuffer().append_number(value).c_str());
}

int join_cgroup(int cgroup) {
  return write_text(cgroup, "cgroup.procs", "0");
}

void kill_cgroup(const char* directory) {
  const int cgroup = open_directory(directory);
  if (cgroup < 0) return;
  write_text(cgroup, "cgroup.kill", "1");
  close(cgroup);
}

bool had_oom_kill(const char* directory) {
  char path[4096 + 32];
  if (strlen(directory) > 4096) return false;
  strcpy(stpcpy(path, directory), "/memory.events");
  size_t size = 0;
  char* events = read_kernel_file(path, size);
  if (!events) return false;
  const char* count = strstr(events, "oom_kill ");
  const bool killed = count && strtoul(count + 9, nullptr, 10) > 0;
  free(events);
  return killed;
}

bool remove_cgroup(const char* directory) {
  return remove_at(AT_FDCWD, directory);
}

}  // namespace fairlead::keeper
