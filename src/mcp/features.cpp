#include "mcp/features.hpp"

#include <charconv>

#include "fairlead/base/base64.hpp"
#include "fairlead/rpc/codes.hpp"
#include "mcp/running.hpp"

namespace fairlead::mcp {

namespace {

constexpr std::int64_t kResourceNotFound = -32002;  // up to 2025-11-25
constexpr std::string_view kServerInfo = "io.modelcontextprotocol/serverInfo";

std::string_view key_of(ListKind kind) {
  switch (kind) {
    case ListKind::tools: return "tools";
    case ListKind::resources: return "resources";
    case ListKind::templates: return "resourceTemplates";
    case ListKind::prompts: return "prompts";
  }
  return "";
}

// An object of strings, or nothing at all.
Result<std::map<std::string, std::string>> string_members(json::View object, std::string_view what) {
  if (const std::optional<Error> problem = members_problem(what, object)) return *problem;
  std::map<std::string, std::string> members;
  bool fits = object.absent() || object.is(json::Type::object);
  object.each_member([&](std::string_view key, bool escaped, json::View value) {
    std::optional<std::string> text = value.as_string();
    fits = text.has_value();
    if (fits) members[escaped ? json::unescape(key) : std::string(key)] = std::move(*text);
    return fits;
  });
  if (!fits) return rpc::invalid_params(std::string(what) + " is not an object of strings");
  return members;
}

// ---- questions (modern era) -----------------------------------------------------------------------------

// What a request's state is bound to: it is refused for another endpoint, principal, tool or other arguments.
std::string binding(const FeatureCall& call) {
  const json::View args = call.args();
  const json::View name = args["name"].absent() ? args["uri"] : args["name"];
  const std::string& endpoint = call.server->endpoint_name();
  return std::to_string(endpoint.size()) + ":" + endpoint + identity_key(*call.state->link->principal()) +
         "\n" + call.method + "\n" + std::string(name.text()) + "\n" + json::minify(args["arguments"].text());
}

}  // namespace

Error internal(const FeatureCall& call, const std::string& what) {
  call.log.error("request failed", {{"method", call.method}, {"what", what}});
  return Error::rpc(rpc::kInternalError, "Internal error");
}

std::string what_was_thrown(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

// Takes in what earlier rounds and this one have answered.
Result<void> take_answers(const FeatureCall& call) {
  if (!is_modern(call.state->revision)) return {};
  const json::View sealed = call.arg("requestState");
  if (!sealed.absent()) {
    const std::optional<std::string> text = sealed.as_string();
    if (!text) return rpc::invalid_params("requestState is not a string");
    const Result<std::string> opened =
        call.server->sealer->open(*text, binding(call), std::chrono::system_clock::now());
    if (!opened) return opened.error();
    json::View(*opened).each_member([&](std::string_view key, bool escaped, json::View value) {
      call.state->answers[escaped ? json::unescape(key) : std::string(key)] =
          json::Raw::trusted(Bytes::copy_of(value.text()));
      return true;
    });
  }
  const json::View responses = call.arg("inputResponses");
  if (!responses.absent() && !responses.is(json::Type::object))
    return rpc::invalid_params("inputResponses is not an object");
  if (const std::optional<Error> problem = members_problem("inputResponses", responses)) return *problem;
  responses.each_member([&](std::string_view key, bool escaped, json::View value) {
    call.state->answers[escaped ? json::unescape(key) : std::string(key)] =
        json::Raw::trusted(call.params.bytes().part(value.text()));
    return true;
  });
  return {};
}

json::Raw input_required(const FeatureCall& call) {
  json::Writer answers;
  answers.begin_object();
  for (const auto& [key, answer] : call.state->answers) answers.key(key).raw(answer);
  answers.end_object();
  ResultWriter result(*call.server, call.state->revision, "input_required");
  result.out().key("inputRequests").begin_object();
  for (const RequestState::Question& question : call.state->open) {
    result.out()
        .key(question.key)
        .begin_object()
        .key("method")
        .string(question.method)
        .key("params")
        .raw(question.params)
        .end_object();
  }
  result.out().end_object();
  result.out()
      .key("requestState")
      .string(call.server->sealer->seal(answers.text(), binding(call), std::chrono::system_clock::now()));
  return result.finish();
}

// ---- results --------------------------------------------------------------------------------------------

ResultWriter::ResultWriter(const ServerState& server, Revision revision, std::string_view result_type)
    : server_(server), revision_(revision) {
  out_.begin_object();
  if (is_modern(revision_)) out_.key("resultType").string(result_type);
}

void ResultWriter::cache_hint(const CacheHint& hint) {
  if (!is_modern(revision_)) return;
  out_.key("ttlMs")
      .unsigned_integer(hint.ttl_ms)
      .key("cacheScope")
      .string(hint.is_public ? "public" : "private");
}

json::Raw ResultWriter::finish(const json::Raw& meta) {
  if (is_modern(revision_) || !meta.absent()) {
    out_.key("_meta").begin_object();
    if (is_modern(revision_)) {
      out_.key(kServerInfo);
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

std::string make_cursor(std::size_t from, std::size_t total) {
  return base64url_encode(std::to_string(from) + "/" + std::to_string(total));
}

Result<std::size_t> read_cursor(json::View cursor, std::size_t total) {
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

Answer list(const FeatureCall& call, ListKind kind) {
  const auto catalogue = call.server->catalogue();
  const std::size_t total = catalogue->size(kind);
  const Result<std::size_t> from = read_cursor(call.arg("cursor"), total);
  if (!from) return from.error();
  const std::size_t page = call.server->page_size == 0 ? total : call.server->page_size;
  ResultWriter result(*call.server, call.state->revision);
  result.out().key(key_of(kind)).raw(catalogue->encoded(kind, call.state->revision, *from, page));
  if (*from + page < total) result.out().key("nextCursor").string(make_cursor(*from + page, total));
  result.cache_hint(call.server->cache_hint);
  return result.finish();
}

// ---- resources ------------------------------------------------------------------------------------------

namespace {

Error no_such_resource(const FeatureCall& call, const std::string& uri) {
  json::Writer data;
  data.begin_object().key("uri").string(uri).end_object();
  const std::int64_t code = is_modern(call.state->revision) ? rpc::kInvalidParams : kResourceNotFound;
  return Error::rpc(code, "Resource not found: " + uri, data.text());
}

// The handler of a resource by its URI, or of the first template that fits.
struct Readable {
  Server::ReadResource read;
  Server::Variables variables;
};

// Fails for a URI over `max_uri_bytes`, and if `max_template_steps` ended the search.
Result<std::optional<Readable>> find_readable(const Catalogue& catalogue, const std::string& uri) {
  const ListLimits limits;
  if (uri.size() > limits.max_uri_bytes)
    return rpc::invalid_params("uri is over the limit max_uri_bytes (" +
                               std::to_string(limits.max_uri_bytes) + ")");
  if (const ResourceEntry* entry = catalogue.resources.find(uri)) return Readable{entry->read, {}};
  if (const auto file = catalogue.files.find(uri); file != catalogue.files.end())
    return Readable{reader_of(file->second), {}};
  MatchBudget budget(limits.max_template_steps);
  for (const auto& entry : catalogue.templates.entries) {
    if (!budget.spend_on_template()) break;
    auto variables = entry->pattern.match(uri, budget);
    if (variables) return Readable{entry->read, std::move(*variables)};
  }
  if (budget.exhausted())
    return rpc::invalid_params(
        "Resource not found: comparing the uri with all templates takes more than "
        "max_template_steps (" +
        std::to_string(limits.max_template_steps) + ")");
  return std::optional<Readable>();
}

}  // namespace

Task<Answer> read_resource(FeatureCall call) {
  const std::optional<std::string> uri = call.arg("uri").as_string();
  if (!uri) co_return rpc::invalid_params("uri is not a string");
  const Result<std::optional<Readable>> found = find_readable(*call.server->catalogue(), *uri);
  if (!found) co_return found.error();
  const std::optional<Readable>& readable = *found;
  if (!readable) co_return no_such_resource(call, *uri);
  const Result<void> taken = take_answers(call);
  if (!taken) co_return taken.error();
  Task<Ended<std::vector<ResourceContents>>> running =
      run_handler(call.state, readable->read(Context(call.state), *uri, readable->variables));
  const Ended<std::vector<ResourceContents>> ended = co_await running;
  if (ended.thrown) co_return internal(call, what_was_thrown(ended.thrown));
  if (!ended.result) co_return input_required(call);
  if (!*ended.result) co_return ended.result->error();
  if ((*ended.result)->empty()) co_return no_such_resource(call, *uri);
  ResultWriter result(*call.server, call.state->revision);
  result.out().key("contents").begin_array();
  for (const ResourceContents& contents : **ended.result) write(result.out(), contents);
  result.out().end_array();
  result.cache_hint(call.server->cache_hint);
  co_return result.finish();
}

// ---- prompts and completion -----------------------------------------------------------------------------

Task<Answer> get_prompt(FeatureCall call) {
  const std::optional<std::string> name = call.arg("name").as_string();
  if (!name) co_return rpc::invalid_params("name is not a string");
  const auto catalogue = call.server->catalogue();
  const PromptEntry* prompt = catalogue->prompts.find(*name);
  if (!prompt) co_return rpc::invalid_params("Unknown prompt: " + *name);
  const Result<Server::Variables> arguments = string_members(call.arg("arguments"), "arguments");
  if (!arguments) co_return arguments.error();
  for (const PromptArgument& argument : prompt->spec.arguments) {
    if (argument.required && !arguments->contains(argument.name)) {
      co_return rpc::invalid_params("prompt " + *name + " needs the argument " + argument.name);
    }
  }
  const Result<void> taken = take_answers(call);
  if (!taken) co_return taken.error();
  Task<Ended<PromptResult>> running = run_handler(call.state, prompt->get(Context(call.state), *arguments));
  const Ended<PromptResult> ended = co_await running;
  if (ended.thrown) co_return internal(call, what_was_thrown(ended.thrown));
  if (!ended.result) co_return input_required(call);
  if (!*ended.result) co_return ended.result->error();
  const PromptResult& prompt_result = **ended.result;
  ResultWriter result(*call.server, call.state->revision);
  if (!prompt_result.description.empty()) result.out().key("description").string(prompt_result.description);
  result.out().key("messages").begin_array();
  for (const PromptMessage& message : prompt_result.messages) {
    result.out().begin_object().key("role").string(message.role).key("content");
    result.out().raw(message.content.for_revision(call.state->revision).raw()).end_object();
  }
  result.out().end_array();
  co_return result.finish();
}

Answer complete(const FeatureCall& call) {
  constexpr std::size_t kMostValues = 100;
  const json::View ref = call.arg("ref");
  const json::View argument = call.arg("argument");
  const std::optional<std::string> name = argument["name"].as_string();
  const std::optional<std::string> value = argument["value"].as_string();
  const std::string type = ref["type"].as_string().value_or("");
  if (!name || !value) return rpc::invalid_params("argument needs a name and a value");
  const json::View context = call.arg("context");
  if (!context.absent() && !context.is(json::Type::object))
    return rpc::invalid_params("context is not an object");
  const Result<Server::Variables> chosen = string_members(context["arguments"], "context.arguments");
  if (!chosen) return chosen.error();
  const auto catalogue = call.server->catalogue();
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
  ResultWriter result(*call.server, call.state->revision);
  result.out().key("completion").begin_object().key("values").begin_array();
  const std::size_t sent = std::min(completion.values.size(), kMostValues);
  for (std::size_t i = 0; i < sent; ++i) result.out().string(completion.values[i]);
  result.out().end_array();
  if (completion.total) result.out().key("total").unsigned_integer(*completion.total);
  if (completion.has_more || sent < completion.values.size()) result.out().key("hasMore").boolean(true);
  result.out().end_object();
  return result.finish();
}

}  // namespace fairlead::mcp
