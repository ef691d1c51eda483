#include "admin/handlers.hpp"
#include "admin/row_kinds.hpp"
#include "admin/rows.hpp"
#include "fairlead/json/writer.hpp"
#include "registry/json.hpp"

namespace fairlead::admin {

namespace {

// Returns the JSON form of the token with the token itself as first member.
json::Raw with_text(const registry::NewToken& created) {
  const json::Raw row = registry::to_json(*created.token);
  std::string text = "{\"token\":";
  json::append_string(text, created.text);
  text += ',';
  text += row.text().substr(1);
  return json::Raw::trusted(Bytes::adopt(std::move(text)), row.is_one_line());
}

}  // namespace

Task<Result<Reply>> create_token(Call& call) {
  const Result<registry::NewToken> created =
      co_await call.services().registry->create_token(call.principal_ptr(), call.body());
  if (!created) co_return created.error();
  Reply reply(201, with_text(*created));
  reply.headers.add("ETag", entity_tag(created->token->version));
  reply.headers.add("Location", std::string(kApiPrefix) + "/tokens/" + created->token->id);
  co_return reply;
}

Task<Result<Reply>> revoke_token(Call& call) {
  const Result<registry::TokenPtr> row =
      find_row<TokenKind>(call, call.path_value(), registry::Operation::remove);
  if (!row) co_return row.error();
  const Result<std::optional<std::int64_t>> version = required_version(call.headers(), (*row)->version);
  if (!version) co_return version.error();
  if (*version && **version != (*row)->version)
    co_return problem(codes::kVersionMismatch,
                      "the token has the version " + std::to_string((*row)->version));
  const Result<registry::TokenPtr> revoked =
      co_await call.services().registry->revoke_token(call.principal_ptr(), (*row)->id);
  if (!revoked) co_return revoked.error();
  co_return Reply(204);
}

}  // namespace fairlead::admin
