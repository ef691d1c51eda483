#include "gateway/front_table.hpp"

#include <algorithm>
#include <utility>

#include "fairlead/process/failure.hpp"
#include "gateway/front.hpp"
#include "mcp/server_state.hpp"
#include "registry/access.hpp"

namespace fairlead::gateway {

namespace {

constexpr std::string_view kEndpointPrefix = "/e/";

// Returns the name of the endpoint at `path`; nullopt if the path is that of a server.
std::optional<std::string_view> endpoint_name(std::string_view path) {
  if (path.empty()) return registry::kDefaultEndpoint;
  if (!path.starts_with(kEndpointPrefix)) return std::nullopt;
  return path.substr(kEndpointPrefix.size());
}

std::string path_of(std::string_view endpoint) {
  return endpoint == registry::kDefaultEndpoint ? std::string()
                                                : std::string(kEndpointPrefix) + std::string(endpoint);
}

// The default endpoint of a gateway without a registry.
std::shared_ptr<const registry::Endpoint> default_endpoint() {
  static const auto endpoint = [] {
    auto made = std::make_shared<registry::Endpoint>();
    made->name = registry::kDefaultEndpoint;
    return made;
  }();
  return endpoint;
}

bool may_use_server(const ServerTable& servers, std::string_view server, const Principal& principal) {
  const auto entry = servers.find(server);
  return entry &&
         registry::may_use_server(principal, server, entry->policy->visibility, entry->policy->owner);
}

Error unknown_endpoint_error(std::string_view path) {
  return with_failure_code(
      Error(ErrorKind::validation, "no endpoint at /mcp" + std::string(path.substr(0, 200))),
      failure::unknown_endpoint);
}

}  // namespace

FrontTable::FrontTable(Loop& loop, GatewayBackend::Components components, const mcp::Server& default_front,
                       mcp::HttpApplicationOptions options)
    : loop_(loop), components_(std::move(components)), application_options_(std::move(options)) {
  application_options_.quota = mcp::make_subscription_quota(application_options_);
  const auto scope = std::make_shared<EndpointScope>();
  default_front_ =
      std::make_shared<Front>(loop_, std::string(), default_front, scope, components_, application_options_);
  components_.catalogue->add_front(default_front, scope);
}

const mcp::Server& FrontTable::default_server() const noexcept {
  return default_front_->server();
}

FrontTable::~FrontTable() = default;

// ---- endpoints -------------------------------------------------------------------------------------------

FrontTable::EndpointPtr FrontTable::find_endpoint(std::string_view name) const {
  const auto found = endpoints_.find(name);
  if (found != endpoints_.end()) return found->second;
  return name == registry::kDefaultEndpoint && !default_removed_ ? default_endpoint() : nullptr;
}

Result<void> FrontTable::put(registry::Endpoint row) {
  if (row.name.empty() || row.name.find('/') != std::string::npos)
    return Error(ErrorKind::validation, "the name of an endpoint is empty or has a `/`");
  const auto endpoint = std::make_shared<const registry::Endpoint>(std::move(row));
  const EndpointPtr former = std::exchange(endpoints_[endpoint->name], endpoint);
  if (endpoint->name == registry::kDefaultEndpoint) default_removed_ = false;
  if (const FrontPtr front = find_front(path_of(endpoint->name))) apply(*front, endpoint);
  const bool same_access =
      !former || (former->enabled == endpoint->enabled && former->users == endpoint->users &&
                  former->groups == endpoint->groups);
  if (!same_access) notify_access_reduced();
  return {};
}

void FrontTable::remove(std::string_view name) {
  const auto found = endpoints_.find(name);
  if (found != endpoints_.end()) endpoints_.erase(found);
  if (name == registry::kDefaultEndpoint) default_removed_ = true;
  const std::string path = path_of(name);
  if (const FrontPtr front = find_front(path)) apply(*front, nullptr);
  fronts_.erase(path);
  std::erase_if(idle_fronts_, [&](const FrontPtr& front) { return front->path() == path; });
  notify_access_reduced();
}

void FrontTable::apply(Front& front, const EndpointPtr& endpoint) const {
  front.scope()->set_endpoint(endpoint);
  const bool has_tools = endpoint && make_tools_ && endpoint->mode == registry::EndpointMode::discover;
  front.backend().set_tools(has_tools ? make_tools_(*endpoint) : nullptr);
  front.server().notify_tools_changed();
  front.server().notify_resources_changed();
  front.server().notify_prompts_changed();
}

void FrontTable::set_tools_factory(EndpointToolsFactory factory) {
  make_tools_ = std::move(factory);
  for (const auto& [name, endpoint] : endpoints_) {
    if (const FrontPtr front = find_front(path_of(name))) apply(*front, endpoint);
  }
}

// ---- access ----------------------------------------------------------------------------------------------

bool FrontTable::may_use(std::string_view path, const Principal& principal) const {
  const std::optional<std::string_view> name = endpoint_name(path);
  if (!name) return may_use_server(*components_.servers, path.substr(1), principal);
  if (!path.empty() && *name == registry::kDefaultEndpoint) return false;
  const EndpointPtr endpoint = find_endpoint(*name);
  return endpoint && registry::may_use(principal, *endpoint);
}

std::function<bool(const ServerEntry&)> FrontTable::scope_filter(const Principal& client) const {
  for (const char* const wide : {"mcp", "admin:servers:read", "admin:processes:read"}) {
    if (registry::allows_scope(client, wide)) return nullptr;
  }
  constexpr std::string_view kPrefix = "endpoint:";
  std::vector<std::shared_ptr<const EndpointScope>> endpoints;
  for (const std::string_view scope : client.scopes) {
    if (!scope.starts_with(kPrefix)) continue;
    const EndpointPtr endpoint = find_endpoint(scope.substr(kPrefix.size()));
    if (!endpoint || !registry::may_use(client, *endpoint)) continue;
    auto selection = std::make_shared<EndpointScope>();
    selection->set_endpoint(endpoint);
    endpoints.push_back(std::move(selection));
  }
  return [client, endpoints = std::move(endpoints)](const ServerEntry& entry) {
    return registry::allows_scope(client, "server:" + entry.name()) ||
           std::ranges::any_of(endpoints, [&](const auto& endpoint) {
             return endpoint->selects(entry.name(), *entry.policy);
           });
  };
}

bool FrontTable::allows(const transport::Application& application, const Principal& principal) const {
  const auto* const front = dynamic_cast<const Front*>(&application);
  return front && find_front(front->path()).get() == front && may_use(front->path(), principal);
}

void FrontTable::notify_access_reduced() const {
  if (access_reduced_) access_reduced_();
}

Result<std::shared_ptr<transport::Application>> FrontTable::find(std::string_view path,
                                                                 const Principal& principal) {
  if (!may_use(path, principal)) return unknown_endpoint_error(path);
  return std::shared_ptr<transport::Application>(front_at(path));
}

// ---- fronts ----------------------------------------------------------------------------------------------

std::shared_ptr<transport::Application> FrontTable::default_application() const {
  return default_front_;
}

FrontTable::FrontPtr FrontTable::find_front(std::string_view path) const {
  if (path.empty()) return default_front_;
  const auto found = fronts_.find(path);
  return found == fronts_.end() ? nullptr : found->second.lock();
}

FrontTable::FrontPtr FrontTable::front_at(std::string_view path) {
  FrontPtr front = find_front(path);
  if (!front) front = create_front(std::string(path));
  if (front != default_front_) keep_idle(front);
  return front;
}

FrontTable::FrontPtr FrontTable::create_front(const std::string& path) {
  std::erase_if(fronts_, [](const auto& known) { return known.second.expired(); });
  mcp::Server server(gateway_info());
  server.endpoint_name(path);
  const mcp::ServerState& default_state = *default_front_->server().state();
  server.state()->sealer = default_state.sealer;
  server.state()->session_prefix = std::to_string(++last_front_number_) + ".";
  const std::optional<std::string_view> name = endpoint_name(path);
  const auto scope = name ? std::make_shared<EndpointScope>() : EndpointScope::of_server(path.substr(1));
  auto front = std::make_shared<Front>(loop_, path, server, scope, components_, application_options_);
  if (name) apply(*front, find_endpoint(*name));
  components_.catalogue->add_front(server, scope);
  fronts_.insert_or_assign(path, front);
  return front;
}

void FrontTable::keep_idle(const FrontPtr& front) {
  if (!idle_fronts_.empty() && idle_fronts_.front() == front) return;
  idle_fronts_.remove(front);
  idle_fronts_.push_front(front);
  if (idle_fronts_.size() > kMaxIdleFronts) idle_fronts_.pop_back();
}

}  // namespace fairlead::gateway
