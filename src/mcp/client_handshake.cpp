// The handshake: finds out which era a server speaks, and greets it.
#include "fairlead/rpc/codes.hpp"
#include "json/members.hpp"
#include "mcp/client_session.hpp"
#include "protocol/envelope.hpp"

namespace fairlead::mcp {

// The requests of a handshake. server/discover may be answered late, while initialize is under way.
struct ClientSession::Greeting {
  struct Asked {
    std::optional<Result<json::Raw>> answer;
    std::stop_source stop;
  };
  std::shared_ptr<Asked> discover = std::make_shared<Asked>();
  Event answered;  // set by the next answer; replaced each time

  // Sends a request and stores its answer, which has `most` bytes at most. Runs beside its caller.
  static Task<void> ask(std::shared_ptr<Peer> peer, std::shared_ptr<Greeting> greeting,
                        std::shared_ptr<Asked> asked, std::string method, json::Raw params,
                        CallOptions options, std::size_t most) {
    Result<json::Raw> answer = co_await peer->call(method, std::move(params), std::move(options));
    if (answer && answer->text().size() > most)
      answer = Error(
          ErrorKind::resource_exhausted,
          "`" + method + "` was answered with more than max_handshake_bytes (" + std::to_string(most) + ")");
    asked->answer = std::move(answer);
    std::exchange(greeting->answered, Event()).set();
  }
};

namespace {

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

bool is_modern_refusal(const Error& error) {
  const std::int64_t code = error.detail().rpc_code.value_or(0);
  return error.kind() == ErrorKind::remote && (code == rpc::kMethodNotFound || code == kUnsupportedVersion);
}

// An initialize that was answered, and answered badly. Silence and the end of the server are no refusal.
bool is_refusal(const Error& error) {
  return error.kind() == ErrorKind::remote ||
         (error.kind() == ErrorKind::http_status && error.detail().http_status == 400);
}

bool was_answered(const std::optional<Result<json::Raw>>& answer) {
  return answer && (*answer || answer->error().kind() == ErrorKind::remote);
}

bool is_modern_answer(const std::optional<Result<json::Raw>>& answer) {
  return answer && *answer && names_newest(json::View(**answer)["supportedVersions"]);
}

}  // namespace

Task<Result<void>> ClientSession::settle_era() {
  probe_did_harm_ = false;
  has_no_discover_ = false;
  greeting_ = std::make_shared<Greeting>();
  const bool pinned_to_legacy = options_.pinned && !is_modern(*options_.pinned);
  const bool remembered = !unprobed_ && !options_.pinned && eras_->is_legacy(era_key_);
  if (unprobed_ || pinned_to_legacy || (!options_.pinned && (remembered || !options_.probe))) {
    Task<Result<void>> settling = settle_legacy(remembered);
    Result<void> settled = co_await settling;
    const bool answered = !settled && !end_reason() && settled.error().kind() != ErrorKind::timeout;
    if (!remembered || !answered) co_return settled;
    eras_->forget(era_key_);  // the server has changed: ask it
  } else if (!options_.probe) {
    revision_ = kNewest;
    co_return Result<void>();
  }
  Task<Result<void>> settling = settle_probed();
  Result<void> settled = co_await settling;
  if (remembered) probe_did_harm_ = false;  // it was not probed at first
  co_return settled;
}

Task<Result<void>> ClientSession::settle_probed() {
  Task<Result<Probe>> probing = probe();
  const Result<Probe> probed = co_await probing;
  if (!probed) co_return probed.error();
  if (*probed == Probe::modern) co_return Result<void>();
  if (*probed == Probe::gone && options_.pinned && end_reason()) co_return *end_reason();
  probe_did_harm_ = *probed == Probe::gone && !options_.pinned;
  if (*probed != Probe::legacy || options_.pinned)
    co_return Error(ErrorKind::connection_failed,
                    "the server does not speak revision " + std::string(to_string(kNewest)));
  Task<Result<void>> settling = settle_legacy(false);
  Result<void> settled = co_await settling;
  if (settled) co_return settled;
  // A modern server need not know our question; the handshake no modern server knows.
  if (has_no_discover_ && is_modern_refusal(settled.error())) {
    revision_ = kNewest;
    co_return Result<void>();
  }
  if (is_modern_refusal(settled.error())) {
    // It was slow to start, and silent when we asked first.
    Task<Result<Probe>> asking = probe();
    const Result<Probe> again = co_await asking;
    if (again && *again == Probe::modern) co_return Result<void>();
  }
  // A server that starts slowly may read the probe late, and exit.
  const bool exited = end_reason() && !was_answered(greeting_->discover->answer);
  probe_did_harm_ = is_refusal(settled.error()) || exited;
  co_return settled;
}

// `remembered`: the server was not probed because of what is known of it.
Task<Result<void>> ClientSession::settle_legacy(bool remembered) {
  Task<Result<void>> initializing = initialize(options_.pinned.value_or(kNewestLegacy));
  Result<void> initialized = co_await initializing;
  if (!initialized || is_modern(revision_)) co_return initialized;
  greeting_->discover->stop.request_stop();
  if (remembered) {
    eras_->confirm(era_key_, server_version());
  } else if (!options_.pinned && options_.probe) {
    eras_->remember(era_key_, server_version());
  }
  co_return initialized;
}

std::string ClientSession::server_version() const {
  const json::View info = server_info();
  return info["name"].as_string().value_or("") + " " + info["version"].as_string().value_or("");
}

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
  if (!names_newest(versions)) {
    // The Go SDK answers so where it keeps sessions over HTTP: it can discover, but speaks legacy revisions
    // only.
    if (names_legacy(versions)) co_return Probe::legacy;
    co_return Error(ErrorKind::connection_failed, "the server speaks no revision that this client knows");
  }
  learn(*answer);
  co_return Probe::modern;
}

