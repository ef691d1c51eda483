#include "http/server_connection.hpp"

#include <algorithm>
#include <utility>

#include "base/reset_string.hpp"
#include "fairlead/base/block_cache.hpp"

namespace fairlead::http {

namespace {

// If at least this many bytes of a body are missing, they are read directly into the buffer of the body.
constexpr std::size_t kMinDirectReadBytes = 16u << 10;
constexpr std::size_t kMinBodyReadBytes = 64u << 10;   // one direct read of a body
constexpr std::size_t kMaxBodyReadBytes = 1u << 20;    // one direct read of a body
constexpr std::size_t kMaxReadAheadBytes = 64u << 10;  // input that is read while a request has no response
constexpr std::size_t kMaxReadBytes = 64u << 10;       // one read, which may contain several requests
constexpr std::size_t kMaxKnownAuthorityBytes = 256;   // of an authority that a connection remembers
// The first read of a request after one with a large body: most of the next body is then read directly into
// its buffer.
constexpr std::size_t kHeadReadBytes = 4u << 10;
constexpr int kMaxRequestsPerTurn = 64;  // requests of one connection, while no other client waits
// Size of pipelined responses that are collected for one write.
constexpr std::size_t kMaxQueuedResponseBytes = 64u << 10;

}  // namespace

ServerConnection::ServerConnection(std::shared_ptr<ServerCore> core, std::unique_ptr<ByteStream> stream,
                                   PrincipalPtr peer_principal, bool surplus)
    : core_(std::move(core)),
      remote_(stream->remote_name()),
      network_(client_network(remote_)),
      peer_principal_(std::move(peer_principal)),
      reader_(core_->options.max_header_bytes, core_->options.max_body_bytes),
      pump_(core_->loop, *this, queue_, std::move(stream), remote_, core_->options.write_stall),
      surplus_(surplus) {}

void ServerConnection::start() {
  if (surplus_) {
    queue_rejection(503, surplus_message(core_->options));
    pump_.flush();
  }
  schedule_next();
}

// ---- reading ---------------------------------------------------------------------------------------------

// Reads and processes input once. All responses that handlers send during that are written together
// afterwards.
bool ServerConnection::read_once() {
  const bool more = read_and_process_input();
  pump_.flush();
  return more;
}

// Called when memory for the input of the client could not be allocated. The client gets 503, unless another
// response is in progress; then the connection is closed.
void ServerConnection::on_out_of_memory() {
  core_->options.log.error("out of memory: rejected a request", {{"client", remote_}});
  if (current_exchange_ || !pump_.is_open()) return close();
  incomplete_request_charge_.set(0);
  reject_incomplete_request(503, "resource exhausted: out of memory");
}

void ServerConnection::on_turn_end() {
  requests_in_turn_ = 0;
  release_spare_memory();
  update_incomplete_request_charge();
  update_read_ahead_charge();
  schedule_next();
}

bool ServerConnection::read_and_process_input() {
  process_read_ahead();  // input that was read ahead precedes new input
  if (!pump_.is_open()) return false;
  if (closing_) return discard_input();
  if (turn_is_over()) return false;
  if (!may_process_input()) return read_ahead();
  return reader_.missing_body_bytes() >= kMinDirectReadBytes ? read_body() : read_some();
}

bool ServerConnection::read_some() {
  const bool head_only = had_large_body_ && reader_.state() == RequestReader::State::idle;
  const std::span<char> scratch =
      core_->loop.scratch_buffer().first(head_only ? kHeadReadBytes : kMaxReadBytes);
  const ByteStream::IoResult io = pump_.read(scratch);
  if (io.status == ByteStream::IoStatus::ok) process_input(std::string_view(scratch.data(), io.bytes));
  return handle_read_result(io, scratch.size());
}

bool ServerConnection::read_body() {
  const std::size_t missing = reader_.missing_body_bytes();
  const std::size_t room =
      std::min(missing, std::clamp(reader_.received_body_bytes(), kMinBodyReadBytes, kMaxBodyReadBytes));
  if (!charge_incomplete_request(reader_.received_body_bytes() + room)) return false;
  ByteStream::IoResult io;
  reader_.fill_body(room, [&](std::span<char> into) {
    io = pump_.read(into);
    return io.status == ByteStream::IoStatus::ok ? io.bytes : 0;
  });
  continue_request();
  return handle_read_result(io, room);
}

// Called while a request has no response. Later requests have to wait, but input is read nevertheless,
// because the end of the input means that the client no longer waits for the response.
bool ServerConnection::read_ahead() {
  const std::size_t have = read_ahead_.size() - read_ahead_processed_;
  if (have >= kMaxReadAheadBytes) return false;
  const std::span<char> scratch = core_->loop.scratch_buffer().first(kMaxReadAheadBytes - have);
  const ByteStream::IoResult io = pump_.read(scratch);
  read_ahead_.erase(0, std::exchange(read_ahead_processed_, 0));
  if (!charge_read_ahead(have + io.bytes)) {
    close();
    return false;
  }
  read_ahead_.append(scratch.data(), io.bytes);
  return handle_read_result(io, scratch.size());
}

// Reads and drops input.
bool ServerConnection::discard_input() {
  const std::span<char> scratch = core_->loop.scratch_buffer();
  return handle_read_result(pump_.read(scratch), scratch.size());
}

// Handles the result of a read into `room` bytes. Returns whether more input may be available.
bool ServerConnection::handle_read_result(const ByteStream::IoResult& io, std::size_t room) {
  switch (io.status) {
    case ByteStream::IoStatus::ok: return io.bytes == room;
    case ByteStream::IoStatus::again: break;
    case ByteStream::IoStatus::ended: on_end_of_input(); break;
    case ByteStream::IoStatus::failed:
      if (io.error) core_->options.log.debug("connection failed", {{"reason", io.error->message()}});
      close();
      break;
  }
  return false;
}

// Called when the client has shut down its sending side. If a response is incomplete, the client counts as
// disconnected, because MCP clients cancel requests in this way. Responses that are complete are still
// written.
void ServerConnection::on_end_of_input() {
  input_ended_ = true;
  if (current_exchange_ || queue_.empty()) return close();
  closing_ = true;
}

// Passes input to the reader. Returns the number of bytes consumed. A body that arrives in several pieces or
// in chunks is charged before it is buffered; it is charged to the principal of the request if authentication
// does not have to wait. A body that is complete at once is charged by dispatch().
std::size_t ServerConnection::feed(std::string_view bytes) {
  const std::size_t head = reader_.feed_until_body(bytes);
  if (reader_.state() != RequestReader::State::body) return head;
  if (reader_.received_body_bytes() == 0)
    incomplete_request_charge_.set(0);  // the head was charged to the client's address
  const std::string_view rest = bytes.substr(head);
  if (const std::size_t more = reader_.bytes_to_buffer(rest.size()); more > 0) {
    static_cast<void>(try_authenticate());
    if (!charge_incomplete_request(reader_.received_body_bytes() + more)) return bytes.size();
  }
  return head + reader_.feed(rest);
}

void ServerConnection::process_input(std::string_view bytes) {
  const std::size_t done = feed(bytes);
  // The rest is copied before a handler runs, because the bytes are in the scratch buffer, which all
  // connections share.
  if (reader_.state() == RequestReader::State::complete) read_ahead_.assign(bytes.substr(done));
  continue_request();
  process_read_ahead();
}

// Processes the requests in read_ahead_ as far as possible in this turn.
void ServerConnection::process_read_ahead() {
  if (read_ahead_.empty()) return;
  while (read_ahead_processed_ < read_ahead_.size() && may_process_input()) {
    read_ahead_processed_ += feed(std::string_view(read_ahead_).substr(read_ahead_processed_));
    continue_request();
    if (queue_.unwritten_bytes() >= kMaxQueuedResponseBytes) pump_.flush();
  }
  if (read_ahead_processed_ < read_ahead_.size()) return;
  reset_string(read_ahead_);
  read_ahead_processed_ = 0;
  read_ahead_charge_.set(0);
}

// Returns whether the connection has handled as many requests as it may in one turn: one, while requests of
// other clients wait.
bool ServerConnection::turn_is_over() const noexcept {
  return requests_in_turn_ >= (core_->loop.fair_queue().empty() ? kMaxRequestsPerTurn : 1);
}

bool ServerConnection::may_process_input() const noexcept {
  return pump_.is_open() && !current_exchange_ && !closing_ && !pump_.output_blocked() && !turn_is_over() &&
         authentication_.stage != RequestAuthentication::Stage::waiting;
}

void ServerConnection::continue_request() {
  switch (reader_.state()) {
    case RequestReader::State::complete:
      if (try_authenticate()) dispatch();
      return;
    case RequestReader::State::refused:
      if (!closing_) queue_rejection(reader_.refusal().status, reader_.refusal().message);
      return;
    case RequestReader::State::body:
      if (!try_authenticate()) return;
      if (authentication_.refusal) return reject_unauthenticated_request();
      if (!reader_.expects_continue()) return;
      reader_.on_continue_sent();
      queue_.put(std::string_view("HTTP/1.1 100 Continue\r\n\r\n"));
      return;
    case RequestReader::State::idle:
    case RequestReader::State::head: return;
  }
}

// Processes input that was read ahead, in a turn of its own.
void ServerConnection::process_read_ahead_in_turn() {
  pump_.run_turn([this] {
    process_read_ahead();
    pump_.flush();
    return false;
  });
}

// Called after every event of the connection. Determines what the connection waits for next: input, its turn
// in the fair queue, or the end of the output. Closes the connection if it waits for nothing. Updates the
// deadline.
void ServerConnection::schedule_next() {
  if (!pump_.is_open() || pump_.in_turn()) return;
  if (core_->draining && is_idle()) closing_ = true;
  if (closing_ && queue_.empty() && !lingering_) linger();
  if (!pump_.is_open()) return;
  if (!read_ahead_turn_posted_ && read_ahead_processed_ < read_ahead_.size() && may_process_input()) {
    read_ahead_turn_posted_ = true;
    if (!account_) account_of(peer_principal_);
    core_->loop.fair_queue().post(account_.get(), [self = shared_from_this()] {
      self->read_ahead_turn_posted_ = false;
      self->process_read_ahead_in_turn();
    });
  }
  const bool full = read_ahead_.size() - read_ahead_processed_ >= kMaxReadAheadBytes;
  // While requests are read ahead, no input is awaited: the end of the input must not be handled before these
  // requests.
  if (!full && !read_ahead_turn_posted_ && !input_ended_) pump_.wait_for_input();
  update_deadline();
}

// ---- requests --------------------------------------------------------------------------------------------

// Passes the complete request to its handler, or responds with an error.
void ServerConnection::dispatch() {
  has_read_request_ = true;
  ++requests_in_turn_;
  last_phase_ = Phase::response;  // so that the timeouts of the next request start from zero
  apply_policy();
  const auto exchange = make_cached<ServerExchange>();
  exchange->head_number_ = reader_.head_number();
  exchange->request_ = reader_.extract_request();
  Request& request = *exchange->request_;
  had_large_body_ = request.body.size() >= kMinDirectReadBytes;
  request.principal = peer_principal_;
  RequestAuthentication authentication;
  if (core_->options.authenticator) std::swap(authentication, authentication_);
  if (authentication.principal) request.principal = std::move(authentication.principal);
  if (request.remote.empty()) request.remote = remote_;
  request.secure = core_->options.tls.has_value();
  const std::optional<Response> over_budget = charge_complete_request(*exchange);
  exchange->connection_ = shared_from_this();
  exchange->state_ = ServerExchange::State::pending;
  exchange->head_only_ = request.method == "HEAD";
  current_exchange_ = exchange.get();

  if (policy_verdict_.refusal) return respond(*exchange, refusal_response(403, *policy_verdict_.refusal));
  exchange->origin_allowed_ = policy_verdict_.origin_allowed;
  if (authentication.refusal) return respond(*exchange, *authentication.refusal);
  if (over_budget) return respond(*exchange, *over_budget);
  const std::shared_ptr<const Handler> handler = core_->routes.find(request.path());
  if (!handler) return respond(*exchange, refusal_response(404, "no handler for this path"));
  if (policy_verdict_.is_preflight) return respond(*exchange, HostOriginPolicy::preflight_response(request));
  call_handler(*handler, exchange);
}

void ServerConnection::apply_policy() {
  if (policy_verdict_.head_number == reader_.head_number()) return;
  const HostOriginPolicy& policy = core_->host_origin_policy;
  const Request& head = reader_.head();
  policy_verdict_.head_number = reader_.head_number();
  // Most requests of a connection are for the same host, which is then checked only once.
  const bool known = reader_.authority() == allowed_authority_ && !allowed_authority_.empty();
  if (known && !head.headers.has("Origin")) {
    policy_verdict_.refusal = std::nullopt;
  } else {
    policy_verdict_.refusal = policy.rejection_reason(reader_.authority(), head.headers, head.path());
    if (!policy_verdict_.refusal && reader_.authority().size() <= kMaxKnownAuthorityBytes)
      allowed_authority_ = reader_.authority();
  }
  const bool is_public = policy.is_public(head.path());
  policy_verdict_.origin_allowed = head.headers.has("Origin") && !is_public;
  policy_verdict_.is_preflight = HostOriginPolicy::is_preflight(head) && !is_public;
}

void ServerConnection::call_handler(const Handler& handler, const std::shared_ptr<ServerExchange>& exchange) {
  try {
    handler(exchange);
  } catch (const std::exception& problem) {
    core_->options.log.error("HTTP handler threw an exception",
                             {{"path", std::string(exchange->request_->path())}, {"what", problem.what()}});
    if (exchange->state_ == ServerExchange::State::pending) {
      respond(*exchange, refusal_response(500, "internal error"));
    } else {
      exchange->abort();
    }
  }
}

void ServerConnection::on_exchange_dropped(ServerExchange& exchange) {
  core_->options.log.error("HTTP handler dropped a request without a response",
                           {{"path", std::string(exchange.request_->path())}});
  respond(exchange, refusal_response(500, "internal error"));
}

void ServerConnection::reclaim_request(ServerExchange& exchange) noexcept {
  if (pump_.is_open() && !closing_) reader_.reclaim_head(std::move(exchange.request_), exchange.head_number_);
}

// ---- closing ---------------------------------------------------------------------------------------------

void ServerConnection::on_output_failed(Error reason) {
  if (reason.kind() == ErrorKind::timeout)
    core_->options.log.warning("client stopped reading: write_stall exceeded", {{"client", remote_}});
  close();
}

// Called when the last response is written. Shuts down the output and discards input until the client closes
// the connection, because closing it while the client is still sending could make the client lose the
// response.
void ServerConnection::linger() {
  if (input_ended_) return close();
  lingering_ = true;
  authentication_ = RequestAuthentication();  // the authentication task refers to the request in reader_
  reader_.release_memory();
  pump_.shutdown_output();
}

void ServerConnection::close() {
  if (!pump_.is_open()) return;
  const auto self = shared_from_this();
  pump_.close();
  incomplete_request_charge_.set(0);
  response_charge_.set(0);
  read_ahead_charge_.set(0);
  authentication_ = RequestAuthentication();
  deadline_ = Clock::time_point::max();
  reset_string(read_ahead_);
  read_ahead_processed_ = 0;
  queue_ = rpc::ByteQueue();
  core_->remove(*this);
  if (current_exchange_) std::exchange(current_exchange_, nullptr)->on_connection_lost();
}

bool ServerConnection::is_idle() const noexcept {
  return !current_exchange_ && queue_.empty() && read_ahead_.empty() &&
         reader_.state() == RequestReader::State::idle;
}

bool ServerConnection::may_be_evicted() const noexcept {
  const bool unread =
      reader_.state() == RequestReader::State::idle || reader_.state() == RequestReader::State::head;
  return !surplus_ && !current_exchange_ && !pump_.in_turn() && queue_.empty() && read_ahead_.empty() &&
         unread;
}

void ServerConnection::close_if_idle() {
  if (is_idle() && !pump_.in_turn()) close();
}

}  // namespace fairlead::http
