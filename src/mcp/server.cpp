#include "fairlead/mcp/server.hpp"

#include "fairlead/protocol/header_annotations.hpp"
#include "mcp/request_state.hpp"
#include "mcp/server_state.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

json::Raw make_modern_meta(const Implementation& info) {
  json::Writer meta;
  meta.begin_object().key(kServerInfoKey);
  write(meta, info, kNewestRevision);
  meta.end_object();
  return std::move(meta).finish();
}

}  // namespace

ServerState::ServerState(Implementation implementation)
    : info(std::move(implementation)), modern_meta(make_modern_meta(info)) {}

bool ServerState::edit_catalogue(ListKind kind, const std::function<bool(Catalogue&)>& edit) {
  {
    const std::lock_guard lock(mutex_);
    auto changed = std::make_shared<Catalogue>(*catalogue_);
    if (!edit(*changed)) return false;
    lists_tools = changed->size(ListKind::tools) > 0;
    catalogue_ = std::move(changed);
  }
  notify_list_changed(kind);
  return true;
}

void ServerState::add_listener(const std::shared_ptr<ChangeListener>& listener) {
  const std::lock_guard lock(mutex_);
  listeners_.add(listener);
}

void ServerState::notify_resource_updated(const std::string& uri) {
  for (const auto& listener : listeners()) listener->on_resource_updated(uri);
}

void ServerState::notify_list_changed(ListKind kind, const ClientPredicate& predicate) {
  for (const auto& listener : listeners()) {
    if (!predicate || predicate(listener->session(), *listener->principal())) listener->on_list_changed(kind);
  }
}

void ServerState::notify_task_changed(const std::string& id, const json::Raw& detailed_task) {
  for (const auto& listener : listeners()) listener->on_task_changed(id, detailed_task);
}

void ServerState::store_url_elicitation_client(const std::string& elicitation_id,
                                               std::weak_ptr<ClientLink> client) {
  constexpr std::size_t kMaxUrlElicitations = 10'000;
  const std::lock_guard lock(mutex_);
  if (url_elicitation_clients_.insert_or_assign(elicitation_id, std::move(client)).second)
    url_elicitation_ids_.push_back(elicitation_id);
  if (url_elicitation_ids_.size() <= kMaxUrlElicitations) return;
  url_elicitation_clients_.erase(url_elicitation_ids_.front());
  url_elicitation_ids_.pop_front();
}

std::shared_ptr<ClientLink> ServerState::extract_url_elicitation_client(const std::string& elicitation_id) {
  const std::lock_guard lock(mutex_);
  const auto found = url_elicitation_clients_.find(elicitation_id);
  if (found == url_elicitation_clients_.end()) return nullptr;
  std::shared_ptr<ClientLink> client = found->second.lock();
  url_elicitation_clients_.erase(found);
  std::erase(url_elicitation_ids_, elicitation_id);
  return client;
}

std::vector<std::shared_ptr<ChangeListener>> ServerState::listeners() {
  const std::lock_guard lock(mutex_);
  return listeners_.alive();
}

namespace {

Error already_registered_error(std::string_view kind, const std::string& name) {
  return Error(ErrorKind::validation, "the " + std::string(kind) + " `" + name + "` is already registered");
}

// Returns whether `name` consists of 1 to 128 characters that are safe in every client and header.
bool is_tool_name(std::string_view name) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/";
  return !name.empty() && name.size() <= 128 && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

Result<std::optional<json::Schema>> compile_schema(const json::Raw& schema, const std::string& tool,
                                                   const char* schema_kind) {
  if (schema.absent()) return std::optional<json::Schema>();
  Result<json::Schema> compiled = json::Schema::compile(schema.text());
  if (!compiled) {
    return Error(ErrorKind::validation, "the " + std::string(schema_kind) + " of tool `" + tool +
                                            "`: " + compiled.error().message());
  }
  return std::optional<json::Schema>(std::move(*compiled));
}

Result<void> register_tool(ServerState& state, ToolEntry entry) {
  const std::string name = entry.spec.name;
  if (!is_tool_name(name)) {
    return Error(ErrorKind::validation,
                 "`" + name + "` is not a tool name: 1 to 128 letters, digits, or any of _ . - /");
  }
  Result<std::optional<json::Schema>> input = compile_schema(entry.spec.input_schema, name, "input schema");
  if (!input) return input.error();
  Result<std::optional<json::Schema>> output =
      compile_schema(entry.spec.output_schema, name, "output schema");
  if (!output) return output.error();
  entry.input_schema = std::move(*input);
  entry.output_schema = std::move(*output);
  if (entry.spec.task != TaskSupport::never) state.offers_tasks = true;
  entry.header_params = read_header_annotations(json::View(entry.spec.input_schema)).shared_params();
  const bool added = state.edit_catalogue(ListKind::tools,
                                          [&](Catalogue& c) { return c.tools.add(name, std::move(entry)); });
  if (!added) return already_registered_error("tool", name);
  state.has_tools = true;
  return {};
}

}  // namespace

