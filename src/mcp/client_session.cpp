#include "mcp/client_session.hpp"

#include "fairlead/json/splice.hpp"
#include "fairlead/protocol/header_annotations.hpp"
#include "fairlead/rpc/codes.hpp"
#include "mcp/dialect.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

namespace {

constexpr int kMostRounds = 10;
const std::chrono::milliseconds kComeBack{250};

bool names_newest(json::View versions) {
  bool found = false;
  versions.each_element([&](json::View version) {
    found = found || version.as_string() == to_string(kNewest);
    return !found;
  });
  return found;
}

bool names_legacy(json::View versions) {
  bool found = false;
  versions.each_element([&](json::View version) {
    const auto known = revision_named(version.as_string().value_or(""));
    found = found || (known && !is_modern(*known));
    return !found;
  });
  return found;
}

// What a server hears whose client has been let go of.
Task<Answer> nobody() {
  co_return Error::rpc(rpc::kInternalError, "The client is gone");
}

}  // namespace

void ClientSession::attach(std::shared_ptr<Connection> connection) {
  auto methods = std::make_shared<Methods>();
  std::weak_ptr<Client> weak = weak_from_this();
  methods->otherwise([weak](Request request) -> Task<Answer> {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    return client ? client->serve(std::move(request)) : nobody();
  });
  PeerOptions peer_options;
  peer_options.limits = options_.connect.limits;
  peer_options.log = options_.connect.log;
  peer_options.noise = Noise::skip;
  peer_options.dialect = dialect();
  // A modern server sends no requests; one that does gets no answer (a client must not send any).
  peer_options.ignore_request = [weak](const rpc::Message&) {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    return client && is_modern(client->revision_);
  };
  peer_options.on_ending = [weak] {
    const auto client = std::static_pointer_cast<ClientSession>(weak.lock());
    // No peer yet: the connection was closed when it came, and whoever connects is told.
    if (client && client->peer_ && client->options_.handlers.ended && client->end_reason())
      client->options_.handlers.ended(*client->end_reason());
  };
  connection_ = connection;
  peer_ = Peer::start(std::move(connection), std::move(methods), std::move(peer_options));
}

// ---- finding the era ------------------------------------------------------------------------------------

// Asks the modern question. Only a modern answer makes it a modern server: legacy ones answer with any code
// there is, with nothing, or die of it.
Task<Result<ClientSession::Probe>> ClientSession::probe() {
  revision_ = kNewest;
  Task<Result<json::Raw>> asking = discover();
  Result<json::Raw> answer = co_await asking;
  // One that refuses the very revision it says it speaks is asked once more.
  if (!answer && answer.error().detail().rpc_code == kUnsupportedVersion &&
      names_newest(json::View(answer.error().detail().rpc_data)["supported"])) {
    Task<Result<json::Raw>> again = discover();
    answer = co_await again;
  }
  if (!answer) co_return judge(answer.error());
  const json::View versions = json::View(*answer)["supportedVersions"];
  if (!versions.is(json::Type::array)) co_return Probe::legacy;  // some legacy servers answer anything
  if (!names_newest(versions))
    co_return Error(ErrorKind::connection_failed, "the server speaks no revision that this client knows");
  learn(*answer);
  co_return Probe::modern;
}

