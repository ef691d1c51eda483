// ServerConnection: the deadline of each phase of a connection, and what the connection does when it passes.
#include <algorithm>

#include "http/server_connection.hpp"

namespace fairlead::http {

namespace {

// How long the server waits until the client has read the last response. If the server closed the connection
// while the client is still sending, the client would get a reset and could lose the response.
constexpr std::chrono::milliseconds kLingerTimeout{2'000};

}  // namespace

ServerConnection::Phase ServerConnection::phase() const noexcept {
  if (lingering_) return Phase::linger;
  if (pump_.output_blocked()) return Phase::write_stall;
  if (current_exchange_ || closing_) return Phase::response;
  if (authentication_.stage == RequestAuthentication::Stage::waiting) return Phase::authentication;
  switch (reader_.state()) {
    case RequestReader::State::head: return Phase::head;
    case RequestReader::State::body: return Phase::body;
    default: break;
  }
  return has_read_request_ || !core_->options.tls ? Phase::idle : Phase::handshake;
}

Clock::duration ServerConnection::timeout_of(Phase phase) const noexcept {
  const ServerOptions& options = core_->options;
  switch (phase) {
    case Phase::handshake:
    case Phase::head: return options.header_timeout;
    case Phase::idle: return options.keep_alive_timeout;
    case Phase::authentication: return options.authentication_timeout;
    case Phase::body: return options.body_timeout;
    case Phase::linger: return kLingerTimeout;
    case Phase::write_stall:  // StreamPump has its own timer for this
    case Phase::response: break;
  }
  return Clock::duration::zero();
}

// Determines the phase and its deadline. In the phases `idle` and `body` every event of the connection
// restarts the timeout.
void ServerConnection::update_deadline() {
  const Phase now = phase();
  const bool restarts = now == Phase::idle || now == Phase::body;
  if (now == Phase::body && last_phase_ != Phase::body) start_rate_window();
  if (restarts || now != last_phase_) phase_start_ = core_->loop.now();
  last_phase_ = now;
  set_deadline();
}

void ServerConnection::set_deadline() {
  const Clock::duration limit = timeout_of(last_phase_);
  deadline_ = limit == Clock::duration::zero() ? Clock::time_point::max() : phase_start_ + limit;
  if (last_phase_ == Phase::body && core_->options.min_body_bytes_per_second > 0)
    deadline_ = std::min(deadline_, rate_window_start_ + core_->options.body_rate_window);
  core_->schedule_deadline_check(deadline_);
}

void ServerConnection::start_rate_window() {
  rate_window_start_ = Clock::now();
  rate_window_start_bytes_ = reader_.received_body_bytes();
}

// Returns why the body has timed out. Returns an empty string if the deadline was only the end of a rate
// window in which enough bytes have arrived.
std::string ServerConnection::body_timeout_reason() const {
  const ServerOptions& options = core_->options;
  const auto in_ms = [](std::chrono::milliseconds time) {
    return " (" + std::to_string(time.count()) + " ms)";
  };
  if (options.body_timeout.count() > 0 && Clock::now() >= phase_start_ + options.body_timeout)
    return "no byte of the request body arrived for body_timeout" + in_ms(options.body_timeout);
  const auto window = std::chrono::duration<double>(options.body_rate_window).count();
  const auto min_bytes = static_cast<double>(options.min_body_bytes_per_second) * window;
  if (static_cast<double>(reader_.received_body_bytes() - rate_window_start_bytes_) >= min_bytes) return {};
  return "the request body arrived slower than min_body_bytes_per_second (" +
         std::to_string(options.min_body_bytes_per_second) + ") over body_rate_window" +
         in_ms(options.body_rate_window);
}

void ServerConnection::on_deadline() {
  const auto self = shared_from_this();
  switch (last_phase_) {
    case Phase::head:
      return time_out("the request head took longer than header_timeout (" +
                      std::to_string(core_->options.header_timeout.count()) + " ms)");
    case Phase::body: {
      const std::string problem = body_timeout_reason();
      if (!problem.empty()) return time_out(problem);
      start_rate_window();
      return set_deadline();
    }
    case Phase::authentication: return time_out_authentication();
    case Phase::handshake:
    case Phase::idle:
    case Phase::write_stall:
    case Phase::linger:
    case Phase::response: return close();
  }
}

// Rejects a request that has not arrived completely, and frees the memory of the received part.
void ServerConnection::reject_incomplete_request(int status, const std::string& why) {
  reader_.reject(status, why);
  queue_rejection(status, why);
  pump_.flush();
  incomplete_request_charge_.set(0);
}

void ServerConnection::time_out(const std::string& why) {
  reject_incomplete_request(408, why);
  schedule_next();
}

}  // namespace fairlead::http
