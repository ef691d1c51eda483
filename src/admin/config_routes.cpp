#include "admin/handlers.hpp"
#include "admin/page.hpp"
#include "admin/problem.hpp"
#include "admin/request_body.hpp"
#include "admin/services.hpp"
#include "fairlead/json/view.hpp"
#include "registry/configuration.hpp"

namespace fairlead::admin {

namespace {

const registry::Configuration& configuration(const Call& call) {
  return *call.services().state().configuration;
}

Result<const registry::Definition*> find_definition_of(const Call& call) {
  const registry::Definition* const found = registry::find_definition(call.path_value());
  if (found) return found;
  const Result<registry::ConfigurationPtr> unknown =
      configuration(call).with(call.path_value(), json::View());
  if (!unknown) return problem(codes::kNotFound, unknown.error().message());
  return problem(codes::kNotFound, "there is no such key");
}

Result<json::Raw> value_in(const json::Raw& body) {
  const Result<void> checked = check_members(json::View(body), {"value"});
  if (!checked) return checked.error();
  const json::View value = json::View(body)["value"];
  if (value.absent()) return problem(codes::kInvalidRow, "\"value\" is missing", "/value");
  return json::Raw::trusted(body.bytes().part(value.text()));
}

}  // namespace

Task<Result<Reply>> list_config(Call& call) {
  const Result<PageRequest> request = PageRequest::parse(call.query(), "config");
  if (!request) co_return request.error();
  PageWriter page(*request, "config");
  const std::string* const category = call.query().find("category");
  bool more = false;
  for (const registry::Definition& definition : registry::definitions()) {
    if (definition.full_key <= request->after) continue;
    if (category && definition.category() != *category) continue;
    more = !page.has_room();
    if (more) break;
    page.add(definition.full_key, configuration(call).to_json(definition));
  }
  co_return Reply(200, page.finish(more));
}

Task<Result<Reply>> get_config(Call& call) {
  const Result<const registry::Definition*> definition = find_definition_of(call);
  if (!definition) co_return definition.error();
  co_return Reply(200, configuration(call).to_json(**definition));
}

Task<Result<Reply>> put_config(Call& call) {
  const Result<const registry::Definition*> definition = find_definition_of(call);
  if (!definition) co_return definition.error();
  Result<json::Raw> value = value_in(call.body());
  if (!value) co_return value.error();
  const Result<registry::ConfigurationPtr> changed = co_await call.services().registry->set_config(
      call.principal_ptr(), call.path_value(), std::move(*value));
  if (!changed) co_return changed.error();
  co_return Reply(200, (*changed)->to_json(**definition));
}

Task<Result<Reply>> reset_config(Call& call) {
  const Result<const registry::Definition*> definition = find_definition_of(call);
  if (!definition) co_return definition.error();
  const Result<registry::ConfigurationPtr> changed =
      co_await call.services().registry->set_config(call.principal_ptr(), call.path_value(), json::Raw());
  if (!changed) co_return changed.error();
  co_return Reply(204);
}

}  // namespace fairlead::admin
