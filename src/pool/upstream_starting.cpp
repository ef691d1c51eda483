// How an upstream is started: once, however many want it, and what those who wait for it are told.
#include "fairlead/process/failure.hpp"
#include "fairlead/transport/connect.hpp"
#include "json/redact.hpp"
#include "pool/reference_resolver.hpp"
#include "pool/upstream.hpp"

namespace fairlead::pool {

namespace {

// Between two waits for a place among max_stdio_processes.
constexpr std::chrono::seconds kPlaceAgain{1};

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

Task<ConnectResult> start_program(Core& core, const ServerSpec& spec, ResolvedReach resolved,
                                  ConnectOptions options) {
  ProcessSpec process = process_of(std::get<Program>(std::move(resolved.reach)));
  process.name = spec.name;
  process.secrets = std::move(resolved.secrets);
  process.withheld_env = core.withheld_from(spec.name);
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

// Whether `declared` has every capability of `wanted`, as it is there.
bool covers(json::View declared, json::View wanted) {
  bool all = true;
  wanted.each_member([&](std::string_view key, bool, json::View value) {
    all = declared[key].text() == value.text();
    return all;
  });
  return all;
}

}  // namespace

bool ServerSpec::is_process() const {
  const auto* address = std::get_if<Address>(&reach);
  return std::holds_alternative<Program>(reach) || (address && address->url.starts_with("stdio:"));
}

// ---- waiting ---------------------------------------------------------------------------------------------

Task<Result<void>> ManagedUpstream::become_ready(std::stop_token stop, StartPriority priority) {
  const auto self = shared_from_this();
  if (supervisor_.outlook(Clock::now()) == Action::refuse) co_return refusal();
  const std::size_t limit = core_->options.limits.max_waiting_calls;
  if (core_->waiting_calls >= limit) {
    co_return limit_reached("max_waiting_calls (" + std::to_string(limit) + ") calls wait already",
                            spec().clocks.queue);
  }
  const auto waiter = std::make_shared<Waiter>(core_->loop);
  const bool first = !attempt_;
  if (first) attempt_ = std::make_shared<Attempt>();
  const std::shared_ptr<Attempt> attempt = attempt_;
  attempt->waiting.push_back(waiter);
  if (priority == StartPriority::call && std::exchange(attempt->priority, priority) != StartPriority::call &&
      attempt->queued)
    attempt->requeue.request_stop();
  const Waits counted(*core_);
  if (first) core_->loop.spawn(run_attempt(self));
  Task<bool> waiting = Waiter::wait(waiter, Clock::duration::max(), stop);
  const bool called = co_await waiting;
  if (!called) {
    attempt->waiting.remove(waiter);
    if (attempt->queued && !wanted(*attempt)) attempt->requeue.request_stop();
    co_return with_failure_code(
        Error(ErrorKind::cancelled, "given up while server " + spec().name + " was being started"));
  }
  if (attempt->error) co_return *attempt->error;
  co_return Result<void>();
}

void ManagedUpstream::begin_attempt() {
  if (attempt_ || ready()) return;
  attempt_ = std::make_shared<Attempt>();
  core_->loop.spawn(run_attempt(shared_from_this()));
}

void ManagedUpstream::finish_attempt(std::optional<Error> error) {
  start_slot_ = Gate::Pass();
  const std::shared_ptr<Attempt> attempt = std::exchange(attempt_, nullptr);
  if (!attempt) return;
  attempt->error = std::move(error);
  for (const auto& waiter : attempt->waiting) waiter->call();
  if (at_rest()) settle_soon();
}

Error ManagedUpstream::refusal() const {
  if (state() != State::crash_loop) {
    return with_failure_code(Error(ErrorKind::connection_failed, "server " + spec().name + " is stopped"),
                             failure::server_stopped);
  }
  const Clock::duration left = supervisor_.retry_at() - Clock::now();
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
  Error told(last_error_->kind(), "server " + spec().name + " has failed " +
                                      std::to_string(supervisor_.failures()) +
                                      " times in a row and is not tried for another " +
                                      std::to_string(seconds) + " s: " + last_error_->message());
  return with_retry(std::move(told).with([&](ErrorDetail& d) { d = last_error_->detail(); }), left);
}

// The queue's clock has run out, with the server backing off, or the process before it still not gone.
Error ManagedUpstream::still_waiting() const {
  const std::string what =
      state() == State::backing_off ? "to be tried again" : "for the end of its last process";
  Error told(ErrorKind::timeout, "server " + spec().name + " waits " + what +
                                     (last_error_ ? ", after: " + last_error_->message() : std::string()));
  if (last_error_) told = std::move(told).with([&](ErrorDetail& d) { d = last_error_->detail(); });
  return with_retry(
      with_failure_code(std::move(told)),
      std::max<Clock::duration>(supervisor_.retry_at() - Clock::now(), std::chrono::seconds(1)));
}

Error ManagedUpstream::spawn_timeout(std::chrono::milliseconds patience) const {
  return Error::timeout("starting server " + spec().name, patience).with([](ErrorDetail& d) {
    d.code = failure::spawn_timeout;
    d.remedy = remedy_for(failure::spawn_timeout);
  });
}

// ---- starting --------------------------------------------------------------------------------------------

bool ManagedUpstream::wanted(const Attempt& attempt) const noexcept {
  return spec().keep_running || !attempt.waiting.empty();
}

// Starts that a call waits for go first, and wait until `latest` at most. What nobody waits for any more
// leaves the queue: kind cancelled. Otherwise kind resource_exhausted, or that of refusal().
Task<Result<Gate::Pass>> ManagedUpstream::wait_for_start_slot(std::shared_ptr<ManagedUpstream> self,
                                                              std::shared_ptr<Attempt> attempt,
                                                              Clock::time_point latest) {
  const std::shared_ptr<Gate> starts = self->core_->starts;
  while (true) {
    if (self->supervisor_.outlook(Clock::now()) == Action::refuse) co_return self->refusal();
    const bool urgent = attempt->priority == StartPriority::call;
    const Clock::duration patience = std::max(latest - Clock::now(), Clock::duration::zero());
    const std::stop_token requeued = attempt->requeue.get_token();
    attempt->queued = true;
    Task<Gate::Pass> entering = starts->enter(urgent ? patience : Clock::duration::max(), requeued, urgent);
    Gate::Pass slot = co_await entering;
    attempt->queued = false;
    if (slot) co_return slot;
    if (!self->wanted(*attempt)) {
      co_return with_failure_code(
          Error(ErrorKind::cancelled, "nobody waits for server " + self->spec().name + " any more"));
    }
    if (!requeued.stop_requested()) {
      co_return limit_reached("max_concurrent_starts (" + std::to_string(starts->limit()) +
                                  ") servers are being started, and none was ready in time",
                              patience);
    }
    attempt->requeue = std::stop_source();
  }
}

// Waits until it may start and has a place, then starts it. The outcome is told by whatever ends the start.
Task<void> ManagedUpstream::run_attempt(std::shared_ptr<ManagedUpstream> self) {
  const Clock::time_point latest = Clock::now() + self->spec().clocks.queue;
  while (true) {
    const Clock::time_point now = Clock::now();
    const Action outlook = self->supervisor_.outlook(now);
    if (outlook == Action::start) break;
    if (outlook == Action::none) co_return self->finish_attempt(std::nullopt);
    if (outlook == Action::refuse) co_return self->finish_attempt(self->refusal());
    if (now >= latest) co_return self->finish_attempt(self->still_waiting());
    fairlead::Event changed = self->changed_;
    const bool woken = co_await changed.wait(self->core_->loop, latest - now);
    static_cast<void>(woken);
  }
  Gate::Pass pass;
  if (self->spec().is_process()) {
    Task<Result<Gate::Pass>> entering =
        self->core_->enter_process(latest - Clock::now(), self->attempt_->priority);
    Result<Gate::Pass> entered = co_await entering;
    if (!entered) co_return self->on_no_place(entered.error());
    pass = std::move(*entered);
  }
  Place place(std::move(pass), self->core_);
  Gate::Pass slot;
  if (self->spec().is_process()) {
    Task<Result<Gate::Pass>> queueing = wait_for_start_slot(self, self->attempt_, latest);
    Result<Gate::Pass> entered = co_await queueing;
    if (!entered) {
      { const Place left = std::move(place); }
      const bool no_slot = entered.error().kind() == ErrorKind::resource_exhausted;
      co_return no_slot ? self->on_no_place(entered.error()) : self->finish_attempt(entered.error());
    }
    slot = std::move(*entered);
  }
  if (self->tell(Event::wanted) != Action::start) co_return self->finish_attempt(self->refusal());
  self->start_slot_ = std::move(slot);
  self->core_->loop.spawn(bring_up(self, std::move(place), self->generation()));
}

// For one that is to be kept running nobody else may ask again.
void ManagedUpstream::on_no_place(const Error& error) {
  last_error_ = error;
  core_->log().warning("server does not start", {{"server", spec().name}, {"reason", error.message()}});
  finish_attempt(error);
  if (spec().keep_running) due_timer_.arm_after(kPlaceAgain, [this] { begin_attempt(); });
}

bool ManagedUpstream::opening(std::uint64_t generation) const noexcept {
  return generation == this->generation() && (state() == State::starting || state() == State::handshaking);
}

Task<void> ManagedUpstream::bring_up(std::shared_ptr<ManagedUpstream> self, Place place,
                                     std::uint64_t generation) {
  Task<OpenedUpstream> connecting = connect(self, generation);
  OpenedUpstream made = co_await connecting;
  if (self->opening(generation)) {
    self->spawn_timer_.cancel();
    if (made) co_return self->on_ready(std::move(*made), std::move(place));
    { const Place left = std::move(place); }
    co_return self->on_start_failed(made.error());
  }
  // Meanwhile it was told to stop, or has taken too long and is not waited for any more.
  if (made) {
    Task<void> closing = (*made)->close();
    co_await closing;
  }
  { const Place left = std::move(place); }
  if (self->generation() != generation || self->state() != State::draining) co_return;
  self->tell(Event::gone);
  self->finish_attempt(self->refusal());
}

// The connector is called twice for a server that must not be probed.
Task<OpenedUpstream> ManagedUpstream::connect(std::shared_ptr<ManagedUpstream> self,
                                              std::uint64_t generation) {
  self->opening_stop_ = std::stop_source();
  UpstreamOpening opening;
  opening.client = self->client_options(generation);
  opening.stop = self->opening_stop_.get_token();
  if (const UpstreamOpener* const opener = self->opener()) {
    const Clocks& clocks = self->spec().clocks;
    self->arm_spawn_timer(clocks.spawn + clocks.handshake, generation);
    return (*opener)(self->core_->loop, std::move(opening));
  }
  Connector connector = [weak = self->weak_from_this(), generation](Loop&, ConnectOptions options) {
    return open(weak, generation, std::move(options));
  };
  return open_client(std::move(connector))(self->core_->loop, std::move(opening));
}

const UpstreamOpener* ManagedUpstream::opener() const {
  const auto* const named = std::get_if<NamedConnector>(&spec().reach);
  if (!named) return nullptr;
  const auto found = core_->options.openers.find(named->name);
  return found == core_->options.openers.end() ? nullptr : &found->second;
}

void ManagedUpstream::arm_spawn_timer(std::chrono::milliseconds patience, std::uint64_t generation) {
  spawn_timer_.arm_after(patience, [this, generation, patience] {
    if (opening(generation)) on_start_failed(spawn_timeout(patience));
  });
}

Task<ConnectResult> ManagedUpstream::open(std::weak_ptr<ManagedUpstream> weak, std::uint64_t generation,
                                          ConnectOptions options) {
  const std::shared_ptr<ManagedUpstream> self = weak.lock();
  if (!self || !self->opening(generation)) co_return Error(ErrorKind::closed, "no longer wanted");
  self->arm_spawn_timer(self->spec().clocks.spawn, generation);
  Task<Result<ResolvedReach>> resolving = resolve_references(self->spec(), self->core_->options.secrets);
  Result<ResolvedReach> resolved = co_await resolving;
  if (!resolved) co_return resolved.error();
  if (!self->opening(generation)) co_return Error(ErrorKind::closed, "no longer wanted");
  self->use_secrets(resolved->secrets);
  Task<ConnectResult> reaching = reach(*self->core_, self->spec(), std::move(*resolved), std::move(options));
  ConnectResult made = co_await reaching;
  if (made) self->on_connected(generation, *made);
  co_return made;
}

void ManagedUpstream::stop_if_uninformed() {
  const auto& capabilities = core_->options.handlers.capabilities;
  if (used_ || !unused() || !capabilities || mcp::is_modern(connection_->server().revision)) return;
  if (!covers(json::View(declared_), json::View(capabilities(*this))))
    rest("clients have capabilities that it was not told of");
}

mcp::ClientOptions ManagedUpstream::client_options(std::uint64_t generation) {
  const UpstreamHandlers& given = core_->options.handlers;
  mcp::ClientOptions options = core_->options.client;
  options.pinned = spec().pinned;
  options.eras = server_->eras;
  options.era_key = spec().name;
  options.cache = false;
  options.reconnect = mcp::Reconnect::never;
  options.handshake_timeout = spec().clocks.handshake;
  options.handlers = mcp::ClientHandlers();
  declared_ = given.capabilities ? given.capabilities(*this) : json::Raw();
  options.handlers.capabilities = declared_;
  if (given.log_level) options.log_level = given.log_level(*this);
  const std::weak_ptr<ManagedUpstream> weak = weak_from_this();
  options.handlers.request = [weak](Request request) {
    const auto self = weak.lock();
    return self ? self->on_request(std::move(request)) : refuse_request(std::move(request));
  };
  options.handlers.notified = [weak](std::string_view method, const json::Raw& params) {
    if (const auto self = weak.lock()) self->on_notification(method, params);
  };
  options.handlers.ended = [weak, generation](const Error& reason) {
    if (const auto self = weak.lock()) self->on_lost(generation, reason);
  };
  return options;
}

void ManagedUpstream::on_connected(std::uint64_t generation, const std::shared_ptr<Connection>& connection) {
  if (!opening(generation)) return connection->close();
  spawn_timer_.cancel();
  opening_ = connection;
  tell(Event::connected);
}

void ManagedUpstream::use_secrets(std::vector<std::string> secrets) {
  former_secrets_ = std::exchange(secrets_, core_->options.redactor->add(std::move(secrets)));
}

Error ManagedUpstream::redacted(Error error) const {
  return json::redact(*core_->options.redactor->current(), std::move(error));
}

void ManagedUpstream::on_start_failed(const Error& reason) {
  const Error error = redacted(start_failure(reason));
  last_error_ = error;
  core_->log().warning("server does not start", {{"server", spec().name}, {"reason", error.to_string()}});
  tell(Event::failed, error.message());
  finish_attempt(error);
}

void ManagedUpstream::on_ready(std::shared_ptr<UpstreamConnection> connection, Place place) {
  connection_ = std::move(connection);
  place_.emplace(std::move(place));
  opening_.reset();
  answered_ = 0;
  used_ = false;
  pinging_ = false;
  close_reason_.reset();
  only_session_ = "";
  idle_since_ = Clock::now();
  sign_of_life();
  tell(Event::answered);
  watch();
  finish_attempt(std::nullopt);
  if (!connection_) return;
  if (const std::optional<Error> ended = connection_->end_reason()) on_lost(generation(), *ended);
}

}  // namespace fairlead::pool
