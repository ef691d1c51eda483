#include "http/server_connection.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/reset_string.hpp"
namespace fairlead::http {

namespace {

constexpr std::size_t kDirectFrom = 16u << 10;  // so much of a body missing is read to where it stays
constexpr std::size_t kLeastRead = 64u << 10;
constexpr std::size_t kLargestRead = 1u << 20;
constexpr std::size_t kReadAhead = 64u << 10;     // of requests behind one that is not answered yet
constexpr std::size_t kLargestInput = 64u << 10;  // of one read that may bring several requests
constexpr int kRequestsPerTurn = 64;              // of one connection, while no other client waits
constexpr std::size_t kAnswersAhead = 64u << 10;  // of pipelined answers, before they are written

}  // namespace

ServerConnection::ServerConnection(std::shared_ptr<ServerCore> core, std::unique_ptr<ByteStream> stream,
                                   PrincipalPtr peer, bool surplus)
    : core_(std::move(core)),
      remote_(stream->remote()),
      network_(network_of_remote(remote_)),
      peer_(std::move(peer)),
      reader_(core_->options.max_header_bytes, core_->options.max_body_bytes),
      pump_(core_->loop, *this, queue_, std::move(stream), remote_, core_->options.write_stall),
      surplus_(surplus) {}

void ServerConnection::start() {
  if (surplus_) {
    refuse(503, surplus_message(core_->options));
    pump_.flush();
  }
  settle();
}

// ---- reading ---------------------------------------------------------------------------------------------

// Answers that handlers give on the spot leave in one write after each read.
bool ServerConnection::read_once() {
  const bool more = read_next();
  pump_.flush();
  return more;
}

// There is no memory for what the client sends. It is told so where that is still possible.
void ServerConnection::on_out_of_memory() {
  core_->options.log.error("out of memory: a request was given up", {{"client", remote_}});
  if (current_ || !pump_.open()) return close();
  body_charge_.set(0);
  give_up_request(503, "resource exhausted: out of memory");
}

void ServerConnection::on_turn_end() {
  turn_requests_ = 0;
  count_request();
  count_read_ahead();
  settle();
}

bool ServerConnection::read_next() {
  take_pending();  // was read before what comes now
  if (!pump_.open()) return false;
  if (closing_) return discard();
  if (turn_is_over()) return false;
  if (!may_take_next()) return read_ahead();
  return reader_.missing() >= kDirectFrom ? read_body() : read_some();
}

bool ServerConnection::read_some() {
  const std::span<char> scratch = core_->loop.scratch().first(kLargestInput);
  const ByteStream::Io io = pump_.read(scratch);
  if (io.state == ByteStream::State::ok) take(std::string_view(scratch.data(), io.bytes));
  return after_read(io, scratch.size());
}

bool ServerConnection::read_body() {
  const std::size_t missing = reader_.missing();
  if (missing >= kLeastRead) reader_.lend(core_->loop.large_buffer());
  const std::size_t room = std::min(missing, std::clamp(reader_.body_bytes(), kLeastRead, kLargestRead));
  if (!charge_body(reader_.body_bytes() + room)) return false;
  ByteStream::Io io;
  reader_.fill(room, [&](std::span<char> into) {
    io = pump_.read(into);
    return io.state == ByteStream::State::ok ? io.bytes : 0;
  });
  after_feed();
  return after_read(io, room);
}

// While a request waits for its answer: requests behind it have to wait, and an end of the input means that
// nobody waits for the answer any more.
bool ServerConnection::read_ahead() {
  const std::size_t have = pending_.size() - pending_done_;
  if (have >= kReadAhead) return false;
  const std::span<char> scratch = core_->loop.scratch().first(kReadAhead - have);
  const ByteStream::Io io = pump_.read(scratch);
  pending_.erase(0, std::exchange(pending_done_, 0));
  if (!charge_read_ahead(have + io.bytes)) {
    close();
    return false;
  }
  pending_.append(scratch.data(), io.bytes);
  return after_read(io, scratch.size());
}

bool ServerConnection::discard() {
  const std::span<char> scratch = core_->loop.scratch();
  return after_read(pump_.read(scratch), scratch.size());
}

bool ServerConnection::after_read(const ByteStream::Io& io, std::size_t room) {
  switch (io.state) {
    case ByteStream::State::ok: return io.bytes == room;
    case ByteStream::State::again: break;
    case ByteStream::State::ended: end_of_input(); break;
    case ByteStream::State::failed:
      if (io.error) core_->options.log.debug("a connection broke", {{"reason", io.error->message()}});
      close();
      break;
  }
  return false;
}

// Whoever stops sending with an answer outstanding is taken for gone: that is how clients of MCP cancel. An
// answer that is complete already is still written.
void ServerConnection::end_of_input() {
  input_ended_ = true;
  if (current_ || queue_.empty()) return close();
  closing_ = true;
}

// Feeds the reader. A body that comes in pieces or in chunks is charged first, to the principal that sends it
// where that can be told from the head alone. A body that is there as a whole is charged by dispatch().
std::size_t ServerConnection::feed(std::string_view bytes) {
  const std::size_t head = reader_.feed_until_body(bytes);
  if (reader_.state() != RequestReader::State::body) return head;
  if (reader_.body_bytes() == 0) body_charge_.set(0);  // the head was charged to the address
  const std::string_view rest = bytes.substr(head);
  if (const std::size_t more = reader_.would_buffer(rest.size()); more > 0) {
    static_cast<void>(is_decided());
    if (!charge_body(reader_.body_bytes() + more)) return bytes.size();
  }
  return head + reader_.feed(rest);
}

void ServerConnection::take(std::string_view bytes) {
  const std::size_t done = feed(bytes);
  // Before a handler runs: the bytes are in a buffer that is everybody's.
  if (reader_.state() == RequestReader::State::complete) pending_.assign(bytes.substr(done));
  after_feed();
  take_pending();
}

void ServerConnection::take_pending() {
  if (pending_.empty()) return;
  while (pending_done_ < pending_.size() && may_take_next()) {
    pending_done_ += feed(std::string_view(pending_).substr(pending_done_));
    after_feed();
    if (queue_.bytes() >= kAnswersAhead) pump_.flush();
  }
  if (pending_done_ < pending_.size()) return;
  reset_string(pending_);
  pending_done_ = 0;
  read_ahead_charge_.set(0);
}

// Where requests of other clients wait, each connection handles one at a time.
bool ServerConnection::turn_is_over() const noexcept {
  return turn_requests_ >= (core_->loop.fair().empty() ? kRequestsPerTurn : 1);
}

bool ServerConnection::may_take_next() const noexcept {
  return pump_.open() && !current_ && !closing_ && !pump_.blocked() && !turn_is_over() &&
         admission_.stage != Admission::Stage::waiting;
}

void ServerConnection::after_feed() {
  switch (reader_.state()) {
    case RequestReader::State::complete:
      if (is_decided()) dispatch();
      return;
    case RequestReader::State::refused:
      if (!closing_) refuse(reader_.refusal().status, reader_.refusal().message);
      return;
    case RequestReader::State::body:
      if (!is_decided()) return;
      if (admission_.refusal) return refuse_unread();
      if (!reader_.wants_continue()) return;
      reader_.continued();
      queue_.put(std::string_view("HTTP/1.1 100 Continue\r\n\r\n"));
      return;
    case RequestReader::State::idle:
    case RequestReader::State::head: return;
  }
}

// Goes on with what was read ahead.
void ServerConnection::resume() {
  pump_.run_turn([this] {
    take_pending();
    pump_.flush();
    return false;
  });
}

// At the end of whatever happened to the connection: what does it wait for now?
void ServerConnection::settle() {
  if (!pump_.open() || pump_.in_turn()) return;
  if (core_->draining && is_idle()) closing_ = true;
  if (closing_ && queue_.empty() && !lingering_) linger();
  if (!pump_.open()) return;
  if (!resume_posted_ && pending_done_ < pending_.size() && may_take_next()) {
    resume_posted_ = true;
    if (!account_) account_of(peer_);
    core_->loop.fair().post(account_.get(), [self = shared_from_this()] {
      self->resume_posted_ = false;
      self->resume();
    });
  }
  const bool full = pending_.size() - pending_done_ >= kReadAhead;
  // An end of the input must not be seen before the requests that came before it.
  if (!full && !resume_posted_ && !input_ended_) pump_.wait_for_input();
  update_deadline();
}

// ---- requests --------------------------------------------------------------------------------------------

void ServerConnection::dispatch() {
  served_ = true;
  ++turn_requests_;
  last_phase_ = Phase::answer;  // the clocks of the next request start anew
  const std::optional<std::string_view> host_refusal =
      core_->gate.refuses(reader_.authority(), reader_.head().headers);
  auto exchange = core_->spare ? std::move(core_->spare) : std::make_shared<ServerExchange>();
  core_->spare = nullptr;
  Request& request = exchange->request_;
  reader_.take(request);
  if (request.body.size() >= kLeastRead) core_->loop.remember_large(request.body);
  request.principal = peer_;
  Admission admission;
  if (core_->options.authenticator) std::swap(admission, admission_);
  if (admission.principal) request.principal = std::move(admission.principal);
  request.remote = remote_;
  request.secure = core_->options.tls.has_value();
  const std::optional<Response> over_budget = charge_request(*exchange);
  exchange->connection_ = shared_from_this();
  exchange->state_ = ServerExchange::State::pending;
  exchange->head_only_ = request.method == "HEAD";
  current_ = exchange.get();

  if (host_refusal) return respond(*exchange, refusal_response(403, *host_refusal));
  exchange->origin_allowed_ = request.headers.has("Origin");
  if (admission.refusal) return respond(*exchange, *admission.refusal);
  if (over_budget) return respond(*exchange, *over_budget);
  const std::shared_ptr<const Handler> handler = core_->routes.find(request.path());
  if (!handler) return respond(*exchange, refusal_response(404, "there is nothing at this path"));
  if (Gate::is_preflight(request)) return respond(*exchange, Gate::preflight(request));
  call_handler(*handler, std::move(exchange));
}

void ServerConnection::call_handler(const Handler& handler, std::shared_ptr<ServerExchange> exchange) {
  try {
    handler(exchange);
  } catch (const std::exception& problem) {
    core_->options.log.error("a handler of HTTP requests threw",
                             {{"path", std::string(exchange->request_.path())}, {"what", problem.what()}});
    if (exchange->state_ == ServerExchange::State::pending) {
      respond(*exchange, refusal_response(500, "internal error"));
    } else {
      exchange->abort();
    }
  }
  if (exchange.use_count() > 1 || exchange->state_ != ServerExchange::State::done) return;
  exchange->reset();
  core_->spare = std::move(exchange);
}

void ServerConnection::abandoned(ServerExchange& exchange) {
  core_->options.log.error("a request was not answered by its handler",
                           {{"path", std::string(exchange.request_.path())}});
  respond(exchange, refusal_response(500, "internal error"));
}

// ---- answers ---------------------------------------------------------------------------------------------

// A request that cannot be served. Where the next one would begin is unknown, so this is the last answer.
void ServerConnection::refuse(int status, std::string_view message) {
  core_->options.log.debug("refused a request", {{"status", status}, {"reason", std::string(message)}});
  put_last(refusal_response(status, message));
}

void ServerConnection::put_last(const Response& response, std::string_view origin) {
  HeadFraming framing;
  for (const Bytes& part : response.body) framing.size += part.size();
  framing.keep_alive = false;
  framing.origin = origin;
  put_head(response, framing);
  for (const Bytes& part : response.body) queue_.put(part);
  closing_ = true;
  reset_string(pending_);
  pending_done_ = 0;
  read_ahead_charge_.set(0);
}

bool ServerConnection::keeps_alive() const noexcept {
  return reader_.keep_alive() && !core_->draining && !input_ended_;
}

void ServerConnection::put_head(const Response& response, HeadFraming framing) {
  core_->head.clear();
  write_head(core_->head, response, framing, core_->date.now());
  queue_.put(std::string_view(core_->head));
}

void ServerConnection::respond(ServerExchange& exchange, const Response& response) {
  const std::optional<Response> over_budget = charge_answer(response);
  put_answer(exchange, over_budget ? *over_budget : response);
}

void ServerConnection::put_answer(ServerExchange& exchange, const Response& response) {
  HeadFraming framing;
  framing.http_1_0 = reader_.http_1_0();
  framing.keep_alive = keeps_alive();
  if (exchange.origin_allowed_) framing.origin = exchange.request_.headers.get("Origin");
  for (const Bytes& part : response.body) framing.size += part.size();
  put_head(response, framing);
  const bool bodiless = exchange.head_only_ || response.status == 204 || response.status == 304;
  if (!bodiless) {
    for (const Bytes& part : response.body) queue_.put(part);
  }
  finish_answer(exchange, framing.keep_alive);
}

void ServerConnection::start_stream(ServerExchange& exchange, const Response& head) {
  exchange.state_ = ServerExchange::State::streaming;
  HeadFraming framing;
  framing.http_1_0 = reader_.http_1_0();
  framing.body = framing.http_1_0 ? HeadFraming::Body::until_close : HeadFraming::Body::chunked;
  framing.keep_alive = keeps_alive() && !framing.http_1_0;
  if (exchange.origin_allowed_) framing.origin = exchange.request_.headers.get("Origin");
  exchange.body_ = framing.body;
  exchange.keep_alive_ = framing.keep_alive;
  put_head(head, framing);
  if (!head.body.empty()) write_chunk(exchange, head.body);
  pump_.flush_soon();
}

void ServerConnection::write_chunk(const ServerExchange& exchange, const std::vector<Bytes>& parts) {
  std::size_t size = 0;
  for (const Bytes& part : parts) size += part.size();
  if (size == 0 || exchange.head_only_) return;  // an empty chunk would be the last one
  if (!charge_chunk(size)) return close();
  const bool chunked = exchange.body_ == HeadFraming::Body::chunked;
  if (chunked) {
    std::array<char, 18> line;
    char* end = std::to_chars(line.data(), line.data() + 16, size, 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    queue_.put(std::string_view(line.data(), end));
  }
  for (const Bytes& part : parts) queue_.put(part);
  if (chunked) queue_.put(std::string_view("\r\n"));
  if (queue_.bytes() > core_->options.max_stream_backlog_bytes) {
    core_->options.log.warning("a client does not read its answer: more than max_stream_backlog_bytes (" +
                                   std::to_string(core_->options.max_stream_backlog_bytes) + ") wait for it",
                               {{"client", remote_}});
    return close();
  }
  pump_.flush_soon();
}

void ServerConnection::finish_stream(ServerExchange& exchange) {
  if (exchange.body_ == HeadFraming::Body::chunked && !exchange.head_only_) {
    queue_.put(std::string_view("0\r\n\r\n"));
  }
  finish_answer(exchange, exchange.keep_alive_ && !core_->draining);
}

void ServerConnection::finish_answer(ServerExchange& exchange, bool keep_alive) {
  const auto self = shared_from_this();
  exchange.state_ = ServerExchange::State::done;
  exchange.told_ = nullptr;
  exchange.charge_.set(0);
  current_ = nullptr;
  if (!keep_alive) closing_ = true;
  if (pump_.in_turn()) return;
  pump_.flush();
  settle();
}

Exchange::Upgraded ServerConnection::upgrade(ServerExchange& exchange, const Response& head) {
  HeadFraming framing;
  framing.body = HeadFraming::Body::none;
  framing.upgrade = true;
  put_head(head, framing);
  pump_.flush();
  // Not even a head fits: it has not read what it was sent before, and need not be waited for.
  if (!pump_.open() || !queue_.empty()) {
    close();
    return {};
  }
  exchange.state_ = ServerExchange::State::done;
  exchange.charge_.set(0);
  current_ = nullptr;
  Exchange::Upgraded upgraded{pump_.release(), pending_.substr(pending_done_)};
  core_->forget(*this);
  return upgraded;
}

// ---- the end ---------------------------------------------------------------------------------------------

void ServerConnection::on_output_failed(Error reason) {
  if (reason.kind() == ErrorKind::timeout)
    core_->options.log.warning("client stopped reading: write_stall exceeded", {{"client", remote_}});
  close();
}

void ServerConnection::linger() {
  if (input_ended_) return close();
  lingering_ = true;
  admission_ = Admission();  // uses what the reader has
  reader_.release();
  pump_.shut_output();
}

void ServerConnection::close() {
  if (!pump_.open()) return;
  const auto self = shared_from_this();
  pump_.close();
  body_charge_.set(0);
  answer_charge_.set(0);
  read_ahead_charge_.set(0);
  admission_ = Admission();
  deadline_ = Clock::time_point::max();
  reset_string(pending_);
  pending_done_ = 0;
  queue_ = rpc::ByteQueue();
  core_->forget(*this);
  if (current_) std::exchange(current_, nullptr)->lost();
}

bool ServerConnection::is_idle() const noexcept {
  return !current_ && queue_.empty() && pending_.empty() && reader_.state() == RequestReader::State::idle;
}

bool ServerConnection::may_be_evicted() const noexcept {
  const bool unread =
      reader_.state() == RequestReader::State::idle || reader_.state() == RequestReader::State::head;
  return !surplus_ && !current_ && !pump_.in_turn() && queue_.empty() && pending_.empty() && unread;
}

void ServerConnection::close_if_idle() {
  if (is_idle() && !pump_.in_turn()) close();
}

}  // namespace fairlead::http
