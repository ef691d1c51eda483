#include "mcp/client_session.hpp"

#include "fairlead/loop/timer.hpp"
#include "fairlead/mcp/forward_call.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "json/splice.hpp"
#include "loop/slices.hpp"
#include "protocol/encoded_call.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

constexpr int kMaxRounds = 10;
constexpr std::size_t kMaxShownResultTypeBytes = 100;  // of an unknown resultType, in an error message
const std::chrono::milliseconds kInputRetryDelay{250};

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
  if (options_.serve_tasks && revision == Revision::r2025_11_25 && (handlers.sample || handlers.elicit)) {
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
  if (options_.accept_tasks && is_modern(revision)) declared.try_emplace(std::string(kTasksExtension));
  write_extensions(out, declared);
  out.end_object();
}

// ---- requests -------------------------------------------------------------------------------------------

Result<json::IndexedRaw> ClientSession::result_of(std::string_view method,
                                                  const Result<rpc::Message>& response) const {
  if (!response) return response.error();
  if (response->is(rpc::Kind::error)) return response->remote_error();
  const std::size_t limit = options_.list_limits.max_message_members;
  if (response->members().member_count() > limit)
    return Error(ErrorKind::resource_exhausted, "the result of " + std::string(method) +
                                                    " has more than max_message_members (" +
                                                    std::to_string(limit) + ")");
  return response->indexed_result();
}

std::vector<std::pair<std::string_view, json::Raw>> ClientSession::envelope_members(
    std::string_view token) const {
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

// Returns the text of a value without line breaks, for a message that must be a single line.
std::string one_line_of(const json::Raw& value) {
  return value.is_one_line() ? std::string(value.text()) : json::to_one_line(value.text());
}

}  // namespace

// Members of the params that are not added or replaced stay unchanged.
json::Splice ClientSession::with_round_members(const RequestParams& params, const Round& round) const {
  const json::Raw base = params.raw().absent() ? empty_object() : params.raw();
  const std::string_view object = json::View(base).text();
  json::Splice splice(base.bytes());
  if (!json::View(base).is(json::Type::object)) return splice;
  const auto meta = envelope_members(round.token);
  if (params.meta().is(json::Type::object)) {
    for (const auto& [key, value] : meta) splice.insert_member(params.meta().text(), key, one_line_of(value));
  } else if (!meta.empty()) {
    json::Writer new_meta;
    new_meta.begin_object();
    for (const auto& [key, value] : meta) new_meta.key(key).raw(one_line_of(value));
    new_meta.end_object();
    if (params.meta().absent()) {
      splice.insert_member(object, "_meta", new_meta.text());
    } else {
      splice.replace(params.meta().text(), new_meta.finish().bytes());
    }
  }
  if (!round.input_responses.absent())
    splice.insert_member(object, "inputResponses", one_line_of(round.input_responses));
  if (!round.request_state.empty())
    splice.insert_member(object, "requestState", json::string(round.request_state).text());
  return splice;
}

json::Raw ClientSession::with_envelope(const json::Raw& params) const {
  const RequestParams given(params);
  const bool unchanged = params.absent() && !is_modern(revision_);
  return unchanged ? params
                   : json::Raw::trusted(with_round_members(given, Round()).joined(), params.is_one_line());
}

rpc::Rope ClientSession::encode_round(std::string_view id, std::string_view method,
                                      const RequestParams& params, const Round& round) const {
  const bool adds_members = is_modern(revision_) || round.wants_progress || !round.input_responses.absent() ||
                            !round.request_state.empty();
  if (!adds_members) return rpc::make_request(id, method, params.raw());
  Round with_token = round;
  if (round.wants_progress) with_token.token = id;
  return rpc::make_request(id, method, with_round_members(params, with_token).parts(),
                           params.raw().is_one_line());
}

namespace {

CallOptions to_call_options(const ClientCallOptions& options) {
  CallOptions call_options;
  call_options.timeout = options.timeout;
  call_options.max_total_time = options.max_total_time;
  call_options.stop = options.stop;
  if (options.on_progress) {
    call_options.on_progress = [report = options.on_progress](const json::Raw& params) {
      const json::Members view(json::View(params), {"progress", "total", "message"});
      report(view["progress"].as_double().value_or(0), view["total"].as_double(),
             view["message"].as_string().value_or(""));
    };
  }
  return call_options;
}

}  // namespace

