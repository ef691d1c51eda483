#include "pool/connection_opener.hpp"

#include "fairlead/process/failure.hpp"
#include "fairlead/transport/connect.hpp"
#include "loop/slices.hpp"
#include "pool/reference_resolver.hpp"
#include "pool/server_messages.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

ProcessSpec process_of(Program program) {
  ProcessSpec process;
  process.command = std::move(program.command);
  process.args = std::move(program.args);
  process.env = std::move(program.env);
  process.inherit_only = std::move(program.inherit_env);
  process.cwd = std::move(program.cwd);
  process.stderr_mode = program.stderr_mode;
  process.containment = std::move(program.containment);
  return process;
}

constexpr std::size_t kLargeSecrets = 16u << 10;

std::size_t secret_bytes(const std::vector<std::string>& secrets) {
  std::size_t bytes = 0;
  for (const std::string& secret : secrets) bytes += secret.size();
  return bytes;
}

Task<ConnectResult> start_program(Core& core, const ServerSpec& spec, ResolvedReach resolved,
                                  ConnectOptions options) {
  ProcessSpec process = process_of(std::get<Program>(std::move(resolved.reach)));
  process.name = spec.name;
  process.secrets = std::move(resolved.secrets);
  process.withheld_env = core.referenced_variables.withheld_from(spec.name);
  process.manifest = core.options.manifest;
  return connect_child(core.loop, std::move(process), std::move(options));
}

Task<ConnectResult> connect_address(Core& core, ResolvedReach resolved, ConnectOptions options) {
  Address address = std::get<Address>(std::move(resolved.reach));
  transport::ConnectOptions any;
  static_cast<ConnectOptions&>(any) = std::move(options);
  any.max_response_bytes =
      any.limits.max_frame_bytes;  // a larger one would hold the loop while it is scanned
  any.secrets = std::move(resolved.secrets);
  for (auto& [name, value] : address.headers) any.headers.add(name, std::move(value));
  return transport::connect(core.loop, std::move(address.url), std::move(any));
}

Task<ConnectResult> no_connector(std::string name) {
  co_return Error(ErrorKind::connection_failed, "there is no connector named `" + name + "`");
}

Task<ConnectResult> reach(Core& core, const ServerSpec& spec, ResolvedReach resolved,
                          ConnectOptions options) {
  if (std::holds_alternative<Program>(resolved.reach))
    return start_program(core, spec, std::move(resolved), std::move(options));
  options.limits.connect_timeout = spec.clocks.spawn;
  if (std::holds_alternative<Address>(resolved.reach))
    return connect_address(core, std::move(resolved), std::move(options));
  const std::string& name = std::get<NamedConnector>(resolved.reach).name;
  const auto found = core.options.connectors.find(name);
  if (found == core.options.connectors.end()) return no_connector(name);
  return found->second(core.loop, std::move(options));
}

// To a caller a program that is not there is a server that cannot be reached.
Error start_failure(const Error& reason) {
  if (reason.detail().code != failure::command_not_found) return with_failure_code(reason);
  return Error(ErrorKind::connection_failed, reason.message()).with([&](ErrorDetail& d) {
    d = reason.detail();
  });
}

}  // namespace

bool ServerSpec::is_process() const {
  const auto* address = std::get_if<Address>(&reach);
  return std::holds_alternative<Program>(reach) || (address && address->url.starts_with("stdio:"));
}

ConnectionOpener::ConnectionOpener(ManagedUpstream& upstream)
    : upstream_(upstream), spawn_timer_(upstream.core->loop) {}

Error ConnectionOpener::spawn_timeout(std::chrono::milliseconds patience) const {
  return Error::timeout("starting server " + upstream_.spec().name, patience).with([](ErrorDetail& d) {
    d.code = failure::spawn_timeout;
    d.remedy = remedy_for(failure::spawn_timeout);
  });
}

bool ConnectionOpener::opening(std::uint64_t generation) const noexcept {
  const State state = upstream_.state();
  return generation == upstream_.generation() && (state == State::starting || state == State::handshaking);
}

Task<void> ConnectionOpener::bring_up(std::shared_ptr<ManagedUpstream> self, Place place,
                                      std::uint64_t generation) {
  ConnectionOpener& opener = self->opener;
  Task<OpenedUpstream> connecting = opener.connect(generation);
  OpenedUpstream made = co_await connecting;
  if (opener.opening(generation)) {
    opener.spawn_timer_.cancel();
    if (made) co_return opener.on_ready(std::move(*made), std::move(place));
    { const Place left = std::move(place); }
    co_return opener.on_start_failed(made.error());
  }
  // Meanwhile it was told to stop, or has taken too long and is not waited for any more.
  if (made) {
    Task<void> closing = (*made)->close();
    co_await closing;
  }
  { const Place left = std::move(place); }
  if (self->generation() != generation || self->state() != State::draining) co_return;
  self->lifecycle.tell(Supervisor::Event::gone);
  self->starter.finish(self->starter.refusal());
}

// The connector is called twice for a server that must not be probed.
Task<OpenedUpstream> ConnectionOpener::connect(std::uint64_t generation) {
  Loop& loop = upstream_.core->loop;
  stop_ = std::stop_source();
  UpstreamOpening opening;
  opening.client = client_options(generation);
  opening.stop = stop_.get_token();
  if (const UpstreamOpener* const opener = named_opener()) {
    const Clocks& clocks = upstream_.spec().clocks;
    arm_spawn_timer(clocks.spawn + clocks.handshake, generation);
    return (*opener)(loop, std::move(opening));
  }
  Connector connector = [weak = upstream_.weak_from_this(), generation](Loop&, ConnectOptions options) {
    return open(weak, generation, std::move(options));
  };
  return open_client(std::move(connector))(loop, std::move(opening));
}

