// ContainmentPlan: translates the Containment of a child into the fields of the request to the keeper.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/process/containment.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::process {

struct ContainmentPlan {
  std::uint32_t flags = 0;                    // requested measures (keeper::SpawnFlag)
  std::uint32_t required_flags = 0;           // the subset of `flags` without which the child must not start
  std::uint64_t limits[keeper::kLimitCount];  // indexed by keeper::Limit
  std::uint64_t memory_max = keeper::kUnsetLimit;
  std::uint64_t pids_max = keeper::kUnsetLimit;
  std::string cgroup_parent;                // as configured by the user
  std::vector<std::string> landlock_rules;  // see keeper/restrictions.hpp

  void add(keeper::SpawnFlag flag, Requirement requirement);
  // Removes a measure that turned out to be unavailable.
  void remove(keeper::SpawnFlag flag) { flags &= ~std::uint32_t{flag}; }
  bool includes(keeper::SpawnFlag flag) const noexcept { return flags & flag; }
  bool requires_(keeper::SpawnFlag flag) const noexcept { return required_flags & flag; }
};

// Builds the plan for the child `name`. `program` and `cwd` are absolute. Fails with kind `spawn` if Landlock
// is required and a path of its rules does not exist.
Result<ContainmentPlan> plan_containment(const std::string& name, const Containment& containment,
                                         const std::string& program, const std::string& cwd);

// Returns the status of all measures of a started child: the measures that every child has, and those of the
// plan. `outcome` is the keeper's report of the start.
std::vector<ContainmentStatus> containment_status_of(const ContainmentPlan& plan,
                                                     const keeper::SpawnOutcome& outcome);
// Returns the flag that requests `measure` from the keeper, or SpawnFlag{} for a measure that every child
// has.
keeper::SpawnFlag flag_of(ContainmentMeasure measure) noexcept;

}  // namespace fairlead::process
