#include "mcp/features.hpp"

#include <charconv>

#include "fairlead/base/base64.hpp"
#include "fairlead/protocol/list_limits.hpp"
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "mcp/handler_run.hpp"
#include "mcp/skills_server.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::int64_t kResourceNotFound = -32002;  // legacy era

std::string_view result_member(ListKind kind) {
  switch (kind) {
    case ListKind::tools: return "tools";
    case ListKind::resources: return "resources";
    case ListKind::templates: return "resourceTemplates";
    case ListKind::prompts: return "prompts";
  }
  return "";
}

// Returns the members of an object whose values are strings; an empty map if `object` is absent. Errors refer
// to the object by `name`.
Result<std::map<std::string, std::string>> string_members(json::View object, std::string_view name) {
  if (const std::optional<Error> problem = check_member_count(name, object)) return *problem;
  std::map<std::string, std::string> members;
  bool valid = object.absent() || object.is(json::Type::object);
  object.each_member([&](std::string_view key, bool escaped, json::View value) {
    std::optional<std::string> text = value.as_string();
    valid = text.has_value();
    if (valid) members[escaped ? json::unescape(key) : std::string(key)] = std::move(*text);
    return valid;
  });
  if (!valid) return rpc::invalid_params(std::string(name) + " is not an object of strings");
  return members;
}

// ---- input requests (modern era) ------------------------------------------------------------------------

// Returns the text to which the sealed `requestState` is bound (see Sealer): it is rejected if the endpoint,
// principal, method, tool or arguments differ.
std::string request_state_binding(const FeatureRequest& request) {
  const json::View args = request.params_view();
  const json::View name = args["name"].absent() ? args["uri"] : args["name"];
  const std::string& endpoint = request.server->endpoint_name();
  return std::to_string(endpoint.size()) + ":" + endpoint + identity_key(*request.state->link->principal()) +
         "\n" + request.method + "\n" + std::string(name.text()) + "\n" +
         json::minify(args["arguments"].text());
}

}  // namespace

std::optional<Error> check_member_count(std::string_view name, json::View object) {
  if (!json::has_more_members_than(object, ListLimits().max_message_members)) return std::nullopt;
  return too_many_members_error(name);
}

Error too_many_members_error(std::string_view name) {
  return rpc::invalid_params(std::string(name) + " has more than max_message_members (" +
                             std::to_string(ListLimits().max_message_members) + ")");
}

Error log_internal_error(const FeatureRequest& request, const std::string& reason) {
  request.log.error("request failed", {{"method", request.method}, {"what", reason}});
  return Error::rpc(rpc::kInternalError, "Internal error");
}

