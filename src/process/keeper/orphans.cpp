#include "process/keeper/orphans.hpp"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/keeper/proc.hpp"

namespace fairlead::keeper {

namespace {

TextBuffer proc_path(pid_t pid, const char* file) {
  return TextBuffer().append("/proc/").append_number(static_cast<std::uint64_t>(pid)).append(file);
}

pid_t parent_of(pid_t pid) {
  size_t size = 0;
  char* stat = read_kernel_file(proc_path(pid, "/stat").c_str(), size);
  if (!stat) return 0;
  const std::uint64_t parent = stat_field(stat, 4);
  free(stat);
  return static_cast<pid_t>(parent);
}

// Finds the segment of `value` with the pid of `keeper` and sets `token` to its token. Returns whether it
// exists.
bool find_token(const char* value, pid_t keeper, std::uint64_t& token) {
  for (const char* segment = value; segment; segment = strchr(segment, '/')) {
    if (*segment == '/') ++segment;
    char* end = nullptr;
    const unsigned long long pid = strtoull(segment, &end, 10);
    if (end == segment || *end != '.' || pid != static_cast<unsigned long long>(keeper)) continue;
    token = strtoull(end + 1, nullptr, 10);
    return true;
  }
  return false;
}

// Reads the cookie of the process and sets `token` to the token that `keeper` assigned. Returns false if the
// process has no cookie of `keeper`.
bool read_cookie_token(pid_t pid, pid_t keeper, std::uint64_t& token) {
  size_t size = 0;
  char* environment = read_kernel_file(proc_path(pid, "/environ").c_str(), size);
  if (!environment) return false;
  bool found = false;
  const size_t name_size = sizeof kCookieName - 1;
  for (const char* variable = environment; variable < environment + size && !found;
       variable += strlen(variable) + 1) {
    if (strncmp(variable, kCookieName, name_size) == 0 && variable[name_size] == '=')
      found = find_token(variable + name_size + 1, keeper, token);
  }
  free(environment);
  return found;
}

}  // namespace

ChildList::ChildList(bool scan) {
  read_succeeded_ = (!scan && read_children_file()) || scan_proc();
}

bool ChildList::read_children_file() {
  size_t size = 0;
  char* text = read_kernel_file("/proc/thread-self/children", size);
  if (!text) return false;
  char* end = text;
  for (const char* cursor = text;; cursor = end) {
    const long pid = strtol(cursor, &end, 10);
    if (end == cursor || !pids_.add(static_cast<pid_t>(pid))) break;
  }
  free(text);
  return true;
}

bool ChildList::scan_proc() {
  DIR* proc = opendir("/proc");
  if (!proc) return false;
  const pid_t self = getpid();
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid > 0 && parent_of(pid) == self && !pids_.add(pid)) break;
  }
  closedir(proc);
  return true;
}

OrphanOwner find_owner(ChildTable& table, pid_t keeper, pid_t pid) {
  const pid_t session = getsid(pid);
  if (const ChildRecord* leader = table.find_running(session)) return {OwnerState::running, leader->token};
  if (const ChildRecord* leader = table.find_reaped(session)) return {OwnerState::ended, leader->token};
  std::uint64_t token = 0;
  if (!read_cookie_token(pid, keeper, token)) return {OwnerState::unknown, 0};
  const ChildRecord* leader = table.find(token);
  return {leader && !leader->reaped ? OwnerState::running : OwnerState::ended, token};
}

}  // namespace fairlead::keeper
