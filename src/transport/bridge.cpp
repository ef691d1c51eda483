#include "transport/bridge.hpp"

#include <utility>

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/loop/timer.hpp"
#include "fairlead/process/failure.hpp"
#include "fairlead/rpc/codes.hpp"

namespace fairlead::transport {

namespace {

// Subscriptions that are repeated in a new session; further ones are not (max_repeated_subscriptions).
constexpr std::size_t kMaxRepeatedSubscriptions = 1'000;
// For writing the last responses to the client.
constexpr std::chrono::milliseconds kBridgeFlushTimeout{1'000};
constexpr std::string_view kRepeatedIdPrefix = "\"fairlead-bridge-";

rpc::Rope joined_batch(const std::vector<rpc::Rope>& messages) {
  rpc::Rope array(Bytes::constant("["), true);
  bool first = true;
  for (const rpc::Rope& message : messages) {
    if (!std::exchange(first, false)) array.append(Bytes::constant(","), true);
    message.each([&](const Bytes& part) { array.append(part, message.is_one_line()); });
  }
  array.append(Bytes::constant("]"), true);
  return array;
}

}  // namespace

std::shared_ptr<Bridge> Bridge::start(std::shared_ptr<Connection> client, std::shared_ptr<Connection> server,
                                      BridgeOptions options) {
  std::shared_ptr<Bridge> bridge(new Bridge(std::move(client), std::move(server), std::move(options)));
  bridge->idle_.set();
  bridge->server_->set_on_call_failed(
      [weak = bridge->weak_from_this()](std::string_view id, const Error& reason) {
        if (const auto self = weak.lock()) self->fail_request(id, reason);
      });
  Loop& loop = bridge->client_->loop();
  loop.spawn(read_client(bridge));
  loop.spawn(read_server(bridge));
  return bridge;
}

// ---- messages of the client ------------------------------------------------------------------------------

Task<void> Bridge::read_client(std::shared_ptr<Bridge> self) {
  bool reading = true;
  while (reading) {
    const Result<rpc::Message> message = co_await self->client_->receive();
    if (!message) break;
    if (message->is(rpc::Kind::malformed)) {
      reading = self->reject_malformed(*message);
      continue;
    }
    self->consecutive_malformed_ = 0;
    if (message->lacks_result()) {
      self->send_to_client(rpc::make_error(message->id(), rpc::kInvalidRequest,
                                           "Invalid Request: neither method nor result nor error"));
      continue;
    }
    if (message->is(rpc::Kind::batch)) {
      co_await self->forward_batch(*message);
    } else {
      co_await self->forward_to_server(*message, nullptr);
    }
    // A failure is ignored: then the next message cannot be sent either, and gets its error.
    const std::size_t limit = self->options_.limits.backlog_pause_bytes;
    static_cast<void>(co_await self->server_->wait_drained(limit));
  }
  co_await finish(self);
}

// A request is queued, so that requests are in progress concurrently. A notification is awaited: the server
// must know that the client is initialized before it gets the next request.
Task<void> Bridge::forward_to_server(rpc::Message message, BatchPtr batch) {
  if (message.is(rpc::Kind::request)) {
    forward_request(message, batch);
    co_return;
  }
  if (message.is(rpc::Kind::notification)) {
    if (message.method() == "notifications/cancelled") {
      const auto found = in_flight_.find(message.param("requestId").text());
      if (found != in_flight_.end()) {
        const BatchPtr cancelled = found->second.batch;
        in_flight_.erase(found);
        if (cancelled) respond(cancelled, rpc::Rope());
        if (in_flight_.empty()) idle_.set();
      }
    }
    const Result<void> sent = co_await server_->send(rpc::Rope(message));
    if (!sent) options_.log.debug("notification lost", {{"reason", sent.error().message()}});
    co_return;
  }
  const Result<void> posted = server_->post(rpc::Rope(message));
  if (!posted) options_.log.debug("response lost", {{"reason", posted.error().message()}});
}

Task<void> Bridge::forward_batch(rpc::Message message) {
  const auto batch = std::make_shared<Batch>();
  for (const rpc::Message& entry : message.batch()) {
    if (entry.is(rpc::Kind::request) || entry.is(rpc::Kind::malformed)) ++batch->pending;
  }
  for (const rpc::Message& entry : message.batch()) {
    if (entry.is(rpc::Kind::malformed)) {
      const rpc::WireError problem = rpc::to_wire(entry.problem());
      respond(batch, rpc::make_error("null", problem.code, problem.message, problem.data));
    } else if (!entry.is(rpc::Kind::batch)) {
      co_await forward_to_server(entry, batch);
    }
  }
}

void Bridge::forward_request(const rpc::Message& message, const BatchPtr& batch) {
  const std::string id(message.id());
  const std::size_t limit = options_.limits.max_requests_in_progress;
  if (in_flight_.contains(id))
    return respond(batch, rpc::make_error(id, rpc::kInvalidRequest,
                                          "Invalid Request: a request with this id is in progress"));
  if (in_flight_.size() >= limit)
    return respond(batch, error_response(id, Error(ErrorKind::resource_exhausted,
                                                   "max_requests_in_progress (" + std::to_string(limit) +
                                                       ") requests are in progress")));
  in_flight_.emplace(id, InFlight{std::string(message.method()), batch});
  idle_.reset();
  note_session_state(message);
  const Result<void> posted = server_->post(rpc::Rope(message));
  if (!posted) fail_request(id, posted.error());
}

void Bridge::note_session_state(const rpc::Message& request) {
  const std::string_view method = request.method();
  if (method == "initialize") {
    subscriptions_.clear();
    log_level_.reset();
  } else if (method == "logging/setLevel") {
    log_level_ = request;
  } else if (method == "resources/subscribe" || method == "resources/unsubscribe") {
    const std::string uri = request.param("uri").as_string().value_or("");
    if (method == "resources/unsubscribe") {
      subscriptions_.erase(uri);
    } else if (subscriptions_.size() < kMaxRepeatedSubscriptions) {
      subscriptions_.insert_or_assign(uri, request);
    }
  }
}

bool Bridge::reject_malformed(const rpc::Message& message) {
  const std::size_t limit = options_.limits.max_noise_frames;
  const rpc::WireError problem = rpc::to_wire(message.problem());
  const std::string_view id = message.id().empty() ? "null" : message.id();
  send_to_client(rpc::make_error(id, problem.code, problem.message, problem.data));
  if (limit == 0 || ++consecutive_malformed_ < limit) return true;
  options_.log.warning("the client sends no messages; max_noise_frames reached", {{"limit", limit}});
  return false;
}

// ---- messages of the server ------------------------------------------------------------------------------

Task<void> Bridge::read_server(std::shared_ptr<Bridge> self) {
  while (true) {
    const Result<rpc::Message> message = co_await self->server_->receive();
    if (!message) {
      while (!self->in_flight_.empty()) {
        const std::string id = self->in_flight_.begin()->first;
        self->fail_request(id, message.error());
      }
      break;
    }
    self->forward_to_client(*message);
    const std::size_t limit = self->options_.limits.backlog_pause_bytes;
    static_cast<void>(co_await self->client_->wait_drained(limit));
  }
}

void Bridge::forward_to_client(const rpc::Message& message) {
  switch (message.kind()) {
    case rpc::Kind::request:
    case rpc::Kind::notification: return send_to_client(rpc::Rope(message));
    case rpc::Kind::response:
    case rpc::Kind::error: return forward_response(message);
    case rpc::Kind::batch:
      for (const rpc::Message& entry : message.batch()) forward_to_client(entry);
      return;
    case rpc::Kind::malformed:
      options_.log.debug("invalid message of the server", {{"problem", message.problem().message()}});
  }
}

void Bridge::forward_response(const rpc::Message& message) {
  const auto found = in_flight_.find(message.id());
  if (found == in_flight_.end()) {
    const bool own = message.id().starts_with(kRepeatedIdPrefix);
    return options_.log.debug(own ? "session state repeated" : "response without a request",
                              {{"id", std::string(message.id())}});
  }
  const InFlight request = std::move(found->second);
  in_flight_.erase(found);
  if (request.method == "initialize" && message.is(rpc::Kind::response)) {
    const json::View capabilities = message.indexed_result()["capabilities"];
    list_changes_.clear();
    for (const char* const kind : {"tools", "resources", "prompts"}) {
      if (capabilities[kind]["listChanged"].as_bool().value_or(false))
        list_changes_.push_back("notifications/" + std::string(kind) + "/list_changed");
    }
  }
  respond(request.batch, rpc::Rope(message));
  if (in_flight_.empty()) idle_.set();
}

void Bridge::fail_request(std::string_view id, const Error& reason) {
  const auto found = in_flight_.find(id);
  if (found == in_flight_.end()) return;
  const std::string key = found->first;
  const BatchPtr batch = found->second.batch;
  in_flight_.erase(found);
  options_.log.warning("request failed", {{"server", server_->description()}, {"reason", reason.message()}});
  respond(batch, error_response(key, reason));
  if (in_flight_.empty()) idle_.set();
}

// An empty `response` stands for a request that was cancelled and gets none.
void Bridge::respond(const BatchPtr& batch, rpc::Rope response) {
  if (!batch) return send_to_client(response);
  if (response.size() > 0) batch->responses.push_back(std::move(response));
  if (--batch->pending == 0 && !batch->responses.empty()) send_to_client(joined_batch(batch->responses));
}

void Bridge::send_to_client(const rpc::Rope& message) {
  const Result<void> posted = client_->post(message);
  if (!posted) options_.log.debug("message to the client lost", {{"reason", posted.error().message()}});
}

rpc::Rope Bridge::error_response(std::string_view id, const Error& reason) const {
  if (reason.kind() == ErrorKind::remote) {
    const rpc::WireError remote = rpc::to_wire(reason);
    return rpc::make_error(id, remote.code, remote.message, remote.data);
  }
  const bool lost = reason.kind() == ErrorKind::io;
  const Error error = with_failure_code(reason, lost ? failure::connection_lost : std::string_view());
  const std::string remedy = options_.remedy ? options_.remedy(error) : std::string();
  json::Writer data;
  data.begin_object().key("kind").string(to_string(error.kind()));
  data.key("code").string(error.detail().failure_code);
  data.key("remedy").string(remedy.empty() ? error.detail().remedy : remedy);
  data.end_object();
  return rpc::make_error(
      id, rpc::kInternalError,
      server_->description() + ": " + std::string(to_string(error.kind())) + ": " + error.message(),
      data.text());
}

// ---- sessions and the end --------------------------------------------------------------------------------

void Bridge::on_session_renewed() {
  std::vector<rpc::Message> repeated;
  if (log_level_) repeated.push_back(*log_level_);
  for (const auto& [uri, request] : subscriptions_) repeated.push_back(request);
  for (const rpc::Message& request : repeated) {
    const std::string id = std::string(kRepeatedIdPrefix) + std::to_string(++last_repeated_id_) + "\"";
    const Result<void> posted = server_->post(rpc::with_id(request, id));
    if (!posted) return;
  }
  for (const std::string& method : list_changes_) send_to_client(rpc::make_notification(method, json::Raw()));
}

// A client may end its input and still read: its requests are completed first, within drain_grace.
Task<void> Bridge::finish(std::shared_ptr<Bridge> self) {
  Loop& loop = self->client_->loop();
  if (!self->client_->closed()) {
    const Clock::duration grace = self->options_.limits.drain_grace;
    const bool done = co_await self->idle_.wait(loop, grace);
    if (!done)
      self->options_.log.warning("drain_grace expired: abandoning the requests in progress",
                                 {{"requests", self->in_flight_.size()}});
  }
  Timer limit(loop);
  limit.arm_after(kBridgeFlushTimeout, [client = self->client_] { client->close(); });
  static_cast<void>(co_await self->client_->wait_drained(0));
  limit.cancel();
  self->client_->close();
  self->server_->close();
  co_await self->server_->wait_closed();
  self->finished_.set();
}

}  // namespace fairlead::transport
