#include <charconv>

#include "admin/event_hub.hpp"
#include "admin/handlers.hpp"
#include "admin/process_usage.hpp"
#include "admin/row_kinds.hpp"
#include "admin/rows.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::admin {

namespace {

constexpr std::size_t kDefaultLogLines = 100;
constexpr std::size_t kMaxLogLines = pool::PoolMonitor::kMaxServerLines;

Result<std::size_t> line_count(const Query& query) {
  const std::string_view parameter = query.find("lines") ? "lines" : "limit";
  const std::string* const text = query.find(parameter);
  if (!text) return kDefaultLogLines;
  std::size_t count = 0;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), count);
  if (parsed.ec != std::errc() || parsed.ptr != text->data() + text->size() || count == 0 ||
      count > kMaxLogLines)
    return parameter_error(parameter, "is not a number from 1 to " + std::to_string(kMaxLogLines));
  return count;
}

json::Raw line_json(const pool::StderrLine& line) {
  json::Writer writer;
  writer.begin_object();
  if (!line.key.empty()) writer.key("key").string(shown_upstream_key(line.key));
  writer.key("line").string(line.text).end_object();
  return writer.finish();
}

// A client that follows the lines of a server.
struct LogFollower {
  std::weak_ptr<EventStream> stream;
  const registry::Registry* registry;  // outlives the subscription
  std::string server_id;
  PrincipalPtr reader;

  // The server may have been renamed, removed, or made invisible since the stream began.
  void operator()(const pool::StderrLine& line) const {
    const auto open = stream.lock();
    if (!open) return;
    const registry::ServerPtr server = registry->state().servers.find(server_id);
    if (!server || !registry::decide(*reader, registry::Operation::operate, *server).allowed)
      return open->finish();
    if (line.server == server->name) open->send("line", line_json(line));
  }
};

// Sends the lines that there are, then those that follow, until the stream ends.
Result<void> follow(const Call& call, const registry::Server& server,
                    const std::vector<pool::StderrLine>& lines) {
  const Result<std::shared_ptr<EventStream>> stream = call.services().events->open(call.exchange());
  if (!stream) return stream.error();
  for (const pool::StderrLine& line : lines) (*stream)->send("line", line_json(line));
  LogFollower follower{*stream, call.services().registry.get(), server.id, call.principal_ptr()};
  (*stream)->keep(call.services().gateway.pool().monitor()->on_line(std::move(follower)));
  return {};
}

}  // namespace

Task<Result<Reply>> get_server_logs(Call& call) {
  const Result<std::size_t> count = line_count(call.query());
  if (!count) co_return count.error();
  const Result<registry::ServerPtr> server =
      find_row<ServerKind>(call, call.path_value(), registry::Operation::operate);
  if (!server) co_return server.error();
  const std::vector<pool::StderrLine> lines =
      call.services().gateway.pool().monitor()->last_lines((*server)->name, *count);
  if (accepts_events(call.headers())) {
    if (!respond_to_head(*call.exchange())) {
      const Result<void> followed = follow(call, **server, lines);
      if (!followed) co_return followed.error();
    }
    Reply reply;
    reply.sent = true;
    co_return reply;
  }
  json::Writer writer;
  writer.begin_object().key("items").begin_array();
  for (const pool::StderrLine& line : lines) writer.raw(line_json(line));
  writer.end_array().end_object();
  co_return Reply(200, writer.finish());
}

}  // namespace fairlead::admin
