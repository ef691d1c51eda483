#include "transport/legacy_session.hpp"

#include <algorithm>

#include "fairlead/base/block_cache.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "protocol/header_values.hpp"

namespace fairlead::transport {

namespace {

// Returns a JSON array of the messages.
rpc::Rope batch_of(const std::vector<rpc::Rope>& messages) {
  std::vector<Bytes> parts;
  for (const rpc::Rope& message : messages) {
    parts.push_back(Bytes::constant(parts.empty() ? "[" : ","));
    message.each([&](const Bytes& part) { parts.push_back(part); });
  }
  parts.push_back(Bytes::constant("]"));
  return rpc::Rope(std::move(parts), false);
}

// Calls `visit` for the message, or for each message of a batch.
template <class Visit>
void each_message(const rpc::Message& message, Visit&& visit) {
  if (!message.is(rpc::Kind::batch)) return visit(message);
  for (const rpc::Message& element : message.batch()) visit(element);
}

// Returns why a batch is rejected; nullopt if it is allowed or `message` is not a batch. Batches are allowed
// only in revision 2025-03-26, and must not contain `initialize`.
std::optional<Refusal> batch_problem(const rpc::Message& message, mcp::Revision revision) {
  if (!message.is(rpc::Kind::batch)) return std::nullopt;
  if (revision != mcp::Revision::r2025_03_26)
    return Refusal{400, rpc::kInvalidRequest, "Invalid Request: batches are not allowed here"};
  const bool has_initialize = std::ranges::any_of(
      message.batch(), [](const rpc::Message& element) { return element.method() == "initialize"; });
  if (has_initialize)
    return Refusal{400, rpc::kInvalidRequest, "Invalid Request: initialize must not be part of a batch"};
  return std::nullopt;
}

}  // namespace

LegacySession::LegacySession(Loop& loop, std::string id, PrincipalPtr principal,
                             std::shared_ptr<const EndpointOptions> options,
                             std::shared_ptr<EventStore::SharedBudget> shared_budget, EndedCallback on_ended)
    : Connection(loop),
      id_(std::move(id)),
      principal_(std::move(principal)),
      options_(std::move(options)),
      on_ended_(std::move(on_ended)),
      store_(options_->max_session_events, options_->max_session_event_bytes, std::move(shared_budget)) {
  streams_by_request_.max_load_factor(kEntriesWithoutBuckets);
  streams_by_number_.max_load_factor(kEntriesWithoutBuckets);
}

// ---- POST: messages from the client --------------------------------------------------------------------

void LegacySession::handle_post(std::shared_ptr<http::Exchange> exchange, rpc::Message&& message) {
  last_used_ = loop().now();
  if (const std::optional<Refusal> problem = batch_problem(message, revision_))
    return exchange->respond(to_response(*problem));
  auto stream = make_cached<ResponseStream>();
  stream->exchange = std::move(exchange);
  stream->accepted_types = HeaderFacts::of(stream->exchange->request()).accepted_types;
  stream->is_initialize = message.method() == "initialize";
  stream->is_batch = message.is(rpc::Kind::batch);
  if (stream->is_initialize && initialized_) {
    const Refusal refusal{400, rpc::kInvalidRequest, "Invalid Request: the session is already initialized"};
    return stream->exchange->respond(to_response(refusal, message.id()));
  }
  if (!stream->accepted_types.json && !stream->accepted_types.events) {
    const Refusal refusal{406, kRefused,
                          "Not Acceptable: Accept lists neither application/json nor text/event-stream"};
    return stream->exchange->respond(to_response(refusal, message.id()));
  }
  if (!register_requests(stream, message)) return;
  if (stream->pending_request_count > 0 && !stream->is_initialize) has_had_request_ = true;
  if (stream->pending_request_count == 0 && stream->responses.empty()) {
    stream->exchange->respond(http::Response(202));
    return deliver_messages_of(std::move(message));
  }
  const bool only_events = !stream->accepted_types.json && stream->accepted_types.events;
  if (only_events && !stream->is_initialize) start_event_streams_soon();
  if (stream->pending_request_count == 0)
    return send_collected_responses(stream);  // the batch has only malformed messages
  stream->received_at = last_used_;
  // The requests may outlive this exchange, so the peer that serves them charges their bytes from now on.
  if (stream->exchange) stream->exchange->release_body_charge();
  try {
    deliver_messages_of(std::move(message));
  } catch (...) {  // the HTTP server responds with 500
    unregister_requests(stream);
    throw;
  }
}

bool LegacySession::register_requests(const ResponseStreamPtr& stream, const rpc::Message& message) {
  std::optional<Refusal> problem;
  std::string_view bad_id;
  each_message(message, [&](const rpc::Message& element) {
    if (element.is(rpc::Kind::malformed)) {
      const rpc::WireError error = rpc::to_wire(element.problem());
      const std::string_view id = element.id() == "null" ? std::string_view() : element.id();
      stream->responses.push_back(rpc::make_error(id, error.code, error.message, error.data));
    }
    if (!element.is(rpc::Kind::request) || problem) return;
    if (element.id() == "null") {
      problem = Refusal{400, rpc::kInvalidRequest, "Invalid Request: a null id is not allowed"};
    } else if (streams_by_request_.try_emplace(std::string(element.id()), stream).second) {
      ++stream->pending_request_count;
    } else {
      problem = Refusal{400, rpc::kInvalidRequest, "Invalid Request: a request with this id is in progress"};
      bad_id = element.id();
    }
  });
  if (!problem) return true;
  unregister_requests(stream);
  stream->exchange->respond(to_response(*problem, bad_id));
  return false;
}

void LegacySession::unregister_requests(const ResponseStreamPtr& stream) {
  std::erase_if(streams_by_request_, [&](const auto& entry) { return entry.second == stream; });
}

void LegacySession::deliver_messages_of(rpc::Message&& message) {
  std::vector<std::string> cancelled_ids;
  each_message(message, [&](const rpc::Message& element) {
    if (element.is(rpc::Kind::notification) && element.method() == "notifications/cancelled")
      cancelled_ids.emplace_back(element.param("requestId").text());
  });
  if (message.is(rpc::Kind::batch)) {
    for (const rpc::Message& element : message.batch()) {
      if (!element.is(rpc::Kind::malformed)) deliver(element);
    }
  } else if (!deliver_now(std::move(message))) {
    deliver(std::move(message));
  }
  wake_receiver();
  // A request that the client has cancelled gets no response, so its stream is ended here.
  for (const std::string& id : cancelled_ids) remove_request(id);
}

// Removes a request that gets no response. Ends its stream if that was the last request of the POST.
void LegacySession::remove_request(const std::string& id) {
  const auto found = streams_by_request_.find(id);
  if (found == streams_by_request_.end()) return;
  const ResponseStreamPtr stream = found->second;
  streams_by_request_.erase(found);
  if (--stream->pending_request_count > 0) return;
  if (stream->streaming || stream->responses.empty()) {
    finish_stream(stream);
  } else {
    send_collected_responses(stream);
  }
}

// ---- messages to the client ----------------------------------------------------------------------------

Result<void> LegacySession::enqueue(const rpc::Rope& message, WriteWaiter* waiter,
                                    RelatedRequest related_request) {
  ++sent_count_;
  if (waiter) {
    waiter->until = sent_count_;
    loop().post([self = shared_from_this(), position = sent_count_] {
      static_cast<LegacySession&>(*self).notify_written(position);
    });
  }
  const auto found = streams_by_request_.find(related_request.id);
  if (found == streams_by_request_.end()) {
    // The message belongs to no request in progress. A response is dropped, because its request was cancelled
    // or timed out; all other messages are sent on the standalone stream.
    if (!related_request.message_is_response) send_server_message(nullptr, message);
    return {};
  }
  if (related_request.message_is_response) {
    const ResponseStreamPtr stream = std::move(found->second);
    streams_by_request_.erase(found);
    send_response(stream, message);
  } else {
    const ResponseStreamPtr stream = found->second;
    send_server_message(can_stream(*stream) ? stream : nullptr, message);
  }
  return {};
}

bool LegacySession::can_stream(const ResponseStream& stream) const {
  return stream.streaming || (stream.accepted_types.events && !stream.is_initialize && stream.exchange &&
                              !stream.exchange->disconnected());
}

void LegacySession::send_server_message(const ResponseStreamPtr& stream, const rpc::Rope& message) {
  if (stream) {
    if (!stream->streaming) start_event_stream(stream);
    return send_event(stream, message);
  }
  const EventStore::EventId event_id = store_.allocate_id(0);
  http::sse::EncodedEvent event = http::sse::message_event(message, EventStore::format_id(event_id));
  store_.add(event_id, event);
  if (!standalone_stream_ || !standalone_stream_->exchange) return;
  last_sent_standalone_event_ = event_id.event;
  standalone_stream_->idle_since_tick = false;
  // A copy, because write() may clear the member.
  const std::shared_ptr<http::Exchange> exchange = standalone_stream_->exchange;
  exchange->write(std::move(event));
}

void LegacySession::send_response(const ResponseStreamPtr& stream, const rpc::Rope& message) {
  --stream->pending_request_count;
  if (stream->is_initialize && !read_negotiated_revision(message)) {
    // The handshake failed: the client receives the error, and the session ends.
    stream->is_initialize = false;
    stream->responses.push_back(message);
    send_collected_responses(stream);
    return close();
  }
  if (stream->streaming) {
    send_event(stream, message);
    if (stream->pending_request_count == 0) finish_stream(stream);
    return;
  }
  if (!stream->is_batch && responds_with_json(*stream)) return respond_with_json(stream, message);
  stream->responses.push_back(message);
  if (stream->pending_request_count == 0) send_collected_responses(stream);
}

// Returns whether the response to a POST is JSON: no event stream has been started, and the client accepts
// JSON.
bool LegacySession::responds_with_json(const ResponseStream& stream) noexcept {
  return !stream.streaming && (stream.accepted_types.json || !stream.accepted_types.events);
}

void LegacySession::respond_with_json(const ResponseStreamPtr& stream, const rpc::Rope& body) {
  const std::shared_ptr<http::Exchange> exchange = std::move(stream->exchange);
  if (!exchange) return;
  if (!stream->is_initialize) return http::respond_with_json(*exchange, 200, body);
  http::Response response = http::json_response(200, body);
  response.headers.add(mcp::kSessionHeader, id_);
  exchange->respond(std::move(response));
}

// Sends the collected responses to the requests of a POST, as JSON or as events.
void LegacySession::send_collected_responses(const ResponseStreamPtr& stream) {
  if (responds_with_json(*stream))
    return respond_with_json(stream,
                             stream->is_batch ? batch_of(stream->responses) : stream->responses.front());
  if (!stream->streaming) start_event_stream(stream);
  finish_stream(stream);
}

bool LegacySession::read_negotiated_revision(const rpc::Rope& response) {
  const rpc::Message message = rpc::Message::parse(response.joined());
  if (!message.is(rpc::Kind::response)) return false;
  const auto version = message.indexed_result()["protocolVersion"].as_string();
  revision_ = mcp::revision_named(version.value_or("")).value_or(mcp::Revision::r2025_03_26);
  initialized_ = true;
  return true;
}

// ---- end of the session --------------------------------------------------------------------------------

void LegacySession::handle_delete(const std::shared_ptr<http::Exchange>& exchange) {
  close();
  exchange->respond(http::Response(200));
}

void LegacySession::release() {
  if (on_ended_) std::exchange(on_ended_, nullptr)(id_);
  binding_.application = nullptr;
  end_standalone_stream();
  auto in_progress = std::exchange(streams_by_request_, {});
  for (const auto& [id, stream] : in_progress) {
    const std::shared_ptr<http::Exchange> exchange = std::move(stream->exchange);
    if (!exchange) continue;
    if (stream->streaming) {
      exchange->finish();
    } else {
      exchange->respond(to_response(session_not_found_refusal(),
                                    stream->is_batch ? std::string_view() : std::string_view(id)));
    }
  }
  streams_by_number_.clear();
}

bool LegacySession::is_idle() const noexcept {
  return streams_by_request_.empty() && !(standalone_stream_ && standalone_stream_->exchange);
}

void LegacySession::on_tick(Clock::time_point now) {
  const auto self = shared_from_this();
  store_.drop_ended(now - options_->finished_stream_grace);
  if (!is_idle()) {
    last_used_ = now;
  } else if (now - last_used_ > options_->session_idle) {
    options_->log.debug("session ended: session_idle passed", {{"session", description()}});
    return close();
  }
  if (options_->request_timeout.count() > 0) time_out_requests(now);
  stream_slow_responses(now);
  std::vector<std::shared_ptr<http::Exchange>> idle_exchanges;
  const auto collect_idle = [&](ResponseStream& stream) {
    if (stream.exchange && std::exchange(stream.idle_since_tick, true))
      idle_exchanges.push_back(stream.exchange);
  };
  if (standalone_stream_) collect_idle(*standalone_stream_);
  for (const auto& [number, stream] : streams_by_number_) collect_idle(*stream);
  for (const auto& exchange : idle_exchanges) exchange->write(http::sse::keep_alive_comment());
}

// Makes each response that takes longer than keep_alive an event stream: a proxy may close a connection that
// is idle for too long, but an event stream can be kept alive with comments, and can be resumed.
void LegacySession::stream_slow_responses(Clock::time_point now) {
  std::vector<ResponseStreamPtr> slow_streams;
  for (const auto& [id, stream] : streams_by_request_) {
    if (!stream->streaming && now - stream->received_at > options_->keep_alive && can_stream(*stream))
      slow_streams.push_back(stream);
  }
  for (const ResponseStreamPtr& stream : slow_streams) {
    if (!stream->streaming) start_event_stream(stream);
  }
}

// Cancels each request that has taken longer than request_timeout, and responds to it with an error.
void LegacySession::time_out_requests(Clock::time_point now) {
  std::vector<std::string> late_ids;
  for (const auto& [id, stream] : streams_by_request_) {
    if (now - stream->received_at > options_->request_timeout) late_ids.push_back(id);
  }
  const std::string message =
      "no response within request_timeout (" + std::to_string(options_->request_timeout.count()) + " ms)";
  for (const std::string& id : late_ids) {
    const auto found = streams_by_request_.find(id);
    if (found == streams_by_request_.end()) continue;
    const ResponseStreamPtr stream = found->second;
    streams_by_request_.erase(found);
    options_->log.warning("request timed out: request_timeout exceeded",
                          {{"session", description()}, {"id", id}});
    json::Writer params;
    params.begin_object().key("requestId").raw(id).key("reason").string(message).end_object();
    const rpc::Rope cancel = rpc::make_notification("notifications/cancelled", params.finish());
    deliver(rpc::Message::parse(cancel.joined()));
    send_response(stream, rpc::make_error(id, rpc::kInternalError, message));
    wake_receiver();
  }
}

}  // namespace fairlead::transport
