#include "admin/idempotency.hpp"

#include <algorithm>

#include "admin/problem.hpp"
#include "admin/services.hpp"
#include "fairlead/json/view.hpp"
#include "fairlead/json/writer.hpp"
#include "registry/tokens.hpp"

namespace fairlead::admin {

namespace {

bool is_valid_key(std::string_view key) {
  return !key.empty() && key.size() <= Idempotency::kMaxKeyBytes &&
         std::ranges::all_of(key, [](char c) { return c > 0x20 && c < 0x7f; });
}

// The digest of what must be equal in a repeated request.
std::string digest_of(const Call& call) {
  std::string text(call.route().operation);
  text.append("\n").append(call.path_value()).append("\n").append(call.exchange()->request().query());
  if (!call.route().has_secret_body) {
    text.append("\n").append(call.body().text());
    return registry::sha256_hex(text);
  }
  const Result<std::string> digest = call.services().registry->secret_digest(call.body().text());
  // Without a key the request fails, and its response is not stored.
  return registry::sha256_hex(text + "\n" + digest.value_or(std::string()));
}

Reply replayed(const registry::StoredResponse& stored) {
  Reply reply(stored.status);
  if (!stored.body.empty()) reply.body = json::Raw::trusted(Bytes::copy_of(stored.body));
  if (!stored.location.empty()) reply.headers.add("Location", stored.location);
  if (!stored.etag.empty()) reply.headers.add("ETag", stored.etag);
  reply.headers.add("Idempotency-Replayed", "true");
  return reply;
}

std::string without_member(const json::Raw& document, std::string_view member) {
  if (member.empty()) return std::string(document.text());
  json::Writer writer;
  writer.begin_object();
  json::View(document).each_member([&](std::string_view key, bool, json::View value) {
    if (key != member) writer.key(key).raw(value.text());
    return true;
  });
  writer.end_object();
  return std::string(writer.text());
}

}  // namespace

Idempotency::Use::Use(std::shared_ptr<Idempotency> owner, std::string actor, std::string key,
                      std::string digest)
    : owner_(std::move(owner)), actor_(std::move(actor)), key_(std::move(key)), digest_(std::move(digest)) {
  owner_->in_use_.emplace(actor_, key_);
}

Idempotency::Use::~Use() {
  owner_->in_use_.erase({actor_, key_});
}

Task<Result<Idempotency::Outcome>> Idempotency::begin(std::shared_ptr<Idempotency> self, Call& call) {
  Outcome outcome;
  const std::string key(call.headers().get("Idempotency-Key"));
  if (!call.headers().has("Idempotency-Key")) co_return outcome;
  if (call.headers().count("Idempotency-Key") > 1 || !is_valid_key(key))
    co_return problem(codes::kInvalidHeader, "Idempotency-Key is not 1 to 255 visible ASCII characters");
  const std::string actor = identity_key(call.principal());
  if (self->in_use_.contains({actor, key}))
    co_return problem(codes::kIdempotencyKeyInUse, "a request with this Idempotency-Key is in progress");
  outcome.use = std::make_shared<Use>(self, actor, key, digest_of(call));
  const Result<std::optional<registry::StoredResponse>> found =
      co_await self->registry_->claim_response(actor, key, outcome.use->digest_);
  if (!found) co_return found.error();
  if (!*found) co_return outcome;
  if ((*found)->request_sha256 != outcome.use->digest_)
    co_return problem(codes::kIdempotencyKeyReused, "the Idempotency-Key belongs to another request");
  if ((*found)->status == 0)
    co_return problem(codes::kIdempotencyKeyInUse,
                      "a request with this Idempotency-Key is in progress at another gateway, or its gateway "
                      "has ended or lost the database before it stored the response");
  outcome.stored = replayed(**found);
  co_return outcome;
}

Task<Result<void>> Idempotency::forget(const Use& use) {
  return use.owner_->registry_->forget_request(use.actor_, use.key_);
}

Task<Result<void>> Idempotency::store(const Call& call, const Use& use, const Reply& reply) {
  registry::StoredResponse response;
  response.request_sha256 = use.digest_;
  response.status = reply.status;
  response.location = reply.headers.get("Location");
  response.etag = reply.headers.get("ETag");
  if (!reply.body.absent()) response.body = without_member(reply.body, call.route().secret_member);
  return use.owner_->registry_->store_response(use.actor_, use.key_, std::move(response));
}

}  // namespace fairlead::admin
