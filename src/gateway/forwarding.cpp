#include "gateway/forwarding.hpp"

#include <utility>
#include <vector>

#include "fairlead/json/writer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"
#include "gateway/client_link.hpp"
#include "gateway/failure.hpp"
#include "json/members.hpp"
#include "json/redact.hpp"
#include "loop/slices.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::gateway {

namespace {

constexpr int kMaxRounds = 10;
constexpr std::size_t kMaxMembers = mcp::ListLimits().max_message_members;

ClientDescription client_of(const mcp::Context& context) {
  return ClientDescription{context.revision(), context.client_capabilities(), context.client_info(),
                           context.log_level()};
}

Error server_refusal(const std::string& server, const std::string& what, std::string_view code) {
  return refusal_of(rpc::kInternalError, "server `" + server + "` " + what, code);
}

std::string max_members_text() {
  return "max_message_members (" + std::to_string(kMaxMembers) + ")";
}

bool asks_for_input(const rpc::Message& answer) {
  const json::View result(answer.result_text());
  constexpr std::string_view kAsks = "input_required";
  return json::Members(answer.members(), result, {"resultType"})["resultType"].as_string(kAsks.size()) ==
         kAsks;
}

// A server's question: a request that its client must answer.
struct Question {
  std::string method;
  json::Raw params;
};
using Questions = std::vector<std::pair<std::string, json::View>>;

// nullopt if there are more than max_message_members.
std::optional<Questions> questions_in(json::View questions) {
  Questions open;
  questions.each_member([&](std::string_view key, bool escaped, json::View question) {
    open.emplace_back(escaped ? json::unescape(key) : std::string(key), question);
    return open.size() <= kMaxMembers;
  });
  if (open.size() > kMaxMembers) return std::nullopt;
  return open;
}

json::Raw part_of(const json::Raw& whole, json::View part) {
  return part.absent() ? json::Raw() : json::Raw::trusted(whole.bytes().part(part.text()), whole.one_line());
}

Question question_in(const json::Raw& questions, json::View question) {
  constexpr std::size_t kMaxShownMethod = 256;
  const json::Members members(question, {"method", "params"});
  return Question{members["method"].as_string(kMaxShownMethod).value_or(""),
                  part_of(questions, members["params"])};
}

}  // namespace

mcp::Implementation gateway_info() {
  return mcp::Implementation{"fairlead", FAIRLEAD_VERSION, "Fairlead gateway", {}, {}, {}};
}

std::string_view capability_for(std::string_view method) noexcept {
  if (method == "sampling/createMessage") return "sampling";
  if (method == "elicitation/create") return "elicitation";
  return method == "roots/list" ? "roots" : "";
}

struct Forwarder::Call : ForwardedCall {
  Call(mcp::BackendRequest asked, Route found)
      : ForwardedCall(std::move(asked.context)),
        message(std::move(asked.message)),
        facts(std::move(asked.facts)),
        route(std::move(found)) {}

  const std::string& server() const noexcept { return route.server->name(); }
  const std::string& method() const noexcept { return facts->method; }
  StateBinding binding() const { return StateBinding{*context.principal(), server(), *facts}; }

  rpc::Message message;
  std::shared_ptr<const mcp::CallFacts> facts;
  Route route;
};

Task<Answer> Forwarder::forward(mcp::BackendRequest request, Route route) {
  const auto keep = shared_from_this();
  const auto shared_call = std::make_shared<Call>(std::move(request), std::move(route));
  const Call& call = *shared_call;
  Round round;
  // A legacy client's state stays with its call, in the rounds below.
  if (mcp::is_modern(call.context.revision())) {
    Result<json::Raw> state = states_.open(call.binding());
    if (!state) co_return state.error();
    round.state = std::move(*state);
  }
  for (int number = 0; number < kMaxRounds; ++number) {
    pool::Target target(call.server(), std::string(call.context.session()), std::string(call.context.user()));
    Task<Result<pool::ForwardedAnswer>> calling =
        pool_->forward(std::move(target), outgoing(call, round), options_for(shared_call));
    const Result<pool::ForwardedAnswer> answer = co_await calling;
    if (!answer) {
      // When a server ends, many calls fail in one turn: what is said of each is written in a turn of its
      // own.
      co_await sleep_for(loop_, Slices::kPause);
      const bool details = failures_.tells_details(*call.context.principal());
      co_return redacted(failure_of(call.server(), answer.error(), details));
    }
    if (answer->message.is(rpc::Kind::error))
      co_return redacted(remote_error(call, answer->message.remote_error()));
    if (answer->message.result_text().size() > Slices::kLargeMessage)
      co_await sleep_for(loop_, Slices::kPause);
    std::optional<Answer> done = answer_for_client(call, *answer);
    if (done) co_return std::move(*done);
    const json::Indexed indexed = answer->message.indexed_result();
    Task<Result<void>> asking = next_round(call, indexed, round);
    const Result<void> asked = co_await asking;
    if (!asked) co_return redacted(asked.error());
  }
  co_return redacted(server_refusal(call.server(),
                                    "asked for input more than " + std::to_string(kMaxRounds) + " times",
                                    failure::too_many_rounds));
}

