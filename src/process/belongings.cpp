#include "process/belongings.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace fairlead::process {

namespace {

// Whether `seen`, a path of /proc/<pid>/cgroup, has `name` among its components. The mount point is not part
// of that path, so it cannot be compared with the directory in the manifest; the name is unique.
bool is_within(const std::string& seen, const std::string& name) {
  return !name.empty() && (seen + '/').contains('/' + name + '/');
}

class Search {
 public:
  Search(const std::vector<ManifestEntry>& entries, const std::vector<ProcessFacts>& processes,
         const Whereabouts& here)
      : entries_(entries),
        processes_(processes),
        here_(here),
        owner_(processes.size()),
        by_(processes.size()) {
    for (std::size_t i = 0; i < processes.size(); ++i) index_[processes[i].identity.pid] = i;
    found_.has_some.resize(entries.size());
  }

  Belongings run() {
    for (std::size_t i = 0; i < entries_.size(); ++i) find_direct(i);
    while (find_related()) continue;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (!owner_[i] || processes_[i].zombie) continue;
      found_.has_some[*owner_[i]] = true;
      found_.alive.push_back({processes_[i].identity, *owner_[i], by_[i]});
    }
    return std::move(found_);
  }

 private:
  bool claim(std::size_t process, std::size_t entry, const char* by) {
    const pid_t pid = processes_[process].identity.pid;
    if (owner_[process] || pid == here_.self || pid <= 1) return false;
    owner_[process] = entry;
    by_[process] = by;
    // The number of a session is nobody else's while it has members, though its leader be gone.
    if (processes_[process].session == entries_[entry].identity.pid)
      sessions_.emplace(processes_[process].session, entry);
    return true;
  }

  void find_direct(std::size_t number) {
    const ManifestEntry& entry = entries_[number];
    if (entry.system != here_.system) {
      ++found_.other_system;
      return;
    }
    const auto same_number = index_.find(entry.identity.pid);
    if (same_number != index_.end()) {
      if (is_same(processes_[same_number->second].identity, entry.identity)) {
        claim(same_number->second, number, "entry");
      } else {
        ++found_.recycled;
      }
    }
    const std::string cookie = '/' + entry.facts.cookie + '/';
    const std::string cgroup = own_cgroup_name(entry.facts);
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const ProcessFacts& process = processes_[i];
      // Nothing that was there before it can descend from it.
      if (process.identity.start < entry.identity.start) continue;
      if (!entry.facts.cookie.empty() && process.cookies.contains(cookie)) {
        claim(i, number, "cookie");
      } else if (is_within(process.cgroup, cgroup)) {
        claim(i, number, "cgroup");
      }
    }
  }

  bool is_same(const keeper::Identity& process, const keeper::Identity& named) const {
    if (process.start != named.start) return false;
    const std::uint64_t inode = named.inode != 0 ? here_.inode_of(process.pid) : 0;
    return inode == 0 || inode == named.inode;
  }

  // Children, and those whose session or group is, or is led by, one that belongs. Once more while there are
  // new ones.
  bool find_related() {
    bool found = false;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (owner_[i]) continue;
      const ProcessFacts& process = processes_[i];
      const auto session = sessions_.find(process.session);
      if (session != sessions_.end() && claim(i, session->second, "session")) found = true;
      const std::pair<pid_t, const char*> relations[] = {
          {process.parent, "parent"}, {process.session, "session"}, {process.group, "group"}};
      for (const auto& [pid, by] : relations) {
        const auto relative = index_.find(pid);
        if (relative == index_.end() || relative->second == i || !owner_[relative->second]) continue;
        if (claim(i, *owner_[relative->second], by)) found = true;
        break;
      }
    }
    return found;
  }

  const std::vector<ManifestEntry>& entries_;
  const std::vector<ProcessFacts>& processes_;
  const Whereabouts& here_;
  std::unordered_map<pid_t, std::size_t> index_;
  std::vector<std::optional<std::size_t>> owner_;  // for each process, the entry
  std::vector<const char*> by_;
  std::unordered_map<pid_t, std::size_t> sessions_;  // those of an entry itself
  Belongings found_;
};

}  // namespace

Belongings find_belongings(const std::vector<ManifestEntry>& entries,
                           const std::vector<ProcessFacts>& processes, const Whereabouts& here) {
  return Search(entries, processes, here).run();
}

}  // namespace fairlead::process
