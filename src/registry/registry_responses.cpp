// Stored responses to requests with an Idempotency-Key.
#include <algorithm>
#include <utility>

#include "registry/registry_impl.hpp"

namespace fairlead::registry {

namespace {

constexpr std::chrono::hours kResponseLifetime{24};
// Of a request in progress. Longer than a request takes.
constexpr std::chrono::minutes kClaimLifetime{10};
constexpr std::size_t kMaxIdempotencyKeyBytes = 255;
constexpr std::size_t kMaxStoredResponseBytes = 64u << 10;

using FoundResponse = std::optional<StoredResponse>;

// Who has sent a request, and its Idempotency-Key.
struct RequestKey {
  std::string actor;
  std::string key;
};

Time current_time() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

Result<FoundResponse> read_response(sql::Transaction& transaction, const RequestKey& request) {
  Result<std::vector<sql::Row>> rows = transaction.execute(
      "select request_sha256, status, location, etag, body from responses where actor = $1 and "
      "idempotency_key = $2",
      {request.actor, request.key});
  if (!rows) return rows.error();
  if (rows->empty()) return FoundResponse();
  const sql::Row& row = rows->front();
  StoredResponse response;
  response.request_sha256 = sql::text(row[0]);
  response.status = static_cast<int>(sql::integer(row[1]));
  response.location = sql::text(row[2]);
  response.etag = sql::text(row[3]);
  response.body = sql::text(row[4]);
  return FoundResponse(std::move(response));
}

Result<void> remove_expired(sql::Transaction& transaction, Time now) {
  Result<std::vector<sql::Row>> done =
      transaction.execute("delete from responses where created_at <= $1 or (status = 0 and created_at <= $2)",
                          {to_stored_time(now - kResponseLifetime), to_stored_time(now - kClaimLifetime)});
  if (!done) return done.error();
  return {};
}

// Makes room for one response: a client that has stored more than others loses its own oldest ones.
Result<void> make_room(sql::Transaction& transaction, std::size_t max_stored) {
  Result<std::vector<sql::Row>> done = transaction.execute("select count(*) from responses");
  if (!done) return done.error();
  const std::int64_t surplus =
      sql::integer(done->front().front()) + 1 - static_cast<std::int64_t>(max_stored);
  if (surplus <= 0) return {};
  done = transaction.execute(
      "delete from responses where (actor, idempotency_key) in (select actor, idempotency_key from responses "
      "where actor = (select actor from responses group by actor order by count(*) desc limit 1) "
      "order by created_at limit $1)",
      {surplus});
  if (!done) return done.error();
  return {};
}

Result<FoundResponse> claim(sql::Transaction& transaction, const RequestKey& request,
                            const std::string& request_sha256, std::size_t max_stored) {
  const Time now = current_time();
  const Result<void> removed = remove_expired(transaction, now);
  if (!removed) return removed.error();
  Result<FoundResponse> found = read_response(transaction, request);
  if (!found || *found) return found;
  const Result<void> room = make_room(transaction, max_stored);
  if (!room) return room.error();
  // Waits for another gateway that claims the same key.
  Result<std::vector<sql::Row>> inserted = transaction.execute(
      "insert into responses (actor, idempotency_key, request_sha256, status, location, etag, body, "
      "created_at) values ($1, $2, $3, 0, '', '', '', $4) on conflict (actor, idempotency_key) do nothing "
      "returning actor",
      {request.actor, request.key, request_sha256, to_stored_time(now)});
  if (!inserted) return inserted.error();
  if (!inserted->empty()) return FoundResponse();
  found = read_response(transaction, request);
  if (!found || *found) return found;
  StoredResponse in_progress;  // the other gateway has removed its claim meanwhile
  in_progress.request_sha256 = request_sha256;
  return FoundResponse(std::move(in_progress));
}

Result<void> write_response(sql::Transaction& transaction, const RequestKey& request,
                            const StoredResponse& response) {
  Result<std::vector<sql::Row>> done = transaction.execute(
      "insert into responses (actor, idempotency_key, request_sha256, status, location, etag, body, "
      "created_at) values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (actor, idempotency_key) do update "
      "set status = excluded.status, location = excluded.location, etag = excluded.etag, body = "
      "excluded.body where responses.status = 0",
      {request.actor, request.key, response.request_sha256, std::int64_t{response.status}, response.location,
       response.etag, response.body, to_stored_time(current_time())});
  if (!done) return done.error();
  return {};
}

Result<void> check_idempotency_key(std::string_view key) {
  const bool printable = std::ranges::all_of(key, [](char c) { return c > ' ' && c <= '~'; });
  if (!key.empty() && key.size() <= kMaxIdempotencyKeyBytes && printable) return {};
  return rejected(kInvalidRow, "an Idempotency-Key has 1 to 255 printable ASCII characters and no spaces");
}

}  // namespace

Task<Result<FoundResponse>> RegistryImpl::claim_response(std::string actor_key, std::string idempotency_key,
                                                         std::string request_sha256) {
  const Result<void> checked = check_idempotency_key(idempotency_key);
  if (!checked) co_return checked.error();
  std::move_only_function<Result<FoundResponse>(sql::Transaction&)> job =
      [request = RequestKey{std::move(actor_key), std::move(idempotency_key)},
       digest = std::move(request_sha256), max_stored = options_.max_stored_responses](
          sql::Transaction& transaction) { return claim(transaction, request, digest, max_stored); };
  co_return co_await sql::query<FoundResponse>(*database_, std::move(job));
}

Task<Result<void>> RegistryImpl::store_response(std::string actor_key, std::string idempotency_key,
                                                StoredResponse response) {
  const Result<void> checked = check_idempotency_key(idempotency_key);
  if (!checked) co_return checked.error();
  if (response.body.size() > kMaxStoredResponseBytes) {
    const Result<void> forgotten = co_await forget_request(std::move(actor_key), std::move(idempotency_key));
    co_return Error(
        ErrorKind::resource_exhausted,
        "the response is not stored for its Idempotency-Key: it exceeds max_stored_response_bytes");
  }
  sql::Database::Job job = [request = RequestKey{std::move(actor_key), std::move(idempotency_key)},
                            response = std::move(response)](sql::Transaction& transaction) {
    return write_response(transaction, request, response);
  };
  co_return co_await database_->run(std::move(job));
}

Task<Result<void>> RegistryImpl::forget_request(std::string actor_key, std::string idempotency_key) {
  sql::Database::Job job = [request = RequestKey{std::move(actor_key), std::move(idempotency_key)}](
                               sql::Transaction& transaction) -> Result<void> {
    const Result<std::vector<sql::Row>> done =
        transaction.execute("delete from responses where actor = $1 and idempotency_key = $2 and status = 0",
                            {request.actor, request.key});
    if (!done) return done.error();
    return {};
  };
  co_return co_await database_->run(std::move(job));
}

}  // namespace fairlead::registry