Error Forwarder::redacted(const Error& error) const {
  return json::redact(*pool_->redactor(), error);
}

std::shared_ptr<const mcp::OutgoingRequest> Forwarder::outgoing(const Call& call, const Round& round) const {
  auto made =
      std::make_shared<PassedRequest>(call.message, call.facts, call.route.target, client_of(call.context));
  made->set_answers(round.answers, round.state);
  return made;
}

pool::ForwardOptions Forwarder::options_for(const std::shared_ptr<Call>& shared_call) const {
  const Call& call = *shared_call;
  pool::ForwardOptions options;
  options.stop = call.context.stop();
  options.tool = call.route.entry;
  options.repeatable = options.tool.absent() && pool::repeatable(call.method());
  options.caller = std::shared_ptr<ForwardedCall>(shared_call);
  options.client = call.context.principal().get();
  options.on_progress = [&loop = loop_, &call](const json::Raw& params) {
    const Result<void> sent = ClientLink(loop, call.context).notify("notifications/progress", params);
    static_cast<void>(sent);  // refused over max_backlog_bytes of the client's connection
  };
  return options;
}

std::optional<Answer> Forwarder::answer_for_client(const Call& call,
                                                   const pool::ForwardedAnswer& answer) const {
  if (answer.message.members().count() > kMaxMembers)
    return redacted(server_refusal(call.server(), "answered with more than " + max_members_text(),
                                   failure::resource_exhausted));
  const mcp::Revision client = call.context.revision();
  if (mcp::is_modern(answer.revision) && asks_for_input(answer.message)) {
    if (!mcp::is_modern(client)) return std::nullopt;
    return states_.seal(answer.message, call.binding());
  }
  if (mcp::is_modern(answer.revision) == mcp::is_modern(client)) return answer.message.result();
  return result_for_client(answer.message, call.method(), answer.revision, client, gateway_info());
}

Task<Result<void>> Forwarder::next_round(const Call& call, const json::Indexed& result, Round& round) const {
  round.state = result.part("requestState");
  round.answers = json::Raw();
  json::Raw questions = result.part("inputRequests");
  if (questions.absent()) co_return Result<void>();
  Task<Result<json::Raw>> asking = ask_client(call, std::move(questions));
  Result<json::Raw> answers = co_await asking;
  if (!answers) co_return answers.error();
  round.answers = std::move(*answers);
  co_return Result<void>();
}

// A call refused until the user has been to a URL: the server may tell when that is done.
Error Forwarder::remote_error(const Call& call, Error error) const {
  if (error.detail().rpc_code != mcp::kUrlElicitationRequired) return error;
  json::View(error.detail().rpc_data)["elicitations"].each_element([&](json::View one) {
    if (const auto id = one["elicitationId"].as_string(mcp::kMaxElicitationIdBytes))
      sessions_->note_url(call.server(), *id, call.context.session());
    return true;
  });
  return error;
}

// A modern server's questions, put to a legacy client as requests.
Task<Result<json::Raw>> Forwarder::ask_client(const Call& call, json::Raw questions) const {
  const std::optional<Questions> open = questions_in(json::View(questions));
  if (!open) {
    co_return server_refusal(call.server(), "asks more than " + max_members_text() + " questions",
                             failure::resource_exhausted);
  }
  if (questions.text().size() > Slices::kLargeMessage) co_await sleep_for(loop_, Slices::kPause);
  const ClientLink client(loop_, call.context);
  json::Writer answers;
  answers.begin_object();
  for (const auto& [key, view] : *open) {
    const Question question = question_in(questions, view);
    const std::string_view capability = capability_for(question.method);
    if (capability.empty() || call.context.client_capabilities()[capability].absent()) {
      co_return server_refusal(call.server(),
                               "asks for `" + question.method + "`, which this client cannot be asked",
                               failure::unsupported_by_client);
    }
    Task<Result<json::Raw>> asking = client.ask(question.method, question.params);
    const Result<json::Raw> answer = co_await asking;
    if (!answer) co_return answer.error();
    answers.key(key).raw(*answer);
  }
  answers.end_object();
  co_return answers.finish();
}

}  // namespace fairlead::gateway
