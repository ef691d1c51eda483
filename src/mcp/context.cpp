#include "fairlead/mcp/context.hpp"

#include "fairlead/base/base64.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/rpc/codes.hpp"
#include "mcp/request_state.hpp"
#include "mcp/server_tasks.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

// The error code -32021 exists only in the modern era. For a legacy client the error has only a message.
Error missing_capability_error(Revision revision, std::string_view required) {
  if (!is_modern(revision)) {
    return Error(ErrorKind::validation,
                 "The client does not declare the required capability: " + std::string(required));
  }
  return Error::rpc(kMissingCapability, "Client capability required",
                    "{\"requiredCapabilities\":" + std::string(required) + "}");
}

// Makes an input request to the client. Legacy era: sends a request. Modern era: returns the response if the
// client has sent it in this or an earlier round, otherwise ends this round.
Task<Result<json::Raw>> request_input(std::shared_ptr<RequestState> state, std::string method,
                                      json::Raw params, std::string key) {
  if (!is_modern(state->revision)) {
    Result<json::Raw> response =
        co_await request_input_from_legacy_client(state, std::move(method), std::move(params));
    co_return response;
  }
  ++state->input_request_count;
  if (key.empty()) key = "q" + std::to_string(state->input_request_count);
  if (state->task) {
    Result<json::Raw> response =
        co_await request_input_as_task(state, std::move(method), std::move(params), std::move(key));
    co_return response;
  }
  const auto answered = state->input_responses.find(key);
  if (answered != state->input_responses.end()) co_return answered->second;
  state->open_input_requests.push_back(
      RequestState::InputRequest{std::move(key), std::move(method), std::move(params)});
  EndRoundAwaiter next(state);
  co_await next;
  co_return Error(ErrorKind::cancelled, "unreachable: the handler runs again");
}

Result<ElicitResult> parse_elicit_result(const json::Raw& raw, Revision revision) {
  const json::View view(raw);
  const std::string action = view["action"].as_string().value_or("");
  ElicitResult result;
  if (action == "accept") {
    result.action = ElicitResult::Action::accept;
  } else if (action == "decline") {
    result.action = ElicitResult::Action::decline;
  } else if (action != "cancel") {
    const char* const problem =
        "the action in the response to an elicitation is none of accept, decline, cancel";
    // In the modern era the input response is part of the request of the client, so that request is invalid.
    if (is_modern(revision)) return rpc::invalid_params(problem);
    return Error(ErrorKind::validation, problem);
  }
  const json::View content = view["content"];
  if (!content.absent()) result.content = json::Raw::trusted(raw.bytes().part(content.text()));
  return result;
}

}  // namespace

Revision Context::revision() const noexcept {
  return state_->revision;
}
json::View Context::client_capabilities() const noexcept {
  return json::View(state_->client_capabilities);
}
json::View Context::client_extension(std::string_view id) const {
  return client_capabilities()["extensions"][id];
}
json::View Context::client_info() const noexcept {
  return json::View(state_->client_info);
}
json::View Context::meta() const noexcept {
  return json::View(state_->meta);
}
const std::stop_token& Context::stop() const noexcept {
  return state_->stop;
}
Loop& Context::loop() const noexcept {
  return state_->link->loop();
}
const PostedBytes& Context::posted_bytes() const noexcept {
  return state_->link->posted_bytes();
}
std::string_view Context::session() const noexcept {
  return state_->link->session();
}
const PrincipalPtr& Context::principal() const noexcept {
  return state_->link->principal();
}

std::string_view Context::user() const noexcept {
  return state_->link->principal()->user;
}

void Context::report_progress(double progress, std::optional<double> total, std::string_view message) const {
  // A modern task has no progress notifications; clients poll its status message.
  if (is_task() && is_modern(state_->revision)) {
    if (!message.empty()) set_status_message(message);
    return;
  }
  const json::View token = state_->facts ? state_->facts->progress_token : json::View();
  if (token.absent() || token.is(json::Type::null) || state_->stop.stop_requested()) return;
  json::Writer params;
  params.begin_object().key("progressToken").raw(token.text()).key("progress").number(progress);
  if (total) params.key("total").number(*total);
  if (!message.empty() && state_->revision >= Revision::r2025_03_26) params.key("message").string(message);
  params.end_object();
  state_->link->notify("notifications/progress", params.finish(), state_->id);
}

std::optional<LoggingLevel> Context::log_level() const noexcept {
  return state_->log_level;
}

void Context::notify(std::string_view method, const json::Raw& params) const {
  if (!state_->stop.stop_requested()) state_->link->notify(method, params, state_->id);
}

Task<Result<json::Raw>> Context::send_legacy_request(std::string method, json::Raw params,
                                                     std::stop_token stop) const {
  const std::shared_ptr<RequestState> state = state_;
  std::stop_source combined;
  const std::stop_callback on_request_stop(state->stop, [&combined] { combined.request_stop(); });
  const std::stop_callback on_caller_stop(stop, [&combined] { combined.request_stop(); });
  Result<json::Raw> response =
      co_await state->link->request(std::move(method), std::move(params), state->id, combined.get_token());
  co_return response;
}

void Context::log(LoggingLevel level, const json::Raw& data, std::string_view logger) const {
  const bool wanted = state_->log_level && level >= *state_->log_level;
  if (!wanted || (is_task() && is_modern(state_->revision))) return;
  json::Writer params;
  params.begin_object().key("level").string(to_string(level));
  if (!logger.empty()) params.key("logger").string(logger);
  params.key("data").raw(data).end_object();
  state_->link->notify("notifications/message", params.finish(), state_->id);
}

