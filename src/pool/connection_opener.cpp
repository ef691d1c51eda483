#include "pool/connection_opener.hpp"

#include "fairlead/process/failure.hpp"
#include "fairlead/transport/connect.hpp"
#include "loop/slices.hpp"
#include "pool/reference_resolver.hpp"
#include "pool/server_messages.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

ProcessSpec to_process_spec(Program program) {
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

// If the secrets of a server have more bytes in total, they are indexed in a turn of their own.
constexpr std::size_t kLargeSecretBytes = 16u << 10;

std::size_t total_secret_bytes(const std::vector<std::string>& secrets) {
  std::size_t bytes = 0;
  for (const std::string& secret : secrets) bytes += secret.size();
  return bytes;
}

std::function<void(std::string_view)> line_recorder(const PoolCore& core, const ManagedUpstream& upstream) {
  return [monitor = core.options.monitor, server = upstream.spec().name,
          key = upstream.key()](std::string_view line) {
    monitor->add_line(StderrLine{server, key, std::string(line)});
  };
}

Task<ConnectResult> start_program(PoolCore& core, const ManagedUpstream& upstream, ResolvedTransport resolved,
                                  StreamConnectOptions options) {
  const ServerSpec& spec = upstream.spec();
  ProcessSpec process = to_process_spec(std::get<Program>(std::move(resolved.transport)));
  process.name = spec.name;
  process.secrets = std::move(resolved.secrets);
  process.withheld_env = core.referenced_variables.withheld_from(spec.name);
  process.manifest = core.options.manifest;
  process.on_stderr_line = line_recorder(core, upstream);
  return connect_child(core.loop, std::move(process), std::move(options));
}

Task<ConnectResult> connect_address(PoolCore& core, ResolvedTransport resolved,
                                    StreamConnectOptions options) {
  Address address = std::get<Address>(std::move(resolved.transport));
  transport::ConnectOptions connect_options;
  static_cast<StreamConnectOptions&>(connect_options) = std::move(options);
  // Parsing a larger response would block the loop for too long.
  connect_options.max_response_bytes = connect_options.limits.max_frame_bytes;
  connect_options.secrets = std::move(resolved.secrets);
  connect_options.public_addresses_only = address.public_addresses_only;
  for (auto& [name, value] : address.headers) connect_options.headers.add(name, std::move(value));
  return transport::connect(core.loop, std::move(address.url), std::move(connect_options));
}

Task<ConnectResult> fail_with_unknown_connector(std::string name) {
  co_return Error(ErrorKind::connection_failed, "unknown connector `" + name + "`");
}

Task<ConnectResult> open_transport(PoolCore& core, const ManagedUpstream& upstream,
                                   ResolvedTransport resolved, StreamConnectOptions options) {
  const ServerSpec& spec = upstream.spec();
  if (std::holds_alternative<Program>(resolved.transport))
    return start_program(core, upstream, std::move(resolved), std::move(options));
  options.limits.connect_timeout = spec.clocks.spawn;
  if (std::holds_alternative<Address>(resolved.transport))
    return connect_address(core, std::move(resolved), std::move(options));
  const std::string& name = std::get<ConnectorName>(resolved.transport).name;
  const auto found = core.options.connectors.find(name);
  if (found == core.options.connectors.end()) return fail_with_unknown_connector(name);
  return found->second(core.loop, std::move(options));
}

// Changes the kind of the error to `connection_failed` if the program does not exist.
Error to_start_error(const Error& reason) {
  if (reason.detail().failure_code != failure::command_not_found) return with_failure_code(reason);
  return Error(ErrorKind::connection_failed, reason.message()).with([&](ErrorDetail& d) {
    d = reason.detail();
  });
}

}  // namespace

bool ServerSpec::is_process() const {
  const auto* address = std::get_if<Address>(&transport);
  return std::holds_alternative<Program>(transport) || (address && address->url.starts_with("stdio:"));
}

ConnectionOpener::ConnectionOpener(ManagedUpstream& upstream)
    : upstream_(upstream), spawn_timer_(upstream.core->loop) {}

