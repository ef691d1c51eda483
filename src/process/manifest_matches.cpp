#include "process/manifest_matches.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace fairlead::process {

namespace {

// Returns whether `path`, a path in /proc/<pid>/cgroup, has the component `name`. The path does not include
// the mount point, so it cannot be compared with the directory in the manifest; but the name is unique.
bool has_component(const std::string& path, const std::string& name) {
  return !name.empty() && (path + '/').contains('/' + name + '/');
}

class ProcessMatcher {
 public:
  ProcessMatcher(const std::vector<ManifestEntry>& entries, const std::vector<ProcessInfo>& processes,
                 const MatchContext& context)
      : entries_(entries),
        processes_(processes),
        context_(context),
        entry_of_(processes.size()),
        matched_by_(processes.size()) {
    for (std::size_t i = 0; i < processes.size(); ++i) index_by_pid_[processes[i].identity.pid] = i;
    matches_.has_live_process.resize(entries.size());
  }

  ManifestMatches run() {
    for (std::size_t i = 0; i < entries_.size(); ++i) match_entry(i);
    while (match_relatives()) continue;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (!entry_of_[i] || processes_[i].zombie) continue;
      matches_.has_live_process[*entry_of_[i]] = true;
      matches_.alive.push_back({processes_[i].identity, *entry_of_[i], matched_by_[i]});
    }
    return std::move(matches_);
  }

 private:
  // Assigns the process to the entry. Returns false if the process already belongs to an entry, is this
  // process, or is the init process.
  bool assign(std::size_t process, std::size_t entry, const char* matched_by) {
    const pid_t pid = processes_[process].identity.pid;
    if (entry_of_[process] || pid == context_.self_pid || pid <= 1) return false;
    entry_of_[process] = entry;
    matched_by_[process] = matched_by;
    // The kernel does not reuse the number of a session while the session has members, even if its leader has
    // ended. So other members of the session belong to the entry too.
    if (processes_[process].session == entries_[entry].identity.pid)
      sessions_.emplace(processes_[process].session, entry);
    return true;
  }

  void match_entry(std::size_t entry_index) {
    const ManifestEntry& entry = entries_[entry_index];
    if (entry.system != context_.system) {
      ++matches_.other_system_count;
      return;
    }
    const auto same_pid = index_by_pid_.find(entry.identity.pid);
    if (same_pid != index_by_pid_.end()) {
      if (has_identity(processes_[same_pid->second].identity, entry.identity)) {
        assign(same_pid->second, entry_index, "entry");
      } else {
        ++matches_.recycled_count;
      }
    }
    const std::string cookie = '/' + entry.fields.cookie + '/';
    const std::string cgroup = entry_cgroup_name(entry.fields);
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const ProcessInfo& process = processes_[i];
      // A process that started before the entry's process cannot be its descendant.
      if (process.identity.start < entry.identity.start) continue;
      if (!entry.fields.cookie.empty() && process.cookies.contains(cookie)) {
        assign(i, entry_index, "cookie");
      } else if (has_component(process.cgroup, cgroup)) {
        assign(i, entry_index, "cgroup");
      }
    }
  }

  bool has_identity(const keeper::ProcessIdentity& process, const keeper::ProcessIdentity& expected) const {
    if (process.start != expected.start) return false;
    const std::uint64_t inode = expected.inode != 0 ? context_.inode_of(process.pid) : 0;
    return inode == 0 || inode == expected.inode;
  }

  // Assigns the children of matched processes, and the members of their sessions and process groups, to the
  // same entries. Returns whether it found new ones; then it must be called again.
  bool match_relatives() {
    bool found = false;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (entry_of_[i]) continue;
      const ProcessInfo& process = processes_[i];
      const auto session = sessions_.find(process.session);
      if (session != sessions_.end() && assign(i, session->second, "session")) found = true;
      const std::pair<pid_t, const char*> relations[] = {
          {process.parent, "parent"}, {process.session, "session"}, {process.group, "group"}};
      for (const auto& [pid, relation] : relations) {
        const auto relative = index_by_pid_.find(pid);
        if (relative == index_by_pid_.end() || relative->second == i || !entry_of_[relative->second])
          continue;
        if (assign(i, *entry_of_[relative->second], relation)) found = true;
        break;
      }
    }
    return found;
  }

  const std::vector<ManifestEntry>& entries_;
  const std::vector<ProcessInfo>& processes_;
  const MatchContext& context_;
  std::unordered_map<pid_t, std::size_t> index_by_pid_;
  std::vector<std::optional<std::size_t>> entry_of_;  // for each process, the index of its entry
  std::vector<const char*> matched_by_;
  // Maps the number of a session to the index of the entry whose process leads, or has led, the session.
  std::unordered_map<pid_t, std::size_t> sessions_;
  ManifestMatches matches_;
};

}  // namespace

ManifestMatches match_processes(const std::vector<ManifestEntry>& entries,
                                const std::vector<ProcessInfo>& processes, const MatchContext& context) {
  return ProcessMatcher(entries, processes, context).run();
}

}  // namespace fairlead::process
