#include "gateway/forwarding.hpp"

#include <utility>
#include <vector>

#include "base/exception_error.hpp"
#include "fairlead/base/block_cache.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/client_channel.hpp"
#include "gateway/failure.hpp"
#include "json/members.hpp"
#include "json/redact.hpp"
#include "loop/slices.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::gateway {

namespace {

constexpr int kMaxRounds = 10;  // of one forwarded call
constexpr std::size_t kMaxResponseMembers = mcp::ListLimits().max_message_members;

// A modern client describes itself in the request, which is not changed in that respect.
ClientDescription describe_client(const mcp::Context& context) {
  if (mcp::is_modern(context.revision())) return ClientDescription{context.revision(), {}, {}, std::nullopt};
  return ClientDescription{context.revision(), context.client_capabilities(), context.client_info(),
                           context.log_level()};
}

Error server_violation_error(const std::string& server, const std::string& problem,
                             std::string_view failure_code) {
  return refusal_error(rpc::kInternalError, "server `" + server + "` " + problem, failure_code);
}

std::string max_message_members_text() {
  return "max_message_members (" + std::to_string(kMaxResponseMembers) + ")";
}

bool is_input_required(const rpc::Message& response) {
  const json::View result(response.result_text());
  constexpr std::string_view kInputRequired = "input_required";
  return json::Members(response.members(), result, {"resultType"})["resultType"].as_string(
             kInputRequired.size()) == kInputRequired;
}

// A request of the server to the client: a member of the `inputRequests` of a result.
struct InputRequest {
  std::string method;
  json::Raw params;
};
using KeyedInputRequests = std::vector<std::pair<std::string, json::View>>;  // keys and unparsed requests

// Returns the members of the `inputRequests` object; nullopt if there are more than max_message_members.
std::optional<KeyedInputRequests> split_input_requests(json::View object) {
  KeyedInputRequests requests;
  object.each_member([&](std::string_view key, bool escaped, json::View request) {
    requests.emplace_back(escaped ? json::unescape(key) : std::string(key), request);
    return requests.size() <= kMaxResponseMembers;
  });
  if (requests.size() > kMaxResponseMembers) return std::nullopt;
  return requests;
}

// Returns the value that `part`, a view into `whole`, refers to. The returned value shares the bytes of
// `whole`; it is absent if `part` is absent.
json::Raw part_of(const json::Raw& whole, json::View part) {
  return part.absent() ? json::Raw()
                       : json::Raw::trusted(whole.bytes().part(part.text()), whole.is_one_line());
}

// Parses `request`, one of the members of `input_requests`. An absent or invalid method becomes "".
InputRequest parse_input_request(const json::Raw& input_requests, json::View request) {
  constexpr std::size_t kMaxShownMethodBytes = 256;
  const json::Members members(request, {"method", "params"});
  return InputRequest{members["method"].as_string(kMaxShownMethodBytes).value_or(""),
                      part_of(input_requests, members["params"])};
}

}  // namespace

mcp::Implementation gateway_info() {
  return mcp::Implementation{"fairlead", FAIRLEAD_VERSION, "Fairlead gateway", {}, {}, {}};
}

std::string Forwarder::make_server_info() {
  json::Writer out;
  write(out, gateway_info(), mcp::kNewestRevision);
  return std::string(out.text());
}

std::string_view client_capability_for(std::string_view method) noexcept {
  if (method == "sampling/createMessage") return "sampling";
  if (method == "elicitation/create") return "elicitation";
  return method == "roots/list" ? "roots" : "";
}

struct Forwarder::Call : ForwardedCall {
  Call(const rpc::Message& message, std::shared_ptr<const mcp::CallFacts>&& facts, mcp::Context&& client,
       Route&& request_route)
      : ForwardedCall(std::move(client)),
        route(std::move(request_route)),
        first_request(message, std::move(facts), route.name_at_server, describe_client(context)) {}

  const std::string& server() const noexcept { return route.server->name(); }
  const mcp::CallFacts& facts() const noexcept { return *first_request.facts(); }
  const std::string& method() const noexcept { return facts().method; }
  pool::Target target() const { return pool::Target(server(), context.session(), context.user()); }
  StateBinding binding() const { return StateBinding{*context.principal(), server(), facts()}; }

  Route route;
  RequestRewriter first_request;  // the request of the first round
};

// A call that is made without a coroutine.
struct Forwarder::DirectCall final : Call, pool::DirectForward, std::enable_shared_from_this<DirectCall> {
  DirectCall(std::shared_ptr<Forwarder>&& of, mcp::DirectRequest&& from_client, Route&& request_route,
             const std::shared_ptr<Responder>& to)
      : Call(from_client.message, std::move(from_client.facts), std::move(from_client.context),
             std::move(request_route)),
        DirectForward(Call::server(), context.session(), context.user()),
        forwarder(std::move(of)),
        responder(to) {
    forwarder->set_options(*this, options);
  }