Error ConnectionOpener::spawn_timeout_error(std::chrono::milliseconds timeout) const {
  return Error::timeout("starting server " + upstream_.spec().name, timeout).with([](ErrorDetail& d) {
    d.failure_code = failure::spawn_timeout;
    d.remedy = remedy_for(failure::spawn_timeout);
  });
}

bool ConnectionOpener::is_opening(std::uint64_t generation) const noexcept {
  const UpstreamState state = upstream_.state();
  return generation == upstream_.generation() &&
         (state == UpstreamState::starting || state == UpstreamState::handshaking);
}

Task<void> ConnectionOpener::open(std::shared_ptr<ManagedUpstream> self, ConnectionReservation reservation,
                                  std::uint64_t generation) {
  ConnectionOpener& opener = self->opener;
  UpstreamOpenResult opened = co_await opener.connect(generation);
  if (opener.is_opening(generation)) {
    opener.spawn_timer_.cancel();
    if (opened) co_return opener.on_ready(std::move(*opened), std::move(reservation));
    { const ConnectionReservation released = std::move(reservation); }
    co_return opener.on_start_failed(opened.error());
  }
  // The upstream was retired while the connection was being opened, or the start has timed out.
  if (opened) {
    co_await (*opened)->close();
  }
  { const ConnectionReservation released = std::move(reservation); }
  if (self->generation() != generation || self->state() != UpstreamState::draining) co_return;
  self->lifecycle.dispatch(Supervisor::Event::closed);
  self->starter.finish(self->starter.refusal_error());
}

// mcp::Client calls the connector a second time if the server fails after the era probe (server/discover) and
// must be started again without it.
Task<UpstreamOpenResult> ConnectionOpener::connect(std::uint64_t generation) {
  Loop& loop = upstream_.core->loop;
  stop_ = std::stop_source();
  UpstreamOpenOptions opening;
  opening.client = client_options(generation);
  opening.stop = stop_.get_token();
  if (const UpstreamOpener* const opener = named_opener()) {
    const Clocks& clocks = upstream_.spec().clocks;
    arm_spawn_timer(clocks.spawn + clocks.handshake, generation);
    return (*opener)(loop, std::move(opening));
  }
  Connector connector = [weak = upstream_.weak_from_this(), generation](Loop&, StreamConnectOptions options) {
    return open_connection(weak, generation, std::move(options));
  };
  return client_opener(std::move(connector))(loop, std::move(opening));
}

const UpstreamOpener* ConnectionOpener::named_opener() const {
  const std::map<std::string, UpstreamOpener>& openers = upstream_.core->options.openers;
  const auto* const named = std::get_if<ConnectorName>(&upstream_.spec().transport);
  if (!named) return nullptr;
  const auto found = openers.find(named->name);
  return found == openers.end() ? nullptr : &found->second;
}

void ConnectionOpener::arm_spawn_timer(std::chrono::milliseconds timeout, std::uint64_t generation) {
  spawn_timer_.arm_after(timeout, [this, generation, timeout] {
    if (!is_opening(generation)) return;
    stop_.request_stop();
    on_start_failed(spawn_timeout_error(timeout));
  });
}

Task<ConnectResult> ConnectionOpener::open_connection(std::weak_ptr<ManagedUpstream> weak,
                                                      std::uint64_t generation,
                                                      StreamConnectOptions options) {
  const std::shared_ptr<ManagedUpstream> self = weak.lock();
  if (!self || !self->opener.is_opening(generation))
    co_return Error(ErrorKind::closed, "the start was aborted");
  ConnectionOpener& opener = self->opener;
  opener.arm_spawn_timer(self->spec().clocks.spawn, generation);
  Result<ResolvedTransport> resolved =
      co_await resolve_references(self->spec(), self->core->options.secret_store, self->user);
  if (!resolved) co_return resolved.error();
  if (!opener.is_opening(generation)) co_return Error(ErrorKind::closed, "the start was aborted");
  opener.redact_secrets(std::move(resolved->shared_secrets));
  if (total_secret_bytes(resolved->secrets) > kLargeSecretBytes) {
    // Indexing large secrets takes long: the redactor indexes them in this turn of the loop, and the
    // connection in the next one.
    static_cast<void>(self->core->options.redactor->snapshot());
    co_await sleep_for(self->core->loop, Slices::kPause);
    if (!opener.is_opening(generation)) co_return Error(ErrorKind::closed, "the start was aborted");
  }
  ConnectResult connected =
      co_await open_transport(*self->core, *self, std::move(*resolved), std::move(options));
  if (connected) opener.on_connected(generation, *connected);
  co_return connected;
}

