#include "mcp/client_session.hpp"

#include "fairlead/loop/timer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "json/splice.hpp"
#include "loop/slices.hpp"
#include "protocol/encoded_call.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

constexpr int kMostRounds = 10;
constexpr std::size_t kShownType = 100;  // bytes of an unknown resultType that an error message shows
const std::chrono::milliseconds kComeBack{250};

}  // namespace

void ClientSession::write_capabilities(json::Writer& out, Revision revision) const {
  const ClientHandlers& handlers = options_.handlers;
  if (!handlers.capabilities.absent()) {
    out.raw(handlers.capabilities);
    return;
  }
  out.begin_object();
  if (handlers.sample) out.key("sampling").begin_object().end_object();
  if ((handlers.elicit || handlers.elicit_url) && revision >= Revision::r2025_06_18) {
    out.key("elicitation").begin_object();
    if (revision >= Revision::r2025_11_25) {
      if (handlers.elicit) out.key("form").begin_object().end_object();
      if (handlers.elicit_url) out.key("url").begin_object().end_object();
    }
    out.end_object();
  }
  if (handlers.roots) out.key("roots").begin_object().end_object();
  if (options_.keep_tasks && revision == Revision::r2025_11_25 && (handlers.sample || handlers.elicit)) {
    out.key("tasks")
        .begin_object()
        .key("list")
        .raw("{}")
        .key("cancel")
        .raw("{}")
        .key("requests")
        .begin_object();
    if (handlers.sample) out.key("sampling").raw(R"({"createMessage":{}})");
    if (handlers.elicit) out.key("elicitation").raw(R"({"create":{}})");
    out.end_object().end_object();
  }
  Extensions declared = options_.extensions;
  if (options_.tasks && is_modern(revision)) declared.try_emplace(std::string(kTasksExtension));
  write(out, declared);
  out.end_object();
}

// ---- requests -------------------------------------------------------------------------------------------

Task<Result<json::Indexed>> ClientSession::send(std::string method, CallOptions call_options) {
  const Result<rpc::Message> answer = co_await peer_->forward(method, std::move(call_options));
  if (!answer) co_return answer.error();
  if (answer->is(rpc::Kind::error)) co_return answer->remote_error();
  const std::size_t most = options_.lists.max_message_members;
  if (answer->members().count() > most)
    co_return Error(
        ErrorKind::resource_exhausted,
        method + " was answered with more than max_message_members (" + std::to_string(most) + ")");
  co_return answer->indexed_result();
}

std::vector<std::pair<std::string_view, json::Raw>> ClientSession::envelope(std::string_view token) const {
  std::vector<std::pair<std::string_view, json::Raw>> meta;
  if (is_modern(revision_)) {
    json::Writer info;
    write(info, options_.info, revision_);
    json::Writer capabilities;
    write_capabilities(capabilities, revision_);
    meta.emplace_back(kVersionKey, json::string(to_string(revision_)));
    meta.emplace_back(kClientInfoKey, info.finish());
    meta.emplace_back(kCapabilitiesKey, capabilities.finish());
    if (options_.log_level) meta.emplace_back(kLogLevelKey, json::string(to_string(*options_.log_level)));
  }
  if (!token.empty()) meta.emplace_back("progressToken", json::Raw::trusted(Bytes::copy_of(token), true));
  return meta;
}

namespace {

// The text of a value that is put into a message which is one line.
std::string one_line_of(const json::Raw& value) {
  return value.one_line() ? std::string(value.text()) : json::one_line(value.text());
}

}  // namespace

// Adds what the era wants to a request's params and leaves the rest as it is.
json::Splice ClientSession::enveloped(const RequestParams& params, const Round& round) const {
  const json::Raw base = params.raw().absent() ? empty_object() : params.raw();
  const std::string_view object = json::View(base).text();
  json::Splice splice(base.bytes());
  if (!json::View(base).is(json::Type::object)) return splice;
  const auto meta = envelope(round.token);
  if (params.meta().is(json::Type::object)) {
    for (const auto& [key, value] : meta) splice.insert_member(params.meta().text(), key, one_line_of(value));
  } else if (!meta.empty()) {
    json::Writer fresh;
    fresh.begin_object();
    for (const auto& [key, value] : meta) fresh.key(key).raw(one_line_of(value));
    fresh.end_object();
    if (params.meta().absent()) {
      splice.insert_member(object, "_meta", fresh.text());
    } else {
      splice.replace(params.meta().text(), fresh.finish().bytes());
    }
  }
  if (!round.answers.absent()) splice.insert_member(object, "inputResponses", one_line_of(round.answers));
  if (!round.state.empty()) splice.insert_member(object, "requestState", json::string(round.state).text());
  return splice;
}

