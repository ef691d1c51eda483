#include "pool/other_loop_connection.hpp"

#include "fairlead/loop/run_on.hpp"
#include "pool/mcp_client_connection.hpp"

namespace fairlead::pool {

namespace {

using ConnectionPtr = std::shared_ptr<UpstreamConnection>;

// A stop source for an operation on the other loop. It requests stop when `token` does, and when it is
// destroyed because the operation is no longer awaited.
struct LinkedStopSource {
  explicit LinkedStopSource(const std::stop_token& token) : callback(token, Forward{&source}) {}
  LinkedStopSource(const LinkedStopSource&) = delete;
  ~LinkedStopSource() { source.request_stop(); }

  struct Forward {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };
  std::stop_source source;
  std::stop_callback<Forward> callback;
};

// The progress handler of one call; null after the call has ended on the caller's loop.
struct ProgressSink {
  explicit ProgressSink(std::function<void(const json::Raw&)> on_progress)
      : handler(std::move(on_progress)) {}
  std::function<void(const json::Raw&)> handler;
};

// Clears the handler of a ProgressSink when the call ends.
struct ProgressScope {
  explicit ProgressScope(std::shared_ptr<ProgressSink> of_call) : sink(std::move(of_call)) {}
  ProgressScope(const ProgressScope&) = delete;
  ~ProgressScope() { sink->handler = nullptr; }
  std::shared_ptr<ProgressSink> sink;
};

struct CallOutcome {
  explicit CallOutcome(Error error) : answer(std::move(error)) {}
  CallOutcome(Result<rpc::Message> of_call, std::optional<Error> of_connection)
      : answer(std::move(of_call)), end_reason(std::move(of_connection)) {}
  Result<rpc::Message> answer;
  std::optional<Error> end_reason;  // why the connection has ended, if it has
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
std::size_t bytes_of_filter(const mcp::SubscriptionFilter& filter) {
  std::size_t bytes = 0;
  for (const std::string& uri : filter.uris) bytes += uri.size();
  return bytes;
}

// ---- called on the connection's loop --------------------------------------------------------------------

using InnerPtr = std::shared_ptr<OtherLoopConnection::Inner>;

Task<Result<InnerPtr>> open_inner(Loop& connection_loop, UpstreamOpener opener, UpstreamOpenOptions opening,
                                  std::shared_ptr<LoopRelay> relay) {
  opening.client.handlers = relay->handlers();
  UpstreamOpenResult opened = co_await opener(connection_loop, std::move(opening));
  if (!opened) co_return opened.error();
  relay->set_connection(*opened);
  co_return std::make_shared<OtherLoopConnection::Inner>(connection_loop, std::move(*opened));
}

Task<CallOutcome> call_inner(ConnectionPtr connection, std::shared_ptr<const mcp::ForwardedRequest> request,
                             CallOptions options) {
  Result<rpc::Message> answer = co_await connection->call(request, std::move(options));
  if (answer) co_return CallOutcome(std::move(answer), std::nullopt);
  std::optional<Error> ended = connection->end_reason();
  if (ended) ended = with_server_context(*connection, std::move(*ended));
  Result<rpc::Message> failed = with_server_context(*connection, answer.error());
  co_return CallOutcome(std::move(failed), std::move(ended));
}

Task<Result<std::vector<json::Raw>>> list_inner(ConnectionPtr connection, std::string method,
                                                std::string member) {
  Result<std::vector<json::Raw>> entries = co_await connection->list(std::move(method), std::move(member));
  co_return entries;
}

Task<Result<std::uint64_t>> subscribe_inner(ConnectionPtr connection, mcp::SubscriptionFilter filter) {
  const Result<std::uint64_t> number = co_await connection->subscribe(std::move(filter));
  co_return number;
}

Task<Result<void>> unsubscribe_inner(ConnectionPtr connection, std::uint64_t subscription) {
  const Result<void> done = co_await connection->unsubscribe(subscription);
  co_return done;
}

Task<Result<void>> set_log_level_inner(ConnectionPtr connection, mcp::LoggingLevel level) {
  const Result<void> done = co_await connection->set_log_level(level);
  co_return done;
}

Task<Result<void>> ping_inner(ConnectionPtr connection) {
  const Result<void> done = co_await connection->ping();
  co_return done;
}

Task<Result<void>> close_inner(ConnectionPtr connection) {
  co_await connection->close();
  co_return Result<void>();
}

// ---- called on the caller's loop -------------------------------------------------------------------------

// Runs `task` on the connection's loop. It does not count towards max_backlog_bytes and so cannot be
// rejected, because it frees memory on that loop.
Task<Result<void>> run_uncharged(Loop& caller_loop, Loop& connection_loop, Task<Result<void>> task) {
  RunOn<Result<void>> running(caller_loop, connection_loop, std::move(task));
  const Result<void> outcome = co_await running;
  co_return outcome;
}

Task<UpstreamOpenResult> open_for(Loop& caller_loop, Loop& connection_loop, UpstreamOpener opener,
                                  UpstreamOpenOptions opening) {
  const LinkedStopSource stop(opening.stop);
  opening.stop = stop.source.get_token();
  const std::size_t max_bytes = opening.client.connect.limits.max_backlog_bytes;
  const auto relay = std::make_shared<LoopRelay>(caller_loop, connection_loop,
                                                 std::move(opening.client.handlers), max_bytes);
  Task<Result<InnerPtr>> connecting =
      open_inner(connection_loop, std::move(opener), std::move(opening), relay);
  RunOn<Result<InnerPtr>> running(caller_loop, connection_loop, std::move(connecting));
  Result<InnerPtr> inner = co_await running;
  if (!inner) co_return inner.error();
  co_return std::shared_ptr<UpstreamConnection>(
      std::make_shared<OtherLoopConnection>(caller_loop, std::move(*inner), relay));
}

Task<Result<rpc::Message>> call_for(Loop& caller_loop, InnerPtr inner, std::shared_ptr<LoopRelay> relay,
                                    std::shared_ptr<const mcp::ForwardedRequest> request,
                                    CallOptions options) {
  const LinkedStopSource stop(options.stop);
  options.stop = stop.source.get_token();
  const auto progress = std::make_shared<ProgressSink>(std::move(options.on_progress));
  const ProgressScope scope(progress);
  options.on_progress = [relay, progress](const json::Raw& params) {
    relay->post(params.text().size(), [progress, params] {
      if (progress->handler) progress->handler(params);
    });
  };
  const std::size_t bytes = request->approximate_size();
  Task<CallOutcome> calling = call_inner(inner->connection, std::move(request), std::move(options));
  CallOutcome outcome = co_await run_charged(caller_loop, inner->loop, relay->posted(), bytes,
                                             std::move(calling), bytes_of_call);
  if (outcome.end_reason) relay->record_end(*outcome.end_reason);
  co_return std::move(outcome.answer);
}

}  // namespace

UpstreamOpener opener_on_loop(Loop& connection_loop, UpstreamOpener opener) {
  return [&connection_loop, opener = std::move(opener)](Loop& loop, UpstreamOpenOptions opening) {
    return open_for(loop, connection_loop, opener, std::move(opening));
  };
}

// ---- LoopRelay -------------------------------------------------------------------------------------------

mcp::ClientHandlers LoopRelay::handlers() {
  mcp::ClientHandlers relayed;
  relayed.capabilities = handlers_.capabilities;
  const std::shared_ptr<LoopRelay> self = shared_from_this();
  relayed.on_request = [self](Request request) { return relay_request(self, std::move(request)); };
  relayed.on_notification = [self](std::string_view method, const json::Raw& params) {
    self->relay_notification(method, params);
  };
  relayed.on_ended = [self](const Error& reason) { self->relay_end(reason); };
  return relayed;
}

void LoopRelay::post(std::size_t bytes, Loop::Callback callback) {
  Result<PostedBytes::Charge> charge = posted_bytes_.charge(bytes);
  if (!charge) {
    relay_end(charge.error());
    if (const auto connection = connection_.lock()) connection->abort();
    return;
  }
  caller_loop_.post([charge = std::move(*charge), callback = std::move(callback)]() mutable {
    charge.release();
    callback();
  });
}

// The handler gets a copy of the request without its peer, because the peer may be used only on its own loop.
Task<Answer> LoopRelay::relay_request(std::shared_ptr<LoopRelay> self, Request request) {
  Request portable(nullptr, request.message(), request.stop());
  Task<Answer> handling = handle_request(self, std::move(portable));
  const std::size_t bytes = request.message().frame().size();
  Answer answer = co_await run_charged(self->connection_loop_, self->caller_loop_, self->posted_bytes_, bytes,
                                       std::move(handling), bytes_of_answer);
  co_return answer;
}

Task<Answer> LoopRelay::handle_request(std::shared_ptr<LoopRelay> self, Request request) {
  Answer answer = co_await self->handlers_.on_request(std::move(request));
  co_return answer;
}

void LoopRelay::relay_notification(std::string_view method, const json::Raw& params) {
  post(method.size() + params.text().size(), [self = shared_from_this(), method = std::string(method),
                                              params] { self->handlers_.on_notification(method, params); });
}

void LoopRelay::relay_end(const Error& reason) {
  const auto connection = connection_.lock();
  const Error explained = connection ? with_server_context(*connection, reason) : reason;
  caller_loop_.post([self = shared_from_this(), explained] { self->on_end(explained); });
}

void LoopRelay::on_end(const Error& reason) {
  record_end(reason);
  handlers_.on_ended(reason);
}

// ---- OtherLoopConnection ----------------------------------------------------------------------------------

OtherLoopConnection::Inner::~Inner() {
  loop.post([released = std::move(connection)] { released->abort(); });
}

UpstreamCall OtherLoopConnection::call(const std::shared_ptr<const mcp::ForwardedRequest>& request,
                                       CallOptions options) {
  return UpstreamCall(call_for(caller_loop_, inner_, relay_, request, std::move(options)));
}

Task<Result<std::vector<json::Raw>>> OtherLoopConnection::list(std::string method, std::string member) {
  const std::size_t bytes = method.size() + member.size();
  return run_charged(caller_loop_, inner_->loop, relay_->posted(), bytes,
                     list_inner(inner_->connection, std::move(method), std::move(member)), bytes_of_list);
}

Task<Result<std::uint64_t>> OtherLoopConnection::subscribe(mcp::SubscriptionFilter filter) {
  const std::size_t bytes = bytes_of_filter(filter);
  return run_charged(caller_loop_, inner_->loop, relay_->posted(), bytes,
                     subscribe_inner(inner_->connection, std::move(filter)), bytes_of_small<std::uint64_t>);
}

Task<Result<void>> OtherLoopConnection::unsubscribe(std::uint64_t subscription) {
  return run_uncharged(caller_loop_, inner_->loop, unsubscribe_inner(inner_->connection, subscription));
}

Task<Result<void>> OtherLoopConnection::set_log_level(mcp::LoggingLevel level) {
  return run_charged(caller_loop_, inner_->loop, relay_->posted(), sizeof(level),
                     set_log_level_inner(inner_->connection, level), bytes_of_small<void>);
}

Result<void> OtherLoopConnection::notify(std::string_view method, const json::Raw& params) {
  Result<PostedBytes::Charge> charge = relay_->posted().charge(method.size() + params.text().size());
  if (!charge) return charge.error();
  inner_->loop.post([charge = std::move(*charge), connection = inner_->connection,
                     method = std::string(method), params]() mutable {
    charge.release();
    const Result<void> sent = connection->notify(method, params);
    // notify() fails over max_backlog_bytes of the inner connection. The caller has already returned and
    // cannot get the error.
    static_cast<void>(sent);
  });
  return {};
}

Task<Result<void>> OtherLoopConnection::ping() {
  return run_charged(caller_loop_, inner_->loop, relay_->posted(), 0, ping_inner(inner_->connection),
                     bytes_of_small<void>);
}

void OtherLoopConnection::abort() noexcept {
  inner_->loop.post([connection = inner_->connection] { connection->abort(); });
}

Task<void> OtherLoopConnection::close() {
  const InnerPtr inner = inner_;
  static_cast<void>(co_await run_uncharged(caller_loop_, inner->loop, close_inner(inner->connection)));
}

}  // namespace fairlead::pool
