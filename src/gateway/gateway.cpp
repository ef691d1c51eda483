#include "fairlead/gateway/gateway.hpp"

#include <algorithm>
#include <cerrno>

#include "fairlead/http/server.hpp"
#include "gateway/gateway_impl.hpp"
#include "gateway/meta_tools.hpp"
#include "gateway/names.hpp"
#include "gateway/server_reload.hpp"

namespace fairlead::gateway {

namespace {

pool::PoolOptions pool_options(const Config& config, const Log& log) {
  pool::PoolOptions options;
  options.limits = config.limits;
  options.client.info = gateway_info();
  options.client.connect.log = log;
  options.client.connect.limits = connection_limits(config);
  options.connectors = config.connectors;
  options.openers = config.openers;
  options.secret_store = config.secret_store;
  options.manifest.path = config.terminator_manifest;
  return options;
}

// Removes the processes that have ended from the manifest, which an earlier run of this gateway may have left
// behind. Processes that are alive stay in the manifest.
Result<void> compact_stale_manifest(const std::string& manifest, const Log& log) {
  if (manifest.empty()) return {};
  const Result<void> compacted = compact_manifest(manifest);
  const bool locked = !compacted && compacted.error().detail().os_error == EWOULDBLOCK;
  if (locked) log.warning("manifest not compacted", {{"reason", compacted.error().message()}});
  if (!compacted && !locked) return compacted.error();
  return {};
}

bool shows_details_to_everyone(const Config& config) {
  if (config.failure_details != FailureDetails::automatic)
    return config.failure_details == FailureDetails::everyone;
  const Result<bool> local = http::is_local_address(config.listen);
  return local && *local;
}

}  // namespace

Limits connection_limits(const Config& config) {
  Limits limits;
  limits.max_frame_bytes = config.max_frame_bytes;
  limits.max_noise_frames = config.max_noise_frames;
  // A message of the maximum size must fit into the backlog while it waits to be sent.
  limits.max_backlog_bytes = std::max(limits.max_backlog_bytes, 2 * limits.max_frame_bytes);
  return limits;
}

Result<std::shared_ptr<Gateway>> Gateway::create(Loop& loop, Config config, Log log) {
  auto gateway = std::make_shared<GatewayImpl>(loop, config, log);
  const Result<void> started = gateway->start(config);
  if (!started) return started.error();
  return gateway;
}

GatewayImpl::GatewayImpl(Loop& loop, const Config& config, const Log& log,
                         std::shared_ptr<SharedRedactor> redactor)
    : loop_(loop), log_(log.redacting(redactor)) {
  const mcp::Server front(gateway_info());
  const auto sessions = std::make_shared<SessionTable>();
  upstream_events_ = std::make_shared<UpstreamEvents>(loop, sessions, log_);
  pool::PoolOptions options = pool_options(config, log_);
  options.handlers = upstream_events_->handlers();
  options.redactor = std::move(redactor);
  pool_ = pool::Pool::create(loop, std::move(options));
  servers_ = std::make_shared<ServerTable>(pool_, config.authenticated);
  catalogue_ = std::make_shared<CatalogueStore>(loop, servers_, front, log_);
  const auto builder = std::make_shared<ListBuilder>(loop, catalogue_);
  list_fetcher_ = std::make_shared<ListFetcher>(loop, pool_, servers_, catalogue_, log_, builder);
  list_fetcher_->set_min_list_interval(config.min_list_interval);
  registered_servers_ =
      std::make_shared<RegisteredServers>(pool_, servers_, catalogue_, list_fetcher_, builder, log_);
  subscription_hub_ = std::make_shared<SubscriptionHub>(loop, pool_, log_);
  const auto log_levels = std::make_shared<UpstreamLogLevels>(loop, pool_, sessions, log_);
  upstream_events_->set_components(servers_, list_fetcher_, log_levels, subscription_hub_);
  const auto ended_sessions = std::make_shared<EndedSessions>(loop, pool_, servers_, catalogue_);
  GatewayBackend::Components components{
      pool_,
      servers_,
      catalogue_,
      list_fetcher_,
      std::make_shared<MissingListReporter>(servers_, log_),
      sessions,
      std::make_shared<ClientSessions>(sessions, log_levels, ended_sessions),
      subscription_hub_,
      FailurePolicy(shows_details_to_everyone(config)),
      std::make_shared<std::chrono::milliseconds>(config.list_wait),
      std::make_shared<EncodedPages::Budget>()};
  mcp::HttpApplicationOptions application;
  application.log = log_;
  application.limits = connection_limits(config);
  fronts_ = std::make_shared<FrontTable>(loop, std::move(components), front, std::move(application));
  fronts_->set_tools_factory(make_meta_tools_factory(loop, servers_, front));
  health_reporter_ = std::make_shared<HealthReporter>(loop, pool_, servers_, sessions);
}

Result<void> GatewayImpl::start(const Config& config) {
  const Result<void> compacted = compact_stale_manifest(config.terminator_manifest, log_);
  if (!compacted) return compacted.error();
  apply(config);
  for (const pool::ServerSpec& spec : config.servers) {
    const auto added = servers_->add(spec);
    if (!added) return added.error();
  }
  list_fetcher_->update_initial_fetch_done();
  for (const auto& entry : servers_->all()) list_fetcher_->refresh_shared(entry, nullptr);
  // Servers that are put in the same turn belong to the start: the first list waits for them, too.
  loop_.post([catalogue = catalogue_] { catalogue->set_served(); });
  return {};
}

json::Raw GatewayImpl::health() const {
  return json::Raw::trusted(Bytes::adopt(health_reporter_->build_now(true).text()));
}

Task<Result<HealthPtr>> GatewayImpl::health_for(const Principal& reader, std::stop_token stop) const {
  const bool with_details = fronts_->components().failure_policy.shows_details_to(reader);
  return health_reporter_->request(with_details, std::make_shared<const Principal>(reader),
                                   fronts_->scope_filter(reader), std::move(stop));
}

Task<void> GatewayImpl::shutdown(std::chrono::milliseconds grace) {
  const auto keep = shared_from_this();
  reload_state_.stopping = true;
  health_reporter_->set_draining();
  // Only calls of clients are waited for. Subscriptions and the fetching of lists are stopped at once.
  subscription_hub_->stop();
  list_fetcher_->stop();
  co_await pool_->shutdown(grace);
}

Result<void> GatewayImpl::add_tool(mcp::ToolSpec spec, mcp::Server::CoroutineTool handler) {
  if (spec.name.find("__") != std::string::npos)
    return Error(ErrorKind::validation, "tool `" + spec.name +
                                            "` of the gateway has `__` in its name, which separates a "
                                            "server's name from its tool's");
  return mcp::Server(front()).add_tool(std::move(spec), std::move(handler));
}

bool GatewayImpl::remove_tool(const std::string& name) {
  return mcp::Server(front()).remove_tool(name);
}

// ---- servers ---------------------------------------------------------------------------------------------

Result<void> GatewayImpl::add_server(pool::ServerSpec spec) {
  const auto added = servers_->add(std::move(spec));
  if (!added) return added.error();
  log_.info("server added", {{"server", (*added)->name()}});
  list_fetcher_->refresh_shared(*added, nullptr);
  return {};
}

Result<void> GatewayImpl::update_server(pool::ServerSpec spec) {
  const auto former = servers_->find(spec.name);
  const auto updated = servers_->update(std::move(spec));
  if (!updated) return updated.error();
  log_.info("server changed", {{"server", (*updated)->name()}});
  if ((*updated)->enabled) {
    catalogue_->drop_views();
  } else {
    catalogue_->withdraw(*former);
  }
  list_fetcher_->update_initial_fetch_done();
  list_fetcher_->refresh_shared(*updated, nullptr);
  return {};
}

Result<void> GatewayImpl::remove_server(std::string_view name) {
  const auto removed = servers_->remove(name);
  if (!removed) return removed.error();
  log_.info("server removed", {{"server", (*removed)->name()}});
  catalogue_->withdraw(**removed);
  fronts_->notify_access_reduced();
  list_fetcher_->update_initial_fetch_done();
  return {};
}

Result<void> GatewayImpl::put_server(pool::ServerSpec spec, ServerPolicy policy,
                                     std::shared_ptr<const registry::StoredLists> stored) {
  const auto former = servers_->find(spec.name);
  const ServerPolicyPtr former_policy = former ? former->policy : nullptr;
  const Result<void> changed = registered_servers_->put(std::move(spec), policy, stored);
  const bool same_access = !former_policy || (former_policy->visibility == policy.visibility &&
                                              former_policy->owner == policy.owner);
  if (changed && !same_access) fronts_->notify_access_reduced();
  return changed;
}

Result<void> GatewayImpl::enable_server(std::string_view name) {
  const auto enabled = servers_->enable(name);
  if (!enabled) return enabled.error();
  log_.info("server enabled", {{"server", (*enabled)->name()}});
  list_fetcher_->refresh_shared(*enabled, nullptr);
  return {};
}

Result<void> GatewayImpl::disable_server(std::string_view name) {
  const auto former = servers_->find(name);
  const auto disabled = servers_->disable(name);
  if (!disabled) return disabled.error();
  log_.info("server disabled", {{"server", (*disabled)->name()}});
  catalogue_->withdraw(*former);
  list_fetcher_->update_initial_fetch_done();
  return {};
}

// ---- reloading -------------------------------------------------------------------------------------------

void GatewayImpl::apply(const Config& config) {
  list_fetcher_->set_first_retry_delay(config.list_retry);
  *fronts_->components().list_wait = config.list_wait;
  FailurePolicy(fronts_->components().failure_policy).set_everyone(shows_details_to_everyone(config));
  pool_->set_limits(config.limits);
}

Result<void> GatewayImpl::check_reload(const Config& next) const {
  if (next.servers.size() > kMaxServers)
    return Error(ErrorKind::validation,
                 "more servers than max_servers (" + std::to_string(kMaxServers) + ")");
  for (const pool::ServerSpec& spec : next.servers) {
    const Result<void> usable = servers_->check_spec(spec);
    if (!usable) return usable.error();
  }
  return {};
}

Task<Result<void>> GatewayImpl::reload(Config next) {
  return ServerReload::reload(shared_from_this(), std::move(next));
}

}  // namespace fairlead::gateway
