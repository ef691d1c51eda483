// What the server asks of a client, and tells it: requests of its own in the legacy era, questions inside
// results in the modern one.
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "json/splice.hpp"
#include "mcp/client_session.hpp"
#include "mcp/task_messages.hpp"
#include "protocol/envelope.hpp"
#include "protocol/method_table.hpp"

namespace fairlead::mcp {

Task<Result<json::Raw>> ClientSession::answer_questions(json::Raw questions) {
  struct Question {
    std::string key;
    std::string method;
    json::Raw params;
  };
  const std::size_t most = options_.lists.max_message_members;
  if (json::has_more_members(json::View(questions), most)) co_return too_many_questions(most);
  std::vector<Question> all;
  json::View(questions).each_member([&](std::string_view key, bool escaped, json::View question) {
    const json::Members members(question, {"method", "params"}, most);
    all.push_back(Question{escaped ? json::unescape(key) : std::string(key),
                           members["method"].as_string().value_or(""), sub(questions, members["params"])});
    return true;
  });
  json::Writer answers;
  answers.begin_object();
  for (const Question& question : all) {
    Task<Result<json::Raw>> answering = answer_one(question.method, question.params);
    const Result<json::Raw> answer = co_await answering;
    if (!answer) co_return answer.error();
    answers.key(question.key).raw(*answer);
  }
  answers.end_object();
  co_return answers.finish();
}

void ClientSession::on_notification(const Request& request) {
  if (request.method() == "notifications/subscriptions/acknowledged") on_acknowledged(request.message());
  if (request.method() == "notifications/elicitation/complete") {
    constexpr std::size_t kMost = 1000;
    if (completed_urls_.size() >= kMost) completed_urls_.clear();
    completed_urls_.insert(
        request.message().param("elicitationId").as_string(kMaxElicitationIdBytes).value_or(""));
    url_completed_.set();
  }
  tell(request.method(), request.params());
}

Task<Answer> ClientSession::serve(Request request) {
  const auto keep = self();
  const std::size_t most = options_.lists.max_message_members;
  const bool too_many = request.message().members().count() > most;
  if (request.is_notification()) {
    if (too_many) {
      options_.connect.log.warning("a notification has more than max_message_members",
                                   {{"method", std::string(request.method())}, {"limit", most}});
    } else {
      on_notification(request);
    }
    co_return json::Raw::null();
  }
  if (too_many)
    co_return rpc::invalid_params("params has more than max_message_members (" + std::to_string(most) + ")");
  if (request.method() == "ping") co_return empty_object();
  if (options_.handlers.request) {
    Task<Answer> asking = options_.handlers.request(std::move(request));
    Answer answer = co_await asking;
    co_return answer;
  }
  if (!find_method(request.method(), revision_)) co_return rpc::method_not_found(request.method());
  if (tasks_ && request.method().starts_with("tasks/")) {
    CoreTaskRequest asked(tasks_, TaskOwner());
    asked.method = request.method();
    asked.params = request.params();
    asked.stop = request.stop();
    Task<Answer> serving = serve_core_tasks(std::move(asked), loop_);
    Answer answer = co_await serving;
    co_return answer;
  }
  if (tasks_ && !request.args()["task"].absent()) co_return keep_request(request);
  Task<Result<json::Raw>> answering = answer_one(std::string(request.method()), request.params());
  Result<json::Raw> answer = co_await answering;
  co_return answer;
}

Task<Result<json::Raw>> ClientSession::answer_one(std::string method, json::Raw params) {
  const ClientHandlers& handlers = options_.handlers;
  if (method == "sampling/createMessage" && handlers.sample) {
    Task<Result<json::Raw>> sampling = handlers.sample(std::move(params));
    Result<json::Raw> answer = co_await sampling;
    co_return answer;
  }
  if (method == "elicitation/create" && (handlers.elicit || handlers.elicit_url)) {
    Task<Result<json::Raw>> eliciting = elicit(std::move(params));
    Result<json::Raw> answer = co_await eliciting;
    co_return answer;
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

// An accepted form with the schema's defaults for what it leaves out.
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

Task<Result<json::Raw>> ClientSession::elicit(json::Raw params) {
  const ClientHandlers& handlers = options_.handlers;
  const json::Members view(json::View(params), {"mode", "message", "requestedSchema", "url"},
                           options_.lists.max_message_members);
  const std::string mode = view["mode"].as_string().value_or("form");
  std::string message = view["message"].as_string().value_or("");
  const json::View schema = view["requestedSchema"];
  const std::size_t most = options_.lists.max_schema_bytes;
  if (schema.text().size() > most)
    co_return rpc::invalid_params("requestedSchema is over the limit max_schema_bytes (" +
                                  std::to_string(most) + ")");
  if (mode == "form" && handlers.elicit) {
    Task<Result<ElicitResult>> asking = handlers.elicit(std::move(message), sub(params, schema));
    const Result<ElicitResult> result = co_await asking;
    if (!result) co_return result.error();
    co_return encode(*result, schema);
  }
  if (mode == "url" && handlers.elicit_url) {
    Task<Result<ElicitResult>> asking =
        handlers.elicit_url(std::move(message), view["url"].as_string().value_or(""));
    const Result<ElicitResult> result = co_await asking;
    if (!result) co_return result.error();
    co_return encode(*result, json::View());
  }
  co_return rpc::invalid_params("this client does not support elicitation of mode " + mode);
}

}  // namespace fairlead::mcp
