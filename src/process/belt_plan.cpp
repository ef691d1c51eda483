#include "process/belt_plan.hpp"

#include <unistd.h>

#include <bit>
#include <cerrno>

#include "process/keeper/belts.hpp"
#include "process/spawn_errors.hpp"

namespace fairlead {

std::string_view to_string(Belt belt) noexcept {
  switch (belt) {
    case Belt::process_group: return "process_group";
    case Belt::parent_death_signal: return "parent_death_signal";
    case Belt::subreaper: return "subreaper";
    case Belt::manifest: return "manifest";
    case Belt::cgroup: return "cgroup";
    case Belt::memory_max: return "memory_max";
    case Belt::pids_max: return "pids_max";
    case Belt::limits: return "limits";
    case Belt::no_new_privs: return "no_new_privs";
    case Belt::landlock: return "landlock";
  }
  return "unknown";
}

std::string signal_exposure(const Containment& containment) {
  if (containment.landlock == Requirement::off) return "landlock is off";
  const int version = keeper::landlock_version();
  if (version < 0) return "this kernel has no Landlock";
  if (version < keeper::kLandlockScopesSignals)
    return "Landlock of this kernel does not restrict signals (Linux 6.12 or later does)";
  return {};
}

namespace process {

namespace {

constexpr Belt kPlanned[] = {Belt::manifest, Belt::cgroup,       Belt::memory_max, Belt::pids_max,
                             Belt::limits,   Belt::no_new_privs, Belt::landlock};

// Executables, libraries and what they read everywhere. A capital letter: where it does not exist, never
// mind.
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

std::string absolute(const std::string& path, const std::string& cwd) {
  return path.starts_with('/') ? path : cwd + '/' + path;
}

Result<void> add_rules(BeltPlan& plan, const std::string& name, char letter,
                       const std::vector<std::string>& paths, const std::string& cwd) {
  for (const std::string& path : paths) {
    std::string full = absolute(path, cwd);
    const bool missing = ::access(full.c_str(), F_OK) != 0;
    if (missing && plan.requires_(keeper::with_landlock)) {
      return belt_error(name, Belt::landlock, "its path " + full + " does not exist", ENOENT);
    }
    plan.rules.push_back(letter + full);
  }
  return {};
}

Result<void> plan_files(BeltPlan& plan, const std::string& name, const FileAccess& files,
                        const std::string& program, const std::string& cwd) {
  if (files.system_paths) plan.rules.assign(std::begin(kSystemRules), std::end(kSystemRules));
  plan.rules.push_back('X' + absolute(program, cwd));
  const std::pair<char, const std::vector<std::string>*> wanted[] = {
      {'r', &files.read}, {'w', &files.write}, {'x', &files.execute}};
  for (const auto& [letter, paths] : wanted) {
    const Result<void> added = add_rules(plan, name, letter, *paths, cwd);
    if (!added) return added;
  }
  return {};
}

}  // namespace

void BeltPlan::want(keeper::Flag flag, Requirement requirement) {
  if (requirement == Requirement::off) return;
  flags |= flag;
  if (requirement == Requirement::required) required |= flag;
}

Result<BeltPlan> plan_belts(const std::string& name, const Containment& containment,
                            const std::string& program, const std::string& cwd) {
  BeltPlan plan;
  plan.cgroup_parent = containment.cgroup_parent;
  plan.want(keeper::with_cgroup, containment.cgroup);
  if (containment.memory_max) plan.want(keeper::with_memory_max, containment.cgroup);
  if (containment.pids_max) plan.want(keeper::with_pids_max, containment.cgroup);
  plan.memory_max = containment.memory_max.value_or(keeper::kUnset);
  plan.pids_max = containment.pids_max.value_or(keeper::kUnset);

  const ResourceLimits& limits = containment.limits;
  const std::optional<std::uint64_t> wanted[keeper::kLimitCount] = {limits.address_space, limits.open_files,
                                                                    limits.processes,     limits.cpu_seconds,
                                                                    limits.core_bytes,    limits.file_bytes};
  for (int i = 0; i < keeper::kLimitCount; ++i) plan.limits[i] = wanted[i].value_or(keeper::kUnset);
  if (limits.any()) plan.want(keeper::with_limits, containment.limits_mode);

  plan.want(keeper::with_no_new_privs, containment.no_new_privs);
  plan.want(keeper::with_landlock, containment.landlock);
  if (plan.wants(keeper::with_landlock)) {
    const Result<void> files = plan_files(plan, name, containment.files, program, cwd);
    if (!files) return files.error();
  }
  return plan;
}

keeper::Flag flag_of(Belt belt) noexcept {
  switch (belt) {
    case Belt::manifest: return keeper::with_manifest;
    case Belt::cgroup: return keeper::with_cgroup;
    case Belt::memory_max: return keeper::with_memory_max;
    case Belt::pids_max: return keeper::with_pids_max;
    case Belt::limits: return keeper::with_limits;
    case Belt::no_new_privs: return keeper::with_no_new_privs;
    case Belt::landlock: return keeper::with_landlock;
    default: return keeper::Flag{};
  }
}

std::vector<BeltState> belts_of(const BeltPlan& plan, const keeper::Outcome& outcome) {
  std::vector<BeltState> belts = {
      {Belt::process_group, true, {}}, {Belt::parent_death_signal, true, {}}, {Belt::subreaper, true, {}}};
  for (const Belt belt : kPlanned) {
    const keeper::Flag flag = flag_of(belt);
    if (!plan.wants(flag)) continue;
    BeltState state{belt, !(outcome.failed & flag), {}};
    if (!state.in_force)
      state.why_not = explain_belt(belt, outcome.errors[std::countr_zero(std::uint32_t{flag})]);
    belts.push_back(std::move(state));
  }
  return belts;
}

}  // namespace process
}  // namespace fairlead
