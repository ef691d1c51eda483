#include "transport/legacy_session.hpp"

#include <algorithm>

#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/rpc/codes.hpp"
#include "protocol/header_values.hpp"

namespace fairlead::transport {

namespace {

Refusal session_over() {
  return Refusal{404, kNoSession, "Session not found"};
}

rpc::Rope array_of(const std::vector<rpc::Rope>& messages) {
  std::vector<Bytes> parts;
  for (const rpc::Rope& message : messages) {
    parts.push_back(Bytes::constant(parts.empty() ? "[" : ","));
    message.each([&](const Bytes& part) { parts.push_back(part); });
  }
  parts.push_back(Bytes::constant("]"));
  return rpc::Rope(std::move(parts), false);
}

template <class Visit>
void each_message(const rpc::Message& message, Visit&& visit) {
  if (!message.is(rpc::Kind::batch)) return visit(message);
  for (const rpc::Message& one : message.batch()) visit(one);
}

// An array may hold anything but the beginning of a session, and only in the revision that had arrays.
std::optional<Refusal> batch_problem(const rpc::Message& message, mcp::Revision revision) {
  if (!message.is(rpc::Kind::batch)) return std::nullopt;
  if (revision != mcp::Revision::r2025_03_26)
    return Refusal{400, rpc::kInvalidRequest, "Invalid Request: batches are not allowed here"};
  const bool begins = std::ranges::any_of(
      message.batch(), [](const rpc::Message& one) { return one.method() == "initialize"; });
  if (begins) return Refusal{400, rpc::kInvalidRequest, "Invalid Request: initialize stands alone"};
  return std::nullopt;
}

}  // namespace

LegacySession::LegacySession(Loop& loop, std::string id, PrincipalPtr principal,
                             std::shared_ptr<const EndpointOptions> options,
                             std::shared_ptr<EventStore::Total> total, Ended ended)
    : Connection(loop),
      id_(std::move(id)),
      principal_(std::move(principal)),
      options_(std::move(options)),
      ended_(std::move(ended)),
      store_(options_->max_session_events, options_->max_session_event_bytes, std::move(total)) {}

// ---- POST: messages of the client -----------------------------------------------------------------------

void LegacySession::take_post(std::shared_ptr<http::Exchange> exchange, const rpc::Message& message) {
  const auto self = shared_from_this();
  last_used_ = Clock::now();
  if (const std::optional<Refusal> problem = batch_problem(message, revision_))
    return exchange->respond(refuse(*problem));
  auto stream = std::make_shared<Stream>();
  stream->exchange = std::move(exchange);
  stream->accepts = accepts_of(stream->exchange->request().headers);
  stream->initializes = message.method() == "initialize";
  stream->batch = message.is(rpc::Kind::batch);
  if (stream->initializes && initialized_) {
    const Refusal again{400, rpc::kInvalidRequest, "Invalid Request: the session is initialized already"};
    return stream->exchange->respond(refuse(again, message.id()));
  }
  if (!stream->accepts.json && !stream->accepts.events) {
    const Refusal neither{406, kRefused,
                          "Not Acceptable: Accept lists neither application/json nor text/event-stream"};
    return stream->exchange->respond(refuse(neither, message.id()));
  }
  if (!register_requests(stream, message)) return;
  if (stream->waiting > 0 && !stream->initializes) used_ = true;
  if (stream->waiting == 0 && stream->answers.empty()) {
    stream->exchange->respond(http::Response(202));
    return take_in(message);
  }
  // A client that wants events and nothing else can have them from the start.
  if (!stream->accepts.json && stream->accepts.events && !stream->initializes) start_events(stream);
  if (stream->waiting == 0) return answer_at_once(stream);  // a batch of nothing but nonsense
  stream->since = last_used_;
  // Its requests may go on without this exchange, so whoever serves them charges them.
  if (stream->exchange) stream->exchange->release_charge();
  take_in(message);
}

// Notes which requests this POST waits for. Two at a time cannot have the same id.
bool LegacySession::register_requests(const StreamPtr& stream, const rpc::Message& message) {
  std::optional<Refusal> problem;
  std::string_view bad_id;
  each_message(message, [&](const rpc::Message& one) {
    if (one.is(rpc::Kind::malformed)) {
      const rpc::WireError error = rpc::to_wire(one.problem());
      const std::string_view id = one.id() == "null" ? std::string_view() : one.id();
      stream->answers.push_back(rpc::make_error(id, error.code, error.message, error.data));
    }
    if (!one.is(rpc::Kind::request) || problem) return;
    if (one.id() == "null") {
      problem = Refusal{400, rpc::kInvalidRequest, "Invalid Request: a null id is not allowed"};
    } else if (by_request_.try_emplace(std::string(one.id()), stream).second) {
      ++stream->waiting;
    } else {
      problem = Refusal{400, rpc::kInvalidRequest, "Invalid Request: a request with this id is under way"};
      bad_id = one.id();
    }
  });
  if (!problem) return true;
  std::erase_if(by_request_, [&](const auto& entry) { return entry.second == stream; });
  stream->exchange->respond(refuse(*problem, bad_id));
  return false;
}

// Hands it to whoever serves the session.
void LegacySession::take_in(const rpc::Message& message) {
  each_message(message, [&](const rpc::Message& one) {
    if (!one.is(rpc::Kind::malformed)) deliver(one);
  });
  wake_receiver();
  each_message(message, [&](const rpc::Message& one) { hear_cancelled(one); });
}

// A cancelled request is not answered, so its stream would never end by itself.
void LegacySession::hear_cancelled(const rpc::Message& message) {
  if (!message.is(rpc::Kind::notification) || message.method() != "notifications/cancelled") return;
  forget_request(std::string(message.param("requestId").text()));
}

void LegacySession::forget_request(const std::string& id) {
  const auto found = by_request_.find(id);
  if (found == by_request_.end()) return;
  const StreamPtr stream = found->second;
  by_request_.erase(found);
  if (--stream->waiting > 0) return;
  if (stream->started || stream->answers.empty()) {
    finish(stream);
  } else {
    answer_at_once(stream);
  }
}

// ---- messages to the client -----------------------------------------------------------------------------

Result<void> LegacySession::enqueue(const rpc::Rope& message, Waiter* waiter, Concerning concerning) {
  ++sent_;
  if (waiter) {
    waiter->until = sent_;
    loop().post([self = shared_from_this(), position = sent_] {
      static_cast<LegacySession&>(*self).notify_written(position);
    });
  }
  const auto found = by_request_.find(std::string(concerning.request));
  if (found == by_request_.end()) {
    // An answer nobody waits for any more goes nowhere; everything else goes to the standalone stream.
    if (!concerning.answers) say(nullptr, message);
    return {};
  }
  const StreamPtr stream = found->second;
  if (concerning.answers) {
    by_request_.erase(found);
    answer(stream, message);
  } else {
    say(can_say(*stream) ? stream : nullptr, message);
  }
  return {};
}

// Whether there is, or was, a stream of events that the client knows of.
bool LegacySession::can_say(const Stream& stream) const {
  return stream.started ||
         (stream.accepts.events && !stream.initializes && stream.exchange && !stream.exchange->gone());
}

// Something that is no answer; without a stream it is for the standalone one.
void LegacySession::say(const StreamPtr& stream, const rpc::Rope& message) {
  if (stream) {
    if (!stream->started) start_events(stream);
    return send_event(stream, message);
  }
  const EventStore::Place place = store_.next(0);
  http::sse::Parts event = http::sse::message(message, EventStore::id_of(place));
  store_.keep(place, event);
  if (!standalone_ || !standalone_->exchange) return;
  told_ = place.event;
  standalone_->quiet = false;
  const std::shared_ptr<http::Exchange> exchange = standalone_->exchange;  // writing may find it gone
  exchange->write(std::move(event));
}

void LegacySession::answer(const StreamPtr& stream, const rpc::Rope& message) {
  --stream->waiting;
  if (stream->initializes && !learn_revision(message)) {
    // It could not be begun: the client is told why, and there is no session.
    stream->initializes = false;
    stream->answers.push_back(message);
    answer_at_once(stream);
    return close();
  }
  if (stream->started) {
    send_event(stream, message);
    if (stream->waiting == 0) finish(stream);
    return;
  }
  if (!stream->batch && answers_with_json(*stream)) return respond(stream, message);
  stream->answers.push_back(message);
  if (stream->waiting == 0) answer_at_once(stream);
}

// Whether a POST that has said nothing so far is answered with JSON: if the client takes it.
bool LegacySession::answers_with_json(const Stream& stream) noexcept {
  return !stream.started && (stream.accepts.json || !stream.accepts.events);
}

void LegacySession::respond(const StreamPtr& stream, const rpc::Rope& answer) {
  const std::shared_ptr<http::Exchange> exchange = std::move(stream->exchange);
  if (!exchange) return;
  http::Response response = http::json_response(200, answer);
  if (stream->initializes) response.headers.add(mcp::kSessionHeader, id_);
  exchange->respond(std::move(response));
}

// All answers of a POST that has said nothing so far.
void LegacySession::answer_at_once(const StreamPtr& stream) {
  if (answers_with_json(*stream))
    return respond(stream, stream->batch ? array_of(stream->answers) : stream->answers.front());
  if (!stream->started) start_events(stream);
  for (const rpc::Rope& one : stream->answers) send_event(stream, one);
  finish(stream);
}

// The answer to initialize says which revision was agreed on; an error says that none was.
bool LegacySession::learn_revision(const rpc::Rope& answer) {
  const rpc::Message message = rpc::Message::parse(answer.joined());
  if (!message.is(rpc::Kind::response)) return false;
  const auto version = message.indexed_result()["protocolVersion"].as_string();
  revision_ = mcp::revision_named(version.value_or("")).value_or(mcp::Revision::r2025_03_26);
  initialized_ = true;
  return true;
}

// ---- streams of events ----------------------------------------------------------------------------------

http::Response LegacySession::head_of(const Stream& stream) const {
  http::Response head = http::sse::head();
  if (stream.initializes) head.headers.add(mcp::kSessionHeader, id_);
  return head;
}

void LegacySession::start_events(const StreamPtr& stream) {
  stream->started = true;
  stream->number = ++last_stream_;
  by_number_.emplace(stream->number, stream);
  attach(stream, std::move(stream->exchange));
  // Only those that know what an event without data is for are sent one.
  if (primes() && stream->exchange) {
    const EventStore::Place place = store_.next(stream->number);
    stream->exchange->write(http::sse::priming(EventStore::id_of(place), options_->retry));
  }
}

// From now on that exchange has the stream's events.
void LegacySession::attach(const StreamPtr& stream, std::shared_ptr<http::Exchange> exchange) {
  if (!exchange || exchange->gone()) return;
  stream->exchange = exchange;
  exchange->when_gone([weak = std::weak_ptr<Stream>(stream), it = exchange.get()] {
    const StreamPtr left = weak.lock();
    if (left && left->exchange.get() == it) left->exchange = nullptr;
  });
  exchange->start(head_of(*stream));
}

void LegacySession::send_event(const StreamPtr& stream, const rpc::Rope& message) {
  const EventStore::Place place = store_.next(stream->number);
  http::sse::Parts event = http::sse::message(message, EventStore::id_of(place));
  store_.keep(place, event);
  stream->quiet = false;
  const std::shared_ptr<http::Exchange> exchange = stream->exchange;  // writing may find it gone
  if (exchange) exchange->write(std::move(event));
}

// Nothing more will be sent on it. The client can come back for its events for finished_stream_grace.
void LegacySession::finish(const StreamPtr& stream) {
  if (stream->number != 0) {
    by_number_.erase(stream->number);
    const Clock::time_point now = Clock::now();
    store_.end(stream->number, now);
    store_.drop_ended(now - options_->finished_stream_grace);
  }
  const std::shared_ptr<http::Exchange> exchange = std::move(stream->exchange);
  if (!exchange) return;
  if (!stream->started && stream->accepts.events) {
    exchange->start(http::sse::head());  // an answer without an answer: the request was cancelled
    exchange->finish();
  } else if (!stream->started) {
    exchange->respond(http::Response(202));
  } else {
    exchange->finish();
  }
}

void LegacySession::close_stream_of(std::string_view request) {
  const auto found = by_request_.find(std::string(request));
  if (found == by_request_.end() || !primes() || !can_say(*found->second)) return;
  const StreamPtr stream = found->second;
  if (!stream->started) start_events(stream);
  const std::shared_ptr<http::Exchange> exchange = std::move(stream->exchange);
  if (exchange) exchange->finish();
}

// ---- GET: the standalone stream, and coming back --------------------------------------------------------

void LegacySession::take_get(std::shared_ptr<http::Exchange> exchange, bool ending) {
  const auto self = shared_from_this();
  last_used_ = Clock::now();
  const http::Headers& headers = exchange->request().headers;
  if (!accepts_of(headers).events)
    return exchange->respond(
        refuse(Refusal{406, kRefused, "Not Acceptable: Accept does not list text/event-stream"}));
  if (headers.has("Last-Event-ID")) {
    const std::optional<EventStore::Place> place = EventStore::read_id(headers.get("Last-Event-ID"));
    const auto events = place ? store_.after(*place) : std::nullopt;
    if (!events)
      return exchange->respond(
          refuse(Refusal{400, kRefused, "Bad Request: Last-Event-ID names no event of this session"}));
    if (ending && place->stream == 0) return exchange->respond(refuse(shutting_down()));
    return resume(std::move(exchange), *place, *events);
  }
  if (ending) return exchange->respond(refuse(shutting_down()));
  if (standalone_ && standalone_->exchange)
    return exchange->respond(
        refuse(Refusal{409, kRefused, "Conflict: there is a stream for this session already"}));
  open_standalone(std::move(exchange));
}

void LegacySession::open_standalone(std::shared_ptr<http::Exchange> exchange) {
  standalone_ = std::make_shared<Stream>();
  standalone_->started = true;
  attach(standalone_, std::move(exchange));
  if (!standalone_->exchange) return;
  store_.begin(0);
  const EventStore::Place so_far{0, told_};
  const std::vector<http::sse::Parts> kept = store_.left_after(so_far);
  if (primes()) {
    // The id to come back with stands before what is replayed, so it names the event before.
    standalone_->exchange->write(http::sse::priming(EventStore::id_of(so_far), options_->retry));
  }
  told_ = store_.last(0);
  replay(standalone_, kept);
}

void LegacySession::resume(std::shared_ptr<http::Exchange> exchange, EventStore::Place place,
                           const std::vector<http::sse::Parts>& events) {
  StreamPtr stream = standalone_;
  if (place.stream != 0) {
    const auto found = by_number_.find(place.stream);
    stream = found == by_number_.end() ? nullptr : found->second;
  } else {
    told_ = store_.last(0);
  }
  const bool goes_on = stream != nullptr || place.stream == 0;
  if (!stream) {
    stream = std::make_shared<Stream>();
    stream->started = true;
    if (place.stream == 0) standalone_ = stream;
  }
  // Whoever had it before has lost it, whether they know or not.
  if (const std::shared_ptr<http::Exchange> before = std::move(stream->exchange)) before->finish();
  attach(stream, std::move(exchange));
  replay(stream, events);
  if (!goes_on) finish(stream);
}

void LegacySession::replay(const StreamPtr& stream, const std::vector<http::sse::Parts>& events) {
  for (const http::sse::Parts& event : events) {
    const std::shared_ptr<http::Exchange> exchange = stream->exchange;
    if (exchange) exchange->write(event);
  }
}

void LegacySession::end_standalone() {
  if (!standalone_) return;
  if (const std::shared_ptr<http::Exchange> exchange = std::move(standalone_->exchange)) exchange->finish();
}

// ---- the end --------------------------------------------------------------------------------------------

void LegacySession::take_delete(const std::shared_ptr<http::Exchange>& exchange) {
  close();
  exchange->respond(http::Response(200));
}

void LegacySession::release() {
  if (ended_) std::exchange(ended_, nullptr)(id_);
  end_standalone();
  auto under_way = std::exchange(by_request_, {});
  for (const auto& [id, stream] : under_way) {
    const std::shared_ptr<http::Exchange> exchange = std::move(stream->exchange);
    if (!exchange) continue;
    if (stream->started) {
      exchange->finish();
    } else {
      exchange->respond(refuse(session_over(), stream->batch ? std::string_view() : std::string_view(id)));
    }
  }
  by_number_.clear();
}

bool LegacySession::idle() const noexcept {
  return by_request_.empty() && !(standalone_ && standalone_->exchange);
}

void LegacySession::tick(Clock::time_point now) {
  const auto self = shared_from_this();
  store_.drop_ended(now - options_->finished_stream_grace);
  if (!idle()) {
    last_used_ = now;
  } else if (now - last_used_ > options_->session_idle) {
    options_->log.debug("session ended: session_idle passed", {{"session", description()}});
    return close();
  }
  if (options_->request_timeout.count() > 0) time_out(now);
  become_streams(now);
  std::vector<std::shared_ptr<http::Exchange>> quiet;
  const auto look_at = [&](Stream& stream) {
    if (stream.exchange && std::exchange(stream.quiet, true)) quiet.push_back(stream.exchange);
  };
  if (standalone_) look_at(*standalone_);
  for (const auto& [number, stream] : by_number_) look_at(*stream);
  for (const auto& exchange : quiet) exchange->write(http::sse::comment());
}

// What lies between us and the client may take a long silence for the end; a stream can be kept alive, and
// come back to.
void LegacySession::become_streams(Clock::time_point now) {
  std::vector<StreamPtr> slow;
  for (const auto& [id, stream] : by_request_) {
    if (!stream->started && now - stream->since > options_->keep_alive && can_say(*stream))
      slow.push_back(stream);
  }
  for (const StreamPtr& stream : slow) {
    if (!stream->started) start_events(stream);
  }
}

// Whoever serves it is told to stop, and the client that it need not wait.
void LegacySession::time_out(Clock::time_point now) {
  std::vector<std::string> late;
  for (const auto& [id, stream] : by_request_) {
    if (now - stream->since > options_->request_timeout) late.push_back(id);
  }
  const std::string why =
      "no answer within request_timeout (" + std::to_string(options_->request_timeout.count()) + " ms)";
  for (const std::string& id : late) {
    const auto found = by_request_.find(id);
    if (found == by_request_.end()) continue;
    const StreamPtr stream = found->second;
    by_request_.erase(found);
    options_->log.warning("request_timeout passed", {{"session", description()}, {"id", id}});
    json::Writer params;
    params.begin_object().key("requestId").raw(id).key("reason").string(why).end_object();
    const rpc::Rope cancel = rpc::make_notification("notifications/cancelled", params.finish());
    deliver(rpc::Message::parse(cancel.joined()));
    answer(stream, rpc::make_error(id, rpc::kInternalError, why));
    wake_receiver();
  }
}

}  // namespace fairlead::transport