Task<Result<json::Raw>> ClientSession::request(std::string method, json::Raw params,
                                               ClientCallOptions options) {
  Task<Result<json::IndexedRaw>> sent =
      request_indexed(std::move(method), std::move(params), std::move(options));
  const Result<json::IndexedRaw> response = co_await sent;
  if (!response) co_return response.error();
  co_return response->raw();
}

Task<Result<json::IndexedRaw>> ClientSession::request_indexed(std::string method, json::Raw params,
                                                              ClientCallOptions options) {
  const auto keep_alive = self();
  RequestParams read = co_await RequestParams::read(loop_, std::move(params));
  Result<json::IndexedRaw> response =
      co_await serve_request(std::move(method), std::move(read), std::move(options));
  co_return response;
}

// Not a coroutine: most requests need neither a reconnect nor a stale result.
Task<Result<json::IndexedRaw>> ClientSession::serve_request(std::string method, RequestParams params,
                                                            ClientCallOptions options) {
  if (options_.cache_results && is_modern(revision_)) {
    if (std::optional<json::IndexedRaw> cached = cache_.find(method, params.view(), Clock::now()))
      return ready_task<Result<json::IndexedRaw>>(std::move(*cached));
  }
  if (needs_reconnect() || options_.stale_on_error)
    return reconnect_and_request(std::move(method), std::move(params), std::move(options));
  return request_to_completion(std::move(method), std::move(params), std::move(options));
}

Task<Result<json::IndexedRaw>> ClientSession::reconnect_and_request(std::string method, RequestParams params,
                                                                    ClientCallOptions options) {
  if (needs_reconnect()) {
    const Result<void> reconnected = co_await reconnect();
    if (!reconnected) co_return stale_result_or(reconnected.error(), method, params.raw());
  }
  Result<json::IndexedRaw> response = co_await request_to_completion(method, params, std::move(options));
  if (response || !options_.stale_on_error) co_return response;
  co_return stale_result_or(std::move(response), method, params.raw());
}

// An error that the server itself has returned, or a cancellation, is not replaced by a stale result.
Result<json::IndexedRaw> ClientSession::stale_result_or(Result<json::IndexedRaw> response,
                                                        std::string_view method,
                                                        const json::Raw& params) const {
  const ErrorKind kind = response.error().kind();
  if (!options_.stale_on_error || kind == ErrorKind::remote || kind == ErrorKind::cancelled) return response;
  std::optional<json::IndexedRaw> cached = cache_.find_stale(method, json::View(params));
  if (!cached) return response;
  options_.connect.log.warning("using a stale result",
                               {{"method", std::string(method)}, {"reason", response.error().to_string()}});
  return *cached;
}