const UpstreamOpener* ConnectionOpener::named_opener() const {
  const std::map<std::string, UpstreamOpener>& openers = upstream_.core->options.openers;
  const auto* const named = std::get_if<NamedConnector>(&upstream_.spec().reach);
  if (!named) return nullptr;
  const auto found = openers.find(named->name);
  return found == openers.end() ? nullptr : &found->second;
}

void ConnectionOpener::arm_spawn_timer(std::chrono::milliseconds patience, std::uint64_t generation) {
  spawn_timer_.arm_after(patience, [this, generation, patience] {
    if (!opening(generation)) return;
    stop_.request_stop();
    on_start_failed(spawn_timeout(patience));
  });
}

Task<ConnectResult> ConnectionOpener::open(std::weak_ptr<ManagedUpstream> weak, std::uint64_t generation,
                                           ConnectOptions options) {
  const std::shared_ptr<ManagedUpstream> self = weak.lock();
  if (!self || !self->opener.opening(generation)) co_return Error(ErrorKind::closed, "no longer wanted");
  ConnectionOpener& opener = self->opener;
  opener.arm_spawn_timer(self->spec().clocks.spawn, generation);
  Task<Result<ResolvedReach>> resolving = resolve_references(self->spec(), self->core->options.secrets);
  Result<ResolvedReach> resolved = co_await resolving;
  if (!resolved) co_return resolved.error();
  if (!opener.opening(generation)) co_return Error(ErrorKind::closed, "no longer wanted");
  opener.use_secrets(resolved->secrets);
  if (secret_bytes(resolved->secrets) > kLargeSecrets) {
    // The connection indexes them too, in a turn of its own.
    static_cast<void>(self->core->options.redactor->current());
    co_await sleep_for(self->core->loop, Slices::kPause);
    if (!opener.opening(generation)) co_return Error(ErrorKind::closed, "no longer wanted");
  }
  Task<ConnectResult> reaching = reach(*self->core, self->spec(), std::move(*resolved), std::move(options));
  ConnectResult made = co_await reaching;
  if (made) opener.on_connected(generation, *made);
  co_return made;
}

mcp::ClientOptions ConnectionOpener::client_options(std::uint64_t generation) {
  const UpstreamHandlers& given = upstream_.core->options.handlers;
  const ServerSpec& spec = upstream_.spec();
  mcp::ClientOptions options = upstream_.core->options.client;
  options.pinned = spec.pinned;
  options.eras = upstream_.server->eras;
  options.era_key = spec.name;
  options.cache = false;
  options.reconnect = mcp::Reconnect::never;
  options.handshake_timeout = spec.clocks.handshake;
  options.handlers = mcp::ClientHandlers();
  declared_ = given.capabilities ? given.capabilities(upstream_) : json::Raw();
  options.handlers.capabilities = declared_;
  if (given.log_level) options.log_level = given.log_level(upstream_);
  const std::weak_ptr<ManagedUpstream> weak = upstream_.weak_from_this();
  options.handlers.request = [weak](Request request) {
    return on_server_request(weak.lock(), std::move(request));
  };
  options.handlers.notified = [weak](std::string_view method, const json::Raw& params) {
    on_server_notification(weak.lock(), method, params);
  };
  options.handlers.ended = [weak, generation](const Error& reason) {
    if (const auto self = weak.lock()) self->failures.connection_lost(generation, reason);
  };
  return options;
}

void ConnectionOpener::on_connected(std::uint64_t generation, const std::shared_ptr<Connection>& connection) {
  if (!opening(generation)) return connection->close();
  spawn_timer_.cancel();
  opening_ = connection;
  upstream_.lifecycle.tell(Supervisor::Event::connected);
}

void ConnectionOpener::abort() {
  stop_.request_stop();
  if (const std::shared_ptr<Connection> opening = opening_.lock()) opening->close();
}

void ConnectionOpener::use_secrets(std::vector<std::string> secrets) {
  former_secrets_ = std::exchange(secrets_, upstream_.core->options.redactor->add(std::move(secrets)));
}

void ConnectionOpener::on_start_failed(const Error& reason) {
  const Error error = upstream_.core->redacted(start_failure(reason));
  upstream_.failures.set_last_error(error);
  upstream_.core->log().warning("server does not start",
                                {{"server", upstream_.spec().name}, {"reason", error.to_string()}});
  upstream_.lifecycle.tell(Supervisor::Event::failed, error.message());
  upstream_.starter.finish(error);
}

void ConnectionOpener::on_ready(std::shared_ptr<UpstreamConnection> connection, Place place) {
  opening_.reset();
  upstream_.slot.fill(std::move(connection), std::move(place));
  upstream_.use.reset();
  upstream_.failures.begin_connection();
  upstream_.active.mark_idle(Clock::now());
  upstream_.health.start();
  upstream_.lifecycle.tell(Supervisor::Event::answered);
  upstream_.starter.finish(std::nullopt);
  const std::shared_ptr<UpstreamConnection> now = upstream_.connection();
  const std::optional<Error> ended = now ? now->end_reason() : std::nullopt;
  if (ended) upstream_.failures.connection_lost(upstream_.generation(), *ended);
}

}  // namespace fairlead::pool
