// The routes of servers at run time: test, refresh, restart, stop and logs.
#include "admin/event_hub.hpp"
#include "admin/handlers.hpp"
#include "admin/row_kinds.hpp"
#include "admin/rows.hpp"
#include "admin/server_tester.hpp"
#include "base/printable.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"

namespace fairlead::admin {

namespace {

Result<registry::ServerPtr> operated_server(const Call& call) {
  return find_row<ServerKind>(call, call.path_value(), registry::Operation::operate);
}

constexpr std::size_t kMaxTestLines = 1'000;
constexpr std::size_t kMaxTestLineBytes = 500;

// Returns what sends the progress of a test to `stream`. After kMaxTestLines lines of stderr no more are
// sent, so that a slow reader of a server that writes much still gets the result.
TestObserver observer_of(std::shared_ptr<EventStream> stream) {
  TestObserver observer;
  if (!stream) return observer;
  observer.on_step = [stream](const TestStep& step) { stream->send("step", step.to_json()); };
  observer.on_stderr_line = [stream, lines = std::size_t{0}](std::string_view line) mutable {
    if (++lines > kMaxTestLines) return;
    json::Writer event;
    event.begin_object().key("line").string(shortened(line, kMaxTestLineBytes)).end_object();
    stream->send("stderr", event.finish());
  };
  return observer;
}

Reply already_sent() {
  Reply reply;
  reply.sent = true;
  return reply;
}

void write_names(json::Writer& writer, std::string_view key, const std::vector<std::string>& names) {
  writer.key(key).begin_array();
  for (const std::string& name : names) writer.string(name);
  writer.end_array();
}

json::Raw state_json(const registry::Server& server, std::string_view state, std::size_t processes) {
  json::Writer writer;
  writer.begin_object().key("server").string(server.name).key("state").string(state);
  writer.key("processes").unsigned_integer(processes).end_object();
  return writer.finish();
}

bool is_running(pool::UpstreamState state) {
  return state == pool::UpstreamState::starting || state == pool::UpstreamState::handshaking ||
         state == pool::UpstreamState::ready;
}

// Drains and stops the processes of a server; the next call starts another one. Returns how many there were.
Result<std::size_t> stop_upstreams(const Call& call, const registry::Server& server) {
  pool::Pool& pool = call.services().gateway.pool();
  std::size_t running = 0;
  bool any = false;
  for (const std::shared_ptr<pool::Upstream>& upstream : pool.upstreams(server.name)) {
    any = any || upstream->state() != pool::UpstreamState::stopped;
    if (is_running(upstream->state())) ++running;
  }
  if (!any) return running;
  // Replacing a server by itself retires its upstreams without refusing calls. The spec is that of the row:
  // upstreams that drain have an earlier one.
  const Result<void> replaced = pool.update(call.services().spec_of(server));
  if (!replaced) return replaced.error();
  return running;
}

Error disabled_error(const registry::Server& server) {
  return with_failure_code(Error(ErrorKind::validation, "server " + server.name + " is disabled"),
                           failure::server_stopped);
}

}  // namespace

Task<Result<Reply>> test_server(Call& call) {
  const Result<registry::ServerPtr> server = operated_server(call);
  if (!server) co_return server.error();
  std::shared_ptr<EventStream> progress;
  if (accepts_events(call.headers())) {
    const Result<std::shared_ptr<EventStream>> stream = call.services().events->open(call.exchange());
    if (!stream) co_return stream.error();
    progress = *stream;
  }
  TestObserver observer = observer_of(progress);
  const Result<TestOutcome> outcome =
      co_await ServerTester::run(call.services().tester, call.services().spec_of(**server),
                                 call.principal().user, std::move(observer), call.disconnected());
  if (!progress && !outcome) co_return outcome.error();
  if (!progress) co_return Reply(200, outcome->to_json());
  TestOutcome failed;
  if (!outcome) failed.error = outcome.error();
  progress->send("result", outcome ? outcome->to_json() : failed.to_json());
  progress->finish();
  co_return already_sent();
}

Task<Result<Reply>> refresh_server(Call& call) {
  const Result<registry::ServerPtr> server = operated_server(call);
  if (!server) co_return server.error();
  if (!(*server)->enabled) co_return disabled_error(**server);
  const Result<gateway::ToolChanges> changes = co_await call.services().gateway.refresh((*server)->name);
  if (!changes) co_return with_failure_code(changes.error());
  // The caller finds the new lists, and their drift, in the registry.
  if (call.services().options.lists_stored) {
    Task<void> stored = call.services().options.lists_stored((*server)->id);
    co_await stored;
  }
  json::Writer writer;
  writer.begin_object().key("tools").unsigned_integer(changes->tools);
  write_names(writer, "added", changes->added);
  write_names(writer, "removed", changes->removed);
  write_names(writer, "changed", changes->changed);
  writer.end_object();
  co_return Reply(200, writer.finish());
}

Task<Result<Reply>> restart_server(Call& call) {
  const Result<registry::ServerPtr> server = operated_server(call);
  if (!server) co_return server.error();
  if (!(*server)->enabled) co_return disabled_error(**server);
  const Result<std::size_t> stopped = stop_upstreams(call, **server);
  if (!stopped) co_return stopped.error();
  const std::size_t count = *stopped;
  // With an upstream for each user, that of the caller is started.
  pool::Target target((*server)->name, std::string(), call.principal().user);
  pool::Pool& pool = call.services().gateway.pool();
  const Result<std::shared_ptr<pool::Upstream>> started =
      co_await pool.warm(std::move(target), call.disconnected());
  if (!started) co_return with_failure_code(started.error());
  co_return Reply(200, state_json(**server, pool::to_string((*started)->state()), count));
}

Task<Result<Reply>> stop_server(Call& call) {
  const Result<registry::ServerPtr> server = operated_server(call);
  if (!server) co_return server.error();
  const Result<std::size_t> stopped = stop_upstreams(call, **server);
  if (!stopped) co_return stopped.error();
  const bool none = *stopped == 0;
  co_return Reply(none ? 200 : 202, state_json(**server, none ? "idle" : "draining", *stopped));
}

}  // namespace fairlead::admin
