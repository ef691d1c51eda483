#include "mcp/dispatch.hpp"

#include "fairlead/loop/timer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "loop/slices.hpp"
#include "mcp/server_tasks.hpp"
#include "mcp/skills_server.hpp"

namespace fairlead::mcp {

namespace {

// Returns whether the called tool is registered with the server itself. Such a call does not reach the
// backend.
bool is_own_tool(const FeatureRequest& request, const MethodInfo& method) {
  if (!request.server->has_tools || method.name != "tools/call") return false;
  const std::optional<std::string_view> name = request.state->facts->target_text();
  return name && request.server->catalogue()->tools.find(*name);
}

Task<Answer> serve_feature(FeatureRequest&& request, const MethodInfo& method) {
  if (request.server->backend && !is_own_tool(request, method)) {
    BackendRequest backend_request(std::move(request.message), request.state->facts, Context(request.state));
    return request.server->backend->serve(std::move(backend_request));
  }
  const std::string_view name = method.name;
  if (name == "tools/list") return ready_task(handle_list(request, ListKind::tools));
  if (name == "resources/list") return ready_task(handle_list(request, ListKind::resources));
  if (name == "resources/templates/list") return ready_task(handle_list(request, ListKind::templates));
  if (name == "prompts/list") return ready_task(handle_list(request, ListKind::prompts));
  if (name == "completion/complete") return ready_task(handle_complete(request));
  request.state->server = request.server;
  if (method.extension == kSkillsExtension) return ready_task(serve_skill_request(request));
  const bool tasks = name.starts_with("tasks/");
  if (!method.extension.empty() && !tasks) return ready_task<Answer>(rpc::method_not_found(name));
  if (tasks) return serve_task_request(std::move(request));
  if (name == "tools/call") return handle_call_tool(std::move(request));
  return name == "resources/read" ? handle_read_resource(std::move(request))
                                  : handle_get_prompt(std::move(request));
}

Task<Answer> serve_in_next_turn(FeatureRequest request, const MethodInfo& method) {
  co_await sleep_for(request.state->link->loop(), Slices::kPause);
  Answer answer = co_await serve_feature(std::move(request), method);
  co_return answer;
}

}  // namespace

// Not a coroutine: it returns the task of the function that serves the request. Most requests need no further
// coroutine frame.
Task<Answer> dispatch(FeatureRequest request, const MethodInfo& method) {
  const bool large = request.message.frame().size() > Slices::kLargeMessageBytes;
  return large ? serve_in_next_turn(std::move(request), method) : serve_feature(std::move(request), method);
}

bool may_serve_directly(const ServerState& server, const rpc::Message& message) {
  return server.backend && !server.has_tools && message.is(rpc::Kind::request) &&
         message.method() == "tools/call" && message.id() != "null" &&
         message.frame().size() <= Slices::kLargeMessageBytes && server.backend->has_capability("tools");
}

bool has_capability(const ServerState& server, std::string_view capability) {
  if (server.backend) return capability.empty() || server.backend->has_capability(capability);
  if (capability == "tools") return server.lists_tools;
  const auto catalogue = server.catalogue();
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
  // The extensions for tasks and skills are declared even if Server::extension() was not called for them.
  if (server.offers_tasks) declared.try_emplace(std::string(kTasksExtension));
  if (is_modern(revision) && has_extension(server, kSkillsExtension))
    declared.try_emplace(std::string(kSkillsExtension),
                         json::Raw::trusted(Bytes::constant(R"({"directoryRead":true})"), true));
  write_extensions(out, declared);
  out.end_object();
}

std::optional<Error> check_request_params(const CallFacts& facts) {
  if (facts.problem()) return facts.problem();
  if (!facts.params.absent() && !facts.params.is(json::Type::object))
    return rpc::invalid_params("params is not an object");
  if (!facts.meta.absent() && !facts.meta.is(json::Type::object))
    return rpc::invalid_params("_meta is not an object");
  const json::View token = facts.progress_token;
  const bool valid =
      token.absent() || token.is(json::Type::null) || token.is(json::Type::string) || token.as_int();
  if (!valid) return rpc::invalid_params("progressToken is neither a string nor an integer");
  return std::nullopt;
}

}  // namespace fairlead::mcp