Server::Server(std::string name, std::string version)
    : Server(Implementation{std::move(name), std::move(version), {}, {}, {}, {}}) {}
Server::Server(Implementation implementation)
    : state_(std::make_shared<ServerState>(std::move(implementation))) {}

Server& Server::instructions(std::string text) {
  state_->instructions = std::move(text);
  return *this;
}
Server& Server::endpoint_name(std::string name) {
  state_->configured_endpoint_name = std::move(name);
  return *this;
}

Server& Server::page_size(std::size_t entries) {
  state_->page_size = entries;
  return *this;
}
Server& Server::cache_hint(CacheHint hint) {
  state_->cache_hint = hint;
  return *this;
}
Server& Server::request_state_keys(std::vector<std::string> keys, std::chrono::seconds lifetime) {
  state_->sealer = std::make_shared<const Sealer>(std::move(keys), lifetime);
  return *this;
}

Server& Server::backend(std::shared_ptr<Backend> backend) {
  state_->backend = std::move(backend);
  return *this;
}
void Server::notify_tools_changed(const ClientPredicate& predicate) {
  state_->notify_list_changed(ListKind::tools, predicate);
}
void Server::notify_resources_changed(const ClientPredicate& predicate) {
  state_->notify_list_changed(ListKind::resources, predicate);
}
void Server::notify_prompts_changed(const ClientPredicate& predicate) {
  state_->notify_list_changed(ListKind::prompts, predicate);
}
Server& Server::extension(std::string id, json::Raw settings) {
  Extensions declared = state_->extensions;
  declared[std::move(id)] = std::move(settings);
  const std::string problem = extensions_problem(declared);
  if (!problem.empty()) throw std::invalid_argument(problem);
  state_->extensions = std::move(declared);
  return *this;
}

Server& Server::tasks(TaskOptions options) {
  state_->task_store = std::make_shared<TaskStore>(std::move(options));
  return *this;
}

Result<void> Server::add_tool(ToolSpec spec, PlainTool handler) {
  return register_tool(*state_, ToolEntry{std::move(spec), std::move(handler), nullptr, {}, {}, nullptr});
}
Result<void> Server::add_tool(ToolSpec spec, CoroutineTool handler) {
  return register_tool(*state_, ToolEntry{std::move(spec), nullptr, std::move(handler), {}, {}, nullptr});
}
bool Server::remove_tool(const std::string& name) {
  return state_->edit_catalogue(ListKind::tools, [&](Catalogue& c) { return c.tools.remove(name); });
}

Result<void> Server::add_resource(ResourceSpec spec, ReadResource read) {
  const std::string uri = spec.uri;
  const bool added = state_->edit_catalogue(ListKind::resources, [&](Catalogue& c) {
    return c.resources.add(uri, ResourceEntry{std::move(spec), std::move(read)});
  });
  if (!added) return already_registered_error("resource", uri);
  return {};
}

Result<void> Server::add_resource_template(ResourceSpec spec, ReadResource read, Complete complete) {
  Result<UriTemplate> pattern = UriTemplate::parse(spec.uri);
  if (!pattern) return pattern.error();
  const std::string uri = spec.uri;
  const bool added = state_->edit_catalogue(ListKind::templates, [&](Catalogue& c) {
    return c.templates.add(
        uri, TemplateEntry{std::move(spec), std::move(*pattern), std::move(read), std::move(complete)});
  });
  if (!added) return already_registered_error("resource template", uri);
  return {};
}

bool Server::remove_resource(const std::string& uri) {
  return state_->edit_catalogue(ListKind::resources, [&](Catalogue& c) { return c.resources.remove(uri); });
}
void Server::notify_resource_updated(const std::string& uri) {
  state_->notify_resource_updated(uri);
}

Result<void> Server::add_prompt(PromptSpec spec, GetPrompt get, Complete complete) {
  const std::string name = spec.name;
  const bool added = state_->edit_catalogue(ListKind::prompts, [&](Catalogue& c) {
    return c.prompts.add(name, PromptEntry{std::move(spec), std::move(get), std::move(complete)});
  });
  if (!added) return already_registered_error("prompt", name);
  return {};
}
void Server::notify_elicitation_complete(const std::string& elicitation_id) {
  const std::shared_ptr<ClientLink> client = state_->extract_url_elicitation_client(elicitation_id);
  if (!client) return;
  json::Writer params;
  params.begin_object().key("elicitationId").string(elicitation_id).end_object();
  client->loop().post(
      [client, json = params.finish()] { client->notify("notifications/elicitation/complete", json, {}); });
}
bool Server::remove_prompt(const std::string& name) {
  return state_->edit_catalogue(ListKind::prompts, [&](Catalogue& c) { return c.prompts.remove(name); });
}

}  // namespace fairlead::mcp
