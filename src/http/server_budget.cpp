// ServerConnection: charges memory to the accounts of clients. A client is charged for a request from its
// first byte until its response, for input that is read ahead of the current request, and for responses that
// the client has not read.
#include "http/server_connection.hpp"

namespace fairlead::http {

namespace {

// A response smaller than this is sent even if it exceeds the budget: it is most likely an error.
constexpr std::size_t kSmallResponseBytes = 1024;

// Heads up to this size are part of the fixed cost of a connection and are not charged.
constexpr std::size_t kMaxUnchargedHeadBytes = 4u << 10;

std::size_t head_charge(std::size_t capacity) {
  return capacity > kMaxUnchargedHeadBytes ? capacity : 0;
}

int status_of(ChargeOutcome outcome) {
  return outcome == ChargeOutcome::client_exhausted ? 429 : 503;
}

Response refusal_of(const ByteCharge& charge, ChargeOutcome outcome) {
  return refusal_response(status_of(outcome), charge.refusal_error(outcome).message());
}

}  // namespace

std::shared_ptr<ByteAccount> ServerConnection::account_of(const PrincipalPtr& principal) {
  if (account_ && principal == charged_principal_) return account_;
  charged_principal_ = principal;
  account_ = core_->options.budget->account(client_key(*principal));
  return account_;
}

// Charges the request that is being read, with `bytes` bytes of its body. Returns false if it was rejected.
bool ServerConnection::charge_incomplete_request(std::size_t bytes) {
  if (incomplete_request_charge_.bytes() == 0)
    incomplete_request_charge_ =
        ByteCharge(account_of(authentication_.principal ? authentication_.principal : peer_principal_));
  const ChargeOutcome outcome =
      incomplete_request_charge_.resize(bytes + head_charge(reader_.head_capacity()));
  if (outcome == ChargeOutcome::charged) return true;
  reject_incomplete_request(status_of(outcome), incomplete_request_charge_.refusal_error(outcome).message());
  return false;
}

// Charges `bytes` bytes of input that follow the current request. Returns false if they exceed the budget;
// the caller then closes the connection.
bool ServerConnection::charge_read_ahead(std::size_t bytes) {
  if (read_ahead_charge_.bytes() == 0)
    read_ahead_charge_ = ByteCharge(account_ ? account_ : account_of(peer_principal_));
  const ChargeOutcome outcome = read_ahead_charge_.resize(bytes);
  if (outcome == ChargeOutcome::charged) return true;
  core_->options.log.debug(
      "closed a connection",
      {{"client", remote_}, {"reason", read_ahead_charge_.refusal_error(outcome).message()}});
  return false;
}

// Called at the end of a turn. Sets the charge for the request that is being read to the number of bytes that
// were actually received. The head of a request is charged only here, because one turn reads at most
// max_header_bytes of it.
void ServerConnection::update_incomplete_request_charge() {
  const RequestReader::State state = reader_.state();
  const bool incomplete = pump_.is_open() && !closing_ &&
                          (state == RequestReader::State::head || state == RequestReader::State::body ||
                           authentication_.stage == RequestAuthentication::Stage::waiting);
  if (incomplete) {
    static_cast<void>(charge_incomplete_request(reader_.received_body_bytes()));
  } else {
    incomplete_request_charge_.set(0);
  }
}

// Called at the end of a turn. Charges the input that is read ahead, also if it arrived together with a
// request.
void ServerConnection::update_read_ahead_charge() {
  if (!read_ahead_.empty() && !charge_read_ahead(read_ahead_.size())) close();
}

// Moves the charge for a complete request to its exchange. Returns the response that rejects the request if
// the request exceeds the budget; otherwise nullopt.
std::optional<Response> ServerConnection::charge_complete_request(ServerExchange& exchange) {
  incomplete_request_charge_.set(0);
  exchange.charge_ = ByteCharge(account_of(exchange.request_->principal));
  exchange.charged_head_bytes_ = head_charge(RequestReader::capacity_of_head(*exchange.request_));
  const ChargeOutcome outcome =
      exchange.charge_.resize(exchange.charged_head_bytes_ + exchange.request_->body.size());
  if (outcome == ChargeOutcome::charged) return std::nullopt;
  Response refused = refusal_of(exchange.charge_, outcome);
  exchange.request_->body = Bytes();
  return refused;
}

// Charges the queued output and `bytes` further bytes.
ChargeOutcome ServerConnection::charge_output(std::size_t bytes) {
  if (response_charge_.bytes() == 0 && account_) response_charge_ = ByteCharge(account_);
  return response_charge_.resize(queue_.unwritten_bytes() + bytes);
}

// Returns the error response to send instead if `response` exceeds the budget; otherwise nullopt.
std::optional<Response> ServerConnection::charge_response(const Response& response) {
  std::size_t bytes = 0;
  for (const Bytes& part : response.body) bytes += part.size();
  const ChargeOutcome outcome = charge_output(bytes);
  if (outcome == ChargeOutcome::charged || bytes < kSmallResponseBytes) return std::nullopt;
  return refusal_of(response_charge_, outcome);
}

// Charges a chunk of a streamed response. Returns false if it exceeds the budget; the caller then closes the
// connection.
bool ServerConnection::charge_chunk(std::size_t bytes) {
  const ChargeOutcome outcome = charge_output(bytes);
  if (outcome == ChargeOutcome::charged) return true;
  core_->options.log.warning(
      "closed a connection: the client does not read the response",
      {{"client", remote_}, {"reason", response_charge_.refusal_error(outcome).message()}});
  return false;
}

// Frees the memory that is kept for the next request and its response while a response is streamed, because
// that can take as long as the connection. Called when no handler runs.
void ServerConnection::release_spare_memory() {
  if (!current_exchange_ || current_exchange_->state_ != ServerExchange::State::streaming) return;
  queue_.release_spare_memory();
  current_exchange_->request_->attachment = nullptr;
  if (reader_.state() == RequestReader::State::idle) reader_.release_spare_memory();
}

}  // namespace fairlead::http
