#include "gateway/server_reload.hpp"

#include <string_view>
#include <unordered_set>

#include "fairlead/loop/timer.hpp"
#include "loop/slices.hpp"

namespace fairlead::gateway {

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
