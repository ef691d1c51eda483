#include "gateway/server_reload.hpp"

#include <string_view>
#include <unordered_set>

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

Task<Result<void>> ServerReload::reload(std::shared_ptr<GatewayImpl> gateway, Config next) {
  const Result<void> usable = gateway->check_reload(next);
  if (!usable) co_return usable.error();
  GatewayImpl::ReloadState& state = gateway->reload_state_;
  if (state.stopping) co_return Result<void>();
  const std::uint64_t number = ++state.reload_count;
  gateway->list_fetcher_->set_first_retry_delay(next.list_retry);
  *gateway->fronts_->components().list_wait = next.list_wait;
  for (auto& [name, connector] : next.connectors) gateway->pool_->set_connector(name, std::move(connector));
  std::function<bool()> should_continue = [&state, number] {
    return !state.stopping && number == state.reload_count;
  };
  ServerReload servers(gateway->loop_, *gateway, *gateway->servers_, gateway->log_,
                       std::move(should_continue));
  const bool applied = co_await servers.run(next);
  if (applied || state.stopping) co_return Result<void>();
  co_return Error(ErrorKind::cancelled, "a later configuration was applied instead");
}

Task<bool> ServerReload::run(const Config& next) {
  const bool removed = co_await remove_missing(next);
  if (!removed) co_return false;
  co_return co_await add_and_update(next);
}

Task<bool> ServerReload::remove_missing(const Config& next) {
  std::unordered_set<std::string_view> named;
  for (const pool::ServerSpec& spec : next.servers) named.insert(spec.name);
  Slices slices;
  for (const auto& entry : servers_.all()) {
    if (named.contains(entry->name()) || entry->retired) continue;
    const Result<void> removed = gateway_.remove_server(entry->name());
    if (!removed)
      log_.error("server not removed", {{"server", entry->name()}, {"reason", removed.error().message()}});
    if (slices.due(0)) co_await sleep_for(loop_, Slices::kPause);
    if (!should_continue_()) co_return false;
  }
  co_return true;
}

Task<bool> ServerReload::add_and_update(const Config& next) {
  Slices slices;
  for (const pool::ServerSpec& spec : next.servers) {
    apply(spec);
    if (slices.due(0)) co_await sleep_for(loop_, Slices::kPause);
    if (!should_continue_()) co_return false;
  }
  co_return true;
}

void ServerReload::apply(const pool::ServerSpec& spec) {
  const auto current = servers_.find(spec.name);
  if (current && current->spec == spec) return;
  const Result<void> applied = current ? gateway_.update_server(spec) : gateway_.add_server(spec);
  if (!applied)
    log_.error(current ? "server not changed" : "server not added",
               {{"server", spec.name}, {"reason", applied.error().message()}});
}

}  // namespace fairlead::gateway
