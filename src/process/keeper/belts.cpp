#include "process/keeper/belts.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "process/keeper/protocol.hpp"

namespace fairlead::keeper {

namespace {

// By number: the kernel we run on may know more than the headers we were built with.
enum Access : std::uint64_t {
  execute = 1u << 0,
  write_file = 1u << 1,
  read_file = 1u << 2,
  read_dir = 1u << 3,
  make_char = 1u << 6,
  make_block = 1u << 11,
  refer = 1u << 13,      // since version 2
  truncate_ = 1u << 14,  // since version 3
  ioctl_dev = 1u << 15,  // since version 5
};
constexpr std::uint64_t kVersion1 = (1u << 13) - 1;

// struct landlock_ruleset_attr as of version 6. Older kernels accept it while what they do not know is 0.
struct RulesetAttributes {
  std::uint64_t handled_access_fs = 0;
  std::uint64_t handled_access_net = 0;
  std::uint64_t scoped = 0;
};
constexpr std::uint64_t kScopeSignal = 1u << 1;
constexpr std::uint64_t kForFiles = execute | write_file | read_file | truncate_ | ioctl_dev;

std::uint64_t known_to(long version) {
  std::uint64_t known = kVersion1;
  if (version >= 2) known |= refer;
  if (version >= 3) known |= truncate_;
  if (version >= 5) known |= ioctl_dev;
  return known;
}

std::uint64_t meant_by(char letter) {
  switch (letter | 0x20) {
    case 'r': return read_file | read_dir;
    case 'x': return read_file | read_dir | execute;
    case 'w': return ~std::uint64_t{execute | make_char | make_block};
    default: return 0;
  }
}

bool may_be_missing(char letter) {
  return letter < 'a';
}

}  // namespace

int set_limits(const std::uint64_t* limits) {
  static constexpr __rlimit_resource kNames[kLimitCount] = {RLIMIT_AS,  RLIMIT_NOFILE, RLIMIT_NPROC,
                                                            RLIMIT_CPU, RLIMIT_CORE,   RLIMIT_FSIZE};
  int error = 0;
  for (int i = 0; i < kLimitCount; ++i) {
    // The hard limit on CPU kills without a word; a second before it the soft one says what is the matter.
    const rlimit wanted{limits[i], limits[i] + (i == cpu_seconds ? 1 : 0)};
    if (limits[i] != kUnset && setrlimit(kNames[i], &wanted) < 0) error = errno;
  }
  return error;
}

int forbid_new_privileges() {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? errno : 0;
}

int landlock_version() {
  return static_cast<int>(syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
}

Landlock::~Landlock() {
  if (rules_ >= 0) close(rules_);
}

int Landlock::prepare() {
  const int version = landlock_version();
  if (version < 0) return errno;
  handled_ = known_to(version);
  RulesetAttributes handled;
  handled.handled_access_fs = handled_;
  if (version >= kLandlockScopesSignals) handled.scoped = kScopeSignal;
  rules_ = static_cast<int>(syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0));
  return rules_ < 0 ? errno : 0;
}

int Landlock::allow(const char* rule) {
  const int fd = open(rule + 1, O_PATH | O_CLOEXEC);
  if (fd < 0) return may_be_missing(*rule) ? 0 : errno;
  struct stat info {};
  landlock_path_beneath_attr allowed{};
  allowed.parent_fd = fd;
  allowed.allowed_access = meant_by(*rule) & handled_;
  if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode)) allowed.allowed_access &= kForFiles;
  const long result = syscall(SYS_landlock_add_rule, rules_, LANDLOCK_RULE_PATH_BENEATH, &allowed, 0);
  const int error = result < 0 ? errno : 0;
  close(fd);
  return error;
}

int Landlock::enforce() {
  const int error = forbid_new_privileges();
  if (error) return error;
  return syscall(SYS_landlock_restrict_self, rules_, 0) < 0 ? errno : 0;
}

}  // namespace fairlead::keeper
