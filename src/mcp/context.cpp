#include "fairlead/mcp/context.hpp"

#include "fairlead/base/base64.hpp"
#include "fairlead/loop/event.hpp"
#include "fairlead/rpc/codes.hpp"
#include "mcp/request_state.hpp"
#include "mcp/server_tasks.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

// The code is the modern era's; a legacy client is told in words.
Error missing_capability(Revision revision, std::string_view required) {
  if (!is_modern(revision)) {
    return Error(ErrorKind::validation,
                 "The client does not offer what this needs: " + std::string(required));
  }
  return Error::rpc(kMissingCapability, "Client capability required",
                    "{\"requiredCapabilities\":" + std::string(required) + "}");
}

// The one way all questions take. Legacy: a request of ours. Modern: the answer of an earlier round, or the
// end of this one.
Task<Result<json::Raw>> ask(std::shared_ptr<RequestState> state, std::string method, json::Raw params,
                            std::string key) {
  if (!is_modern(state->revision)) {
    Task<Result<json::Raw>> asking = ask_legacy_client(state, std::move(method), std::move(params));
    Result<json::Raw> answer = co_await asking;
    co_return answer;
  }
  ++state->asked;
  if (key.empty()) key = "q" + std::to_string(state->asked);
  if (state->task) {
    Task<Result<json::Raw>> asking = ask_as_task(state, std::move(method), std::move(params), std::move(key));
    Result<json::Raw> answer = co_await asking;
    co_return answer;
  }
  const auto answered = state->answers.find(key);
  if (answered != state->answers.end()) co_return answered->second;
  state->open.push_back(RequestState::Question{std::move(key), std::move(method), std::move(params)});
  AwaitAnswerFromNextRound next(state);
  co_await next;
  co_return Error(ErrorKind::cancelled, "not reached: the handler is run again");
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
    const char* const problem = "an elicitation was answered without accept, decline or cancel";
    // There the answer came with the request, which is therefore wrong.
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
const PostedBytes& Context::posted() const noexcept {
  return state_->link->posted();
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

void Context::progress(double progress, std::optional<double> total, std::string_view message) const {
  // A task of the modern era tells of itself when it is asked.
  if (is_task() && is_modern(state_->revision)) {
    if (!message.empty()) status(message);
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

Task<Result<json::Raw>> Context::ask_legacy(std::string method, json::Raw params,
                                            std::stop_token stop) const {
  const std::shared_ptr<RequestState> state = state_;
  std::stop_source either;
  const std::stop_callback given_up(state->stop, [&either] { either.request_stop(); });
  const std::stop_callback withdrawn(stop, [&either] { either.request_stop(); });
  Task<Result<json::Raw>> asking =
      state->link->request(std::move(method), std::move(params), state->id, either.get_token());
  Result<json::Raw> answer = co_await asking;
  co_return answer;
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
    // May run inside whatever asked to stop.
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
  // An empty object means forms, as it did before there were other modes.
  const bool forms = state_->revision >= Revision::r2025_06_18 && declared.is(json::Type::object) &&
                     (declared.size() == 0 || !declared["form"].absent());
  if (!forms) co_return missing_capability(state_->revision, R"({"elicitation":{"form":{}}})");
  json::Writer params;
  params.begin_object();
  if (state_->revision >= Revision::r2025_11_25) params.key("mode").string("form");
  params.key("message").string(message).key("requestedSchema").raw(requested_schema).end_object();
  Task<Result<json::Raw>> asking = ask(state_, "elicitation/create", params.finish(), std::move(key));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return parse_elicit_result(*answer, state_->revision);
}

namespace {

bool takes_urls(const RequestState& state) {
  return state.revision >= Revision::r2025_11_25 &&
         !json::View(state.client_capabilities)["elicitation"]["url"].absent();
}

// The question; where it needs an id of its own, whoever is asked is remembered by it.
json::Raw url_question(const RequestState& state, const std::string& message, const std::string& url,
                       const std::string& id) {
  json::Writer params;
  params.begin_object().key("mode").string("url").key("message").string(message).key("url").string(url);
  if (!is_modern(state.revision)) {
    const std::string elicitation = id.empty() ? base64url_encode(Sealer::random_key()) : id;
    params.key("elicitationId").string(elicitation);
    if (state.server) state.server->sent_to_url(elicitation, state.link);
  }
  params.end_object();
  return params.finish();
}

}  // namespace

Task<Result<ElicitResult>> Context::elicit_url(std::string message, std::string url, std::string key) const {
  if (!takes_urls(*state_)) co_return missing_capability(state_->revision, R"({"elicitation":{"url":{}}})");
  json::Raw params = url_question(*state_, message, url, key);
  Task<Result<json::Raw>> asking = ask(state_, "elicitation/create", std::move(params), std::move(key));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return parse_elicit_result(*answer, state_->revision);
}

Task<Result<void>> Context::require_url(std::string message, std::string url, std::string id) const {
  const std::shared_ptr<RequestState> state = state_;
  if (!takes_urls(*state)) co_return missing_capability(state->revision, R"({"elicitation":{"url":{}}})");
  json::Raw params = url_question(*state, message, url, id);
  if (!is_modern(state->revision)) {
    const std::string data = R"({"elicitations":[)" + std::string(params.text()) + "]}";
    co_return Error::rpc(kUrlElicitationRequired, "URL elicitation required: " + message, data);
  }
  // An answer of this round says that the user went there. That it is needed once more shows it was not
  // enough.
  const auto earlier = state->answers.find(id);
  const bool went =
      earlier != state->answers.end() && json::View(earlier->second)["action"].as_string() == "accept";
  if (went) state->answers.erase(earlier);
  Task<Result<json::Raw>> asking = ask(state, "elicitation/create", std::move(params), std::move(id));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  const Result<ElicitResult> agreed = parse_elicit_result(*answer, state->revision);
  if (!agreed) co_return agreed.error();
  if (agreed->action == ElicitResult::Action::accept) co_return Result<void>();
  co_return Error(ErrorKind::validation, "The user did not go to " + url);
}

Task<Result<json::Raw>> Context::sample(json::Raw params, std::string key) const {
  const json::View declared = client_capabilities()["sampling"];
  if (declared.absent()) co_return missing_capability(state_->revision, R"({"sampling":{}})");
  if (!json::View(params)["tools"].absent() && declared["tools"].absent()) {
    co_return missing_capability(state_->revision, R"({"sampling":{"tools":{}}})");
  }
  Task<Result<json::Raw>> asking = ask(state_, "sampling/createMessage", std::move(params), std::move(key));
  Result<json::Raw> answer = co_await asking;
  co_return answer;
}

Task<Result<std::vector<Root>>> Context::roots(std::string key) const {
  if (client_capabilities()["roots"].absent())
    co_return missing_capability(state_->revision, R"({"roots":{}})");
  Task<Result<json::Raw>> asking =
      ask(state_, "roots/list", json::Raw::trusted(Bytes::constant("{}"), true), std::move(key));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  std::vector<Root> roots;
  json::View(*answer)["roots"].each_element([&](json::View root) {
    roots.push_back(Root{root["uri"].as_string().value_or(""), root["name"].as_string().value_or("")});
    return true;
  });
  co_return roots;
}

}  // namespace fairlead::mcp
