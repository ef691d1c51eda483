// The routes of secrets that rows.hpp does not serve.
#include "admin/handlers.hpp"
#include "admin/page.hpp"
#include "admin/row_kinds.hpp"
#include "admin/rows.hpp"
#include "fairlead/json/writer.hpp"
#include "json/config_reader.hpp"
#include "registry/row_reader.hpp"
#include "registry/secret_lookup.hpp"

namespace fairlead::admin {

namespace {

Result<registry::RekeyRequest> parse_rekey(const json::Raw& body) {
  registry::RekeyRequest request;
  registry::RowReader in{json::View(body)};
  in.flag("key", request.key).flag("dataKey", request.data_key);
  return in.finish(request);
}

json::Raw reference_json(const registry::State& state, const registry::Server& server,
                         const std::string& user, const std::string& name) {
  const registry::SecretSource source = registry::find_secret(state, server, user, name).source;
  json::Writer writer;
  writer.begin_object().key("name").string(name).key("source").string(registry::to_string(source));
  if (source == registry::SecretSource::missing)
    writer.key("remedy").string(registry::how_to_provide(state, server, name));
  writer.end_object();
  return writer.finish();
}

}  // namespace

Task<Result<Reply>> get_secret_status(Call& call) {
  const registry::SecretKeyStatus status = call.services().registry->secret_key_status();
  json::Writer writer;
  writer.begin_object().key("usable").boolean(!status.problem);
  if (status.problem) writer.key("problem").string(status.problem->message());
  if (!status.key_id.empty()) writer.key("keyId").string(status.key_id);
  if (!status.source.empty()) writer.key("source").string(status.source);
  writer.key("dataKeys").unsigned_integer(status.data_keys);
  writer.key("secrets").unsigned_integer(status.secrets).end_object();
  co_return Reply(200, writer.finish());
}

Task<Result<Reply>> rekey_secrets(Call& call) {
  const Result<registry::RekeyRequest> request = parse_rekey(call.body());
  if (!request) co_return request.error();
  const Result<registry::RekeyOutcome> outcome =
      co_await call.services().registry->rekey_secrets(call.principal_ptr(), *request);
  if (!outcome) co_return outcome.error();
  json::Writer writer;
  writer.begin_object().key("keyId").string(outcome->key_id);
  writer.key("previousKeyId").string(outcome->previous_key_id);
  writer.key("dataKeys").unsigned_integer(outcome->data_keys);
  writer.key("values").unsigned_integer(outcome->values).end_object();
  co_return Reply(200, writer.finish());
}

Task<Result<Reply>> list_server_secrets(Call& call) {
  const Result<registry::ServerPtr> server =
      find_row<ServerKind>(call, call.path_value(), registry::Operation::read);
  if (!server) co_return server.error();
  const registry::State& state = call.services().state();
  const std::string user =
      registry::is_registry_user(call.principal()) ? call.principal().user : std::string();
  const Result<PageRequest> request = PageRequest::parse(call.query(), "references");
  if (!request) co_return request.error();
  PageWriter page(*request, "references");
  bool more = false;
  for (const std::string& name : registry::referenced_secrets((*server)->spec)) {
    if (name <= request->after) continue;
    more = !page.has_room();
    if (more) break;
    page.add(name, reference_json(state, **server, user, name));
  }
  co_return Reply(200, page.finish(more));
}

}  // namespace fairlead::admin
