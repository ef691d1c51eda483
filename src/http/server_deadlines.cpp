// The deadlines of a ServerConnection, and what happens beyond them.
#include <algorithm>

#include "http/server_connection.hpp"

namespace fairlead::http {

namespace {

// The time a client has to read the last answer. Closing at once, while it still sends, would discard the
// answer on its side.
constexpr std::chrono::milliseconds kLinger{2'000};

}  // namespace

ServerConnection::Phase ServerConnection::phase() const noexcept {
  if (lingering_) return Phase::linger;
  if (pump_.blocked()) return Phase::stall;
  if (current_ || closing_) return Phase::answer;
  if (admission_.stage == Admission::Stage::waiting) return Phase::authentication;
  switch (reader_.state()) {
    case RequestReader::State::head: return Phase::head;
    case RequestReader::State::body: return Phase::body;
    default: break;
  }
  return served_ || !core_->options.tls ? Phase::idle : Phase::hello;
}

Clock::duration ServerConnection::limit_of(Phase phase) const noexcept {
  const ServerOptions& options = core_->options;
  switch (phase) {
    case Phase::hello:
    case Phase::head: return options.header_timeout;
    case Phase::idle: return options.keep_alive_timeout;
    case Phase::authentication: return options.authentication_timeout;
    case Phase::body: return options.body_timeout;
    case Phase::linger: return kLinger;
    case Phase::stall:  // the pump has the clock
    case Phase::answer: break;
  }
  return Clock::duration::zero();
}

void ServerConnection::update_deadline() {
  const Phase now = phase();
  const bool moved = now == Phase::idle || now == Phase::body;
  if (now == Phase::body && last_phase_ != Phase::body) begin_rate_window();
  if (moved || now != last_phase_) since_ = Clock::now();
  last_phase_ = now;
  set_deadline();
}

void ServerConnection::set_deadline() {
  const Clock::duration limit = limit_of(last_phase_);
  deadline_ = limit == Clock::duration::zero() ? Clock::time_point::max() : since_ + limit;
  if (last_phase_ == Phase::body && core_->options.min_body_bytes_per_second > 0)
    deadline_ = std::min(deadline_, window_began_ + core_->options.body_rate_window);
  core_->watch(deadline_);
}

void ServerConnection::begin_rate_window() {
  window_began_ = Clock::now();
  window_bytes_ = reader_.body_bytes();
}

// Why the body has to end here; empty when only a window of its rate is over, in which enough has come.
std::string ServerConnection::body_problem() const {
  const ServerOptions& options = core_->options;
  const auto in_ms = [](std::chrono::milliseconds time) {
    return " (" + std::to_string(time.count()) + " ms)";
  };
  if (options.body_timeout.count() > 0 && Clock::now() >= since_ + options.body_timeout)
    return "nothing came of the body for body_timeout" + in_ms(options.body_timeout);
  const auto window = std::chrono::duration<double>(options.body_rate_window).count();
  const auto least = static_cast<double>(options.min_body_bytes_per_second) * window;
  if (static_cast<double>(reader_.body_bytes() - window_bytes_) >= least) return {};
  return "the body came slower than min_body_bytes_per_second (" +
         std::to_string(options.min_body_bytes_per_second) + ") over body_rate_window" +
         in_ms(options.body_rate_window);
}

void ServerConnection::expire() {
  const auto self = shared_from_this();
  switch (last_phase_) {
    case Phase::head:
      return time_out("the head of the request took longer than header_timeout (" +
                      std::to_string(core_->options.header_timeout.count()) + " ms)");
    case Phase::body: {
      const std::string problem = body_problem();
      if (!problem.empty()) return time_out(problem);
      begin_rate_window();
      return set_deadline();
    }
    case Phase::authentication: return time_out_authentication();
    case Phase::hello:
    case Phase::idle:
    case Phase::stall:
    case Phase::linger:
    case Phase::answer: return close();
  }
}

// Refuses a request that is not complete and frees what there is of it.
void ServerConnection::give_up_request(int status, const std::string& why) {
  reader_.refuse(status, why);
  refuse(status, why);
  pump_.flush();
  body_charge_.set(0);
}

void ServerConnection::time_out(const std::string& why) {
  give_up_request(408, why);
  settle();
}

}  // namespace fairlead::http
