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

bool read_facts(pid_t pid, ProcessFacts& facts) {
  const std::string directory = "/proc/" + std::to_string(pid);
  const std::string stat = read_whole(directory + "/stat");
  const char* state = keeper::after_name(stat.c_str());
  if (!state) return false;
  facts.identity = {pid, keeper::stat_field(stat.c_str(), 22), 0};
  facts.parent = static_cast<pid_t>(keeper::stat_field(stat.c_str(), 4));
  facts.group = static_cast<pid_t>(keeper::stat_field(stat.c_str(), 5));
  facts.session = static_cast<pid_t>(keeper::stat_field(stat.c_str(), 6));
  facts.zombie = *state == 'Z' || *state == 'X';
  if (facts.zombie) return true;
  facts.cookies = cookies_in(read_whole(directory + "/environ"));
  facts.cgroup = cgroup_in(read_whole(directory + "/cgroup"));
  return true;
}

}  // namespace

std::vector<ProcessFacts> list_processes() {
  std::vector<ProcessFacts> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
    const pid_t pid = std::atoi(entry->d_name);
    ProcessFacts facts;
    if (pid > 0 && read_facts(pid, facts)) all.push_back(std::move(facts));
  }
  return all;
}

}  // namespace fairlead::process
