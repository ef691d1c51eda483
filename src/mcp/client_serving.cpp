// ClientSession: handles messages of the server, that is notifications, requests (legacy era), and input
// requests in results (modern era).
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "json/splice.hpp"
#include "mcp/client_session.hpp"
#include "mcp/task_messages.hpp"
#include "protocol/envelope.hpp"
#include "protocol/method_table.hpp"

namespace fairlead::mcp {

Task<Result<json::Raw>> ClientSession::answer_input_requests(json::Raw input_requests) {
  struct InputRequest {
    std::string key;
    std::string method;
    json::Raw params;
  };
  const std::size_t limit = options_.list_limits.max_message_members;
  if (json::has_more_members_than(json::View(input_requests), limit))
    co_return too_many_input_requests_error(limit);
  std::vector<InputRequest> requests;
  json::View(input_requests).each_member([&](std::string_view key, bool escaped, json::View request) {
    const json::Members members(request, {"method", "params"}, limit);
    requests.push_back(InputRequest{escaped ? json::unescape(key) : std::string(key),
                                    members["method"].as_string().value_or(""),
                                    raw_part(input_requests, members["params"])});
    return true;
  });
  json::Writer responses;
  responses.begin_object();
  for (const InputRequest& request : requests) {
    const Result<json::Raw> response = co_await call_request_handler(request.method, request.params);
    if (!response) co_return response.error();
    responses.key(request.key).raw(*response);
  }
  responses.end_object();
  co_return responses.finish();
}

void ClientSession::handle_notification(const Request& request) {
  if (request.method() == "notifications/subscriptions/acknowledged")
    handle_acknowledgement(request.message());
  if (request.method() == "notifications/elicitation/complete") {
    constexpr std::size_t kMaxCompletedElicitations = 1000;
    if (completed_elicitation_ids_.size() >= kMaxCompletedElicitations) completed_elicitation_ids_.clear();
    completed_elicitation_ids_.insert(
        request.message().param("elicitationId").as_string(kMaxElicitationIdBytes).value_or(""));
    elicitation_completed_.set();
  }
  dispatch_notification(request.method(), request.params());
}

Task<Answer> ClientSession::handle_message(Request request) {
  const auto keep_alive = self();
  const std::size_t limit = options_.list_limits.max_message_members;
  const bool too_many = request.message().members().member_count() > limit;
  if (request.is_notification()) {
    if (too_many) {
      options_.connect.log.warning("a notification has more than max_message_members",
                                   {{"method", std::string(request.method())}, {"limit", limit}});
    } else {
      handle_notification(request);
    }
    co_return json::Raw::null();
  }
  if (too_many)
    co_return rpc::invalid_params("params has more than max_message_members (" + std::to_string(limit) + ")");
  if (request.method() == "ping") co_return empty_object();
  if (options_.handlers.on_request) {
    Answer response = co_await options_.handlers.on_request(std::move(request));
    co_return response;
  }
  if (!find_method(request.method(), revision_)) co_return rpc::method_not_found(request.method());
  if (task_store_ && request.method().starts_with("tasks/")) {
    CoreTaskRequest task_request(task_store_, TaskOwner());
    task_request.method = request.method();
    task_request.params = request.params();
    task_request.stop = request.stop();
    Answer response = co_await serve_core_task_request(std::move(task_request), loop_);
    co_return response;
  }
  if (task_store_ && !request.params_view()["task"].absent()) co_return start_task_for(request);
  Result<json::Raw> response = co_await call_request_handler(std::string(request.method()), request.params());
  co_return response;
}

Task<Result<json::Raw>> ClientSession::call_request_handler(std::string method, json::Raw params) {
  const ClientHandlers& handlers = options_.handlers;
  if (method == "sampling/createMessage" && handlers.sample) {
    Result<json::Raw> response = co_await handlers.sample(std::move(params));
    co_return response;
  }
  if (method == "elicitation/create" && (handlers.elicit || handlers.elicit_url)) {
    Result<json::Raw> response = co_await handle_elicitation(std::move(params));
    co_return response;
  }
  if (method == "roots/list" && handlers.roots) {
    json::Writer out;
    out.begin_object().key("roots").begin_array();
    for (const Root& root : handlers.roots()) {
      out.begin_object().key("uri").string(root.uri);
      if (!root.name.empty()) out.key("name").string(root.name);
      out.end_object();
    }
    out.end_array().end_object();
    co_return out.finish();
  }
  co_return rpc::method_not_found(method);
}

namespace {

// Returns `content`, the content of an accepted form, with the default values of the schema for members that
// `content` omits.
json::Raw with_defaults(const json::Raw& content, json::View schema) {
  const json::Raw base = content.absent() ? empty_object() : content;
  json::Splice splice(base.bytes());
  schema["properties"].each_member([&](std::string_view key, bool escaped, json::View property) {
    const std::string name = escaped ? json::unescape(key) : std::string(key);
    const json::View value = property["default"];
    if (!value.absent() && json::View(base)[name].absent())
      splice.insert_member(base.text(), name, value.text());
    return true;
  });
  return json::Raw::trusted(splice.joined());
}

json::Raw encode(const ElicitResult& result, json::View schema) {
  json::Writer out;
  const bool accepted = result.action == ElicitResult::Action::accept;
  out.begin_object().key("action").string(accepted                                         ? "accept"
                                          : result.action == ElicitResult::Action::decline ? "decline"
                                                                                           : "cancel");
  if (accepted && !schema.absent()) out.key("content").raw(with_defaults(result.content, schema));
  out.end_object();
  return out.finish();
}

}  // namespace

Task<Result<json::Raw>> ClientSession::handle_elicitation(json::Raw params) {
  const ClientHandlers& handlers = options_.handlers;
  const json::Members view(json::View(params), {"mode", "message", "requestedSchema", "url"},
                           options_.list_limits.max_message_members);
  const std::string mode = view["mode"].as_string().value_or("form");
  std::string message = view["message"].as_string().value_or("");
  const json::View schema = view["requestedSchema"];
  const std::size_t limit = options_.list_limits.max_schema_bytes;
  if (schema.text().size() > limit)
    co_return rpc::invalid_params("requestedSchema is over the limit max_schema_bytes (" +
                                  std::to_string(limit) + ")");
  if (mode == "form" && handlers.elicit) {
    const Result<ElicitResult> result =
        co_await handlers.elicit(std::move(message), raw_part(params, schema));
    if (!result) co_return result.error();
    co_return encode(*result, schema);
  }
  if (mode == "url" && handlers.elicit_url) {
    Task<Result<ElicitResult>> elicitation =
        handlers.elicit_url(std::move(message), view["url"].as_string().value_or(""));
    const Result<ElicitResult> result = co_await elicitation;
    if (!result) co_return result.error();
    co_return encode(*result, json::View());
  }
  co_return rpc::invalid_params("this client does not support elicitation of mode " + mode);
}

}  // namespace fairlead::mcp
