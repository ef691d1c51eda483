#include "pool/loop_connection.hpp"

#include "fairlead/loop/run_on.hpp"
#include "pool/client_connection.hpp"

namespace fairlead::pool {

namespace {

using FarConnection = std::shared_ptr<UpstreamConnection>;

// Stops what runs on the other loop when it is not awaited here any more.
struct FarStop {
  explicit FarStop(const std::stop_token& given) : stop(given, Forward{&source}) {}
  FarStop(const FarStop&) = delete;
  ~FarStop() { source.request_stop(); }

  struct Forward {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };
  std::stop_source source;
  std::stop_callback<Forward> stop;
};

// Progress of one call: handed on until the call has ended here.
struct Progress {
  explicit Progress(std::function<void(const json::Raw&)> to) : handler(std::move(to)) {}
  std::function<void(const json::Raw&)> handler;
};

struct EndProgress {
  explicit EndProgress(std::shared_ptr<Progress> of) : progress(std::move(of)) {}
  EndProgress(const EndProgress&) = delete;
  ~EndProgress() { progress->handler = nullptr; }
  std::shared_ptr<Progress> progress;
};

struct CallOutcome {
  explicit CallOutcome(Error error) : answer(std::move(error)) {}
  CallOutcome(Result<rpc::Message> of_call, std::optional<Error> of_connection)
      : answer(std::move(of_call)), end_reason(std::move(of_connection)) {}
  Result<rpc::Message> answer;
  std::optional<Error> end_reason;  // of the connection, where that is why the call has failed
};

std::size_t bytes_of(const Error& error) {
  return error.message().size();
}
std::size_t bytes_of_call(const CallOutcome& outcome) {
  const Result<rpc::Message>& answer = outcome.answer;
  return answer ? answer->frame().size() : bytes_of(answer.error());
}
std::size_t bytes_of_list(const Result<std::vector<json::Raw>>& list) {
  if (!list) return bytes_of(list.error());
  std::size_t bytes = 0;
  for (const json::Raw& entry : *list) bytes += sizeof(entry) + entry.text().size();
  return bytes;
}
std::size_t bytes_of_answer(const Answer& answer) {
  return answer ? answer->text().size() : bytes_of(answer.error());
}
template <class T>
std::size_t bytes_of_small(const Result<T>& outcome) {
  return outcome ? sizeof(outcome) : bytes_of(outcome.error());
}
std::size_t bytes_of_filter(const mcp::ListenFilter& filter) {
  std::size_t bytes = 0;
  for (const std::string& uri : filter.uris) bytes += uri.size();
  return bytes;
}

// ---- on the other loop -----------------------------------------------------------------------------------

using FarPtr = std::shared_ptr<LoopConnection::Far>;

Task<Result<FarPtr>> open_far(Loop& other, UpstreamOpener opener, UpstreamOpening opening,
                              std::shared_ptr<LoopRelay> relay) {
  opening.client.handlers = relay->handlers();
  Task<OpenedUpstream> connecting = opener(other, std::move(opening));
  OpenedUpstream opened = co_await connecting;
  if (!opened) co_return opened.error();
  relay->set_connection(*opened);
  co_return std::make_shared<LoopConnection::Far>(other, std::move(*opened));
}

Task<CallOutcome> call_far(FarConnection far, std::shared_ptr<const mcp::OutgoingRequest> request,
                           CallOptions options) {
  Result<rpc::Message> answer = co_await far->call(request, std::move(options));
  if (answer) co_return CallOutcome(std::move(answer), std::nullopt);
  std::optional<Error> ended = far->end_reason();
  if (ended) ended = with_server_context(*far, std::move(*ended));
  Result<rpc::Message> failed = with_server_context(*far, answer.error());
  co_return CallOutcome(std::move(failed), std::move(ended));
}

Task<Result<std::vector<json::Raw>>> list_far(FarConnection far, std::string method, std::string member) {
  Task<Result<std::vector<json::Raw>>> listing = far->list(std::move(method), std::move(member));
  Result<std::vector<json::Raw>> entries = co_await listing;
  co_return entries;
}

Task<Result<std::uint64_t>> subscribe_far(FarConnection far, mcp::ListenFilter filter) {
  Task<Result<std::uint64_t>> subscribing = far->subscribe(std::move(filter));
  const Result<std::uint64_t> number = co_await subscribing;
  co_return number;
}

Task<Result<void>> unsubscribe_far(FarConnection far, std::uint64_t subscription) {
  Task<Result<void>> unsubscribing = far->unsubscribe(subscription);
  const Result<void> done = co_await unsubscribing;
  co_return done;
}

Task<Result<void>> set_log_level_far(FarConnection far, mcp::LoggingLevel level) {
  Task<Result<void>> setting = far->set_log_level(level);
  const Result<void> done = co_await setting;
  co_return done;
}

Task<Result<void>> ping_far(FarConnection far) {
  Task<Result<void>> pinging = far->ping();
  const Result<void> done = co_await pinging;
  co_return done;
}

Task<Result<void>> close_far(FarConnection far) {
  Task<void> closing = far->close();
  co_await closing;
  co_return Result<void>();
}

// ---- on the loop that the connection is opened for
// ---------------------------------------------------------

// For what frees memory there: it is never refused.
Task<Result<void>> await_far(Loop& here, Loop& other, Task<Result<void>> task) {
  RunOn<Result<void>> running(here, other, std::move(task));
  const Result<void> outcome = co_await running;
  co_return outcome;
}

Task<OpenedUpstream> open_for(Loop& here, Loop& other, UpstreamOpener opener, UpstreamOpening opening) {
  const FarStop stop(opening.stop);
  opening.stop = stop.source.get_token();
  const std::size_t max_bytes = opening.client.connect.limits.max_backlog_bytes;
  const auto relay = std::make_shared<LoopRelay>(here, other, std::move(opening.client.handlers), max_bytes);
  Task<Result<FarPtr>> connecting = open_far(other, std::move(opener), std::move(opening), relay);
  RunOn<Result<FarPtr>> running(here, other, std::move(connecting));
  Result<FarPtr> far = co_await running;
  if (!far) co_return far.error();
  co_return std::shared_ptr<UpstreamConnection>(
      std::make_shared<LoopConnection>(here, std::move(*far), relay));
}

Task<Result<rpc::Message>> call_for(Loop& here, FarPtr far, std::shared_ptr<LoopRelay> relay,
                                    std::shared_ptr<const mcp::OutgoingRequest> request,
                                    CallOptions options) {
  const FarStop stop(options.stop);
  options.stop = stop.source.get_token();
  const auto progress = std::make_shared<Progress>(std::move(options.on_progress));
  const EndProgress until_the_end(progress);
  options.on_progress = [relay, progress](const json::Raw& params) {
    relay->post(params.text().size(), [progress, params] {
      if (progress->handler) progress->handler(params);
    });
  };
  const std::size_t bytes = request->size();
  Task<CallOutcome> calling = call_far(far->connection, std::move(request), std::move(options));
  Task<CallOutcome> running =
      run_charged(here, far->other, relay->posted(), bytes, std::move(calling), bytes_of_call);
  CallOutcome outcome = co_await running;
  if (outcome.end_reason) relay->note_end(*outcome.end_reason);
  co_return std::move(outcome.answer);
}

}  // namespace

UpstreamOpener on_loop(Loop& other, UpstreamOpener opener) {
  return [&other, opener = std::move(opener)](Loop& loop, UpstreamOpening opening) {
    return open_for(loop, other, opener, std::move(opening));
  };
}

// ---- LoopRelay -------------------------------------------------------------------------------------------

mcp::ClientHandlers LoopRelay::handlers() {
  mcp::ClientHandlers relayed;
  relayed.capabilities = handlers_.capabilities;
  const std::shared_ptr<LoopRelay> self = shared_from_this();
  relayed.request = [self](Request request) { return relay_request(self, std::move(request)); };
  relayed.notified = [self](std::string_view method, const json::Raw& params) {
    self->relay_notification(method, params);
  };
  relayed.ended = [self](const Error& reason) { self->relay_end(reason); };
  return relayed;
}

void LoopRelay::post(std::size_t bytes, Loop::Callback callback) {
  Result<PostedBytes::Charge> charge = posted_.charge(bytes);
  if (!charge) {
    relay_end(charge.error());
    if (const auto connection = connection_.lock()) connection->abort();
    return;
  }
  here_.post([charge = std::move(*charge), callback = std::move(callback)]() mutable {
    charge.release();
    callback();
  });
}

// Its peer stays on its own loop.
Task<Answer> LoopRelay::relay_request(std::shared_ptr<LoopRelay> self, Request request) {
  Request portable(nullptr, request.message(), request.stop());
  Task<Answer> handling = handle_request(self, std::move(portable));
  const std::size_t bytes = request.message().frame().size();
  Task<Answer> running =
      run_charged(self->other_, self->here_, self->posted_, bytes, std::move(handling), bytes_of_answer);
  Answer answer = co_await running;
  co_return answer;
}

Task<Answer> LoopRelay::handle_request(std::shared_ptr<LoopRelay> self, Request request) {
  Task<Answer> handling = self->handlers_.request(std::move(request));
  Answer answer = co_await handling;
  co_return answer;
}

void LoopRelay::relay_notification(std::string_view method, const json::Raw& params) {
  post(method.size() + params.text().size(), [self = shared_from_this(), method = std::string(method),
                                              params] { self->handlers_.notified(method, params); });
}

void LoopRelay::relay_end(const Error& reason) {
  const auto connection = connection_.lock();
  const Error explained = connection ? with_server_context(*connection, reason) : reason;
  here_.post([self = shared_from_this(), explained] { self->on_end(explained); });
}

void LoopRelay::on_end(const Error& reason) {
  note_end(reason);
  handlers_.ended(reason);
}

// ---- LoopConnection --------------------------------------------------------------------------------------

LoopConnection::Far::~Far() {
  other.post([released = std::move(connection)] { released->abort(); });
}

UpstreamCall LoopConnection::call(const std::shared_ptr<const mcp::OutgoingRequest>& request,
                                  CallOptions options) {
  return UpstreamCall(call_for(here_, far_, relay_, request, std::move(options)));
}

Task<Result<std::vector<json::Raw>>> LoopConnection::list(std::string method, std::string member) {
  const std::size_t bytes = method.size() + member.size();
  return run_charged(here_, far_->other, relay_->posted(), bytes,
                     list_far(far_->connection, std::move(method), std::move(member)), bytes_of_list);
}

Task<Result<std::uint64_t>> LoopConnection::subscribe(mcp::ListenFilter filter) {
  const std::size_t bytes = bytes_of_filter(filter);
  return run_charged(here_, far_->other, relay_->posted(), bytes,
                     subscribe_far(far_->connection, std::move(filter)), bytes_of_small<std::uint64_t>);
}

Task<Result<void>> LoopConnection::unsubscribe(std::uint64_t subscription) {
  return await_far(here_, far_->other, unsubscribe_far(far_->connection, subscription));
}

Task<Result<void>> LoopConnection::set_log_level(mcp::LoggingLevel level) {
  return run_charged(here_, far_->other, relay_->posted(), sizeof(level),
                     set_log_level_far(far_->connection, level), bytes_of_small<void>);
}

Result<void> LoopConnection::notify(std::string_view method, const json::Raw& params) {
  Result<PostedBytes::Charge> charge = relay_->posted().charge(method.size() + params.text().size());
  if (!charge) return charge.error();
  far_->other.post([charge = std::move(*charge), connection = far_->connection, method = std::string(method),
                    params]() mutable {
    charge.release();
    const Result<void> sent = connection->notify(method, params);
    static_cast<void>(sent);  // refused over max_backlog_bytes of the connection
  });
  return {};
}

Task<Result<void>> LoopConnection::ping() {
  return run_charged(here_, far_->other, relay_->posted(), 0, ping_far(far_->connection),
                     bytes_of_small<void>);
}

void LoopConnection::abort() noexcept {
  far_->other.post([connection = far_->connection] { connection->abort(); });
}

Task<void> LoopConnection::close() {
  const FarPtr far = far_;
  Task<Result<void>> closing = await_far(here_, far->other, close_far(far->connection));
  const Result<void> closed = co_await closing;
  static_cast<void>(closed);
}

}  // namespace fairlead::pool