Task<Result<json::IndexedRaw>> ClientSession::run_rounds(std::string_view method, const RequestParams& params,
                                                         const ClientCallOptions& options) {
  Round round;
  round.wants_progress = static_cast<bool>(options.on_progress);
  const bool may_cache = options_.cache_results && is_modern(revision_);
  const std::uint64_t request_generation = cache_.generation();
  bool listed_again = false;
  for (int count = 0; count <= kMaxRounds; ++count) {
    const auto encode = [&](std::string_view id) { return encode_round(id, method, params, round); };
    CallOptions call_options = to_call_options(options);
    call_options.request_for_id = std::cref(encode);  // small enough to be stored without an allocation
    const Result<rpc::Message> message = co_await peer_->forward(method, std::move(call_options));
    Result<json::IndexedRaw> response = result_of(method, message);
    if (!response && response.error().detail().rpc_code == rpc::kInvalidParams && !params.cursor().absent())
      cache_.erase_pages(method);
    // The server rejected the HTTP headers, so the header annotations of the tool have changed: request
    // tools/list again and retry once.
    if (!response && !listed_again && method == "tools/call" && connection_->has_stream_per_request() &&
        response.error().detail().rpc_code == kHeaderMismatch) {
      listed_again = true;
      cache_.invalidate_by_notification("notifications/tools/list_changed", json::View());
      const Result<std::vector<json::Raw>> tools = co_await list("tools/list", "tools");
      if (tools) continue;
    }
    if (!response || !is_modern(revision_)) co_return response;
    const std::string type = (*response)["resultType"].as_string().value_or("complete");
    if (type == "complete") {
      if (may_cache && round.input_responses.absent() && round.request_state.empty())
        cache_.store(method, params.view(), *response, Clock::now(), request_generation);
      co_return response;
    }
    if (type == "task" && method == "tools/call" && options_.accept_tasks) co_return response;
    if (type != "input_required")
      co_return Error(ErrorKind::validation, "the server answered with an unknown resultType `" +
                                                 type.substr(0, kMaxShownResultTypeBytes) + "`");
    round.request_state = (*response)["requestState"].as_string().value_or("");
    round.input_responses = json::Raw();
    const json::Raw input_requests = response->raw_member("inputRequests");
    if (input_requests.absent()) {
      co_await sleep_for(connection_->loop(), kInputRetryDelay);
      continue;
    }
    Result<json::Raw> input_responses = co_await answer_input_requests(input_requests);
    if (!input_responses) co_return input_responses.error();
    round.input_responses = std::move(*input_responses);
  }
  co_return Error(ErrorKind::resource_exhausted, "the server requested input in more than 10 rounds");
}

namespace {

// Replaces the progress token in `params`, the params of a progress notification, by the token that the
// sender of the request had set.
json::Raw with_progress_token_of(const ForwardedRequest& request, const json::Raw& params) {
  const Bytes token = Bytes::copy_of(request.facts()->progress_token.text());
  json::Splice splice(params.bytes());
  json::View(params).each_member([&](std::string_view key, bool escaped, json::View value) {
    if (json::key_equals(key, escaped, "progressToken")) splice.replace(value.text(), token);
    return true;
  });
  return json::Raw::trusted(splice.joined(), params.is_one_line());
}

}  // namespace

Peer::Forward ClientSession::forward(const ForwardedRequest& request, CallOptions options) {
  if (!options.on_progress) {
    options.request_for_id = [this, &request](std::string_view id) {
      return encode_forwarded(request, {id, false});
    };
    return peer_->forward(request.method(), std::move(options));
  }
  options.request_for_id = [this, &request](std::string_view id) {
    return encode_forwarded(request, {id, true});
  };
  if (request.wants_progress()) {
    options.on_progress = [report = std::move(options.on_progress), &request](const json::Raw& params) {
      report(with_progress_token_of(request, params));
    };
  }
  return peer_->forward(request.method(), std::move(options));
}

void ForwardCall::on_progress(const json::Raw& params) {
  on_forwarded_progress(request_.wants_progress() ? with_progress_token_of(request_, params) : params);
}

rpc::Rope ClientSession::encode_forwarded(const ForwardedRequest& request,
                                          ForwardedRequest::EncodeOptions options) const {
  rpc::Rope rope = request.encode(revision_, options);
  if (connection_->has_stream_per_request())
    rope.annotate(make_cached<const EncodedCall>(request.facts(), std::string(options.id),
                                                 std::string(request.target()), revision_));
  return rope;
}

Task<Result<void>> ClientSession::set_log_level(LoggingLevel level) {
  const auto keep_alive = self();
  options_.log_level = level;
  if (is_modern(revision_)) co_return Result<void>();
  if (needs_reconnect()) {
    Task<Result<void>> reconnecting = reconnect();  // the handshake sends the level
    Result<void> reconnected = co_await reconnecting;
    co_return reconnected;
  }
  Result<void> set = co_await send_log_level(std::nullopt);
  co_return set;
}

Task<Result<void>> ClientSession::send_log_level(std::optional<std::chrono::milliseconds> timeout) {
  json::Writer params;
  params.begin_object().key("level").string(to_string(*options_.log_level)).end_object();
  ClientCallOptions options;
  options.timeout = timeout;
  const Result<json::IndexedRaw> response =
      co_await request_to_completion("logging/setLevel", RequestParams(params.finish()), std::move(options));
  if (!response) co_return response.error();
  co_return Result<void>();
}

}  // namespace fairlead::mcp
