#include <charconv>

#include "admin/event_hub.hpp"
#include "admin/handlers.hpp"
#include "admin/row_kinds.hpp"
#include "admin/rows.hpp"
#include "fairlead/json/writer.hpp"

namespace fairlead::admin {

namespace {

constexpr std::size_t kDefaultLogLines = 100;
constexpr std::size_t kMaxLogLines = 1'000;

Result<std::size_t> line_count(const Query& query) {
  const std::string* const text = query.find("lines");
  if (!text) return kDefaultLogLines;
  std::size_t count = 0;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), count);
  if (parsed.ec != std::errc() || parsed.ptr != text->data() + text->size() || count == 0 ||
      count > kMaxLogLines)
    return parameter_error("lines", "is not a number from 1 to " + std::to_string(kMaxLogLines));
  return count;
}

// Returns the last lines of stderr of a running process, or of the one that has failed last.
std::vector<std::string> stderr_of(const pool::Upstream& upstream) {
  if (const auto connection = upstream.connection()) {
    const Error context = connection->with_error_context(Error(ErrorKind::closed, "not an error"), {});
    return context.detail().stderr_lines;
  }
  const pool::UpstreamStatus status = upstream.status();
  return status.last_error ? status.last_error->detail().stderr_lines : std::vector<std::string>();
}

}  // namespace

Task<Result<Reply>> get_server_logs(Call& call) {
  const Result<std::size_t> count = line_count(call.query());
  if (!count) co_return count.error();
  const Result<registry::ServerPtr> server =
      find_row<ServerKind>(call, call.path_value(), registry::Operation::operate);
  if (!server) co_return server.error();
  std::vector<std::string> lines;
  for (const auto& upstream : call.services().gateway.pool().upstreams((*server)->name)) {
    for (std::string& line : stderr_of(*upstream)) lines.push_back(std::move(line));
  }
  json::Writer writer;
  writer.begin_object().key("items").begin_array();
  for (std::size_t i = lines.size() > *count ? lines.size() - *count : 0; i < lines.size(); ++i)
    writer.begin_object().key("line").string(lines[i]).end_object();
  writer.end_array().end_object();
  co_return Reply(200, writer.finish());
}

}  // namespace fairlead::admin
