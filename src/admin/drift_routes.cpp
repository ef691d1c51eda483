#include "admin/handlers.hpp"
#include "admin/page.hpp"
#include "admin/problem.hpp"
#include "admin/row_kinds.hpp"
#include "admin/rows.hpp"
#include "registry/json.hpp"
#include "registry/tokens.hpp"

namespace fairlead::admin {

namespace {

Result<registry::DriftPtr> find_drift(const Call& call, registry::Operation operation) {
  const registry::State& state = call.services().state();
  const Error unknown = problem(codes::kNotFound, "there is no change \"" + call.path_value() + "\"");
  const auto found = state.drift.find(call.path_value());
  if (found == state.drift.end()) return unknown;
  const registry::ServerPtr server = state.servers.find(found->second->server_id);
  if (!server) return unknown;
  const registry::Drift& drift = *found->second;
  if (sees_drift(call.principal(), operation, drift, *server)) return found->second;
  if (!sees_drift(call.principal(), registry::Operation::read, drift, *server)) return unknown;
  return problem(codes::kForbidden, registry::decide(call.principal(), operation, drift, *server).reason);
}

struct DriftFilter {
  std::string server_id;  // empty: all
  std::optional<registry::DriftStatus> status;

  bool matches(const registry::Drift& drift) const {
    return (server_id.empty() || drift.server_id == server_id) && (!status || *status == drift.status);
  }
};

Result<DriftFilter> parse_drift_filter(const Call& call) {
  DriftFilter filter;
  if (const std::string* const server = call.query().find("server")) {
    const Result<registry::ServerPtr> row = find_row<ServerKind>(call, *server, registry::Operation::read);
    if (!row) return row.error();
    filter.server_id = (*row)->id;
  }
  const std::string* const status = call.query().find("status");
  if (!status) return filter;
  filter.status = registry::parse_drift_status(*status);
  if (!filter.status) return parameter_error("status", "is no status of a change, such as open");
  return filter;
}

struct DriftPage {
  DriftPage(const PageRequest& request, DriftFilter wanted)
      : writer(request, "drift"), filter(std::move(wanted)), last(request.after) {}

  // Returns whether the page is complete.
  bool fill(const Call& call) {
    const registry::State& state = call.services().state();
    for (auto it = state.drift.upper_bound(last); it != state.drift.end(); ++it) {
      const registry::Drift& drift = *it->second;
      const registry::ServerPtr server = state.servers.find(drift.server_id);
      if (server && filter.matches(drift) &&
          sees_drift(call.principal(), registry::Operation::list, drift, *server)) {
        more = !writer.has_room();
        if (more) return true;
        writer.add(drift.id, registry::to_json(drift));
      }
      last = drift.id;
      if (slices.due(drift.after.text().size())) return false;
    }
    return true;
  }

  PageWriter writer;
  DriftFilter filter;
  std::string last;
  Slices slices;
  bool more = false;
};

// The entity tag of a change: a digest of what would be approved, and of the status.
std::string drift_tag(const registry::Drift& drift) {
  const std::string text = std::string(drift.after.text()) + std::string(registry::to_string(drift.status));
  return "\"" + registry::sha256_hex(text).substr(0, 32) + "\"";
}

Reply drift_reply(const registry::Drift& drift) {
  Reply reply(200, registry::to_json(drift));
  reply.headers.add("ETag", drift_tag(drift));
  return reply;
}

Task<Result<Reply>> resolve(Call& call, registry::DriftStatus resolution) {
  const Result<registry::DriftPtr> drift = find_drift(call, registry::Operation::operate);
  if (!drift) co_return drift.error();
  const std::string_view expected = call.headers().get("If-Match");
  if (!expected.empty() && expected != "*" && expected != drift_tag(**drift))
    co_return problem(codes::kVersionMismatch,
                      "the server has listed another entry since the change was read");
  const Result<registry::DriftPtr> resolved =
      co_await call.services().registry->resolve_drift(call.principal_ptr(), (*drift)->id, resolution);
  if (!resolved) co_return resolved.error();
  co_return drift_reply(**resolved);
}

}  // namespace

bool sees_drift(const Principal& reader, registry::Operation operation, const registry::Drift& drift,
                const registry::Server& server) {
  if (!registry::decide(reader, operation, drift, server).allowed) return false;
  if (drift.kind != "tool" || !is_denied_tool(server.tools, drift.name)) return true;
  return registry::decide(reader, registry::Operation::operate, server).allowed;
}

Task<Result<Reply>> list_drift(Call& call) {
  const Result<PageRequest> request = PageRequest::parse(call.query(), "drift");
  if (!request) co_return request.error();
  const Result<DriftFilter> filter = parse_drift_filter(call);
  if (!filter) co_return filter.error();
  DriftPage page(*request, *filter);
  while (!page.fill(call)) co_await sleep_for(call.services().loop, Slices::kPause);
  co_return Reply(200, page.writer.finish(page.more));
}

Task<Result<Reply>> get_drift(Call& call) {
  const Result<registry::DriftPtr> drift = find_drift(call, registry::Operation::read);
  if (!drift) co_return drift.error();
  co_return drift_reply(**drift);
}

Task<Result<Reply>> approve_drift(Call& call) {
  return resolve(call, registry::DriftStatus::approved);
}

Task<Result<Reply>> reject_drift(Call& call) {
  return resolve(call, registry::DriftStatus::rejected);
}

}  // namespace fairlead::admin
