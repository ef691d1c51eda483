// The lines of a manifest, written and read. No I/O but for what identifies this system.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "process/keeper/proc.hpp"

namespace fairlead::process {

// The system processes are numbered in.
struct SystemIdentity {
  std::string boot;          // changes with every start of the kernel
  std::uint64_t pid_ns = 0;  // the namespace of pids

  static SystemIdentity here();
  bool operator==(const SystemIdentity&) const = default;
};

struct ManifestFacts {
  std::string role;  // child or keeper
  std::string name;
  std::string digest;
  std::string cookie;  // what descendants have in their environment; empty: none
  std::string cgroup;  // its directory; empty: none
};

// What follows a process's identity in its line: `,"boot":…}`.
std::string manifest_facts(const ManifestFacts& facts);

struct ManifestEntry {
  keeper::Identity identity;
  SystemIdentity system;
  ManifestFacts facts;
  std::string line;  // as it stands in the file, without its line break
};

struct ManifestText {
  bool valid = false;  // it begins as manifests do
  std::vector<ManifestEntry> entries;
  std::size_t unreadable = 0;  // lines that are no entries: torn, or somebody else's
};

ManifestText parse_manifest(std::string_view text);

// Returns the name of the cgroup that was created for a child, `fairlead-<keeper pid>-<token>`. Empty if
// `facts.cgroup` is anything else: the path must be absolute and normalized, and its last component must have
// the keeper and token of `facts.cookie`.
std::string own_cgroup_name(const ManifestFacts& facts);

}  // namespace fairlead::process
