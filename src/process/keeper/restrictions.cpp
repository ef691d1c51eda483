#include "process/keeper/restrictions.hpp"

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

// Landlock access rights. Defined here because the headers of the build machine may be older than the running
// kernel.
enum Access : std::uint64_t {
  execute = 1u << 0,
  write_file = 1u << 1,
  read_file = 1u << 2,
  read_dir = 1u << 3,
  make_char = 1u << 6,
  make_block = 1u << 11,
  refer = 1u << 13,      // since ABI version 2
  truncate_ = 1u << 14,  // since ABI version 3
  ioctl_dev = 1u << 15,  // since ABI version 5
};
constexpr std::uint64_t kAccessRightsOfAbi1 = (1u << 13) - 1;

// struct landlock_ruleset_attr of ABI version 6. Older kernels accept it if the fields unknown to them are 0.
struct RulesetAttributes {
  std::uint64_t handled_access_fs = 0;
  std::uint64_t handled_access_net = 0;
  std::uint64_t scoped = 0;
};
constexpr std::uint64_t kScopeSignal = 1u << 1;
constexpr std::uint64_t kFileAccessRights = execute | write_file | read_file | truncate_ | ioctl_dev;

std::uint64_t supported_access_rights(long version) {
  std::uint64_t rights = kAccessRightsOfAbi1;
  if (version >= 2) rights |= refer;
  if (version >= 3) rights |= truncate_;
  if (version >= 5) rights |= ioctl_dev;
  return rights;
}

std::uint64_t access_rights_for(char letter) {
  switch (letter | 0x20) {
    case 'r': return read_file | read_dir;
    case 'x': return read_file | read_dir | execute;
    case 'w': return ~std::uint64_t{execute | make_char | make_block};
    default: return 0;
  }
}

bool is_optional(char letter) {
  return letter < 'a';
}

}  // namespace

int set_resource_limits(const std::uint64_t* limits) {
  static constexpr __rlimit_resource kResources[kLimitCount] = {RLIMIT_AS,  RLIMIT_NOFILE, RLIMIT_NPROC,
                                                                RLIMIT_CPU, RLIMIT_CORE,   RLIMIT_FSIZE};
  int error = 0;
  for (int i = 0; i < kLimitCount; ++i) {
    // The hard CPU limit sends SIGKILL; one second earlier the soft limit sends SIGXCPU, which shows the
    // cause.
    const rlimit value{limits[i], limits[i] + (i == cpu_seconds ? 1 : 0)};
    if (limits[i] != kUnsetLimit && setrlimit(kResources[i], &value) < 0) error = errno;
  }
  return error;
}

int set_no_new_privs() {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? errno : 0;
}

int landlock_abi_version() {
  return static_cast<int>(syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION));
}

LandlockRuleset::~LandlockRuleset() {
  if (ruleset_ >= 0) close(ruleset_);
}

int LandlockRuleset::create() {
  const int version = landlock_abi_version();
  if (version < 0) return errno;
  handled_access_ = supported_access_rights(version);
  RulesetAttributes attributes;
  attributes.handled_access_fs = handled_access_;
  if (version >= kLandlockSignalScopeAbi) attributes.scoped = kScopeSignal;
  ruleset_ = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
  return ruleset_ < 0 ? errno : 0;
}

int LandlockRuleset::add_rule(const char* rule) {
  const int fd = open(rule + 1, O_PATH | O_CLOEXEC);
  if (fd < 0) return is_optional(*rule) ? 0 : errno;
  struct stat info {};
  landlock_path_beneath_attr allowed{};
  allowed.parent_fd = fd;
  allowed.allowed_access = access_rights_for(*rule) & handled_access_;
  if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode)) allowed.allowed_access &= kFileAccessRights;
  const long result = syscall(SYS_landlock_add_rule, ruleset_, LANDLOCK_RULE_PATH_BENEATH, &allowed, 0);
  const int error = result < 0 ? errno : 0;
  close(fd);
  return error;
}

int LandlockRuleset::restrict_self() {
  const int error = set_no_new_privs();
  if (error) return error;
  return syscall(SYS_landlock_restrict_self, ruleset_, 0) < 0 ? errno : 0;
}

}  // namespace fairlead::keeper
