#include "mcp/dispatch.hpp"

#include "fairlead/loop/timer.hpp"
#include "fairlead/protocol/list_limits.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "loop/slices.hpp"
#include "mcp/server_tasks.hpp"
#include "mcp/skills.hpp"

namespace fairlead::mcp {

namespace {

// Whether the tool that is called is registered with the server itself: then its backend does not see the
// call.
bool is_own_tool(const FeatureCall& call, const MethodInfo& method) {
  if (!call.server->has_tools || method.name != "tools/call") return false;
  const std::optional<std::string_view> name = call.state->facts->target_text();
  return name && call.server->catalogue()->tools.find(*name);
}

Task<Answer> start(FeatureCall call, const MethodInfo& method) {
  if (call.server->backend && !is_own_tool(call, method)) {
    BackendRequest request(std::move(call.message), call.state->facts, Context(call.state));
    return call.server->backend->serve(std::move(request));
  }
  const std::string_view name = method.name;
  if (name == "tools/list") return ready_task(list(call, ListKind::tools));
  if (name == "resources/list") return ready_task(list(call, ListKind::resources));
  if (name == "resources/templates/list") return ready_task(list(call, ListKind::templates));
  if (name == "prompts/list") return ready_task(list(call, ListKind::prompts));
  if (name == "completion/complete") return ready_task(complete(call));
  call.state->server = call.server;
  if (method.extension == kSkillsExtension) return ready_task(serve_skills(call));
  const bool tasks = name.starts_with("tasks/");
  if (!method.extension.empty() && !tasks) return ready_task<Answer>(rpc::method_not_found(name));
  if (tasks) return serve_tasks(std::move(call));
  if (name == "tools/call") return call_tool(std::move(call));
  return name == "resources/read" ? read_resource(std::move(call)) : get_prompt(std::move(call));
}

Task<Answer> start_in_next_turn(FeatureCall call, const MethodInfo& method) {
  co_await sleep_for(call.state->link->loop(), Slices::kPause);
  Task<Answer> started = start(std::move(call), method);
  Answer answer = co_await started;
  co_return answer;
}

}  // namespace

// Not a coroutine: most requests are passed on to the function that serves them.
Task<Answer> dispatch(FeatureCall call, const MethodInfo& method) {
  const bool large = call.message.frame().size() > Slices::kLargeMessage;
  return large ? start_in_next_turn(std::move(call), method) : start(std::move(call), method);
}

bool has_capability(const ServerState& server, std::string_view capability) {
  if (server.backend) return capability.empty() || server.backend->has_capability(capability);
  const auto catalogue = server.catalogue();
  if (capability == "tools") return catalogue->size(ListKind::tools) > 0;
  if (capability == "prompts") return catalogue->size(ListKind::prompts) > 0;
  if (capability == "resources") {
    return catalogue->size(ListKind::resources) + catalogue->size(ListKind::templates) > 0 ||
           has_extension(server, kSkillsExtension);  // skills are resources
  }
  if (capability == "tasks") return server.offers_tasks;
  return capability == "completions" || capability == "logging" || capability.empty();
}

bool has_extension(const ServerState& server, std::string_view id) {
  if (id.empty() || server.extensions.contains(id)) return true;
  if (id == kTasksExtension) return server.offers_tasks;
  return id == kSkillsExtension && !server.backend && !server.catalogue()->skills.entries.empty();
}

void write_capabilities(json::Writer& out, const ServerState& server, Revision revision) {
  out.begin_object();
  if (has_capability(server, "tools"))
    out.key("tools").begin_object().key("listChanged").boolean(true).end_object();
  if (has_capability(server, "prompts"))
    out.key("prompts").begin_object().key("listChanged").boolean(true).end_object();
  if (has_capability(server, "resources")) {
    out.key("resources")
        .begin_object()
        .key("subscribe")
        .boolean(true)
        .key("listChanged")
        .boolean(true)
        .end_object();
  }
  if (has_capability(server, "logging")) out.key("logging").begin_object().end_object();
  if (revision >= Revision::r2025_03_26 && has_capability(server, "completions"))
    out.key("completions").begin_object().end_object();
  if (revision == Revision::r2025_11_25 && has_capability(server, "tasks"))
    out.key("tasks").raw(R"({"list":{},"cancel":{},"requests":{"tools":{"call":{}}}})");
  Extensions declared = server.extensions;
  // What there is declares itself.
  if (server.offers_tasks) declared.try_emplace(std::string(kTasksExtension));
  if (is_modern(revision) && has_extension(server, kSkillsExtension))
    declared.try_emplace(std::string(kSkillsExtension),
                         json::Raw::trusted(Bytes::constant(R"({"directoryRead":true})"), true));
  write(out, declared);
  out.end_object();
}

std::optional<Error> members_problem(std::string_view what, json::View object) {
  if (!json::has_more_members(object, ListLimits().max_message_members)) return std::nullopt;
  return too_many_members(what);
}

Error too_many_members(std::string_view what) {
  return rpc::invalid_params(std::string(what) + " has more than max_message_members (" +
                             std::to_string(ListLimits().max_message_members) + ")");
}

std::optional<Error> problem_of(const CallFacts& facts) {
  if (facts.problem()) return facts.problem();
  if (!facts.params.absent() && !facts.params.is(json::Type::object))
    return rpc::invalid_params("params is not an object");
  if (!facts.meta.absent() && !facts.meta.is(json::Type::object))
    return rpc::invalid_params("_meta is not an object");
  const json::View token = facts.progress_token;
  const bool fits =
      token.absent() || token.is(json::Type::null) || token.is(json::Type::string) || token.as_int();
  if (!fits) return rpc::invalid_params("progressToken is neither a string nor an integer");
  return std::nullopt;
}

}  // namespace fairlead::mcp