std::string exception_message(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

Result<void> collect_input_responses(const FeatureRequest& request) {
  if (!is_modern(request.state->revision)) return {};
  const json::View sealed = request.find_param("requestState");
  if (!sealed.absent()) {
    const std::optional<std::string> text = sealed.as_string();
    if (!text) return rpc::invalid_params("requestState is not a string");
    const Result<std::string> opened =
        request.server->sealer->open(*text, request_state_binding(request), std::chrono::system_clock::now());
    if (!opened) return opened.error();
    json::View(*opened).each_member([&](std::string_view key, bool escaped, json::View value) {
      request.state->input_responses[escaped ? json::unescape(key) : std::string(key)] =
          json::Raw::trusted(Bytes::copy_of(value.text()));
      return true;
    });
  }
  const json::View responses = request.find_param("inputResponses");
  if (!responses.absent() && !responses.is(json::Type::object))
    return rpc::invalid_params("inputResponses is not an object");
  if (const std::optional<Error> problem = check_member_count("inputResponses", responses)) return *problem;
  responses.each_member([&](std::string_view key, bool escaped, json::View value) {
    request.state->input_responses[escaped ? json::unescape(key) : std::string(key)] =
        json::Raw::trusted(request.params.bytes().part(value.text()));
    return true;
  });
  return {};
}

json::Raw input_required_result(const FeatureRequest& request) {
  json::Writer responses;
  responses.begin_object();
  for (const auto& [key, response] : request.state->input_responses) responses.key(key).raw(response);
  responses.end_object();
  ResultWriter result(*request.server, request.state->revision, "input_required");
  result.out().key("inputRequests").begin_object();
  for (const RequestState::InputRequest& input_request : request.state->open_input_requests) {
    result.out()
        .key(input_request.key)
        .begin_object()
        .key("method")
        .string(input_request.method)
        .key("params")
        .raw(input_request.params)
        .end_object();
  }
  result.out().end_object();
  result.out()
      .key("requestState")
      .string(request.server->sealer->seal(responses.text(), request_state_binding(request),
                                           std::chrono::system_clock::now()));
  return result.finish();
}

// ---- results --------------------------------------------------------------------------------------------

ResultWriter::ResultWriter(const ServerState& server, Revision revision, std::string_view result_type)
    : server_(server), revision_(revision) {
  out_.begin_object();
  if (is_modern(revision_)) out_.key("resultType").string(result_type);
}

void ResultWriter::write_cache_hint(const CacheHint& hint) {
  if (!is_modern(revision_)) return;
  out_.key("ttlMs")
      .unsigned_integer(hint.ttl_ms)
      .key("cacheScope")
      .string(hint.is_public ? "public" : "private");
}

json::Raw ResultWriter::finish(const json::Raw& meta) {
  if (is_modern(revision_) && meta.absent()) {
    out_.key("_meta").raw(server_.modern_meta);
  } else if (!meta.absent()) {
    out_.key("_meta").begin_object();
    if (is_modern(revision_)) {
      out_.key(kServerInfoKey);
      write(out_, server_.info, revision_);
    }
    json::View(meta).each_member([&](std::string_view key, bool escaped, json::View value) {
      out_.key(escaped ? json::unescape(key) : std::string(key)).raw(value.text());
      return true;
    });
    out_.end_object();
  }
  out_.end_object();
  return out_.finish();
}

// ---- lists ----------------------------------------------------------------------------------------------

std::string make_list_cursor(std::size_t from, std::size_t total) {
  return base64url_encode(std::to_string(from) + "/" + std::to_string(total));
}

Result<std::size_t> read_list_cursor(json::View cursor, std::size_t total) {
  if (cursor.absent()) return std::size_t{0};
  const std::optional<std::string> text = cursor.as_string();
  const std::optional<std::string> plain = text ? base64url_decode(*text) : std::nullopt;
  std::size_t from = 0;
  if (plain) {
    const auto [end, problem] = std::from_chars(plain->data(), plain->data() + plain->size(), from);
    const std::string rest(end, plain->data() + plain->size());
    if (problem == std::errc() && rest == "/" + std::to_string(total) && from < total) return from;
  }
  return rpc::invalid_params("the cursor is not valid");
}

Answer handle_list(const FeatureRequest& request, ListKind kind) {
  const auto catalogue = request.server->catalogue();
  const std::size_t total = catalogue->size(kind);
  const Result<std::size_t> from = read_list_cursor(request.find_param("cursor"), total);
  if (!from) return from.error();
  const std::size_t page = request.server->page_size == 0 ? total : request.server->page_size;
  ResultWriter result(*request.server, request.state->revision);
  result.out().key(result_member(kind)).raw(catalogue->page_json(kind, request.state->revision, *from, page));
  if (*from + page < total) result.out().key("nextCursor").string(make_list_cursor(*from + page, total));
  result.write_cache_hint(request.server->cache_hint);
  return result.finish();
}

// ---- resources ------------------------------------------------------------------------------------------

namespace {

Error resource_not_found_error(const FeatureRequest& request, const std::string& uri) {
  json::Writer data;
  data.begin_object().key("uri").string(uri).end_object();
  const std::int64_t code = is_modern(request.state->revision) ? rpc::kInvalidParams : kResourceNotFound;
  return Error::rpc(code, "Resource not found: " + uri, data.text());
}

// The handler of a resource. If a template matched, `variables` are the variables of the template.
struct ResourceHandler {
  Server::ReadResource read;
  Server::Variables variables;
};

// Returns the handler for `uri`: of the resource, else of the skill file, else of the first template that
// matches; nullopt if there is none. Fails if `uri` exceeds `max_uri_bytes` or the search exceeds
// `max_template_steps`.
Result<std::optional<ResourceHandler>> find_resource_handler(const Catalogue& catalogue,
                                                             const std::string& uri) {
  const ListLimits limits;
  if (uri.size() > limits.max_uri_bytes)
    return rpc::invalid_params("uri is over the limit max_uri_bytes (" +
                               std::to_string(limits.max_uri_bytes) + ")");
  if (const ResourceEntry* entry = catalogue.resources.find(uri)) return ResourceHandler{entry->read, {}};
  if (const auto file = catalogue.skill_files.find(uri); file != catalogue.skill_files.end())
    return ResourceHandler{skill_file_reader(file->second), {}};
  MatchBudget budget(limits.max_template_steps);
  for (const auto& entry : catalogue.templates.entries) {
    if (!budget.spend_on_template()) break;
    auto variables = entry->pattern.extract_variables(uri, budget);
    if (variables) return ResourceHandler{entry->read, std::move(*variables)};
  }
  if (budget.exhausted())
    return rpc::invalid_params(
        "Resource not found: comparing the uri with all templates takes more than "
        "max_template_steps (" +
        std::to_string(limits.max_template_steps) + ")");
  return std::optional<ResourceHandler>();
}

}  // namespace

Task<Answer> handle_read_resource(FeatureRequest request) {
  const std::optional<std::string> uri = request.find_param("uri").as_string();
  if (!uri) co_return rpc::invalid_params("uri is not a string");
  const Result<std::optional<ResourceHandler>> found =
      find_resource_handler(*request.server->catalogue(), *uri);
  if (!found) co_return found.error();
  const std::optional<ResourceHandler>& handler = *found;
  if (!handler) co_return resource_not_found_error(request, *uri);
  const Result<void> collected = collect_input_responses(request);
  if (!collected) co_return collected.error();
  const HandlerOutcome<std::vector<ResourceContents>> outcome =
      co_await run_handler(request.state, handler->read(Context(request.state), *uri, handler->variables));
  if (outcome.thrown) co_return log_internal_error(request, exception_message(outcome.thrown));
  if (!outcome.result) co_return input_required_result(request);
  if (!*outcome.result) co_return outcome.result->error();
  if ((*outcome.result)->empty()) co_return resource_not_found_error(request, *uri);
  ResultWriter result(*request.server, request.state->revision);
  result.out().key("contents").begin_array();
  for (const ResourceContents& contents : **outcome.result) write(result.out(), contents);
  result.out().end_array();
  result.write_cache_hint(request.server->cache_hint);
  co_return result.finish();
}

// ---- prompts and completion -----------------------------------------------------------------------------

Task<Answer> handle_get_prompt(FeatureRequest request) {
  const std::optional<std::string> name = request.find_param("name").as_string();
  if (!name) co_return rpc::invalid_params("name is not a string");
  const auto catalogue = request.server->catalogue();
  const PromptEntry* prompt = catalogue->prompts.find(*name);
  if (!prompt) co_return rpc::invalid_params("Unknown prompt: " + *name);
  const Result<Server::Variables> arguments = string_members(request.find_param("arguments"), "arguments");
  if (!arguments) co_return arguments.error();
  for (const PromptArgument& argument : prompt->spec.arguments) {
    if (argument.required && !arguments->contains(argument.name)) {
      co_return rpc::invalid_params("prompt " + *name + " requires the argument " + argument.name);
    }
  }
  const Result<void> collected = collect_input_responses(request);
  if (!collected) co_return collected.error();
  const HandlerOutcome<PromptResult> outcome =
      co_await run_handler(request.state, prompt->get(Context(request.state), *arguments));
  if (outcome.thrown) co_return log_internal_error(request, exception_message(outcome.thrown));
  if (!outcome.result) co_return input_required_result(request);
  if (!*outcome.result) co_return outcome.result->error();
  const PromptResult& prompt_result = **outcome.result;
  ResultWriter result(*request.server, request.state->revision);
  if (!prompt_result.description.empty()) result.out().key("description").string(prompt_result.description);
  result.out().key("messages").begin_array();
  for (const PromptMessage& message : prompt_result.messages) {
    result.out().begin_object().key("role").string(message.role).key("content");
    result.out().raw(message.content.for_revision(request.state->revision).raw()).end_object();
  }
  result.out().end_array();
  co_return result.finish();
}

Answer handle_complete(const FeatureRequest& request) {
  constexpr std::size_t kMaxValues = 100;
  const json::View ref = request.find_param("ref");
  const json::View argument = request.find_param("argument");
  const std::optional<std::string> name = argument["name"].as_string();
  const std::optional<std::string> value = argument["value"].as_string();
  const std::string type = ref["type"].as_string().value_or("");
  if (!name || !value) return rpc::invalid_params("argument has no name or no value");
  const json::View context = request.find_param("context");
  if (!context.absent() && !context.is(json::Type::object))
    return rpc::invalid_params("context is not an object");
  const Result<Server::Variables> chosen = string_members(context["arguments"], "context.arguments");
  if (!chosen) return chosen.error();
  const auto catalogue = request.server->catalogue();
  const Server::Complete* complete = nullptr;
  if (type == "ref/prompt") {
    const PromptEntry* prompt = catalogue->prompts.find(ref["name"].as_string().value_or(""));
    if (!prompt) return rpc::invalid_params("unknown prompt");
    complete = &prompt->complete;
  } else if (type == "ref/resource") {
    const TemplateEntry* entry = catalogue->templates.find(ref["uri"].as_string().value_or(""));
    if (!entry) return rpc::invalid_params("unknown resource template");
    complete = &entry->complete;
  } else {
    return rpc::invalid_params("ref is neither ref/prompt nor ref/resource");
  }
  CompletionResult completion;
  if (*complete) completion = (*complete)(*name, *value, *chosen);
  ResultWriter result(*request.server, request.state->revision);
  result.out().key("completion").begin_object().key("values").begin_array();
  const std::size_t sent = std::min(completion.values.size(), kMaxValues);
  for (std::size_t i = 0; i < sent; ++i) result.out().string(completion.values[i]);
  result.out().end_array();
  if (completion.total) result.out().key("total").unsigned_integer(*completion.total);
  if (completion.has_more || sent < completion.values.size()) result.out().key("hasMore").boolean(true);
  result.out().end_object();
  return result.finish();
}

}  // namespace fairlead::mcp
