// What a ServerConnection charges to its clients' accounts: a request from its first byte until it is
// answered, requests behind it, and answers that the client has not read.
#include "http/server_connection.hpp"

namespace fairlead::http {

namespace {

// An answer this small is sent over budget too: it is an error more often than not.
constexpr std::size_t kSmallAnswer = 1024;

// Heads up to this size belong to what every connection may use without being charged for it.
constexpr std::size_t kUnchargedHead = 4u << 10;

std::size_t charge_of_head(std::size_t capacity) {
  return capacity > kUnchargedHead ? capacity : 0;
}

int status_of(ChargeOutcome outcome) {
  return outcome == ChargeOutcome::client_exhausted ? 429 : 503;
}

Response refusal_of(const ByteCharge& charge, ChargeOutcome outcome) {
  return refusal_response(status_of(outcome), charge.refusal(outcome).message());
}

}  // namespace

std::shared_ptr<ByteAccount> ServerConnection::account_of(const PrincipalPtr& principal) {
  if (account_ && principal == charged_principal_) return account_;
  charged_principal_ = principal;
  account_ = core_->options.budget->account(client_key(*principal));
  return account_;
}

// Returns false when the request has been refused.
bool ServerConnection::charge_body(std::size_t bytes) {
  if (body_charge_.bytes() == 0)
    body_charge_ = ByteCharge(account_of(admission_.principal ? admission_.principal : peer_));
  const ChargeOutcome outcome = body_charge_.resize(bytes + charge_of_head(reader_.head_capacity()));
  if (outcome == ChargeOutcome::charged) return true;
  give_up_request(status_of(outcome), body_charge_.refusal(outcome).message());
  return false;
}

// Requests behind one that is not answered yet. A client over its budget that sends them all the same is cut
// off.
bool ServerConnection::charge_read_ahead(std::size_t bytes) {
  if (read_ahead_charge_.bytes() == 0)
    read_ahead_charge_ = ByteCharge(account_ ? account_ : account_of(peer_));
  const ChargeOutcome outcome = read_ahead_charge_.resize(bytes);
  if (outcome == ChargeOutcome::charged) return true;
  core_->options.log.debug("closed a connection",
                           {{"client", remote_}, {"reason", read_ahead_charge_.refusal(outcome).message()}});
  return false;
}

// At the end of a turn, when no more is read than there is. A head is charged here only: a turn reads at most
// max_header_bytes of it.
void ServerConnection::count_request() {
  const RequestReader::State state = reader_.state();
  const bool incomplete = pump_.open() && !closing_ &&
                          (state == RequestReader::State::head || state == RequestReader::State::body ||
                           admission_.stage == Admission::Stage::waiting);
  if (incomplete) {
    static_cast<void>(charge_body(reader_.body_bytes()));
  } else {
    body_charge_.set(0);
  }
}

// At the end of a turn: also what came with a request in one read.
void ServerConnection::count_read_ahead() {
  if (!pending_.empty() && !charge_read_ahead(pending_.size())) close();
}

// A whole request: from here on its exchange holds the charge. Returns the refusal when it does not fit.
std::optional<Response> ServerConnection::charge_request(ServerExchange& exchange) {
  body_charge_.set(0);
  exchange.charge_ = ByteCharge(account_of(exchange.request_.principal));
  exchange.head_bytes_ = charge_of_head(RequestReader::capacity_of_head(exchange.request_));
  const ChargeOutcome outcome = exchange.charge_.resize(exchange.head_bytes_ + exchange.request_.body.size());
  if (outcome == ChargeOutcome::charged) return std::nullopt;
  Response refused = refusal_of(exchange.charge_, outcome);
  exchange.request_.body = Bytes();
  return refused;
}

ChargeOutcome ServerConnection::charge_output(std::size_t bytes) {
  if (answer_charge_.bytes() == 0 && account_) answer_charge_ = ByteCharge(account_);
  return answer_charge_.resize(queue_.bytes() + bytes);
}

std::optional<Response> ServerConnection::charge_answer(const Response& response) {
  std::size_t bytes = 0;
  for (const Bytes& part : response.body) bytes += part.size();
  const ChargeOutcome outcome = charge_output(bytes);
  if (outcome == ChargeOutcome::charged || bytes < kSmallAnswer) return std::nullopt;
  return refusal_of(answer_charge_, outcome);
}

bool ServerConnection::charge_chunk(std::size_t bytes) {
  const ChargeOutcome outcome = charge_output(bytes);
  if (outcome == ChargeOutcome::charged) return true;
  core_->options.log.warning("closed a connection whose client does not read its answer",
                             {{"client", remote_}, {"reason", answer_charge_.refusal(outcome).message()}});
  return false;
}

}  // namespace fairlead::http