mcp::ClientOptions ConnectionOpener::client_options(std::uint64_t generation) {
  const UpstreamHandlers& handlers = upstream_.core->options.handlers;
  const ServerSpec& spec = upstream_.spec();
  mcp::ClientOptions options = upstream_.core->options.client;
  options.pinned_revision = spec.pinned_revision;
  options.era_cache = upstream_.server->era_cache;
  options.era_key = spec.name;
  options.cache_results = false;
  options.reconnect = mcp::Reconnect::never;
  options.handshake_timeout = spec.clocks.handshake;
  options.handlers = mcp::ClientHandlers();
  declared_capabilities_ = handlers.capabilities_for ? handlers.capabilities_for(upstream_) : json::Raw();
  options.handlers.capabilities = declared_capabilities_;
  if (handlers.log_level_for) options.log_level = handlers.log_level_for(upstream_);
  const std::weak_ptr<ManagedUpstream> weak = upstream_.weak_from_this();
  options.handlers.on_request = [weak](Request request) {
    return handle_server_request(weak.lock(), std::move(request));
  };
  options.handlers.on_notification = [weak](std::string_view method, const json::Raw& params) {
    handle_server_notification(weak.lock(), method, params);
  };
  options.handlers.on_ended = [weak, generation](const Error& reason) {
    if (const auto self = weak.lock()) self->failures.on_connection_lost(generation, reason);
  };
  return options;
}

void ConnectionOpener::on_connected(std::uint64_t generation, const std::shared_ptr<Connection>& connection) {
  if (!is_opening(generation)) return connection->close();
  spawn_timer_.cancel();
  opening_ = connection;
  upstream_.lifecycle.dispatch(Supervisor::Event::connected);
}

void ConnectionOpener::abort() {
  stop_.request_stop();
  if (const std::shared_ptr<Connection> opening = opening_.lock()) opening->close();
}

void ConnectionOpener::redact_secrets(std::vector<std::string> secrets) {
  previous_secrets_ = std::exchange(secrets_, upstream_.core->options.redactor->add(std::move(secrets)));
}

void ConnectionOpener::on_start_failed(const Error& reason) {
  const Error error = upstream_.core->redacted(to_start_error(reason));
  upstream_.failures.set_last_error(error);
  upstream_.core->log().warning("server failed to start",
                                {{"server", upstream_.spec().name}, {"reason", error.to_string()}});
  upstream_.lifecycle.dispatch(Supervisor::Event::start_failed, error.message());
  upstream_.starter.finish(error);
}

void ConnectionOpener::on_ready(std::shared_ptr<UpstreamConnection> connection,
                                ConnectionReservation reservation) {
  opening_.reset();
  upstream_.slot.fill(std::move(connection), std::move(reservation));
  upstream_.use.reset();
  upstream_.failures.clear_close_reason();
  upstream_.active.mark_idle(Clock::now());
  upstream_.health.start();
  upstream_.lifecycle.dispatch(Supervisor::Event::handshake_done);
  upstream_.starter.finish(std::nullopt);
  const std::shared_ptr<UpstreamConnection> current = upstream_.connection();
  const std::optional<Error> ended = current ? current->end_reason() : std::nullopt;
  if (ended) upstream_.failures.on_connection_lost(upstream_.generation(), *ended);
}

}  // namespace fairlead::pool
