#include "process/containment_plan.hpp"

#include <unistd.h>

#include <bit>
#include <cerrno>

#include "process/keeper/restrictions.hpp"
#include "process/spawn_errors.hpp"

namespace fairlead {

std::string_view to_string(ContainmentMeasure measure) noexcept {
  switch (measure) {
    case ContainmentMeasure::process_group: return "process_group";
    case ContainmentMeasure::parent_death_signal: return "parent_death_signal";
    case ContainmentMeasure::subreaper: return "subreaper";
    case ContainmentMeasure::manifest: return "manifest";
    case ContainmentMeasure::cgroup: return "cgroup";
    case ContainmentMeasure::memory_max: return "memory_max";
    case ContainmentMeasure::pids_max: return "pids_max";
    case ContainmentMeasure::limits: return "limits";
    case ContainmentMeasure::no_new_privs: return "no_new_privs";
    case ContainmentMeasure::landlock: return "landlock";
  }
  return "unknown";
}

std::string signal_exposure(const Containment& containment) {
  if (containment.landlock == Requirement::off) return "landlock is off";
  const int abi_version = keeper::landlock_abi_version();
  if (abi_version < 0) return "this kernel has no Landlock";
  if (abi_version < keeper::kLandlockSignalScopeAbi)
    return "Landlock of this kernel does not restrict signals (Linux 6.12 or later does)";
  return {};
}

namespace process {

namespace {

constexpr ContainmentMeasure kPlannedMeasures[] = {
    ContainmentMeasure::manifest, ContainmentMeasure::cgroup, ContainmentMeasure::memory_max,
    ContainmentMeasure::pids_max, ContainmentMeasure::limits, ContainmentMeasure::no_new_privs,
    ContainmentMeasure::landlock};

// The system's executables and libraries, and the files that they commonly read. An upper-case letter makes a
// rule optional: it is ignored if the path does not exist (see LandlockRuleset).
constexpr const char* kSystemRules[] = {"X/usr",
                                        "X/bin",
                                        "X/sbin",
                                        "X/lib",
                                        "X/lib32",
                                        "X/lib64",
                                        "X/libx32",
                                        "R/etc",
                                        "R/proc",
                                        "R/sys",
                                        "R/run/systemd/resolve",
                                        "W/dev/null",
                                        "W/dev/zero",
                                        "W/dev/full",
                                        "R/dev/random",
                                        "R/dev/urandom",
                                        "W/dev/tty"};

std::string absolute_path(const std::string& path, const std::string& cwd) {
  return path.starts_with('/') ? path : cwd + '/' + path;
}

Result<void> add_landlock_rules(ContainmentPlan& plan, const std::string& name, char letter,
                                const std::vector<std::string>& paths, const std::string& cwd) {
  for (const std::string& path : paths) {
    std::string full = absolute_path(path, cwd);
    const bool missing = ::access(full.c_str(), F_OK) != 0;
    if (missing && plan.requires_(keeper::with_landlock)) {
      return measure_unavailable_error(name, ContainmentMeasure::landlock,
                                       "its path " + full + " does not exist", ENOENT);
    }
    plan.landlock_rules.push_back(letter + full);
  }
  return {};
}

Result<void> plan_landlock_rules(ContainmentPlan& plan, const std::string& name, const FileAccess& files,
                                 const std::string& program, const std::string& cwd) {
  if (files.system_paths) plan.landlock_rules.assign(std::begin(kSystemRules), std::end(kSystemRules));
  plan.landlock_rules.push_back('X' + absolute_path(program, cwd));
  const std::pair<char, const std::vector<std::string>*> requested[] = {
      {'r', &files.read}, {'w', &files.write}, {'x', &files.execute}};
  for (const auto& [letter, paths] : requested) {
    const Result<void> added = add_landlock_rules(plan, name, letter, *paths, cwd);
    if (!added) return added;
  }
  return {};
}

}  // namespace

void ContainmentPlan::add(keeper::SpawnFlag flag, Requirement requirement) {
  if (requirement == Requirement::off) return;
  flags |= flag;
  if (requirement == Requirement::required) required_flags |= flag;
}

Result<ContainmentPlan> plan_containment(const std::string& name, const Containment& containment,
                                         const std::string& program, const std::string& cwd) {
  ContainmentPlan plan;
  plan.cgroup_parent = containment.cgroup_parent;
  plan.add(keeper::with_cgroup, containment.cgroup);
  if (containment.memory_max) plan.add(keeper::with_memory_max, containment.cgroup);
  if (containment.pids_max) plan.add(keeper::with_pids_max, containment.cgroup);
  plan.memory_max = containment.memory_max.value_or(keeper::kUnsetLimit);
  plan.pids_max = containment.pids_max.value_or(keeper::kUnsetLimit);

  const ResourceLimits& limits = containment.limits;
  const std::optional<std::uint64_t> requested[keeper::kLimitCount] = {
      limits.address_space, limits.open_files, limits.processes,
      limits.cpu_seconds,   limits.core_bytes, limits.file_bytes};
  for (int i = 0; i < keeper::kLimitCount; ++i) plan.limits[i] = requested[i].value_or(keeper::kUnsetLimit);
  if (limits.any_set()) plan.add(keeper::with_limits, containment.limits_mode);

  plan.add(keeper::with_no_new_privs, containment.no_new_privs);
  plan.add(keeper::with_landlock, containment.landlock);
  if (plan.includes(keeper::with_landlock)) {
    const Result<void> files = plan_landlock_rules(plan, name, containment.files, program, cwd);
    if (!files) return files.error();
  }
  return plan;
}

keeper::SpawnFlag flag_of(ContainmentMeasure measure) noexcept {
  switch (measure) {
    case ContainmentMeasure::manifest: return keeper::with_manifest;
    case ContainmentMeasure::cgroup: return keeper::with_cgroup;
    case ContainmentMeasure::memory_max: return keeper::with_memory_max;
    case ContainmentMeasure::pids_max: return keeper::with_pids_max;
    case ContainmentMeasure::limits: return keeper::with_limits;
    case ContainmentMeasure::no_new_privs: return keeper::with_no_new_privs;
    case ContainmentMeasure::landlock: return keeper::with_landlock;
    default: return keeper::SpawnFlag{};
  }
}

std::vector<ContainmentStatus> containment_status_of(const ContainmentPlan& plan,
                                                     const keeper::SpawnOutcome& outcome) {
  std::vector<ContainmentStatus> statuses = {{ContainmentMeasure::process_group, true, {}},
                                             {ContainmentMeasure::parent_death_signal, true, {}},
                                             {ContainmentMeasure::subreaper, true, {}}};
  for (const ContainmentMeasure measure : kPlannedMeasures) {
    const keeper::SpawnFlag flag = flag_of(measure);
    if (!plan.includes(flag)) continue;
    ContainmentStatus status{measure, !(outcome.failed_flags & flag), {}};
    if (!status.in_force)
      status.reason =
          explain_measure_error(measure, outcome.flag_errors[std::countr_zero(std::uint32_t{flag})]);
    statuses.push_back(std::move(status));
  }
  return statuses;
}

}  // namespace process
}  // namespace fairlead