  const mcp::ForwardedRequest& request() const noexcept override { return first_request; }
  std::shared_ptr<const mcp::ForwardedRequest> copy_request() const override {
    return make_cached<RequestRewriter>(first_request);
  }
  void* call_context() noexcept override { return static_cast<ForwardedCall*>(this); }
  void on_answer(const rpc::Message& response, mcp::Revision revision) override;
  void on_failure(const Error& error) override;
  // Responds at once if nothing has to be awaited for that. Returns false otherwise.
  bool respond_to(const rpc::Message& response, mcp::Revision revision) const;
  void continue_with(Result<pool::ForwardedAnswer> answer);

  std::shared_ptr<Forwarder> forwarder;
  std::shared_ptr<Responder> responder;
};

bool Forwarder::try_forward(mcp::DirectRequest&& request, Route&& route,
                            const std::shared_ptr<Responder>& responder) {
  const bool continues = mcp::is_modern(request.context.revision()) && !request.facts->request_state.absent();
  if (continues) return false;
  return pool_->forward(
      make_cached<DirectCall>(shared_from_this(), std::move(request), std::move(route), responder));
}

void Forwarder::DirectCall::on_answer(const rpc::Message& response, mcp::Revision revision) {
  try {
    if (!respond_to(response, revision)) continue_with(pool::ForwardedAnswer(response, revision));
  } catch (const std::exception& thrown) {
    responder->respond(exception_error(thrown));
  }
}

void Forwarder::DirectCall::on_failure(const Error& error) {
  try {
    continue_with(error);
  } catch (const std::exception& thrown) {
    responder->respond(exception_error(thrown));
  }
}

bool Forwarder::DirectCall::respond_to(const rpc::Message& response, mcp::Revision revision) const {
  if (response.is(rpc::Kind::error) || response.result_text().size() > Slices::kLargeMessageBytes)
    return false;
  const std::optional<Answer> answer = forwarder->response_for_client(*this, response, revision);
  if (answer) responder->respond(*answer);
  return answer.has_value();
}

void Forwarder::DirectCall::continue_with(Result<pool::ForwardedAnswer> answer) {
  forwarder->loop_.spawn(continue_call(shared_from_this(), std::move(answer)));
}

Task<void> Forwarder::continue_call(std::shared_ptr<DirectCall> call, Result<pool::ForwardedAnswer> answer) {
  std::optional<Answer> response;
  try {
    Task<Answer> rounds = call->forwarder->run_rounds(call, Round(), std::move(answer));
    response = co_await rounds;
  } catch (const std::exception& thrown) {
    response = exception_error(thrown);
  }
  call->responder->respond(*response);
}

Task<Answer> Forwarder::forward(mcp::BackendRequest request, Route route) {
  const std::shared_ptr<Call> call = make_cached<Call>(request.message, std::move(request.facts),
                                                       std::move(request.context), std::move(route));
  Round round;
  // A modern client sends the request state of the previous round. For a legacy client, run_rounds() performs
  // all rounds and keeps the request state in its `round`.
  if (mcp::is_modern(call->context.revision())) {
    Result<json::Raw> state = state_sealer_.open(call->binding());
    if (!state) return ready_task<Answer>(state.error());
    round.request_state = std::move(*state);
  }
  return run_rounds(call, std::move(round), std::nullopt);
}

Task<Answer> Forwarder::run_rounds(std::shared_ptr<Call> shared_call, Round round,
                                   std::optional<Result<pool::ForwardedAnswer>> first_answer) {
  const auto self = shared_from_this();
  const Call& call = *shared_call;
  for (int number = 0; number < kMaxRounds; ++number) {
    std::optional<Result<pool::ForwardedAnswer>> answered = std::exchange(first_answer, std::nullopt);
    if (!answered) {
      pool::ForwardOptions options;
      set_options(call, options);
      options.call_context = std::shared_ptr<ForwardedCall>(shared_call);
      answered = co_await pool_->forward(call.target(), make_request(call, round), std::move(options));
    }
    const Result<pool::ForwardedAnswer>& answer = *answered;
    if (!answer) {
      // When a server ends, many calls fail in one turn. The pause lets each write its error response in a
      // turn of its own.
      co_await sleep_for(loop_, Slices::kPause);
      const bool with_details = failure_policy_.shows_details_to(*call.context.principal());
      co_return redacted(server_failure_error(call.server(), answer.error(), with_details));
    }
    if (answer->message.is(rpc::Kind::error))
      co_return redacted(record_url_elicitations(call, answer->message.remote_error()));
    if (answer->message.result_text().size() > Slices::kLargeMessageBytes)
      co_await sleep_for(loop_, Slices::kPause);
    std::optional<Answer> response = response_for_client(call, answer->message, answer->revision);
    if (response) co_return std::move(*response);
    const json::IndexedRaw indexed = answer->message.indexed_result();
    const Result<void> prepared = co_await prepare_next_round(call, indexed, round);
    if (!prepared) co_return redacted(prepared.error());
  }
  co_return redacted(server_violation_error(
      call.server(), "requested input more than " + std::to_string(kMaxRounds) + " times",
      failure::too_many_rounds));
}

