// What the library and the keeper say to each other, over one SOCK_SEQPACKET socket: a request or a
// report is one packet, so neither is ever seen in part. Both ends are built from the same tree.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fairlead::keeper {

inline constexpr std::uint32_t kVersion = 3;
inline constexpr int kSocket = 3;  // the descriptor the keeper finds its socket at
// A larger payload (arguments and environment can reach 2 MiB) travels in a memfd beside the packet.
inline constexpr std::size_t kMaxInlinePayload = 60u << 10;
inline constexpr int kMaxDescriptors = 4;  // stdin, stdout, stderr, and the memfd
// Every child carries this variable. Its value is one `<keeper pid>.<token>` per keeper above it, outermost
// first, parted by '/': so a keeper within a child of another leaves nothing the outer one cannot claim.
inline constexpr char kCookieName[] = "FAIRLEAD_CHILD";
// A child's cgroup is named `fairlead-<keeper pid>-<token>`.
inline constexpr char kCgroupPrefix[] = "fairlead-";

// ping: answered with Event::alive, so that the library finds out whether the keeper still runs.
enum class Verb : std::uint32_t { spawn = 1, signal = 2, ping = 3 };

// What a spawn asks for beside the program. Flags that are unknown are refused, so that a limit is never
// silently dropped; the last two are reserved and not known yet.
enum Flag : std::uint32_t {
  payload_in_memfd = 1u << 0,
  with_manifest = 1u << 1,
  with_cgroup = 1u << 2,
  with_memory_max = 1u << 3,
  with_pids_max = 1u << 4,
  with_limits = 1u << 5,
  with_no_new_privs = 1u << 6,
  with_landlock = 1u << 7,
  with_seccomp = 1u << 8,
  with_namespaces = 1u << 9,
};
inline constexpr std::uint32_t kKnownFlags = (1u << 8) - 1;
inline constexpr int kFlagCount = 8;  // of the known ones; a flag's errors are at its bit's number

// Resource limits, in this order. kUnset leaves one as it is.
enum Limit { address_space, open_files, processes, cpu_seconds, core_bytes, file_bytes, kLimitCount };
inline constexpr std::uint64_t kUnset = ~std::uint64_t{0};

struct Request {
  std::uint32_t version;
  Verb verb;
  std::uint64_t token;  // the library's name for the child
  std::uint32_t flags;
  std::uint32_t required;  // those of the flags without which the program is not to be started
  std::int32_t signal;     // signal: which; goes to the child's whole group
  // spawn: strings, each ended by NUL: path, working directory, arguments, environment; then the manifest's
  // path and the rest of its entry (with_manifest), the directory of the cgroup (with_cgroup), and the rules
  // of Landlock.
  std::uint32_t payload_size;
  std::uint32_t arg_count;
  std::uint32_t env_count;
  std::uint32_t rule_count;
  std::uint32_t reserved;
  std::uint64_t limits[kLimitCount];
  std::uint64_t memory_max;
  std::uint64_t pids_max;
};

enum class Event : std::uint32_t { started = 1, refused = 2, ended = 3, alive = 4 };

// Where a spawn failed.
enum class Step : std::uint32_t {
  none,
  request,
  descriptors,
  process,
  chdir,
  exec,
  manifest,
  cgroup,
  memory_max,
  pids_max,
  limits,
  no_new_privs,
  landlock,
};

// What became of a start.
struct Outcome {
  Step step;                        // where it failed; none: it runs its program
  std::int32_t error;               // errno
  std::uint32_t failed;             // flags that were asked for and could not be done
  std::int32_t errors[kFlagCount];  // why
};

struct Report {
  Event event;
  std::uint32_t out_of_memory;  // ended: its cgroup's limit killed something of it
  std::uint64_t token;
  std::int32_t pid;     // started
  std::int32_t code;    // ended: exit(n), or -1
  std::int32_t signal;  // ended: killed by, or 0
  Outcome outcome;      // started, refused
};

}  // namespace fairlead::keeper
