#include "process/keeper/orphans.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace fairlead::keeper {

namespace {

// Reads a file of /proc whole, NUL-ended. The caller frees it; null when it cannot be read.
char* slurp(const char* path, size_t& size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  size_t capacity = 16 << 10;
  char* text = static_cast<char*>(malloc(capacity));
  size = 0;
  while (text) {
    const ssize_t n = read(fd, text + size, capacity - size - 1);
    if (n <= 0) break;
    size += static_cast<size_t>(n);
    if (capacity - size > 1) continue;
    capacity *= 2;
    char* grown = static_cast<char*>(realloc(text, capacity));
    if (!grown) free(text);
    text = grown;
  }
  close(fd);
  if (text) text[size] = '\0';
  return text;
}

// "/proc/<pid><file>"; written by hand, as stdio would double what we add to libc.
struct ProcPath {
  char text[64] = "/proc/";

  ProcPath(pid_t pid, const char* file) {
    char digits[16];
    int n = 0;
    for (; pid > 0; pid /= 10) digits[n++] = static_cast<char>('0' + pid % 10);
    char* to = text + strlen(text);
    while (n > 0) *to++ = digits[--n];
    strcpy(to, file);
  }
};

pid_t parent_of(pid_t pid) {
  size_t size = 0;
  char* stat = slurp(ProcPath(pid, "/stat").text, size);
  if (!stat) return 0;
  // "pid (name) state parent …"; a name may hold any character, so look for its end from behind.
  const char* after_name = strrchr(stat, ')');
  const long parent = after_name && strlen(after_name) > 4 ? strtol(after_name + 4, nullptr, 10) : 0;
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
  char* environment = slurp(ProcPath(pid, "/environ").text, size);
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
