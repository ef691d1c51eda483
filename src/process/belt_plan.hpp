// From what the caller wants a child held by to what the keeper is told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fairlead/base/result.hpp"
#include "fairlead/process/containment.hpp"
#include "process/keeper/protocol.hpp"

namespace fairlead::process {

struct BeltPlan {
  std::uint32_t flags = 0;  // of keeper::Flag
  std::uint32_t required = 0;
  std::uint64_t limits[keeper::kLimitCount];
  std::uint64_t memory_max = keeper::kUnset;
  std::uint64_t pids_max = keeper::kUnset;
  std::string cgroup_parent;       // as the user named it
  std::vector<std::string> rules;  // see keeper/belts.hpp

  void want(keeper::Flag flag, Requirement requirement);
  // It turned out that it cannot be had.
  void drop(keeper::Flag flag) { flags &= ~std::uint32_t{flag}; }
  bool wants(keeper::Flag flag) const noexcept { return flags & flag; }
  bool requires_(keeper::Flag flag) const noexcept { return required & flag; }
};

// `program`, `cwd`: absolute. Kind spawn for a path in the rules that does not exist and is required to.
Result<BeltPlan> plan_belts(const std::string& name, const Containment& containment,
                            const std::string& program, const std::string& cwd);

// The belts of a child that runs: those all have, and what became of those that were planned.
std::vector<BeltState> belts_of(const BeltPlan& plan, const keeper::Outcome& outcome);
keeper::Flag flag_of(Belt belt) noexcept;

}  // namespace fairlead::process
