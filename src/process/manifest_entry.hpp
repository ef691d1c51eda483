// ManifestEntry: formats and parses the lines of a manifest. Performs no I/O except to identify this system.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "process/keeper/proc.hpp"

namespace fairlead::process {

// The scope in which a pid is valid.
struct SystemIdentity {
  std::string boot_id;              // of the kernel, from /proc/sys/kernel/random/boot_id
  std::uint64_t pid_namespace = 0;  // the inode of the pid namespace

  static SystemIdentity current();
  bool operator==(const SystemIdentity&) const = default;
};

struct EntryFields {
  std::string role;  // "child" or "keeper"
  std::string name;
  std::string digest;  // see LaunchPlan; empty for a keeper
  std::string cookie;  // the segment of the child's keeper in the cookie of its descendants; empty: none
  std::string cgroup;  // the directory of the child's cgroup; empty: none
};

// Returns the part of an entry's line that follows the process identity: `,"boot":…}`. It contains the
// identity of this system and of this process, the owner.
std::string format_entry_fields(const EntryFields& fields);

struct ManifestEntry {
  keeper::ProcessIdentity identity;
  SystemIdentity system;
  EntryFields fields;
  std::string line;  // as in the file, without the line break
};

struct ParsedManifest {
  bool is_manifest = false;  // the text begins with the header of a manifest; read_manifest(): or is empty
  std::vector<ManifestEntry> entries;
  // Lines that are not entries: incomplete, or written by another program.
  std::size_t unreadable_line_count = 0;
};

ParsedManifest parse_manifest(std::string_view text);

// Returns the name of the cgroup that was created for a child, `fairlead-<keeper pid>-<token>`. Empty if
// `fields.cgroup` is anything else: the path must be absolute and normalized, and its last component must
// have the keeper and token of `fields.cookie`.
std::string entry_cgroup_name(const EntryFields& fields);

}  // namespace fairlead::process
