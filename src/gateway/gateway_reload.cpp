// Servers of a gateway: added at its start, and added, replaced and removed when its configuration is
// reloaded.
#include <algorithm>

#include "gateway/gateway_impl.hpp"
#include "gateway/names.hpp"

namespace fairlead::gateway {

Result<void> GatewayImpl::reload(Config next) {
  for (const pool::ServerSpec& spec : next.servers) {
    if (const std::optional<std::string> problem = server_name_problem(spec.name))
      return Error(ErrorKind::validation, *problem);
  }
  if (stopping_) return {};
  config_.list_wait = next.list_wait;
  config_.list_retry = next.list_retry;
  const std::map<std::string, std::string> before =
      std::exchange(config_.definitions, std::move(next.definitions));
  const auto named = [](const std::vector<pool::ServerSpec>& specs, const std::string& name) {
    return std::ranges::find(specs, name, &pool::ServerSpec::name) != specs.end();
  };
  const std::vector<pool::ServerSpec> old = std::exchange(config_.servers, std::move(next.servers));
  for (const pool::ServerSpec& spec : old) {
    if (!named(config_.servers, spec.name)) remove_server(spec.name);
  }
  for (const pool::ServerSpec& spec : config_.servers) {
    const auto definition = before.find(spec.name);
    const bool unchanged = definition != before.end() && definition->second == config_.definitions[spec.name];
    if (!named(old, spec.name)) {
      const Result<void> added = add_server(spec);
      if (!added)
        log_.error("server not added", {{"server", spec.name}, {"reason", added.error().message()}});
      if (added) {
        log_.info("server added", {{"server", spec.name}});
        refresh(spec.name, nullptr);
      }
    } else if (!unchanged) {
      replace_server(spec);
    }
  }
  return {};
}

Result<void> GatewayImpl::add_server(pool::ServerSpec spec) {
  if (auto* const process = std::get_if<ProcessSpec>(&spec.reach))
    process->manifest.path = config_.terminator_manifest;
  if (const std::optional<std::string> problem = server_name_problem(spec.name))
    return Error(ErrorKind::validation, *problem);
  const Result<void> added = pool_->add(spec);
  if (!added) return added.error();
  Known& known = known_[spec.name];
  known.removed = false;
  known.asked = false;
  known.per_user = spec.sharing == pool::Sharing::per_user;
  return {};
}

// What it listed last is offered until it has listed anew.
void GatewayImpl::replace_server(pool::ServerSpec spec) {
  log_.info("server changed", {{"server", spec.name}});
  if (auto* const process = std::get_if<ProcessSpec>(&spec.reach))
    process->manifest.path = config_.terminator_manifest;
  Known& known = known_[spec.name];
  ++known.epoch;
  known.shared.lease.reset();
  known.own.clear();
  known.pause = {};
  known.retry.reset();
  known.per_user = spec.sharing == pool::Sharing::per_user;
  forget_views();
  const std::string name = spec.name;
  const Result<void> updated = pool_->update(std::move(spec));
  if (!updated) log_.error("server not changed", {{"server", name}, {"reason", updated.error().message()}});
  refresh(name, nullptr);
}

// Coroutines refer to its entry, so that stays, marked as removed.
void GatewayImpl::remove_server(const std::string& name) {
  log_.info("server removed", {{"server", name}});
  Known& known = known_[name];
  ++known.epoch;
  known.shared.lease.reset();
  known.removed = true;
  known.asked = true;
  known.problem.clear();
  known.failure.reset();
  known.pause = {};
  known.retry.reset();
  known.own.clear();
  const std::shared_ptr<const Listed> before = std::exchange(known.shared.listed, nullptr);
  const Result<void> removed = pool_->remove(name);
  if (!removed) log_.error("server not removed", {{"server", name}, {"reason", removed.error().message()}});
  rebuild_catalogue();
  if (before) tell_changes(*before, Listed(), [](std::string_view, std::string_view) { return true; });
}

}  // namespace fairlead::gateway
