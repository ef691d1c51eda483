// What the library and the keeper say to each other, over one SOCK_SEQPACKET socket: a request or a
// report is one packet, so neither is ever seen in part. Both ends are built from the same tree.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fairlead::keeper {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr int kSocket = 3;  // the descriptor the keeper finds its socket at
// A larger payload (arguments and environment can reach 2 MiB) travels in a memfd beside the packet.
inline constexpr std::size_t kMaxInlinePayload = 60u << 10;
inline constexpr int kMaxDescriptors = 4;  // stdin, stdout, stderr, and the memfd
// Every child carries this variable. Its value is one `<keeper pid>.<token>` per keeper above it, outermost
// first, parted by '/': so a keeper within a child of another leaves nothing the outer one cannot claim.
inline constexpr char kCookieName[] = "FAIRLEAD_CHILD";

enum class Verb : std::uint32_t { spawn = 1, signal = 2 };

enum Flag : std::uint32_t { payload_in_memfd = 1 };

struct Request {
  std::uint32_t version;
  Verb verb;
  std::uint64_t token;         // the library's name for the child
  std::uint32_t flags;         // unknown flags are refused, so that a limit is never silently dropped
  std::int32_t signal;         // signal: which; goes to the child's whole group
  std::uint32_t payload_size;  // spawn: path, working directory, arguments, environment, each ended by NUL
  std::uint32_t arg_count;
  std::uint32_t env_count;
  std::uint32_t reserved;
};

enum class Event : std::uint32_t { started = 1, refused = 2, ended = 3 };

// Where a spawn failed.
enum class Step : std::uint32_t { none, request, descriptors, process, chdir, exec };

struct Report {
  Event event;
  Step step;  // refused
  std::uint64_t token;
  std::int32_t pid;     // started
  std::int32_t error;   // refused: errno
  std::int32_t code;    // ended: exit(n), or -1
  std::int32_t signal;  // ended: killed by, or 0
};

}  // namespace fairlead::keeper