std::chrono::milliseconds ClientSession::handshake_left() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(settled_by_ - Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

// Gives up waiting after probe_timeout, but leaves the request under way.
Task<Result<json::Raw>> ClientSession::discover() {
  const std::shared_ptr<Greeting> greeting = greeting_;
  greeting->discover->stop.request_stop();  // an earlier one
  const auto asked = std::make_shared<Greeting::Asked>();
  greeting->discover = asked;
  CallOptions call_options(handshake_left());
  call_options.stop = asked->stop.get_token();
  loop_.spawn(Greeting::ask(peer_, greeting, asked, "server/discover", enveloped(json::Raw()),
                            std::move(call_options), options_.lists.max_handshake_bytes));
  const auto patience = std::min(options_.probe_timeout, options_.handshake_timeout / 2);
  // Over HTTP even a server that does not understand says so.
  const bool waits = connection_->carries_each_request() || options_.pinned;
  const Clock::time_point until = waits ? Clock::time_point::max() : Clock::now() + patience;
  while (!asked->answer && Clock::now() < until) {
    const Clock::duration left = waits ? Clock::duration::max() : until - Clock::now();
    Event answered = greeting->answered;
    const bool woken = co_await answered.wait(loop_, left);
    static_cast<void>(woken);
  }
  if (!asked->answer) co_return Error::timeout("`server/discover`", patience);
  const Result<json::Raw> answer = *asked->answer;
  if (!answer && answer.error().kind() == ErrorKind::timeout && options_.pinned)
    co_return handshake_timed_out();
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
      if (over_http || options_.pinned) return error;
      return Probe::legacy;
    case ErrorKind::process_exited:
    case ErrorKind::closed:
      if (over_http) return error;
      return Probe::gone;
    default: return error;
  }
}

// The answer to initialize, or that to server/discover where that comes first and is a modern one.
Task<Result<json::Raw>> ClientSession::ask_initialize(json::Raw params) {
  const std::shared_ptr<Greeting> greeting = greeting_;
  const std::shared_ptr<Greeting::Asked> discover = greeting->discover;
  const auto asked = std::make_shared<Greeting::Asked>();
  CallOptions call_options(handshake_left());
  loop_.spawn(Greeting::ask(peer_, greeting, asked, "initialize", std::move(params), std::move(call_options),
                            options_.lists.max_handshake_bytes));
  while (!asked->answer && !is_modern_answer(discover->answer)) {
    Event answered = greeting->answered;
    const bool woken = co_await answered.wait(loop_, Clock::duration::max());
    static_cast<void>(woken);
  }
  if (!asked->answer) {
    revision_ = kNewest;
    co_return *discover->answer;
  }
  if (discover->answer && !*discover->answer)
    has_no_discover_ = discover->answer->error().detail().rpc_code == rpc::kMethodNotFound;
  const Result<json::Raw> answer = *asked->answer;
  if (!answer && answer.error().kind() == ErrorKind::timeout) co_return handshake_timed_out();
  co_return answer;
}

Task<Result<void>> ClientSession::initialize(Revision revision) {
  revision_ = revision;
  json::Writer params;
  params.begin_object().key("protocolVersion").string(to_string(revision)).key("capabilities");
  write_capabilities(params, revision);
  params.key("clientInfo");
  write(params, options_.info, revision);
  params.end_object();
  Task<Result<json::Raw>> asking = ask_initialize(params.finish());
  const Result<json::Raw> answer = co_await asking;
  if (!answer) co_return answer.error();
  if (is_modern(revision_)) {
    learn(*answer);
    co_return Result<void>();
  }
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
  const json::Members view(json::View(result), {"capabilities", "_meta", "serverInfo", "instructions"});
  replace(capabilities_, sub(result, view["capabilities"]));
  const json::View modern_info = view["_meta"]["io.modelcontextprotocol/serverInfo"];
  replace(server_info_, sub(result, modern_info.absent() ? view["serverInfo"] : modern_info));
  instructions_ = view["instructions"].as_string().value_or("");
}

}  // namespace fairlead::mcp
