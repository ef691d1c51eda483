// ServerConnection: queues the responses of the handlers, and those by which the server rejects requests.
#include <array>
#include <charconv>
#include <utility>

#include "base/reset_string.hpp"
#include "http/server_connection.hpp"

namespace fairlead::http {

// Rejects a request that was not read completely. It is unknown where the next request would begin, so this
// is the last response of the connection.
void ServerConnection::queue_rejection(int status, std::string_view message) {
  core_->options.log.debug("rejected a request", {{"status", status}, {"reason", std::string(message)}});
  std::optional<Response> response;
  if (core_->options.rejection_response)
    response = core_->options.rejection_response(reader_.head().target, status, message);
  queue_final_response(response ? *response : refusal_response(status, message));
}

void ServerConnection::queue_final_response(const Response& response, std::string_view origin) {
  ResponseFraming framing;
  for (const Bytes& part : response.body) framing.content_length += part.size();
  framing.keep_alive = false;
  framing.origin = origin;
  queue_head(response, framing);
  for (const Bytes& part : response.body) queue_.put(part);
  closing_ = true;
  reset_string(read_ahead_);
  read_ahead_processed_ = 0;
  read_ahead_charge_.set(0);
}

bool ServerConnection::keeps_alive() const noexcept {
  return reader_.keep_alive() && !core_->draining && !input_ended_;
}

void ServerConnection::queue_head(const Response& response, ResponseFraming framing) {
  core_->head_buffer.clear();
  append_head(core_->head_buffer, response, framing, core_->date.now());
  queue_.put(std::string_view(core_->head_buffer));
}

void ServerConnection::respond(ServerExchange& exchange, const Response& response) {
  const std::optional<Response> over_budget = charge_response(response);
  queue_response(exchange, over_budget ? *over_budget : response);
}

bool ServerConnection::respond_plainly(ServerExchange& exchange, int status, std::string_view content_type,
                                       const rpc::Rope& body) {
  const bool plain = keeps_alive() && !reader_.http_1_0() && !exchange.origin_allowed_ &&
                     !exchange.head_only_ && has_content_length(status);
  const std::size_t size = body.size();
  if (!plain || charge_output(size) != ChargeOutcome::charged) return false;
  queue_.put(core_->plain_head.up_to_length(status, content_type, core_->date.now()));
  queue_.put(PlainHead::Length(size).view());
  body.each([&](const Bytes& part) { queue_.put(part); });
  finish_response(exchange, true);
  return true;
}

void ServerConnection::queue_response(ServerExchange& exchange, const Response& response) {
  ResponseFraming framing;
  framing.http_1_0 = reader_.http_1_0();
  framing.keep_alive = keeps_alive();
  if (exchange.origin_allowed_) framing.origin = exchange.request_->headers.get("Origin");
  for (const Bytes& part : response.body) framing.content_length += part.size();
  queue_head(response, framing);
  const bool bodiless = exchange.head_only_ || !has_content_length(response.status);
  if (!bodiless) {
    for (const Bytes& part : response.body) queue_.put(part);
  }
  finish_response(exchange, framing.keep_alive);
}

void ServerConnection::start_stream(ServerExchange& exchange, const Response& head) {
  exchange.state_ = ServerExchange::State::streaming;
  ResponseFraming framing;
  framing.http_1_0 = reader_.http_1_0();
  framing.body = framing.http_1_0 ? ResponseFraming::Body::until_close : ResponseFraming::Body::chunked;
  framing.keep_alive = keeps_alive() && !framing.http_1_0;
  if (exchange.origin_allowed_) framing.origin = exchange.request_->headers.get("Origin");
  exchange.body_framing_ = framing.body;
  exchange.keep_alive_ = framing.keep_alive;
  queue_head(head, framing);
  if (!head.body.empty()) write_chunk(exchange, head.body);
  pump_.flush_soon();
}

void ServerConnection::write_chunk(const ServerExchange& exchange, const std::vector<Bytes>& parts) {
  std::size_t size = 0;
  for (const Bytes& part : parts) size += part.size();
  // A response to HEAD has no body, and an empty chunk would mark the end of the response.
  if (size == 0 || exchange.head_only_) return;
  if (!charge_chunk(size)) return close();
  const bool chunked = exchange.body_framing_ == ResponseFraming::Body::chunked;
  if (chunked) {
    std::array<char, 18> line;
    char* end = std::to_chars(line.data(), line.data() + 16, size, 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    queue_.put(std::string_view(line.data(), end));
  }
  for (const Bytes& part : parts) queue_.put(part);
  if (chunked) queue_.put(std::string_view("\r\n"));
  if (queue_.unwritten_bytes() > core_->options.max_stream_backlog_bytes) {
    core_->options.log.warning("client stopped reading: response over max_stream_backlog_bytes (" +
                                   std::to_string(core_->options.max_stream_backlog_bytes) + ")",
                               {{"client", remote_}});
    return close();
  }
  pump_.flush_soon();
}

void ServerConnection::finish_stream(ServerExchange& exchange) {
  if (exchange.body_framing_ == ResponseFraming::Body::chunked && !exchange.head_only_) {
    queue_.put(std::string_view("0\r\n\r\n"));
  }
  finish_response(exchange, exchange.keep_alive_ && !core_->draining);
}

void ServerConnection::finish_response(ServerExchange& exchange, bool keep_alive) {
  exchange.state_ = ServerExchange::State::done;
  exchange.on_disconnect_ = nullptr;
  exchange.charge_.set(0);
  current_exchange_ = nullptr;
  if (!keep_alive) closing_ = true;
  if (pump_.in_turn()) return;
  pump_.flush();
  schedule_next();
}

Exchange::Upgraded ServerConnection::upgrade(ServerExchange& exchange, const Response& head) {
  ResponseFraming framing;
  framing.body = ResponseFraming::Body::none;
  framing.upgrade = true;
  queue_head(head, framing);
  pump_.flush();
  // If even the head could not be written, the client does not read. The upgrade does not wait for it and
  // fails.
  if (!pump_.is_open() || !queue_.empty()) {
    close();
    return {};
  }
  exchange.state_ = ServerExchange::State::done;
  exchange.charge_.set(0);
  current_exchange_ = nullptr;
  Exchange::Upgraded upgraded{pump_.release(), read_ahead_.substr(read_ahead_processed_)};
  core_->remove(*this);
  return upgraded;
}

}  // namespace fairlead::http
