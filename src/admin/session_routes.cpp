#include <algorithm>

#include "admin/event_hub.hpp"
#include "admin/handlers.hpp"
#include "admin/page.hpp"
#include "admin/problem.hpp"
#include "admin/services.hpp"
#include "base/rfc3339.hpp"
#include "fairlead/json/writer.hpp"
#include "registry/rules.hpp"

namespace fairlead::admin {

namespace {

using gateway::SessionInfo;

void write_text(json::Writer& writer, std::string_view key, const std::string& value) {
  if (!value.empty()) writer.key(key).string(value);
}

json::Raw session_json(const SessionInfo& session) {
  json::Writer writer;
  writer.begin_object().key("id").string(session.id);
  write_text(writer, "endpoint", session.endpoint);
  write_text(writer, "transport", session.transport);
  write_text(writer, "revision", session.revision);
  write_text(writer, "client", session.client);
  write_text(writer, "user", session.principal->user);
  write_text(writer, "token", session.principal->token_id);
  write_text(writer, "address", session.principal->client_address);
  if (session.since != registry::Time()) writer.key("since").string(format_rfc3339(session.since));
  if (session.last_request != registry::Time())
    writer.key("lastRequest").string(format_rfc3339(session.last_request));
  writer.end_object();
  return writer.finish();
}

// Returns the sessions that the client may see, ordered by id.
std::vector<SessionInfo> visible_sessions(const Call& call) {
  if (!call.services().options.sessions) return {};
  std::vector<SessionInfo> sessions = call.services().options.sessions();
  const std::string* const endpoint = call.query().find("endpoint");
  std::erase_if(sessions, [&](const SessionInfo& session) {
    return (endpoint && *endpoint != session.endpoint) ||
           !registry::decide_session(call.principal(), registry::Operation::list, *session.principal).allowed;
  });
  std::ranges::sort(sessions, {}, &SessionInfo::id);
  return sessions;
}

}  // namespace

Task<Result<Reply>> list_sessions(Call& call) {
  const Result<PageRequest> request = PageRequest::parse(call.query(), "sessions");
  if (!request) co_return request.error();
  PageWriter page(*request, "sessions");
  bool more = false;
  for (const SessionInfo& session : visible_sessions(call)) {
    if (session.id <= request->after) continue;
    more = !page.has_room();
    if (more) break;
    page.add(session.id, session_json(session));
  }
  co_return Reply(200, page.finish(more));
}

Task<Result<Reply>> remove_session(Call& call) {
  const Error unknown = problem(codes::kNotFound, "there is no session \"" + call.path_value() + "\"");
  const std::vector<SessionInfo> sessions = visible_sessions(call);
  const auto found = std::ranges::find(sessions, call.path_value(), &SessionInfo::id);
  if (found == sessions.end() || !call.services().options.end_session) co_return unknown;
  const registry::Decision decision =
      registry::decide_session(call.principal(), registry::Operation::remove, *found->principal);
  if (!decision.allowed) co_return problem(codes::kForbidden, decision.reason);
  if (!call.services().options.end_session(found->id)) co_return unknown;
  co_return Reply(204);
}

Task<Result<Reply>> stream_events(Call& call) {
  Reply reply;
  reply.sent = true;
  if (respond_to_head(*call.exchange())) co_return reply;
  const Result<void> started =
      call.services().events->stream(call.exchange(), call.headers().get("Last-Event-ID"));
  if (!started) co_return started.error();
  co_return reply;
}

}  // namespace fairlead::admin
