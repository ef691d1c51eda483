#include <charconv>
#include <optional>

#include "admin/handlers.hpp"
#include "admin/process_usage.hpp"
#include "admin/row_kinds.hpp"
#include "admin/rows.hpp"
#include "admin/server_tester.hpp"
#include "base/rfc3339.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"

namespace fairlead::admin {

namespace {

// Returns the time of day of a point in time of the steady clock.
std::string time_of(Clock::time_point when) {
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - when);
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return format_rfc3339(now - age);
}

// Returns the number in "server (pid 12)".
std::optional<int> pid_in(std::string_view description) {
  constexpr std::string_view kBefore = "(pid ";
  const std::size_t begin = description.rfind(kBefore);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view digits = description.substr(begin + kBefore.size());
  int pid = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  return parsed.ec == std::errc() ? std::optional(pid) : std::nullopt;
}

void write_usage(json::Writer& writer, const pool::UpstreamStatus& status) {
  const std::optional<int> pid = pid_in(status.connection_description);
  if (!pid) return;
  writer.key("pid").integer(*pid);
  const std::optional<ProcessUsage> usage = usage_of_process(*pid);
  if (!usage) return;
  writer.key("memoryBytes")
      .unsigned_integer(usage->memory_bytes)
      .key("cpuSeconds")
      .number(usage->cpu_seconds);
}

json::Raw process_json(const registry::Server& server, const pool::Upstream& upstream) {
  const pool::UpstreamStatus status = upstream.status();
  json::Writer writer;
  writer.begin_object().key("server").string(server.name).key("serverId").string(server.id);
  const bool is_user = status.sharing == pool::Sharing::per_user;
  if (!status.key.empty()) writer.key("key").string(is_user ? status.key : shown_upstream_key(status.key));
  write_usage(writer, status);
  writer.key("state").string(pool::to_string(status.state)).key("since").string(time_of(status.since));
  writer.key("calls").unsigned_integer(status.active_call_count);
  writer.key("waiting").unsigned_integer(status.waiting_caller_count);
  writer.key("starts").unsigned_integer(status.generation);
  writer.key("failures").unsigned_integer(status.consecutive_failures);
  writer.key("healthy").boolean(status.healthy).key("sharing").string(pool::to_string(status.sharing));
  if (!status.connection_description.empty()) writer.key("connection").string(status.connection_description);
  if (status.last_error) {
    writer.key("error");
    write_failure(writer, *status.last_error);
  }
  writer.end_object();
  return writer.finish();
}

// The position in the list: the name of a server, and the number of an upstream among those of the server.
struct ProcessPosition {
  std::string server;
  std::size_t index = 0;
};

ProcessPosition parse_position(const std::string& key) {
  ProcessPosition position;
  const std::size_t slash = key.find('/');
  position.server = key.substr(0, slash);
  if (slash == std::string::npos) return position;
  std::from_chars(key.data() + slash + 1, key.data() + key.size(), position.index);
  ++position.index;
  return position;
}

bool shows_process(const pool::Upstream& upstream, const std::string* state) {
  const pool::UpstreamState current = upstream.state();
  if (state) return *state == pool::to_string(current);
  return current != pool::UpstreamState::idle && current != pool::UpstreamState::stopped;
}

// Adds the processes of one server from the number `from` on. Returns false if the page is full.
bool add_processes(const Call& call, const registry::Server& server, std::size_t from, PageWriter& page) {
  const auto upstreams = call.services().gateway.pool().upstreams(server.name);
  for (std::size_t i = from; i < upstreams.size(); ++i) {
    if (!shows_process(*upstreams[i], call.query().find("state"))) continue;
    if (!page.has_room()) return false;
    page.add(server.name + "/" + std::to_string(i), process_json(server, *upstreams[i]));
  }
  return true;
}

bool sees_processes(const Call& call, const registry::Server& server) {
  const std::string* const wanted = call.query().find("server");
  return (!wanted || *wanted == server.name || *wanted == server.id) &&
         registry::decide(call.principal(), registry::Operation::operate, server).allowed;
}

}  // namespace

Task<Result<Reply>> list_processes(Call& call) {
  const Result<PageRequest> request = PageRequest::parse(call.query(), "processes");
  if (!request) co_return request.error();
  PageWriter page(*request, "processes");
  const ProcessPosition begin = parse_position(request->after);
  Slices slices;
  bool more = false;
  std::string next = begin.server;
  while (!more) {
    const auto& servers = call.services().state().servers.by_name();
    const auto it = servers.lower_bound(next);
    if (it == servers.end()) break;
    const registry::ServerPtr server = it->second;
    next = server->name + '\0';
    if (sees_processes(call, *server))
      more = !add_processes(call, *server, server->name == begin.server ? begin.index : 0, page);
    if (slices.due(0)) co_await sleep_for(call.services().loop, Slices::kPause);
  }
  co_return Reply(200, page.finish(more));
}

}  // namespace fairlead::admin