json::Raw ClientSession::enveloped(const json::Raw& params) const {
  const RequestParams given(params);
  const bool unchanged = params.absent() && !is_modern(revision_);
  return unchanged ? params : json::Raw::trusted(enveloped(given, Round()).joined(), params.one_line());
}

rpc::Rope ClientSession::encode_round(std::string_view id, std::string_view method,
                                      const RequestParams& params, Round round) const {
  if (params.raw().absent() && !is_modern(revision_) && !round.wants_progress)
    return rpc::make_request(id, method, params.raw());
  if (round.wants_progress) round.token = id;
  return rpc::make_request(id, method, enveloped(params, round).parts(), params.raw().one_line());
}

namespace {

CallOptions call_options_of(const ToolCallOptions& options) {
  CallOptions made;
  made.timeout = options.timeout;
  made.max_total = options.max_total;
  made.stop = options.stop;
  if (options.on_progress) {
    made.on_progress = [report = options.on_progress](const json::Raw& params) {
      const json::Members view(json::View(params), {"progress", "total", "message"});
      report(view["progress"].as_double().value_or(0), view["total"].as_double(),
             view["message"].as_string().value_or(""));
    };
  }
  return made;
}

}  // namespace

Task<Result<json::Raw>> ClientSession::request(std::string method, json::Raw params,
                                               ToolCallOptions options) {
  Task<Result<json::Indexed>> asking = ask(std::move(method), std::move(params), std::move(options));
  const Result<json::Indexed> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return answer->raw();
}

Task<Result<json::Indexed>> ClientSession::ask(std::string method, json::Raw params,
                                               ToolCallOptions options) {
  const auto keep = self();
  if (options_.cache && is_modern(revision_)) {
    if (std::optional<json::Indexed> known = cache_.find(method, json::View(params), Clock::now()))
      co_return *known;
  }
  if (away()) {
    Task<Result<void>> returning = come_back();
    const Result<void> returned = co_await returning;
    if (!returned) co_return stale_or(returned.error(), method, params);
  }
  Task<Result<json::Indexed>> asking = request_now(method, params, std::move(options));
  Result<json::Indexed> answer = co_await asking;
  if (answer || !options_.stale_on_error) co_return answer;
  co_return stale_or(std::move(answer), method, params);
}

// What was once the answer, in the place of none: a server that answers, even with an error, is believed.
Result<json::Indexed> ClientSession::stale_or(Result<json::Indexed> answer, std::string_view method,
                                              const json::Raw& params) const {
  const ErrorKind kind = answer.error().kind();
  if (!options_.stale_on_error || kind == ErrorKind::remote || kind == ErrorKind::cancelled) return answer;
  std::optional<json::Indexed> known = cache_.find_stale(method, json::View(params));
  if (!known) return answer;
  options_.connect.log.warning("a stale result is used",
                               {{"method", std::string(method)}, {"reason", answer.error().to_string()}});
  return *known;
}

