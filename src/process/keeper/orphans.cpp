#include "process/keeper/orphans.hpp"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/keeper/proc.hpp"

namespace fairlead::keeper {

namespace {

Text path_of(pid_t pid, const char* file) {
  return Text().word("/proc/").number(static_cast<std::uint64_t>(pid)).word(file);
}

pid_t parent_of(pid_t pid) {
  size_t size = 0;
  char* stat = slurp(path_of(pid, "/stat").c_str(), size);
  if (!stat) return 0;
  const std::uint64_t parent = stat_field(stat, 4);
  free(stat);
  return static_cast<pid_t>(parent);
}

// The token in the segment of `value` that is this keeper's.
bool token_in(const char* value, pid_t keeper, std::uint64_t& token) {
  for (const char* at = value; at; at = strchr(at, '/')) {
    if (*at == '/') ++at;
    char* end = nullptr;
    const unsigned long long pid = strtoull(at, &end, 10);
    if (end == at || *end != '.' || pid != static_cast<unsigned long long>(keeper)) continue;
    token = strtoull(end + 1, nullptr, 10);
    return true;
  }
  return false;
}

bool read_cookie(pid_t pid, pid_t keeper, std::uint64_t& token) {
  size_t size = 0;
  char* environment = slurp(path_of(pid, "/environ").c_str(), size);
  if (!environment) return false;
  bool found = false;
  const size_t name = sizeof kCookieName - 1;
  for (const char* at = environment; at < environment + size && !found; at += strlen(at) + 1) {
    if (strncmp(at, kCookieName, name) == 0 && at[name] == '=')
      found = token_in(at + name + 1, keeper, token);
  }
  free(environment);
  return found;
}

}  // namespace

ChildList::ChildList(bool scan) {
  valid_ = (!scan && read_children_file()) || scan_proc();
}

bool ChildList::read_children_file() {
  size_t size = 0;
  char* text = slurp("/proc/thread-self/children", size);
  if (!text) return false;
  char* end = text;
  for (const char* at = text;; at = end) {
    const long pid = strtol(at, &end, 10);
    if (end == at || !pids_.add(static_cast<pid_t>(pid))) break;
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

Claim claim(Table& table, pid_t keeper, pid_t pid) {
  const pid_t session = getsid(pid);
  if (const Record* leader = table.running(session)) return {Owner::running, leader->token};
  if (const Record* leader = table.gone(session)) return {Owner::gone, leader->token};
  std::uint64_t token = 0;
  if (!read_cookie(pid, keeper, token)) return {Owner::unknown, 0};
  const Record* leader = table.find(token);
  return {leader && !leader->reaped ? Owner::running : Owner::gone, token};
}

}  // namespace fairlead::keeper