Error Forwarder::redacted(const Error& error) const {
  return json::redact(*pool_->monitor()->redactor(), error);
}

std::shared_ptr<const mcp::ForwardedRequest> Forwarder::make_request(const Call& call,
                                                                     const Round& round) const {
  auto request = make_cached<RequestRewriter>(call.first_request);
  request->set_round(round.input_responses, round.request_state);
  return request;
}

void Forwarder::set_options(const Call& call, pool::ForwardOptions& options) const {
  options.stop = call.context.stop();
  options.tool = call.route.tool_entry;
  options.repeatable = options.tool.absent() && pool::is_repeatable(call.method());
  options.client = call.context.principal().get();
  options.on_progress = [&loop = loop_, &call](const json::Raw& params) {
    const Result<void> sent = ClientChannel(loop, call.context).notify("notifications/progress", params);
    static_cast<void>(sent);  // a progress notification that exceeds max_backlog_bytes is dropped
  };
}

std::optional<Answer> Forwarder::response_for_client(const Call& call, const rpc::Message& response,
                                                     mcp::Revision revision) const {
  if (response.members().member_count() > kMaxResponseMembers)
    return redacted(server_violation_error(
        call.server(), "answered with more than " + max_message_members_text(), failure::resource_exhausted));
  const mcp::Revision client = call.context.revision();
  if (mcp::is_modern(revision) && is_input_required(response)) {
    if (!mcp::is_modern(client)) return std::nullopt;
    return state_sealer_.seal(response, call.binding());
  }
  if (mcp::is_modern(revision) == mcp::is_modern(client)) return response.result();
  return result_for_client(response, call.method(), revision, client, server_info_);
}

Task<Result<void>> Forwarder::prepare_next_round(const Call& call, const json::IndexedRaw& result,
                                                 Round& round) const {
  round.request_state = result.raw_member("requestState");
  round.input_responses = json::Raw();
  json::Raw input_requests = result.raw_member("inputRequests");
  if (input_requests.absent()) co_return Result<void>();
  Result<json::Raw> responses = co_await request_input(call, std::move(input_requests));
  if (!responses) co_return responses.error();
  round.input_responses = std::move(*responses);
  co_return Result<void>();
}

// The server responds with kUrlElicitationRequired until the user has visited a URL. It notifies the client
// when the user has done so.
Error Forwarder::record_url_elicitations(const Call& call, Error error) const {
  if (error.detail().rpc_code != mcp::kUrlElicitationRequired) return error;
  json::View(error.detail().rpc_data)["elicitations"].each_element([&](json::View elicitation) {
    if (const auto id = elicitation["elicitationId"].as_string(mcp::kMaxElicitationIdBytes))
      sessions_->add_url_elicitation(call.server(), *id, call.context.session());
    return true;
  });
  return error;
}

// Sends the input requests of a modern server to a legacy client, one after the other.
Task<Result<json::Raw>> Forwarder::request_input(const Call& call, json::Raw input_requests) const {
  const std::optional<KeyedInputRequests> requests = split_input_requests(json::View(input_requests));
  if (!requests) {
    co_return server_violation_error(call.server(),
                                     "sent more than " + max_message_members_text() + " input requests",
                                     failure::resource_exhausted);
  }
  if (input_requests.text().size() > Slices::kLargeMessageBytes) co_await sleep_for(loop_, Slices::kPause);
  const ClientChannel client(loop_, call.context);
  json::Writer responses;
  responses.begin_object();
  for (const auto& [key, view] : *requests) {
    const InputRequest request = parse_input_request(input_requests, view);
    const std::string_view capability = client_capability_for(request.method);
    if (capability.empty() || call.context.client_capabilities()[capability].absent()) {
      co_return server_violation_error(
          call.server(), "requests `" + request.method + "`, which this client does not support",
          failure::unsupported_by_client);
    }
    const Result<json::Raw> response = co_await client.send_request(request.method, request.params);
    if (!response) co_return response.error();
    responses.key(key).raw(*response);
  }
  responses.end_object();
  co_return responses.finish();
}

}  // namespace fairlead::gateway