Task<Result<json::Indexed>> ClientSession::rounds(std::string method, RequestParams params,
                                                  ToolCallOptions options) {
  Round round;
  round.wants_progress = static_cast<bool>(options.on_progress);
  const bool may_cache = options_.cache && is_modern(revision_);
  const std::uint64_t asked_at = cache_.generation();
  bool listed_again = false;
  for (int count = 0; count <= kMostRounds; ++count) {
    CallOptions call_options = call_options_of(options);
    call_options.request_for_id = [&](std::string_view id) {
      return encode_round(id, method, params, round);
    };
    Task<Result<json::Indexed>> sending = send(method, std::move(call_options));
    Result<json::Indexed> answer = co_await sending;
    if (!answer && answer.error().detail().rpc_code == rpc::kInvalidParams && !params.cursor().absent())
      cache_.on_bad_cursor(method);
    // The tool's arguments travel as other headers than we think: look, and try once more.
    if (!answer && !listed_again && method == "tools/call" && connection_->carries_each_request() &&
        answer.error().detail().rpc_code == kHeaderMismatch) {
      listed_again = true;
      cache_.on_notification("notifications/tools/list_changed", json::View());
      Task<Result<std::vector<json::Raw>>> listing = list("tools/list", "tools");
      const Result<std::vector<json::Raw>> tools = co_await listing;
      if (tools) continue;
    }
    if (!answer || !is_modern(revision_)) co_return answer;
    const std::string type = (*answer)["resultType"].as_string().value_or("complete");
    if (type == "complete") {
      if (may_cache && round.answers.absent() && round.state.empty())
        cache_.store(method, params.view(), *answer, Clock::now(), asked_at);
      co_return answer;
    }
    if (type == "task" && method == "tools/call" && options_.tasks) co_return answer;
    if (type != "input_required")
      co_return Error(ErrorKind::validation,
                      "the server answered with an unknown resultType `" + type.substr(0, kShownType) + "`");
    round.state = (*answer)["requestState"].as_string().value_or("");
    round.answers = json::Raw();
    const json::Raw questions = answer->part("inputRequests");
    if (questions.absent()) {
      co_await sleep_for(connection_->loop(), kComeBack);
      continue;
    }
    Task<Result<json::Raw>> answering = answer_questions(questions);
    Result<json::Raw> answered = co_await answering;
    if (!answered) co_return answered.error();
    round.answers = std::move(*answered);
  }
  co_return Error(ErrorKind::resource_exhausted, "the server asked more than 10 rounds of questions");
}

namespace {

// The token that the sender of a request knows, in the place of ours, wherever a server has put it.
json::Raw with_token_of(const OutgoingRequest& request, const json::Raw& params) {
  const Bytes token = Bytes::copy_of(request.facts()->progress_token.text());
  json::Splice splice(params.bytes());
  json::View(params).each_member([&](std::string_view key, bool escaped, json::View value) {
    if (json::key_equals(key, escaped, "progressToken")) splice.replace(value.text(), token);
    return true;
  });
  return json::Raw::trusted(splice.joined(), params.one_line());
}

}  // namespace

Peer::Forward ClientSession::forward(const OutgoingRequest& request, CallOptions options) {
  if (!options.on_progress) {
    options.request_for_id = [this, &request](std::string_view id) {
      return encode_request(request, {id, false});
    };
    return peer_->forward(request.method(), std::move(options));
  }
  options.request_for_id = [this, &request](std::string_view id) {
    return encode_request(request, {id, true});
  };
  if (request.wants_progress()) {
    options.on_progress = [report = std::move(options.on_progress), &request](const json::Raw& params) {
      report(with_token_of(request, params));
    };
  }
  return peer_->forward(request.method(), std::move(options));
}

rpc::Rope ClientSession::encode_request(const OutgoingRequest& request,
                                        OutgoingRequest::Sending sending) const {
  rpc::Rope rope = request.encode(revision_, sending);
  if (connection_->carries_each_request())
    rope.annotate(std::make_shared<const EncodedCall>(request.facts(), std::string(sending.id),
                                                      std::string(request.target()), revision_));
  return rope;
}

Task<Result<void>> ClientSession::set_log_level(LoggingLevel level) {
  const auto keep = self();
  options_.log_level = level;
  if (is_modern(revision_)) co_return Result<void>();
  if (away()) {
    Task<Result<void>> returning = come_back();  // which sets the level
    Result<void> returned = co_await returning;
    co_return returned;
  }
  Task<Result<void>> setting = set_level_now(std::nullopt);
  Result<void> set = co_await setting;
  co_return set;
}

Task<Result<void>> ClientSession::set_level_now(std::optional<std::chrono::milliseconds> timeout) {
  json::Writer params;
  params.begin_object().key("level").string(to_string(*options_.log_level)).end_object();
  ToolCallOptions options;
  options.timeout = timeout;
  Task<Result<json::Indexed>> asking = request_now("logging/setLevel", params.finish(), std::move(options));
  const Result<json::Indexed> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return Result<void>();
}

}  // namespace fairlead::mcp
