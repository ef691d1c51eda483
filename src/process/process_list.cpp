#include "process/process_list.hpp"

#include <dirent.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "process/files.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::process {

namespace {

std::string cookies_in(std::string_view environment) {
  const std::string name = std::string(keeper::kCookieName) + '=';
  while (!environment.empty()) {
    const std::string_view variable = environment.substr(0, environment.find('\0'));
    if (variable.starts_with(name)) return '/' + std::string(variable.substr(name.size())) + '/';
    environment.remove_prefix(std::min(environment.size(), variable.size() + 1));
  }
  return {};
}

std::string cgroup_in(std::string_view lines) {
  const std::size_t at = lines.starts_with("0::") ? 0 : lines.find("\n0::");
  if (at == std::string_view::npos) return {};
  lines.remove_prefix(at + (at == 0 ? 3 : 4));
  return std::string(lines.substr(0, lines.find('\n')));
}

bool read_process_info(pid_t pid, ProcessInfo& info) {
  const std::string directory = "/proc/" + std::to_string(pid);
  const std::string stat = read_whole_file(directory + "/stat");
  const char* state = keeper::fields_after_name(stat.c_str());
  if (!state) return false;
  info.identity = {pid, keeper::stat_field(stat.c_str(), 22), 0};
  info.parent = static_cast<pid_t>(keeper::stat_field(stat.c_str(), 4));
  info.group = static_cast<pid_t>(keeper::stat_field(stat.c_str(), 5));
  info.session = static_cast<pid_t>(keeper::stat_field(stat.c_str(), 6));
  info.zombie = *state == 'Z' || *state == 'X';
  if (info.zombie) return true;
  info.cookies = cookies_in(read_whole_file(directory + "/environ"));
  info.cgroup = cgroup_in(read_whole_file(directory + "/cgroup"));
  return true;
}

}  // namespace

std::vector<ProcessInfo> list_processes() {
  std::vector<ProcessInfo> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
    const pid_t pid = std::atoi(entry->d_name);
    ProcessInfo info;
    if (pid > 0 && read_process_info(pid, info)) all.push_back(std::move(info));
  }
  return all;
}

}  // namespace fairlead::process