std::chrono::milliseconds ClientSession::handshake_left() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(settled_by_ - Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

Task<Result<json::Raw>> ClientSession::discover() {
  // Over HTTP even a server that does not understand says so.
  const std::chrono::milliseconds left = handshake_left();
  const auto patience = std::min(options_.probe_timeout, options_.handshake_timeout / 2);
  CallOptions call_options(connection_->carries_each_request() ? left : std::min(left, patience));
  Task<Result<json::Raw>> asking =
      send("server/discover", enveloped(json::Raw(), false, json::Raw(), {}), std::move(call_options));
  Result<json::Raw> answer = co_await asking;
  co_return answer;
}

// What a refusal shows. Over HTTP only a refusal of the question itself does: failures and silence are no
// evidence, and some codes are known to modern servers only.
Result<ClientSession::Probe> ClientSession::judge(const Error& error) {
  const bool over_http = connection_->carries_each_request();
  const std::int64_t code = error.detail().rpc_code.value_or(0);
  switch (error.kind()) {
    case ErrorKind::remote:
      if (code == kUnsupportedVersion && !names_legacy(json::View(error.detail().rpc_data)["supported"]))
        return Error(ErrorKind::connection_failed,
                     "the server speaks no revision that this client knows: " + error.message());
      if (over_http && (code == kHeaderMismatch || code == kMissingCapability)) return error;
      has_no_discover_ = code == rpc::kMethodNotFound;
      // Whoever pins the revision need not be told, unless this is how legacy servers refuse: over HTTP most
      // of them want a session first.
      return has_no_discover_ && options_.pinned && over_http ? Probe::modern : Probe::legacy;
    case ErrorKind::http_status: {
      const int status = error.detail().http_status.value_or(0);
      if (status >= 400 && status < 500) return Probe::legacy;
      return error;
    }
    case ErrorKind::timeout:
      if (over_http) return error;
      return Probe::legacy;
    case ErrorKind::process_exited:
    case ErrorKind::closed:
      if (over_http) return error;
      return Probe::gone;
    default: return error;
  }
}

Task<Result<void>> ClientSession::initialize(Revision revision) {
  revision_ = revision;
  json::Writer params;
  params.begin_object().key("protocolVersion").string(to_string(revision)).key("capabilities");
  write_capabilities(params, revision);
  params.key("clientInfo");
  write(params, options_.info, revision);
  params.end_object();
  CallOptions call_options(handshake_left());
  Task<Result<json::Raw>> asking = send("initialize", params.finish(), std::move(call_options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer && answer.error().kind() == ErrorKind::timeout)
    co_return Error::timeout("the handshake", options_.handshake_timeout);
  if (!answer) co_return answer.error();
  const std::string offered = json::View(*answer)["protocolVersion"].as_string().value_or("");
  const std::optional<Revision> chosen = revision_named(offered);
  if (!chosen || is_modern(*chosen) || (options_.pinned && *chosen != *options_.pinned)) {
    co_return Error(ErrorKind::connection_failed,
                    "the server wants to speak revision `" + offered + "`, which this client does not");
  }
  revision_ = *chosen;
  learn(*answer);
  const Result<void> sent = co_await peer_->notify("notifications/initialized");
  if (!sent || !options_.log_level || capabilities()["logging"].absent()) co_return sent;
  Task<Result<void>> setting = set_level_now(handshake_left());
  const Result<void> set = co_await setting;
  if (!set)
    options_.connect.log.warning("the server's log level is not set", {{"reason", set.error().message()}});
  co_return Result<void>();
}

// A server that says what it said before leaves the views of it valid.
void ClientSession::learn(const json::Raw& result) {
  const auto replace = [](json::Raw& known, json::Raw said) {
    if (known.text() != said.text()) known = std::move(said);
  };
  const json::View view(result);
  replace(capabilities_, sub(result, view["capabilities"]));
  const json::View modern_info = view["_meta"]["io.modelcontextprotocol/serverInfo"];
  replace(server_info_, sub(result, modern_info.absent() ? view["serverInfo"] : modern_info));
  instructions_ = view["instructions"].as_string().value_or("");
}

void ClientSession::write_capabilities(json::Writer& out, Revision revision) const {
  const ClientHandlers& handlers = options_.handlers;
  if (!handlers.capabilities.absent()) {
    out.raw(handlers.capabilities);
    return;
  }
  out.begin_object();
  if (handlers.sample) out.key("sampling").begin_object().end_object();
  if ((handlers.elicit || handlers.elicit_url) && revision >= Revision::r2025_06_18) {
    out.key("elicitation").begin_object();
    if (revision >= Revision::r2025_11_25) {
      if (handlers.elicit) out.key("form").begin_object().end_object();
      if (handlers.elicit_url) out.key("url").begin_object().end_object();
    }
    out.end_object();
  }
  if (handlers.roots) out.key("roots").begin_object().end_object();
  if (options_.keep_tasks && revision == Revision::r2025_11_25 && (handlers.sample || handlers.elicit)) {
    out.key("tasks")
        .begin_object()
        .key("list")
        .raw("{}")
        .key("cancel")
        .raw("{}")
        .key("requests")
        .begin_object();
    if (handlers.sample) out.key("sampling").raw(R"({"createMessage":{}})");
    if (handlers.elicit) out.key("elicitation").raw(R"({"create":{}})");
    out.end_object().end_object();
  }
  Extensions declared = options_.extensions;
  if (options_.tasks && is_modern(revision)) declared.try_emplace(std::string(kTasksExtension));
  write(out, declared);
  out.end_object();
}

// ---- requests -------------------------------------------------------------------------------------------

Task<Result<json::Raw>> ClientSession::send(std::string method, json::Raw params, CallOptions call_options) {
  Result<json::Raw> answer = co_await peer_->call(method, std::move(params), std::move(call_options));
  co_return answer;
}

// Adds what the era wants to a request's params and leaves the rest as it is.
json::Raw ClientSession::enveloped(const json::Raw& params, bool wants_progress, const json::Raw& answers,
                                   const std::string& state) const {
  json::Writer meta;
  meta.begin_object();
  const json::View given = json::View(params)["_meta"];
  given.each_member([&](std::string_view key, bool escaped, json::View value) {
    meta.key(escaped ? json::unescape(key) : std::string(key)).raw(value.text());
    return true;
  });
  if (is_modern(revision_)) {
    meta.key("io.modelcontextprotocol/protocolVersion").string(to_string(revision_));
    meta.key("io.modelcontextprotocol/clientInfo");
    write(meta, options_.info, revision_);
    meta.key("io.modelcontextprotocol/clientCapabilities");
    write_capabilities(meta, revision_);
    if (options_.log_level)
      meta.key("io.modelcontextprotocol/logLevel").string(to_string(*options_.log_level));
  }
  // The token is filled in by whoever knows the call's id.
  if (wants_progress) meta.key("progressToken").raw("0");
  meta.end_object();
  if (meta.text() == "{}") return params;
  const json::Raw base = params.absent() ? empty_object() : params;
  json::Splice splice(base.bytes());
  if (given.absent()) {
    splice.insert_member(base.text(), "_meta", meta.text());
  } else {
    splice.replace(json::View(base)["_meta"].text(), Bytes::copy_of(meta.text()));
  }
  if (!answers.absent()) splice.insert_member(base.text(), "inputResponses", answers.text());
  if (!state.empty()) splice.insert_member(base.text(), "requestState", json::string(state).text());
  return json::Raw::trusted(splice.joined(), base.one_line());
}

namespace {

// Puts a call's own id in the place of the progress token.
json::Raw with_token(const json::Raw& params, std::string_view id) {
  json::Splice splice(params.bytes());
  splice.replace(json::View(params)["_meta"]["progressToken"].text(), Bytes::copy_of(id));
  return json::Raw::trusted(splice.joined(), params.one_line());
}

CallOptions call_options_of(const ToolCallOptions& options) {
  CallOptions made;
  made.timeout = options.timeout;
  made.max_total = options.max_total;
  made.stop = options.stop;
  if (options.on_progress) {
    made.on_progress = [report = options.on_progress](const json::Raw& params) {
      const json::View view(params);
      report(view["progress"].as_double().value_or(0), view["total"].as_double(),
             view["message"].as_string().value_or(""));
    };
  }
  return made;
}

}  // namespace

Task<Result<json::Raw>> ClientSession::request(std::string method, json::Raw params,
                                               ToolCallOptions options) {
  const auto keep = self();
  if (options_.cache && is_modern(revision_)) {
    if (std::optional<json::Raw> known = cache_.find(method, json::View(params), Clock::now()))
      co_return *known;
  }
  if (away()) {
    Task<Result<void>> returning = come_back();
    const Result<void> returned = co_await returning;
    if (!returned) co_return stale_or(returned.error(), method, params);
  }
  Task<Result<json::Raw>> asking = request_now(method, params, std::move(options));
  Result<json::Raw> answer = co_await asking;
  if (answer || !options_.stale_on_error) co_return answer;
  co_return stale_or(std::move(answer), method, params);
}

// What was once the answer, in the place of none: a server that answers, even with an error, is believed.
Result<json::Raw> ClientSession::stale_or(Result<json::Raw> answer, std::string_view method,
                                          const json::Raw& params) const {
  const ErrorKind kind = answer.error().kind();
  if (!options_.stale_on_error || kind == ErrorKind::remote || kind == ErrorKind::cancelled) return answer;
  std::optional<json::Raw> known = cache_.find_stale(method, json::View(params));
  if (!known) return answer;
  options_.connect.log.warning("a stale result is used",
                               {{"method", std::string(method)}, {"reason", answer.error().to_string()}});
  return *known;
}

Task<Result<json::Raw>> ClientSession::rounds(std::string method, json::Raw params, ToolCallOptions options) {
  json::Raw answers;
  std::string state;
  const bool may_cache = options_.cache && is_modern(revision_);
  const std::uint64_t asked_at = cache_.generation();
  bool listed_again = false;
  for (int round = 0; round <= kMostRounds; ++round) {
    const bool wants_progress = static_cast<bool>(options.on_progress);
    json::Raw sent_params = enveloped(params, wants_progress, answers, state);
    CallOptions call_options = call_options_of(options);
    if (wants_progress)
      call_options.params_for_id = [sent_params](std::string_view id) { return with_token(sent_params, id); };
    Task<Result<json::Raw>> sending = send(method, std::move(sent_params), std::move(call_options));
    Result<json::Raw> answer = co_await sending;
    if (!answer && answer.error().detail().rpc_code == rpc::kInvalidParams &&
        !json::View(params)["cursor"].absent()) {
      cache_.on_bad_cursor(method);
    }
    // The tool's arguments travel as other headers than we think: look, and try once more.
    if (!answer && !listed_again && method == "tools/call" && connection_->carries_each_request() &&
        answer.error().detail().rpc_code == kHeaderMismatch) {
      listed_again = true;
      cache_.on_notification("notifications/tools/list_changed", json::View());
      Task<Result<std::vector<json::Raw>>> listing = list("tools/list", "tools");
      const Result<std::vector<json::Raw>> tools = co_await listing;
      if (tools) continue;
    }
    if (!answer || !is_modern(revision_)) co_return answer;
    const json::View view(*answer);
    const std::string type = view["resultType"].as_string().value_or("complete");
    if (type == "complete") {
      if (may_cache && answers.absent() && state.empty())
        cache_.store(method, json::View(params), *answer, Clock::now(), asked_at);
      co_return answer;
    }
    if (type == "task" && method == "tools/call" && options_.tasks) co_return answer;
    if (type != "input_required")
      co_return Error(ErrorKind::validation, "the server answered with an unknown resultType `" + type + "`");
    state = view["requestState"].as_string().value_or("");
    const json::View questions = view["inputRequests"];
    if (questions.absent()) {
      answers = json::Raw();
      co_await sleep_for(connection_->loop(), kComeBack);
      continue;
    }
    Task<Result<json::Raw>> answering = answer_questions(sub(*answer, questions));
    Result<json::Raw> answered = co_await answering;
    if (!answered) co_return answered.error();
    answers = std::move(*answered);
  }
  co_return Error(ErrorKind::resource_exhausted, "the server asked more than 10 rounds of questions");
}

Peer::Forward ClientSession::forward(rpc::Message request, CallOptions options) {
  const json::View token = json::View(request.params_text())["_meta"]["progressToken"];
  if (token.absent()) return peer_->forward(std::move(request), std::move(options));
  if (options.on_progress) {
    options.on_progress = [report = std::move(options.on_progress),
                           own = Bytes::copy_of(token.text())](const json::Raw& params) {
      json::Splice splice(params.bytes());
      splice.replace(json::View(params)["progressToken"].text(), own);
      report(json::Raw::trusted(splice.joined(), params.one_line()));
    };
  }
  options.request_for_id = [request, place = token.text()](std::string_view id) {
    const Bytes own = Bytes::copy_of(id);
    json::Splice splice(request.frame());
    splice.replace(request.id(), own).replace(place, own);
    return rpc::Rope(splice.parts(), !request.has_line_break());
  };
  return peer_->forward(std::move(request), std::move(options));
}

// ---- lists and tools ------------------------------------------------------------------------------------

Task<Result<std::vector<json::Raw>>> ClientSession::list(std::string method, std::string member) {
  const auto keep = self();
  std::vector<json::Raw> all;
  json::Raw params;
  for (std::size_t page = 0; page < kMostPages; ++page) {
    ToolCallOptions options;
    Task<Result<json::Raw>> asking = request(method, params, std::move(options));
    const Result<json::Raw> answer = co_await asking;
    if (!answer) co_return answer.error();
    const json::View entries = json::View(*answer)[member];
    if (!entries.is(json::Type::array))
      co_return Error(ErrorKind::validation, method + " was answered without `" + member + "`");
    entries.each_element([&](json::View entry) {
      all.push_back(sub(*answer, entry));
      return true;
    });
    const json::View next = json::View(*answer)["nextCursor"];
    if (!next.is(json::Type::string)) {
      if (method == "tools/list") {
        all = without_invalid(std::move(all));
        remember_schemas(all);
      }
      co_return all;
    }
    json::Writer out;
    out.begin_object().key("cursor").raw(next.text()).end_object();
    params = out.finish();
  }
  co_return Error(ErrorKind::resource_exhausted, method + " has more than 1000 pages");
}

std::vector<json::Raw> ClientSession::without_invalid(std::vector<json::Raw> tools) const {
  if (!is_modern(revision_)) return tools;
  std::erase_if(tools, [&](const json::Raw& tool) {
    const auto problem = header_annotation_problem(json::View(tool)["inputSchema"]);
    if (!problem) return false;
    options_.connect.log.warning(
        "a tool is left out",
        {{"tool", json::View(tool)["name"].as_string().value_or("")}, {"problem", *problem}});
    return true;
  });
  return tools;
}

void ClientSession::remember_schemas(const std::vector<json::Raw>& tools) {
  output_schemas_.clear();
  task_only_.clear();
  tools_seen_ = true;
  for (const json::Raw& tool : tools) {
    const json::View view(tool);
    if (view["execution"]["taskSupport"].as_string() == "required")
      task_only_.insert(view["name"].as_string().value_or(""));
    const json::View schema = view["outputSchema"];
    if (schema.absent()) continue;
    Result<json::Schema> compiled = json::Schema::compile(schema.text());
    if (compiled) {
      output_schemas_.emplace(view["name"].as_string().value_or(""), std::move(*compiled));
    } else {
      options_.connect.log.warning(
          "a tool's output schema is not usable",
          {{"tool", view["name"].as_string().value_or("")}, {"problem", compiled.error().message()}});
    }
  }
}

Task<Result<ToolResult>> ClientSession::call_tool(std::string name, json::Raw arguments,
                                                  ToolCallOptions options) {
  const auto keep = self();
  json::Writer params;
  params.begin_object().key("name").string(name);
  if (!arguments.absent()) params.key("arguments").raw(arguments);
  params.end_object();
  Task<Result<json::Raw>> asking = request("tools/call", params.finish(), std::move(options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return tool_result(name, *answer);
}

Result<ToolResult> ClientSession::tool_result(const std::string& name, const json::Raw& answer) const {
  const json::View view(answer);
  ToolResult result;
  view["content"].each_element([&](json::View block) {
    result.content.push_back(Content(sub(answer, block)));
    return true;
  });
  result.structured = sub(answer, view["structuredContent"]);
  result.is_error = view["isError"].as_bool().value_or(false);
  result.meta = sub(answer, view["_meta"]);
  const auto schema = output_schemas_.find(name);
  if (schema != output_schemas_.end() && !result.is_error) {
    if (result.structured.absent())
      return Error(ErrorKind::validation,
                   "tool " + name + " has an output schema but returned no structured content");
    if (const auto violation = schema->second.validate(result.structured.text())) {
      return Error(ErrorKind::validation,
                   "the structured content of tool " + name + " breaks its schema: " + violation->message);
    }
  }
  return result;
}

Task<Result<void>> ClientSession::set_log_level(LoggingLevel level) {
  const auto keep = self();
  options_.log_level = level;
  if (is_modern(revision_)) co_return Result<void>();
  if (away()) {
    Task<Result<void>> returning = come_back();  // which sets the level
    Result<void> returned = co_await returning;
    co_return returned;
  }
  Task<Result<void>> setting = set_level_now(std::nullopt);
  Result<void> set = co_await setting;
  co_return set;
}

Task<Result<void>> ClientSession::set_level_now(std::optional<std::chrono::milliseconds> timeout) {
  json::Writer params;
  params.begin_object().key("level").string(to_string(*options_.log_level)).end_object();
  ToolCallOptions options;
  options.timeout = timeout;
  Task<Result<json::Raw>> asking = request_now("logging/setLevel", params.finish(), std::move(options));
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  co_return Result<void>();
}

}  // namespace fairlead::mcp
