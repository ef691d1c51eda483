// ServerExchange: passes the response of a handler to the connection.
#include "http/server_connection.hpp"

namespace fairlead::http {

ServerExchange::~ServerExchange() {
  if (state_ == State::pending) {
    connection_->on_exchange_dropped(*this);
  } else if (state_ == State::streaming) {
    connection_->close();
  }
  if (request_) connection_->reclaim_request(*this);
}

void ServerExchange::respond(Response response) {
  if (state_ == State::pending) connection_->respond(*this, response);
}

void ServerExchange::respond_with(int status, std::string_view content_type, const rpc::Rope& body) {
  if (state_ != State::pending) return;
  if (!connection_->respond_plainly(*this, status, content_type, body))
    Exchange::respond_with(status, content_type, body);
}

void ServerExchange::start(Response head) {
  if (state_ == State::pending) connection_->start_stream(*this, head);
}

void ServerExchange::write(std::vector<Bytes> parts) {
  if (state_ == State::streaming) connection_->write_chunk(*this, parts);
}

void ServerExchange::finish() {
  if (state_ == State::streaming) connection_->finish_stream(*this);
}

void ServerExchange::abort() {
  if (state_ == State::done) return;
  on_disconnect_ = nullptr;
  connection_->close();
}

std::size_t ServerExchange::backlog() const noexcept {
  return state_ == State::streaming ? connection_->backlog() : 0;
}

Exchange::Upgraded ServerExchange::upgrade(Response head) {
  if (state_ != State::pending) return {};
  return connection_->upgrade(*this, head);
}

void ServerExchange::when_disconnected(std::move_only_function<void()> callback) {
  if (disconnected_) {
    loop().post(std::move(callback));
  } else if (state_ != State::done) {
    on_disconnect_ = std::move(callback);
  }
}

// The callback runs in a later callback of the loop: it may drop the exchange, which must not happen while
// the connection is being closed.
void ServerExchange::on_connection_lost() {
  state_ = State::done;
  disconnected_ = true;
  charge_.set(0);
  if (on_disconnect_) loop().post(std::exchange(on_disconnect_, nullptr));
}

std::shared_ptr<ByteAccount> ServerExchange::account() const {
  return connection_->account_of(request_->principal);
}

}  // namespace fairlead::http