Task<bool> Context::sleep(std::chrono::milliseconds time) const {
  const std::shared_ptr<RequestState> state = state_;
  Loop& loop = state->link->loop();
  Event stopped;
  const std::stop_callback on_stop(state->stop, [&loop, stopped] {
    // Posted, because this may run inside the function that requests the stop.
    loop.post([stopped]() mutable { stopped.set(); });
  });
  const bool cancelled = co_await stopped.wait(loop, time);
  co_return !cancelled;
}

void Context::close_stream() const {
  if (state_->revision == Revision::r2025_11_25) state_->link->close_stream(state_->id);
}

Task<Result<ElicitResult>> Context::elicit(std::string message, json::Raw requested_schema,
                                           std::string key) const {
  const json::View declared = client_capabilities()["elicitation"];
  // An empty object means form mode, the only mode before revision 2025-11-25.
  const bool forms = state_->revision >= Revision::r2025_06_18 && declared.is(json::Type::object) &&
                     (declared.size() == 0 || !declared["form"].absent());
  if (!forms) co_return missing_capability_error(state_->revision, R"({"elicitation":{"form":{}}})");
  json::Writer params;
  params.begin_object();
  if (state_->revision >= Revision::r2025_11_25) params.key("mode").string("form");
  params.key("message").string(message).key("requestedSchema").raw(requested_schema).end_object();
  const Result<json::Raw> response =
      co_await request_input(state_, "elicitation/create", params.finish(), std::move(key));
  if (!response) co_return response.error();
  co_return parse_elicit_result(*response, state_->revision);
}

namespace {

bool supports_urls(const RequestState& state) {
  return state.revision >= Revision::r2025_11_25 &&
         !json::View(state.client_capabilities)["elicitation"]["url"].absent();
}

// Returns the params of a URL elicitation. In the legacy era they contain an elicitation id, and the server
// stores for Server::notify_elicitation_complete() which client has received the id.
json::Raw url_elicitation_params(const RequestState& state, const std::string& message,
                                 const std::string& url, const std::string& id) {
  json::Writer params;
  params.begin_object().key("mode").string("url").key("message").string(message).key("url").string(url);
  if (!is_modern(state.revision)) {
    const std::string elicitation = id.empty() ? base64url_encode(Sealer::random_key()) : id;
    params.key("elicitationId").string(elicitation);
    if (state.server) state.server->store_url_elicitation_client(elicitation, state.link);
  }
  params.end_object();
  return params.finish();
}

}  // namespace

Task<Result<ElicitResult>> Context::elicit_url(std::string message, std::string url, std::string key) const {
  if (!supports_urls(*state_))
    co_return missing_capability_error(state_->revision, R"({"elicitation":{"url":{}}})");
  json::Raw params = url_elicitation_params(*state_, message, url, key);
  const Result<json::Raw> response =
      co_await request_input(state_, "elicitation/create", std::move(params), std::move(key));
  if (!response) co_return response.error();
  co_return parse_elicit_result(*response, state_->revision);
}

Task<Result<void>> Context::require_url(std::string message, std::string url, std::string id) const {
  const std::shared_ptr<RequestState> state = state_;
  if (!supports_urls(*state))
    co_return missing_capability_error(state->revision, R"({"elicitation":{"url":{}}})");
  json::Raw params = url_elicitation_params(*state, message, url, id);
  if (!is_modern(state->revision)) {
    const std::string data = R"({"elicitations":[)" + std::string(params.text()) + "]}";
    co_return Error::rpc(kUrlElicitationRequired, "URL elicitation required: " + message, data);
  }
  // If an input response says that the user visited the URL, the handler nevertheless requires the URL again:
  // the visit did not suffice. So the response is discarded and the input request is made again.
  const auto earlier = state->input_responses.find(id);
  const bool accepted = earlier != state->input_responses.end() &&
                        json::View(earlier->second)["action"].as_string() == "accept";
  if (accepted) state->input_responses.erase(earlier);
  const Result<json::Raw> response =
      co_await request_input(state, "elicitation/create", std::move(params), std::move(id));
  if (!response) co_return response.error();
  const Result<ElicitResult> outcome = parse_elicit_result(*response, state->revision);
  if (!outcome) co_return outcome.error();
  if (outcome->action == ElicitResult::Action::accept) co_return Result<void>();
  co_return Error(ErrorKind::validation, "The user declined to visit " + url);
}

Task<Result<json::Raw>> Context::sample(json::Raw params, std::string key) const {
  const json::View declared = client_capabilities()["sampling"];
  if (declared.absent()) co_return missing_capability_error(state_->revision, R"({"sampling":{}})");
  if (!json::View(params)["tools"].absent() && declared["tools"].absent()) {
    co_return missing_capability_error(state_->revision, R"({"sampling":{"tools":{}}})");
  }
  Result<json::Raw> response =
      co_await request_input(state_, "sampling/createMessage", std::move(params), std::move(key));
  co_return response;
}

Task<Result<std::vector<Root>>> Context::roots(std::string key) const {
  if (client_capabilities()["roots"].absent())
    co_return missing_capability_error(state_->revision, R"({"roots":{}})");
  Task<Result<json::Raw>> requested =
      request_input(state_, "roots/list", json::Raw::trusted(Bytes::constant("{}"), true), std::move(key));
  const Result<json::Raw> response = co_await requested;
  if (!response) co_return response.error();
  std::vector<Root> roots;
  json::View(*response)["roots"].each_element([&](json::View root) {
    roots.push_back(Root{root["uri"].as_string().value_or(""), root["name"].as_string().value_or("")});
    return true;
  });
  co_return roots;
}

}  // namespace fairlead::mcp
