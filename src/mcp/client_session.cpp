#include "mcp/client_session.hpp"

#include "fairlead/json/members.hpp"
#include "fairlead/json/splice.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "protocol/encoded_call.hpp"
#include "protocol/envelope.hpp"
#include "protocol/slices.hpp"

namespace fairlead::mcp {

namespace {

constexpr int kMostRounds = 10;
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

Task<Result<json::Raw>> ClientSession::send(std::string method, json::Raw params, CallOptions call_options) {
  Result<json::Raw> answer = co_await peer_->call(method, std::move(params), std::move(call_options));
  if (answer && answer->text().size() > Slices::kLargeMessage) co_await sleep_for(loop_, Slices::kPause);
  const std::size_t most = options_.lists.max_message_members;
  if (answer && json::has_more_members(json::View(*answer), most))
    co_return Error(
        ErrorKind::resource_exhausted,
        method + " was answered with more than max_message_members (" + std::to_string(most) + ")");
  co_return answer;
}

// Adds what the era wants to a request's params and leaves the rest as it is.
json::Raw ClientSession::enveloped(const json::Raw& params, bool wants_progress, const json::Raw& answers,
                                   const std::string& state) const {
  json::Writer meta;
  meta.begin_object();
  const json::View given = json::View(params)["_meta"];
  given.each_member([&](std::string_view key, bool escaped, json::View value) {
    meta.key(escaped ? json::unescape(key) : std::string(key)).raw(value.text());
    return true;
  });
  if (is_modern(revision_)) {
    meta.key("io.modelcontextprotocol/protocolVersion").string(to_string(revision_));
    meta.key("io.modelcontextprotocol/clientInfo");
    write(meta, options_.info, revision_);
    meta.key("io.modelcontextprotocol/clientCapabilities");
    write_capabilities(meta, revision_);
    if (options_.log_level)
      meta.key("io.modelcontextprotocol/logLevel").string(to_string(*options_.log_level));
  }
  // The token is filled in by whoever knows the call's id.
  if (wants_progress) meta.key("progressToken").raw("0");
  meta.end_object();
  if (meta.text() == "{}") return params;
  const json::Raw base = params.absent() ? empty_object() : params;
  json::Splice splice(base.bytes());
  if (given.absent()) {
    splice.insert_member(base.text(), "_meta", meta.text());
  } else {
    splice.replace(json::View(base)["_meta"].text(), Bytes::copy_of(meta.text()));
  }
  if (!answers.absent()) splice.insert_member(base.text(), "inputResponses", answers.text());
  if (!state.empty()) splice.insert_member(base.text(), "requestState", json::string(state).text());
  return json::Raw::trusted(splice.joined(), base.one_line());
}

namespace {

// Puts a call's own id in the place of the progress token.
json::Raw with_token(const json::Raw& params, std::string_view id) {
  json::Splice splice(params.bytes());
  splice.replace(json::View(params)["_meta"]["progressToken"].text(), Bytes::copy_of(id));
  return json::Raw::trusted(splice.joined(), params.one_line());
}

CallOptions call_options_of(const ToolCallOptions& options) {
  CallOptions made;
  made.timeout = options.timeout;
  made.max_total = options.max_total;
  made.stop = options.stop;
  if (options.on_progress) {
    made.on_progress = [report = options.on_progress](const json::Raw& params) {
      const json::View view(params);
      report(view["progress"].as_double().value_or(0), view["total"].as_double(),
             view["message"].as_string().value_or(""));
    };
  }
  return made;
}

}  // namespace

Task<Result<json::Raw>> ClientSession::request(std::string method, json::Raw params,
                                               ToolCallOptions options) {
  const auto keep = self();
  if (options_.cache && is_modern(revision_)) {
    if (std::optional<json::Raw> known = cache_.find(method, json::View(params), Clock::now()))
      co_return *known;
  }
  if (away()) {
    Task<Result<void>> returning = come_back();
    const Result<void> returned = co_await returning;
    if (!returned) co_return stale_or(returned.error(), method, params);
  }
  Task<Result<json::Raw>> asking = request_now(method, params, std::move(options));
  Result<json::Raw> answer = co_await asking;
  if (answer || !options_.stale_on_error) co_return answer;
  co_return stale_or(std::move(answer), method, params);
}

// What was once the answer, in the place of none: a server that answers, even with an error, is believed.
Result<json::Raw> ClientSession::stale_or(Result<json::Raw> answer, std::string_view method,
                                          const json::Raw& params) const {
  const ErrorKind kind = answer.error().kind();
  if (!options_.stale_on_error || kind == ErrorKind::remote || kind == ErrorKind::cancelled) return answer;
  std::optional<json::Raw> known = cache_.find_stale(method, json::View(params));
  if (!known) return answer;
  options_.connect.log.warning("a stale result is used",
                               {{"method", std::string(method)}, {"reason", answer.error().to_string()}});
  return *known;
}

Task<Result<json::Raw>> ClientSession::rounds(std::string method, json::Raw params, ToolCallOptions options) {
  json::Raw answers;
  std::string state;
  const bool may_cache = options_.cache && is_modern(revision_);
  const std::uint64_t asked_at = cache_.generation();
  bool listed_again = false;
  for (int round = 0; round <= kMostRounds; ++round) {
    const bool wants_progress = static_cast<bool>(options.on_progress);
    json::Raw sent_params = enveloped(params, wants_progress, answers, state);
    CallOptions call_options = call_options_of(options);
    if (wants_progress)
      call_options.params_for_id = [sent_params](std::string_view id) { return with_token(sent_params, id); };
    Task<Result<json::Raw>> sending = send(method, std::move(sent_params), std::move(call_options));
    Result<json::Raw> answer = co_await sending;
    if (!answer && answer.error().detail().rpc_code == rpc::kInvalidParams &&
        !json::View(params)["cursor"].absent()) {
      cache_.on_bad_cursor(method);
    }
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
    const json::View view(*answer);
    const std::string type = view["resultType"].as_string().value_or("complete");
    if (type == "complete") {
      if (may_cache && answers.absent() && state.empty())
        cache_.store(method, json::View(params), *answer, Clock::now(), asked_at);
      co_return answer;
    }
    if (type == "task" && method == "tools/call" && options_.tasks) co_return answer;
    if (type != "input_required")
      co_return Error(ErrorKind::validation, "the server answered with an unknown resultType `" + type + "`");
    state = view["requestState"].as_string().value_or("");
    const json::View questions = view["inputRequests"];
    if (questions.absent()) {
      answers = json::Raw();
      co_await sleep_for(connection_->loop(), kComeBack);
      continue;
    }
    Task<Result<json::Raw>> answering = answer_questions(sub(*answer, questions));
    Result<json::Raw> answered = co_await answering;
    if (!answered) co_return answered.error();
    answers = std::move(*answered);
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
  Task<Result<json::Raw>> asking = request_now("logging/setLevel", params.finish(), std::move(options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return Result<void>();
}

}  // namespace fairlead::mcp
