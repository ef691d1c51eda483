// Restrictions that a child applies to itself between fork and exec. Functions that return int return errno,
// or 0 on success, unless stated otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fairlead::keeper {

// `limits` has kLimitCount values.
int set_resource_limits(const std::uint64_t* limits);
int set_no_new_privs();

// Returns the Landlock ABI version of the kernel, or -1 with errno set.
int landlock_abi_version();
// Since this ABI version a restricted process can send signals only to processes with the same restrictions,
// hence neither to the keeper nor to the library's process.
inline constexpr int kLandlockSignalScopeAbi = 6;

// LandlockRuleset: file-system access rules. Access is denied unless a rule allows it. A rule is a letter and
// an absolute path: r for reading, w for reading and writing, x for reading and executing. An upper-case
// letter makes the rule optional: it is ignored if the path does not exist.
class LandlockRuleset {
 public:
  LandlockRuleset() = default;
  LandlockRuleset(const LandlockRuleset&) = delete;
  LandlockRuleset& operator=(const LandlockRuleset&) = delete;
  ~LandlockRuleset();

  int create();
  // After a failure, further rules can still be added.
  int add_rule(const char* rule);
  // Sets no_new_privs too.
  int restrict_self();

 private:
  int ruleset_ = -1;
  std::uint64_t handled_access_ = 0;
};

}  // namespace fairlead::keeper
