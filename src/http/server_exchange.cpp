// ServerExchange: the way back from a handler to its connection.
#include "http/server_connection.hpp"

namespace fairlead::http {

ServerExchange::~ServerExchange() {
  if (state_ == State::pending) {
    connection_->abandoned(*this);
  } else if (state_ == State::streaming) {
    connection_->close();
  }
}

void ServerExchange::reset() noexcept {
  connection_.reset();
  charge_ = ByteCharge();
  gone_ = false;
  origin_allowed_ = false;
  told_ = nullptr;
}

void ServerExchange::respond(Response response) {
  if (state_ == State::pending) connection_->respond(*this, response);
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
  told_ = nullptr;
  connection_->close();
}

std::size_t ServerExchange::backlog() const noexcept {
  return state_ == State::streaming ? connection_->backlog() : 0;
}

Exchange::Upgraded ServerExchange::upgrade(Response head) {
  if (state_ != State::pending) return {};
  return connection_->upgrade(*this, head);
}

void ServerExchange::when_gone(std::function<void()> told) {
  if (gone_) {
    loop().post(std::move(told));
  } else if (state_ != State::done) {
    told_ = std::move(told);
  }
}

// Told later: whoever is told may drop the exchange, in the midst of the connection's end.
void ServerExchange::lost() {
  state_ = State::done;
  gone_ = true;
  charge_.set(0);
  if (told_) loop().post(std::exchange(told_, nullptr));
}

std::shared_ptr<ByteAccount> ServerExchange::account() const {
  return connection_->account_of(request_.principal);
}

}  // namespace fairlead::http
