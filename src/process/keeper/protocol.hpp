// The protocol between the library and the keeper over one SOCK_SEQPACKET socket. A request or a report is
// one packet, so neither is ever received in part. Both sides are built from the same source tree.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fairlead::keeper {

inline constexpr std::uint32_t kProtocolVersion = 3;
inline constexpr int kSocketFd = 3;  // the number of the keeper's socket descriptor
// A larger payload (arguments and environment can reach 2 MiB) is passed in a memfd with the packet.
inline constexpr std::size_t kMaxInlinePayload = 60u << 10;
inline constexpr int kMaxRequestFds = 4;  // stdin, stdout, stderr, and the memfd
// The cookie, an environment variable of every child. Its value is one segment `<keeper pid>.<token>` for
// each keeper among its ancestors, outermost first, separated by '/': so that an outer keeper can identify
// the processes that the keeper of a nested gateway has left behind.
inline constexpr char kCookieName[] = "FAIRLEAD_CHILD";
// A child's cgroup is named `fairlead-<keeper pid>-<token>`.
inline constexpr char kCgroupPrefix[] = "fairlead-";

// The keeper answers a ping with ReportType::alive, which shows the library that the keeper still runs.
enum class RequestType : std::uint32_t { spawn = 1, signal = 2, ping = 3 };

// Options of a spawn request. The keeper rejects requests with unknown flags, so that a limit is never
// silently dropped. The last two flags are reserved and count as unknown.
enum SpawnFlag : std::uint32_t {
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
inline constexpr int kKnownFlagCount = 8;

// Indexes of the resource limits. A limit with the value kUnsetLimit is not changed.
enum Limit { address_space, open_files, processes, cpu_seconds, core_bytes, file_bytes, kLimitCount };
inline constexpr std::uint64_t kUnsetLimit = ~std::uint64_t{0};

struct Request {
  std::uint32_t version;
  RequestType type;
  std::uint64_t token;  // identifies the child; assigned by the library
  std::uint32_t flags;
  std::uint32_t required_flags;  // the subset of `flags` without which the program must not be started
  std::int32_t signal;           // signal: the signal number, sent to the child's whole process group
  // spawn: strings, each terminated by NUL: path, working directory, arguments, environment; then the path of
  // the manifest and the rest of the entry (with_manifest), the directory of the cgroup (with_cgroup), and
  // the Landlock rules.
  std::uint32_t payload_size;
  std::uint32_t arg_count;
  std::uint32_t env_count;
  std::uint32_t rule_count;
  std::uint32_t reserved;
  std::uint64_t limits[kLimitCount];
  std::uint64_t memory_max;
  std::uint64_t pids_max;
};

enum class ReportType : std::uint32_t {
  started = 1,  // the child runs its program
  refused = 2,  // the spawn failed
  ended = 3,    // the child has been reaped
  alive = 4,    // the answer to a ping
};

// The step at which a spawn failed.
enum class SpawnStep : std::uint32_t {
  none,
  request,      // the keeper does not understand the request
  descriptors,  // passing the child's descriptors
  process,      // creating the process
  chdir,
  exec,
  // The following steps apply the containment measures of the same names.
  manifest,
  cgroup,
  memory_max,
  pids_max,
  limits,
  no_new_privs,
  landlock,
};

// The result of a spawn.
struct SpawnOutcome {
  SpawnStep step;                             // the step that failed; `none` if the child runs its program
  std::int32_t error;                         // errno of that step
  std::uint32_t failed_flags;                 // requested flags that could not be applied
  std::int32_t flag_errors[kKnownFlagCount];  // errno of each flag in `failed_flags`, indexed by bit number
};

struct Report {
  ReportType type;
  std::uint32_t out_of_memory;  // ended: the memory limit of its cgroup killed the child or a descendant
  std::uint64_t token;
  std::int32_t pid;        // started
  std::int32_t exit_code;  // ended: the exit code, or -1
  std::int32_t signal;     // ended: the signal that killed the child, or 0
  SpawnOutcome outcome;    // started, refused
};

}  // namespace fairlead::keeper
